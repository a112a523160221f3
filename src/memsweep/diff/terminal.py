"""A review on the terminal, and the bar that shows how far composing is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from memsweep.diff.review import Review
from memsweep.diff.wording import lines
from memsweep.visible import visible

_STYLES = {"+": "green", "-": "red", "~": "yellow", "!": "magenta"}


def print_review(review: Review, console: Console | None = None) -> None:
    """Print a review.

    Args:
        review: What to print.
        console: Where to; the standard output when None.
    """
    console = console or Console(highlight=False)
    for line in lines(review):
        sign = f"{line.sign} " if line.sign else ""
        text = visible(line.text)
        style = "bold" if line.is_title else _STYLES.get(line.sign, "")
        console.print(Text(f"{'  ' * line.depth}{sign}{text}", style=style), soft_wrap=True)


@contextmanager
def progress_bar(console: Console | None = None) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on the standard error while presets are composed; nothing where that is no terminal."""
    console = console or Console(stderr=True)
    columns = (TextColumn("composing"), BarColumn(), MofNCompleteColumn(), TextColumn("presets"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("composing", total=None)

        def show(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield show
