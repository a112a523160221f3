"""Which examples does every trial of a study train on?

The probe, which is trained on over and over, and beside it the longest examples of the data, which are
trained on once: they decide the peak of memory of a training that is long enough to meet them together.

The probe: as many as the measure asks for, at even quantiles of length, so that it has the short, the typical
and the long ones of the data in their proportion; in an order that the seed fixes.  Two trials with the same
data, measure and seed get the same examples in the same order, whatever their techniques do to them after.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from memsweep.config.schema import DataKind, DatasetConfig, DatasetSource
from memsweep.data.cache import cached_text, hash_of, rules_of
from memsweep.data.embedded import embedded_key, embedded_rows
from memsweep.data.files import data_files, read_rows
from memsweep.data.rows import Row, checked, columns_for, length
from memsweep.errors import DatasetError

_SHUFFLES = 400
"""Of which the most typical one is taken; a test holds that it is within 2 % of what is expected."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The examples that a trial trains on.

    Attributes:
        rows: In the order of training.
        n_available: How many the data have, of those that can be used.
        form: The columns of a row.
        evaluation: Other examples, of lengths as different, to evaluate on.
        longest: The longest of all that can be used, the longest first; they may be in `rows` too.
    """

    rows: tuple[Row, ...]
    n_available: int
    form: tuple[str, ...]
    evaluation: tuple[Row, ...] = ()
    longest: tuple[Row, ...] = ()


def probe(
    config: DatasetConfig,
    kind: DataKind,
    n_examples: int,
    seed: int,
    n_evaluation: int = 0,
    n_longest: int = 0,
    batch: int = 1,
) -> Probe:
    """Return the examples that a trial trains on, from the cache when they were chosen before.

    Args:
        config: The data.
        kind: What a row must hold.
        n_examples: How many to choose.
        seed: Decides their order.
        n_evaluation: How many others to choose for evaluation; those trained on do not depend on it.
        n_longest: How many of the longest to name; fewer where the data have fewer.
        batch: Examples that are trained on together.

    Raises:
        DatasetError: If the data lack a column, hold something else than they must, or are too few.
    """

    def choose() -> str:
        rows, where = _usable(config, kind, seed)
        chosen = typical_order(at_even_quantiles(rows, n_examples, seed, where), seed, batch)
        others = _others(rows, chosen, n_evaluation, seed, where)
        longest = sorted(rows, key=length, reverse=True)[:n_longest]
        return json.dumps([chosen, len(rows), list(chosen[0]), others, longest], ensure_ascii=False)

    key = _key(config)
    asked = (kind, n_examples, seed, n_evaluation, n_longest, batch)
    name = f"data/probe-{hash_of(rules_of(__file__), key, *asked)}.json"
    # What a repository holds may change under its name, so that is not kept here.
    text = choose() if key is None else cached_text(name, choose)
    rows, n_available, form, evaluation, longest = json.loads(text)
    return Probe(tuple(rows), n_available, tuple(form), tuple(evaluation), tuple(longest))


def fingerprint(rows: Sequence[Row]) -> str:
    """Return what tells these examples from others, in whatever order they are: 12 hexadecimal digits."""
    return hash_of(sorted(json.dumps(row, sort_keys=True) for row in rows))[:12]


def at_even_quantiles(rows: Sequence[Row], n_examples: int, seed: int, where: str) -> list[Row]:
    """Return the rows at the middles of `n_examples` equal parts of all lengths, in a seeded order.

    Raises:
        DatasetError: If there are fewer than `n_examples` rows.
    """
    if len(rows) < n_examples:
        raise DatasetError(
            f"{where} has {len(rows)} usable examples, and a pass takes measure.probe_examples={n_examples}: "
            f"bring more, or type measure.probe_examples={len(rows)} (a multiple of trainer.batch)"
        )
    by_length = sorted(range(len(rows)), key=lambda index: (length(rows[index]), index))
    chosen = [by_length[int((part + 0.5) * len(rows) / n_examples)] for part in range(n_examples)]
    random.Random(seed).shuffle(chosen)
    return [rows[index] for index in chosen]


def typical_order(rows: Sequence[Row], seed: int, batch: int) -> list[Row]:
    """Return the rows in an order whose batches are as padded as batches mostly are.

    Padding depends on who is batched with whom: over shuffles of 64 examples in batches of 4 it varied by 5 %
    and the speed of padded set-ups with it.  Of many shuffles that is taken whose batches' longest rows
    sum up nearest to what is expected of a random order, for the batch and for each way to split it.

    Args:
        rows: The examples.
        seed: Decides the shuffles.
        batch: Examples that are trained on together.
    """
    lengths = [length(row) for row in rows]
    sizes = [n for n in range(2, min(batch, len(rows)) + 1) if batch % n == 0]
    expected = {n: _expected_longest(sorted(lengths), n) for n in sizes}

    def atypical(order: Sequence[int]) -> float:
        found = [0.0]
        for n in sizes:
            tops = [max(lengths[i] for i in order[at : at + n]) for at in range(0, len(order) - n + 1, n)]
            found.append(abs(sum(tops) / len(tops) / expected[n] - 1))
        return max(found)

    chance, places = random.Random(seed), range(len(rows))
    orders = [chance.sample(places, len(rows)) for _ in range(_SHUFFLES if sizes else 1)]
    return [rows[index] for index in min(orders, key=atypical)]


def _expected_longest(lengths: Sequence[int], n_drawn: int) -> float:
    """Return the expected length of the longest of `n_drawn` rows, drawn without putting back.

    Of the rows sorted by length, the k-th is the longest of a draw in C(k - 1, n - 1) of C(rows, n) cases.
    """
    ways = math.comb(len(lengths), n_drawn)
    return sum(own * math.comb(k, n_drawn - 1) / ways for k, own in enumerate(lengths)) or 1.0


def _others(rows: Sequence[Row], chosen: Sequence[Row], n_others: int, seed: int, where: str) -> list[Row]:
    """Return `n_others` rows at even quantiles of those that are not chosen.

    Raises:
        DatasetError: If there are fewer.
    """
    taken = {id(row) for row in chosen}
    rest = [row for row in rows if id(row) not in taken]
    if len(rest) < n_others:
        raise DatasetError(
            f"{where} has {len(rest)} usable examples beside the measure.probe_examples={len(chosen)}, and "
            f"measure.evaluation_examples={n_others}: bring more, or type "
            f"measure.evaluation_examples={len(rest)}"
        )
    return at_even_quantiles(rest, n_others, seed, where) if n_others else []


def _key(config: DatasetConfig) -> object | None:
    """Return what the data's content is known by; None when it is not known."""
    if config.source is DatasetSource.EMBEDDED:
        return embedded_key()
    files = [(str(path.resolve()), path.stat()) for path in data_files(config)]
    return [(path, stat.st_size, stat.st_mtime_ns) for path, stat in files] or None


def _usable(config: DatasetConfig, kind: DataKind, seed: int) -> tuple[list[Row], str]:
    if config.source is DatasetSource.EMBEDDED:
        return embedded_rows(kind, seed), "the embedded data"
    where = config.name if config.source is DatasetSource.HUB else str(config.path)
    rows = read_rows(config)
    columns = {column: None for row in rows for column in row}  # in the order of their first appearance
    return checked(rows, columns_for(kind, columns, where), where), where
