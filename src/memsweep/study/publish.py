"""Where a study's results go beside its files: the report, Weights & Biases, the terminal.

None of it can harm the study: whatever goes wrong here is a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console

from memsweep.record.folder import StudyFolder
from memsweep.record.trial import TrialResult
from memsweep.report.files import write_reports
from memsweep.report.text import print_study
from memsweep.study.book import Book
from memsweep.tracking.log import StudyLogger, require_tracking

log = logging.getLogger(__name__)


class Publisher:
    """Publishes a study.

    Args:
        folder: Its folder, which holds study.json already.
        tracking: The app's `tracking` node: mode, project, entity; empty for none.
    """

    def __init__(self, folder: StudyFolder, tracking: Mapping[str, Any]) -> None:
        self._folder = folder
        self._logger = StudyLogger(folder, tracking)

    @staticmethod
    def require(tracking: Mapping[str, Any]) -> None:
        """Raise unless a study can be published as it is asked for; nothing is started.

        Raises:
            ConfigError: With all that is wrong.
        """
        require_tracking(tracking)

    def goes_on(self, results: Sequence[TrialResult]) -> None:
        """Take note of the trials that a study had before it went on."""
        self._logger.earlier(results)

    def trial(self, result: TrialResult) -> None:
        """Publish a finished trial."""
        self._logger.trial(result)

    def end(self, book: Book, exit_code: int, places: list[tuple[str, Path | str]]) -> None:
        """Publish the study as it ended, and print what it found.

        Args:
            book: Its trials.
            exit_code: What the study ends with.
            places: What to look at beside the report and the runs.
        """
        found: list[tuple[str, Path | str]] = []
        try:
            found += write_reports(self._folder, book.results, book.study, _warn)
        except Exception as error:
            _warn("report", error)
        self._logger.finish(book.results, exit_code)  # after the report, which goes into its artifact
        place = self._logger.place
        if place is not None:
            found.append(("W&B runs", place))
        # Rich ends a program whose reader has gone, as with `| head`; all is written that was to be read.
        with suppress(SystemExit, OSError):
            print_study(book.results, book.study, Console(highlight=False), [*found, *places])


def _warn(what: str, error: Exception) -> None:
    log.warning("the %s could not be written (%s: %s)", what, type(error).__name__, error)
