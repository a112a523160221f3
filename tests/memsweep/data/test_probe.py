from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from memsweep.config.schema import DataKind, DatasetConfig, DatasetSource
from memsweep.data.probe import at_even_quantiles, fingerprint, probe, typical_order
from memsweep.data.rows import length
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


def padded(order: list[dict[str, str]], batch: int) -> float:
    """Return the mean length of the batches' longest rows."""
    lengths = [len(row["text"]) for row in order]
    tops = [max(lengths[at : at + batch]) for at in range(0, len(lengths), batch)]
    return sum(tops) / len(tops)


@pytest.mark.parametrize("batch", [4, 2])
def test_batches_are_as_padded_as_those_of_a_random_order_mostly_are(batch: int) -> None:
    """The truth is the mean over 2,000 shuffles; single shuffles lie up to a tenth beside it."""
    rows = [{"text": "a" * round(10 * 1.1**k)} for k in range(48)]
    chance = random.Random(1)
    shuffles = [padded(chance.sample(rows, len(rows)), batch) for _ in range(2000)]
    expected = sum(shuffles) / len(shuffles)

    found = [padded(typical_order(rows, seed, batch=4), batch) for seed in range(5)]

    assert max(abs(one / expected - 1) for one in found) < 0.02
    assert max(abs(one / expected - 1) for one in shuffles) > 0.1


def test_the_seed_decides_the_order_and_no_row_is_lost() -> None:
    rows = [{"text": "a" * k} for k in range(1, 17)]

    one, again, other = (typical_order(rows, seed, batch=4) for seed in (0, 0, 1))

    assert one == again != other
    assert sorted(map(str, one)) == sorted(map(str, other)) == sorted(map(str, rows))


def test_examples_are_known_in_whatever_order_they_are() -> None:
    rows = [{"text": "a"}, {"text": "b"}]

    assert fingerprint(rows) == fingerprint(rows[::-1]) != fingerprint([*rows, {"text": "c"}])


def test_the_longest_of_all_are_named_longest_first() -> None:
    found = probe(EMBEDDED, DataKind.PROMPT_COMPLETION, 4, 0, n_longest=2)

    lengths = [length(row) for row in found.longest]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[1] >= max(length(row) for row in found.rows)
