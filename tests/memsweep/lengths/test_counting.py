from __future__ import annotations

import itertools
import json
from collections.abc import Callable

import numpy as np
import pytest

from memsweep.errors import ConfigError
from memsweep.lengths.counting import MOST_BINS, percentile, table
from memsweep.lengths.preparation import Counted
from memsweep.lengths.scan import Scanned
from memsweep.lengths.table import Lengths, Limit
from memsweep.lengths.whose import Asked

TOKENS = np.random.default_rng(0).geometric(0.005, size=3_000)


def lengths_of(asked: Asked, tokens: np.ndarray = TOKENS, names: tuple[str, ...] = ("text",)) -> Lengths:
    sides = tokens if tokens.ndim == 2 else tokens[:, None]
    return table(asked, Scanned(counted=Counted(sides, np.zeros(len(sides), int)), names=names, n_unusable=2))


def limit(found: Lengths, max_length: int) -> Limit:
    return next(one for one in found.limits if one.max_length == max_length)


def test_percentiles_are_lengths_that_so_many_do_not_exceed() -> None:
    lengths = np.array([1, 2, 3, 4])

    assert [percentile(lengths, percent) for percent in (50, 75, 99)] == [2, 3, 4]


def test_every_limit_accounts_for_every_example_and_token(whose: Callable[..., Asked]) -> None:
    found = lengths_of(whose())

    assert found.n_unusable == 2
    for one in found.limits:
        assert one.n_whole + one.n_cut + one.n_left_out == 3_000
        assert one.tokens_kept == np.minimum(TOKENS, one.max_length).sum()
        assert one.n_whole == (one.max_length >= TOKENS).sum()


def test_powers_of_two_percentiles_and_the_limit_in_force_are_in_the_table(
    whose: Callable[..., Asked],
) -> None:
    found = lengths_of(whose(max_length=300))

    why = {one.max_length: one.why for one in found.limits}
    assert (why[256], why[300]) == ((), ("in force",))
    assert why[int(TOKENS.max())] == ("the longest",)
    assert why[percentile(TOKENS, 95)] == ("95 % whole",)
    assert limit(found, percentile(TOKENS, 95)).n_whole >= 0.95 * 3_000
    assert [one.max_length for one in found.limits] == sorted(why)
    assert limit(found, 300).tokens_kept == found.tokens_kept


def test_reward_leaves_out_where_others_cut(whose: Callable[..., Asked]) -> None:
    both = np.stack([TOKENS, TOKENS[::-1]], axis=1)

    found = lengths_of(whose("reward"), both, ("chosen", "rejected"))

    one = limit(found, 256)
    assert (one.n_cut, one.n_whole) == (0, int((both <= 256).all(axis=1).sum()))
    assert [part.name for part in found.parts] == ["chosen", "rejected"]
    assert found.packing == ()


def test_the_distribution_holds_every_sequence_once(whose: Callable[..., Asked]) -> None:
    bins = lengths_of(whose()).distribution

    assert sum(one.n_sequences for one in bins) == 3_000
    assert len(bins) <= MOST_BINS + 1
    assert all(one.high + 1 == following.low for one, following in itertools.pairwise(bins))
    assert bins[-1].high == TOKENS.max()


@pytest.mark.parametrize("tokens", [[5], [5, 5, 5], [1, 100_000]])
def test_odd_data_have_a_table(tokens: list[int], whose: Callable[..., Asked]) -> None:
    found = lengths_of(whose(), np.array(tokens))

    assert sum(one.n_sequences for one in found.distribution) == len(tokens)
    assert found.parts[0].longest == max(tokens)


def test_only_what_can_pack_is_packed(whose: Callable[..., Asked]) -> None:
    assert lengths_of(whose("kto")).packing == ()
    packs = lengths_of(whose(packing_strategy="bfd")).packing
    assert {one.strategy for one in packs} == {"bfd", "bfd_split", "wrapped"}
    assert all(0 < one.filled_share <= 1 for one in packs)


def test_a_limit_for_prompt_and_answer_leaves_room_for_the_answer(whose: Callable[..., Asked]) -> None:
    found = lengths_of(whose("online_dpo", tokens=100, max_length=300))

    assert limit(found, 300).tokens_kept == np.minimum(TOKENS, 200).sum()
    assert limit(found, int(TOKENS.max()) + 100).n_cut == 0


def test_nothing_left_has_no_padding(whose: Callable[..., Asked]) -> None:
    found = lengths_of(whose("reward", max_length=1), np.array([[5, 5]]), ("chosen", "rejected"))

    assert (found.tokens_kept, found.padding) == (0, ())


def test_the_table_survives_json(whose: Callable[..., Asked]) -> None:
    found = lengths_of(whose(packing_strategy="bfd"))

    assert Lengths.from_mapping(json.loads(json.dumps(found.to_mapping()))) == found


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(ConfigError, match="not a table of lengths"):
        Lengths.from_mapping({"data": "x"})
