"""How far the study is: one line a finished trial, and on a terminal a line that changes.

The line is drawn once a second, because it is drawn by the machine that is being measured.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from memsweep.findings.words import counts_text, name_text
from memsweep.record.outcome import Measured, Outcome
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.units import measure_text, seconds_text

log = logging.getLogger(__name__)

_SHOWN = 8
"""Runs under way that have a line of their own."""


class Progress:
    """What is told while a study runs.

    Args:
        mode: `auto`, `live`, `plain` or `off`.
        n_trials: How many trials are to be run.
        stream: Where the live line goes, if it is a terminal; the standard output when None.
    """

    def __init__(self, mode: str, n_trials: int, stream: TextIO | None = None) -> None:
        stream = stream or sys.stdout
        self.is_live = mode == "live" or (mode == "auto" and stream.isatty())
        self._is_silent = mode == "off"
        self._console = Console(file=stream, force_terminal=True if mode == "live" else None)
        self._n_trials, self._n_counted, self._n_front = n_trials, 0, 0
        self._n_before = 0
        self._counts: Mapping[str, int] = {}
        self._running: dict[int, str] = {}
        self._phases: dict[int, str] = {}
        self._began = time.monotonic()
        self._ended = self._began
        self._live: Live | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the live line, where there is one, until the block ends."""
        if not self.is_live:
            yield
            return
        self._live = live = Live(
            get_renderable=self._line, console=self._console, refresh_per_second=1, transient=True
        )
        before = {sys.stdout, sys.stderr}
        with live:
            # Handlers keep the stream they were made with, and would write into the line.
            handlers = [h for h in logging.getLogger().handlers if isinstance(h, logging.StreamHandler)]
            moved = [(handler, handler.stream) for handler in handlers if handler.stream in before]
            for handler, _ in moved:
                handler.setStream(sys.stdout)
            try:
                yield
            finally:
                self._live = None
                for handler, stream in moved:
                    handler.setStream(stream)

    def goes_on(self, n_counted: int, counts: Mapping[str, int], n_front: int) -> None:
        """Begin where a study is continued.

        Args:
            n_counted: Trials from before that count.
            counts: Outcome type to number of trials.
            n_front: Size of the front.
        """
        self._counts, self._n_counted, self._n_front = counts, n_counted, n_front
        self._n_before = n_counted
        self._began = time.monotonic()

    def begin(self, number: int, running: str) -> None:
        """Say that a run is under way.

        Args:
            number: Its trial's.
            running: What it is.
        """
        self._phases.pop(number, None)
        self._running[number] = running
        self._redraw()

    def phase(self, number: int, phase: object) -> None:
        """Say where in its life the run of trial `number` is.  May be called from any thread."""
        self._phases[number] = str(phase).replace("_", " ")

    def end(
        self, result: TrialResult, study: Study, counts: Mapping[str, int], n_counted: int, n_front: int
    ) -> None:
        """Tell how a trial ended.

        Args:
            result: The trial.
            study: Its study.
            counts: Outcome type to number of trials so far.
            n_counted: Trials so far that count.
            n_front: Size of the front now.
        """
        self._counts, self._n_counted, self._n_front = counts, n_counted, n_front
        self._running.pop(result.number, None)
        self._ended = time.monotonic()
        self._redraw()
        self.note(trial_line(result, study))

    def again(self, result: TrialResult, outcome: Outcome, why: str) -> None:
        """Tell how a further run of a trial ended.

        Args:
            result: The trial.
            outcome: How that run ended.
            why: What it was for, and the how-manieth of how many.
        """
        self._running.pop(result.number, None)
        self._redraw()
        measures = outcome.measures if isinstance(outcome, Measured) else {}
        figures = [figure_text(name, measures[name]) for name in result.objectives if name in measures]
        self.note(f"{why}: trial {result.number} {result.label}: {', '.join(figures) or outcome.text}")

    def note(self, text: str) -> None:
        """Say something, on lines of its own."""
        if not self._is_silent:
            for line in text.splitlines():
                log.info("%s", line)

    def _redraw(self) -> None:
        if self._live is not None:
            self._live.refresh()

    def _line(self) -> RenderableType:
        n_trials = max(self._n_trials, 1)
        done = min(self._n_counted, n_trials)
        words = [f"front {self._n_front}"] if self._n_front else []
        left = self._seconds_left()
        words += [f"about {_whole_text(left)} left"] if left is not None else []
        words += [counts_text(self._counts)] if self._counts else []
        grid = Table.grid(padding=(0, 2))
        grid.add_row(
            ProgressBar(total=n_trials, completed=done, width=20),
            Text(f"{done}/{self._n_trials}", style="bold"),
            Text(", ".join(words), overflow="ellipsis", no_wrap=True),
        )
        return Group(
            grid, *(Text(now, style="dim", overflow="ellipsis", no_wrap=True) for now in self._now() or [""])
        )

    def _now(self) -> list[str]:
        """Return a line for each run under way; the last tells of those that have none."""
        phases = dict(self._phases)  # another thread may add one meanwhile
        running = [
            f"{words} ({phases[number]})" if number in phases else words
            for number, words in self._running.items()
        ]
        n_more = len(running) - _SHOWN
        return [*running[:_SHOWN], f"and {n_more} more"] if n_more > 0 else running

    def _seconds_left(self) -> float | None:
        n_new = self._n_counted - self._n_before
        if n_new <= 0 or self._n_counted >= self._n_trials:
            return None
        mean = (self._ended - self._began) / n_new
        spent = time.monotonic() - self._ended
        return max(0.0, mean * (self._n_trials - self._n_counted) - min(spent, mean))


def _whole_text(seconds: float) -> str:
    """Return a time that is only estimated: without fractions."""
    return f"{math.ceil(seconds)} s" if seconds < 60 else seconds_text(seconds)


def trial_line(result: TrialResult, study: Study) -> str:
    """Return how a trial ended: `trial 17 packing=bfd: 12,480 tokens/s, peak memory 21.3 GiB`."""
    head = f"trial {result.number} {result.label}"
    if not result.objectives:
        again = f" (as trial {result.reused_from})" if result.reused_from is not None else ""
        return f"{head}: {result.outcome.text}{again}"
    parts = [figure_text(name, value) for name, value in result.objectives.items()]
    parts += result.objections
    missed = {name: violation for name, violation in result.constraints.items() if violation > 0}
    parts += [
        f"misses {name} by {measure_text(study.constraints[name].measure, violation)}"
        for name, violation in missed.items()
    ]
    if result.reused_from is not None:
        parts.append(f"same set-up as trial {result.reused_from}")
    elif result.on_front:
        parts.append("on the front")
    return f"{head}: {', '.join(parts)}"


def figure_text(name: str, value: float) -> str:
    """Return a measure with its unit, and with its name unless the unit says it."""
    text = measure_text(name, value)
    return text if name.endswith("_per_second") else f"{name_text(name)} {text}"
