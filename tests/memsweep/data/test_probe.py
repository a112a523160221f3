from __future__ import annotations

import json
from pathlib import Path

import pytest

from memsweep.config.schema import DataKind, DatasetConfig, DatasetSource
from memsweep.data.probe import at_even_quantiles, probe
from memsweep.errors import DatasetError
from tiny import EMBEDDED


def test_lengths_are_the_middles_of_equal_parts() -> None:
    rows = [{"text": "x" * n} for n in range(1, 101)]

    chosen = at_even_quantiles(rows, 4, seed=0, where="x")

    assert sorted(len(row["text"]) for row in chosen) == [13, 38, 63, 88]


def test_the_seed_decides_the_order_and_nothing_else() -> None:
    rows = [{"text": "x" * n} for n in range(1, 101)]

    one, other = (at_even_quantiles(rows, 10, seed, "x") for seed in (0, 1))

    assert one != other
    assert sorted(map(str, one)) == sorted(map(str, other))


def test_too_few_examples_are_said_with_what_to_type() -> None:
    with pytest.raises(
        DatasetError, match=r"mine\.jsonl has 2 usable examples, .* measure\.probe_examples=2"
    ):
        at_even_quantiles([{"text": "a"}, {"text": "b"}], 4, 0, "mine.jsonl")


def test_a_changed_file_is_chosen_from_anew(tmp_path: Path, own_cache: Path) -> None:
    path = tmp_path / "mine.jsonl"
    config = DatasetConfig(name="mine", source=DatasetSource.JSONL, path=str(path))
    found = []
    for word in ("one", "three"):
        path.write_text(json.dumps({"text": word}))
        found.append(probe(config, DataKind.PROMPT_COMPLETION, 1, 0).rows)

    assert found == [({"text": "one"},), ({"text": "three"},)]


def test_the_embedded_data_give_one_probe_for_one_seed(shared_cache: Path) -> None:
    first, again = (probe(EMBEDDED, DataKind.PREFERENCE, 4, 0) for _ in range(2))

    assert first == again
    assert first.form == ("prompt", "chosen", "rejected")
    assert first.n_available > 2_000


def test_evaluation_has_other_examples_and_does_not_change_those_that_are_trained_on(
    shared_cache: Path,
) -> None:
    without, having = (probe(EMBEDDED, DataKind.PREFERENCE, 4, 0, n_evaluation=n) for n in (0, 3))

    assert without.evaluation == ()
    assert having.rows == without.rows
    assert len(having.evaluation) == 3
    assert not [row for row in having.evaluation if row in having.rows]


def test_too_few_examples_to_evaluate_on_are_said_with_what_to_type(tmp_path: Path, own_cache: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps({"text": "x" * n}) + "\n" for n in range(1, 6)))
    config = DatasetConfig(name="mine", source=DatasetSource.JSONL, path=str(path))

    with pytest.raises(
        DatasetError, match=r"has 1 usable examples beside .* type measure.evaluation_examples=1"
    ):
        probe(config, DataKind.PROMPT_COMPLETION, 4, 0, n_evaluation=2)
