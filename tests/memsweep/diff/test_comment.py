from __future__ import annotations

import re
from dataclasses import replace

from test_terminal import REVIEW

from memsweep.diff.comment import LIMIT, MARKER, markdown
from memsweep.diff.difference import Item, Section
from memsweep.diff.leaves import Change, json_text
from memsweep.diff.review import Block, Review


def of(*changes: Change) -> Review:
    items = tuple(Item(section=Section.CONFIG, change=change) for change in changes)
    return Review(names=("a", "b"), presets=("default",), blocks=(Block(names=("default",), items=items),))


def cells(line: str) -> list[str]:
    """Return the cells of a table's row; an escaped bar separates none."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_the_first_line_marks_the_comment_that_the_next_one_replaces() -> None:
    assert markdown(REVIEW).splitlines()[0] == MARKER


def test_everything_of_a_review_is_in_the_comment() -> None:
    text = markdown(REVIEW)

    assert '| ! | `batch` | `4` | `"4"` (int -> str) |'.replace("(int -> str)", r"(int -> str)") in text
    assert "| - | TRL argument `beta` | `0.1` |  |" in text
    assert "| ~ | `technique/adapter` | `baseline` | `lora` |" in text
    assert "| + | &nbsp;&nbsp;`technique.adapter.r` |  | `16` |" in text
    assert "- 1 combination -> 2 combinations" in text
    assert "new: experiment=c" in text
    assert "| ~ | `parameters.r.default` | `16` | `32` |" in text
    assert "what it searches is not compared" in text


def test_every_fold_that_is_opened_is_closed() -> None:
    text = markdown(REVIEW)

    assert text.count("<details") == text.count("</details>") > 0


def test_bars_and_backticks_in_a_value_do_not_break_the_table() -> None:
    text = markdown(of(Change(path="a|b", old='"x|y`z"', new='"``"')))

    (row,) = (line for line in text.splitlines() if line.startswith("| ~ |"))
    assert cells(row) == ["~", "`a\\|b`", "`` x\\|y`z ``", "``` `` ```"]


def test_nothing_in_a_configuration_is_markdown_html_or_a_person() -> None:
    item = Item(section=Section.SEARCH, text="refused: <b>@someone</b> [x](y) *z*")
    text = markdown(replace(of(), blocks=(Block(names=("default",), items=(item,)),)))

    assert "- refused: &lt;b>&#64;someone&lt;/b> \\[x\\](y) \\*z\\*" in text.replace("\\>", ">")


def test_a_comment_stays_below_the_limit_and_says_how_much_is_cut() -> None:
    value = json_text("\u00e9" * 50)
    changes = [Change(path=f"a.{number}", old=None, new=value) for number in range(2000)]

    text = markdown(of(*changes), command="memsweep diff main .")

    assert len(text.encode()) <= LIMIT
    assert len(text.encode()) > LIMIT - 1000
    assert text.count("<details") == text.count("</details>") == 1
    (cut,) = re.findall(r"\*\*Cut here: ([\d,]+) of ([\d,]+) lines", text)
    n_rows = sum(line.startswith("| + |") for line in text.splitlines())
    assert int(cut[0].replace(",", "")) >= 2000 - n_rows
    assert text.rstrip().endswith("All: `memsweep diff main .`")


def test_a_comment_below_the_limit_is_whole() -> None:
    assert "Cut here" not in markdown(REVIEW)
