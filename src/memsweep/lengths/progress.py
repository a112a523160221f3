"""Shows on a terminal how many rows were counted, and how fast; elsewhere nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from memsweep.lengths.scan import OnRows


@contextmanager
def shown() -> Iterator[OnRows]:
    """Yield what is called with the number of rows that were just counted."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("importing TRL", total=None)
        n_rows = 0

        def on_rows(n_more: int) -> None:
            nonlocal n_rows
            n_rows += n_more
            seconds = progress.tasks[0].elapsed or 0.0
            rate = f", {n_rows / seconds:,.0f} a second" if seconds > 1 else ""
            progress.update(task, description=f"{n_rows:,} rows counted{rate}")

        yield on_rows
