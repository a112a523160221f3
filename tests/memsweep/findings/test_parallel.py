from __future__ import annotations

import dataclasses

import pytest

from memsweep.findings.find import find
from memsweep.findings.parallel import MOST_OPTIONS, Row, choices, objectives, options
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from synthetic import measured

BASELINE = {"adapter": "baseline", "packing": "baseline"}


def rows_of(study: Study, *searched: dict[str, str]) -> dict[str, Row]:
    trials = [measured(number, {}, parameters=labels) for number, labels in enumerate(searched)]
    return {row.title: row for row in choices(find(trials, study))}


def labels(row: Row) -> list[str]:
    return [text for _, text in row.ticks]


def test_what_all_chose_alike_has_no_row(study: Study) -> None:
    results = [measured(0, BASELINE), measured(1, {**BASELINE, "packing": "bfd"})]

    (row,) = choices(find(results, study))

    assert row.title == "packing"
    assert dict(row.places) == {0: 0.0, 1: 1.0}


def test_numbers_lie_by_their_size_and_the_starts_word_comes_first(study: Study) -> None:
    rows = rows_of(study, {"n": "16", "word": "z"}, {"n": "8", "word": "a"}, {"n": "128", "word": "b"})

    assert labels(rows["n"]) == ["8", "16", "128"]
    assert rows["n"].is_numeric
    assert labels(rows["word"]) == ["z", "a", "b"]
    assert not rows["word"].is_numeric


def test_many_numbers_lie_along_a_scale_and_many_words_have_no_row(study: Study) -> None:
    n_values = MOST_OPTIONS + 1
    searched = [{"n": str(n), "rate": f"{10.0**-n}", "word": f"w{n}"} for n in range(n_values)]
    rows = rows_of(study, *searched)

    assert sorted(rows) == ["n", "rate"]
    assert rows["n"].places[6] == pytest.approx(6 / 12)
    assert rows["rate"].places[6] == pytest.approx(6 / 12)  # from 1e-12 to 1, by ratios
    assert len(rows["n"].ticks) == 2


def test_a_techniques_parameter_follows_it_and_is_missing_where_it_does_not_exist(study: Study) -> None:
    plain = measured(0, BASELINE, parameters={"x": "1"})
    others = [
        measured(
            number,
            {**BASELINE, "packing": "bfd"},
            parameters={"x": "2", "technique/packing": "bfd", "technique.packing.length": length},
        )
        for number, length in ((1, "256"), (2, "512"))
    ]

    rows = choices(find([plain, *others], study))

    assert [row.title for row in rows] == ["packing", "packing.length", "x"]
    assert rows[1].spread(0, 0.5) is None
    assert set(rows[1].places) == {1, 2}


def test_keys_of_one_name_keep_what_tells_them_apart(study: Study) -> None:
    rows = rows_of(study, {"model.size": "1", "data.size": "1"}, {"model.size": "2", "data.size": "2"})

    assert set(rows) == {"model.size", "data.size"}


def test_lines_through_one_option_lie_apart_and_nearer_to_it_than_to_the_next(study: Study) -> None:
    row = rows_of(study, {"x": "a"}, {"x": "b"}, {"x": "c"})["x"]

    first, last = row.spread(1, 0.0), row.spread(1, 1.0)

    assert first is not None
    assert last is not None
    assert 0.25 < first < row.places[1] < last < 0.75


def test_the_better_objective_is_at_the_end_and_ratios_are_equal_steps(study: Study) -> None:
    figures = ((1.0, 1.0), (3.0, 3.0), (9.0, 9.0))
    trials = [
        measured(number, {}, objectives={"tokens_per_second": speed, "peak_memory_bytes": memory})
        for number, (speed, memory) in enumerate(figures)
    ]

    speed, memory = objectives(find(trials, study))

    assert [speed.places[number] for number in range(3)] == pytest.approx([0.0, 0.5, 1.0])
    assert [memory.places[number] for number in range(3)] == pytest.approx([1.0, 0.5, 0.0])
    assert labels(speed) == ["1.0 tokens/s", "9.0 tokens/s"]


def test_fewer_than_two_measured_set_ups_have_nothing_to_cross(study: Study) -> None:
    assert choices(find([measured(0, BASELINE)], study)) == ()
    assert choices(find([], study)) == objectives(find([], study)) == ()


def test_an_option_stands_with_its_parameters_and_the_starts_is_first(study: Study) -> None:
    other: TrialResult = dataclasses.replace(
        measured(1, BASELINE),
        choice={**BASELINE, "packing": "a_first"},
        parameters={"technique/packing": "a_first", "technique.packing.length": "8"},
    )
    results = [measured(0, BASELINE), other]

    assert options(find(results, study), results) == {"packing": ["baseline", "a_first length=8"]}
