from __future__ import annotations

import pytest

from memsweep.lengths.packing import Packed
from memsweep.lengths.padding import Padded
from memsweep.lengths.printed import bar, share_text, text
from memsweep.lengths.table import Bin, Lengths, Limit, Part

FOUND = Lengths(
    data="mine",
    trainer="sft",
    model="tiny",
    n_examples=4,
    n_unusable=1,
    tokens=100,
    max_length=32,
    tokens_kept=90,
    parts=(
        Part(
            name="text",
            n_sequences=4,
            tokens=100,
            shortest=5,
            longest=50,
            percentiles={"50": 20, "90": 50, "95": 50, "99": 50},
        ),
    ),
    distribution=(Bin(low=0, high=31, n_sequences=3), Bin(low=32, high=63, n_sequences=1)),
    limits=(
        Limit(
            max_length=32, why=("in force",), n_whole=3, n_cut=1, n_left_out=0, tokens_kept=90, kept_share=0.9
        ),
    ),
    padding=(Padded(batch=2, random_share=0.25, grouped_share=0.1),),
    packing=tuple(
        Packed(max_length=32, strategy=name, n_examples=4, n_rows=4, tokens=96, kept_share=0.96)
        for name in ("bfd", "bfd_split", "wrapped")
    ),
    remarks=("something else",),
)
"""A table of lengths."""


def test_the_text_says_it_all() -> None:
    said = text(FOUND)

    assert said.splitlines()[0] == (
        "mine for sft, tokenized as for tiny: 4 examples, 1 rows without text left out, 100 tokens; "
        "max_length=32 in force keeps 90 of them (90.0 %)"
    )
    assert "text              5    20    50    50    50       50    25  100" in said
    assert "        32           90  10.0 %      3    1         0  in force" in said
    assert "    2           25.0 %             10.0 %" in said
    assert (
        "        32    75.0 %     4.0 %          75.0 %           4.0 %        75.0 %         4.0 %" in said
    )
    assert said.endswith("Note: something else.")


def test_the_longest_bar_fills_the_columns_and_a_rare_length_is_still_seen() -> None:
    assert bar(1, 10) == "\N{FULL BLOCK}" * 10
    assert bar(0.25, 10) == "\N{FULL BLOCK}" * 2 + "\N{LEFT HALF BLOCK}"
    assert bar(1e-9, 10) == "\N{LEFT ONE EIGHTH BLOCK}"
    assert bar(0, 10) == ""


@pytest.mark.parametrize(
    ("share", "words"),
    [(0, "0.0 %"), (1e-6, "<0.1 %"), (0.5, "50.0 %"), (0.99999, ">99.9 %"), (1, "100.0 %")],
)
def test_little_is_not_nothing_and_nearly_all_is_not_all(share: float, words: str) -> None:
    assert share_text(share) == words
