from __future__ import annotations

import io

from rich.console import Console

from memsweep.diff.difference import Item, Section
from memsweep.diff.leaves import Change, Kind
from memsweep.diff.review import Block, NewPreset, OptionFile, Review
from memsweep.diff.terminal import print_review, progress_bar

SWITCH = Item(
    section=Section.SWITCH,
    change=Change(path="technique/adapter", old='"baseline"', new='"lora"'),
    beneath=(Change(path="technique.adapter.r", old=None, new="16"),),
)
REVIEW = Review(
    names=("HEAD", "working tree"),
    presets=("default", "a", "b", "c"),
    blocks=(
        Block(
            names=("default", "a", "b"),
            items=(
                Item(section=Section.CONFIG, change=Change(path="batch", old="4", new='"4"')),
                Item(
                    section=Section.TRAINING, where="trainer", change=Change(path="beta", old="0.1", new=None)
                ),
            ),
        ),
        Block(
            names=("a",), items=(SWITCH, Item(section=Section.SEARCH, text="1 combination -> 2 combinations"))
        ),
    ),
    new=(NewPreset(name="c", items=(), size="2 combinations, 2 of them legal"),),
    options=(
        OptionFile(
            label="technique/adapter/lora",
            kind=Kind.CHANGED,
            changes=(Change(path="parameters.r.default", old="16", new="32"),),
            used_by=("a", "b"),
        ),
    ),
    notes=((("b",), "what it searches is not compared: why"),),
    machine="cpu with native bfloat16",
)


def printed(review: Review) -> list[str]:
    file = io.StringIO()
    print_review(review, Console(file=file, width=40, highlight=False))
    return file.getvalue().splitlines()


def test_a_review_is_printed_by_presets_and_then_by_what_it_is_about() -> None:
    assert printed(REVIEW) == [
        "HEAD -> working tree: 3 of 4 presets differ, 1 new, 1 option file changed",
        "",
        "3 presets: default, a, b",
        '  ! batch: 4 -> "4" (int -> str)',
        "  trains with",
        "    - TRL argument beta: was 0.1",
        "",
        "experiment=a",
        "  ~ technique/adapter: baseline -> lora",
        "    + technique.adapter.r: 16",
        "  searches",
        "    1 combination -> 2 combinations",
        "",
        "+ new: experiment=c, searches 2 combinations, 2 of them legal",
        "",
        "~ technique/adapter/lora (chosen or searched by 2 presets: a, b)",
        "  ~ parameters.r.default: 16 -> 32",
        "",
        "experiment=b: what it searches is not compared: why",
        "rules are judged for this machine, cpu with native bfloat16; for another device: "
        "-- launch.device=cuda",
    ]


def test_none_that_differs_is_said_alike_whatever_else_there_is() -> None:
    option = OptionFile(label="model/tiny", kind=Kind.CHANGED)
    review = Review(names=("a", "b"), presets=("default", "x"), options=(option,))

    assert printed(review)[0] == "a -> b: none of 2 presets differs, 1 option file changed"


def test_nothing_is_said_of_who_searches_an_option_where_that_is_not_known() -> None:
    option = OptionFile(label="technique/adapter/lora", kind=Kind.CHANGED, unknown=("default", "x"))
    facts = {"names": ("a", "b"), "presets": ("default", "x"), "unsearched": ("default", "x")}
    some = OptionFile(label="model/tiny", kind=Kind.CHANGED, used_by=("x",), unknown=("default",))

    unknown = printed(Review(**facts, options=(option,)))

    assert (
        unknown[0] == "a -> b: none of 2 presets differs, 1 option file changed, what 2 search is not known"
    )
    assert unknown[2] == "~ technique/adapter/lora (what 2 of 2 presets search is not known)"
    assert printed(Review(**facts, options=(some,)))[2] == (
        "~ model/tiny (chosen or searched by experiment=x; what 1 of 2 presets search is not known)"
    )
    assert printed(Review(**{**facts, "presets": ("default",), "unsearched": ("default",)})) == [
        "a -> b: nothing differs, but what it searches is not known"
    ]


def test_presets_that_compose_no_more_are_counted_in_the_first_line() -> None:
    review = Review(names=("a", "b"), presets=("default", "x"), broken=("x",), gone=("y",))

    assert printed(review)[0] == "a -> b: none of 2 presets differs, 1 no longer composes, 1 gone"


def test_equal_sides_are_said_to_be_equal_in_one_line() -> None:
    assert printed(Review(names=("a", "b"), presets=("default", "x"))) == [
        "a -> b: none of 2 presets differs"
    ]


def test_a_secret_that_changed_shows_that_it_did_and_nothing_else() -> None:
    item = Item(section=Section.CONFIG, change=Change(path="hub.token", old='"one-one"', new='"two-two"'))
    review = Review(
        names=("a", "b"), presets=("default",), blocks=(Block(names=("default",), items=(item,)),)
    )

    assert "  ~ hub.token: *** -> *** (another value)" in printed(review)


def test_a_very_long_value_is_shown_without_its_middle() -> None:
    item = Item(section=Section.CONFIG, change=Change(path="a", old=None, new=f'"{"x" * 5000}"'))
    review = Review(
        names=("a", "b"), presets=("default",), blocks=(Block(names=("default",), items=(item,)),)
    )

    (line,) = (line for line in printed(review) if "+ a" in line)
    assert len(line) < 200
    assert line.endswith("(5,000 characters)")


def test_the_bar_is_shown_on_a_terminal_and_nowhere_else() -> None:
    shown = {}
    for is_terminal in (True, False):
        file = io.StringIO()
        with progress_bar(Console(file=file, force_terminal=is_terminal, width=80)) as show:
            show(3, 8)
        shown[is_terminal] = file.getvalue()

    assert "3/8" in shown[True]
    assert shown[False] == ""
