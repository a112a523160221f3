"""Every file of a study made anew from its trial folders.

What a study has found is in its trial folders; results.jsonl, front.csv, optimization_results.yaml and the
copy for Optuna follow from them.  Whatever of these is missing, torn or tells of something else is made anew;
a file that could not be used is set aside, not deleted.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memsweep.errors import ConfigError
from memsweep.record.folder import StudyFolder, set_damaged_aside, writing
from memsweep.record.past import Past, PastTrial, read_past
from memsweep.record.study import Study
from memsweep.search.mirror import Mirror
from memsweep.search.storage import SQLITE
from memsweep.study.book import Book
from memsweep.study.files import StudyFiles
from memsweep.study.lock import StudyLock
from memsweep.study.restore import enter_all, in_order


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What was made anew.

    Attributes:
        book: The trials.
        n_under_way: Trials that were under way when their controller ended.
        notices: What was damaged, or could not be taken in, one sentence each.
    """

    book: Book
    n_under_way: int
    notices: tuple[str, ...]


def rebuild(folder: StudyFolder) -> Rebuilt:
    """Make every file of a study anew from its trial folders, but for study.json, which must be there.

    Args:
        folder: The study's.

    Raises:
        StudyBusy: If another process is at work on it.
        ConfigError: If it cannot be written, or holds no study; the message says what helps.
        StudyUnwritable: If the disk is full, say.
    """
    folder = StudyFolder(folder.path.absolute())
    try:
        study = Study.read(folder)
    except (FileNotFoundError, ValueError) as error:
        raise ConfigError(
            f"{folder.path} has no study.json that can be read ({error}), which is not in the trial "
            "folders.  The command that made the study makes it anew and continues: type it again, with "
            f"hydra.sweeper.study_name={folder.path.name}"
        ) from error
    with StudyLock(folder), writing(folder.path):
        past = read_past(folder)
        notices = list(past.damaged)
        notices += [f"{path} is left out: it has no trial.json that can be read" for path in past.strangers]
        trials = in_order(past, folder)
        notices += check_results(folder, past)
        book = Book(study, study.program)
        rows = list(enter_all(trials, book))
        StudyFiles(folder).write(book)
        if book.study.has_storage:
            url, own = f"{SQLITE}{folder.storage}", folder.path
            Mirror(url, book.study, own=own, notice=notices.append).catch_up(rows)
    return Rebuilt(
        book=book, n_under_way=sum(trial.record is None for trial in past.trials), notices=tuple(notices)
    )


def check_results(folder: StudyFolder, past: Past) -> list[str]:
    """Set results.jsonl aside if it is torn, or tells of what the trial folders do not hold; say so.

    A trial that has ended after it was written last is no damage: a controller that is killed leaves one.

    Args:
        folder: The study's.
        past: Its trial folders.
    """
    if not folder.results.exists():
        ended = sum(trial.record is not None for trial in past.trials)
        return (
            [f"{folder.results.name} is made anew from {ended} trial folder(s): it was gone"] if ended else []
        )
    why = _disagreement(folder.results, past.trials)
    if why is None:
        return []
    aside = set_damaged_aside(folder.results)
    return [f"{folder.results.name} is made anew from the trial folders: {why}; it is {aside.name} now"]


def _disagreement(results: Path, trials: Sequence[PastTrial]) -> str | None:
    """Return what is wrong with results.jsonl; None when nothing is."""
    known = {trial.asked.number: trial for trial in trials}
    try:
        lines = [
            json.loads(line) for line in results.read_text(encoding="utf-8").splitlines() if line.strip()
        ]
        for line in lines:
            trial = known.get(line["number"])
            if trial is None or trial.record is None:
                return f"it tells of trial {line['number']}, which has no folder with an outcome"
            if list(line["overrides"]) != list(trial.asked.overrides) or not isinstance(
                line["outcome"], dict
            ):
                return f"it says otherwise of trial {line['number']} than its folder"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"it cannot be read ({_first_line(error)})"
    return None


def remove_leftovers(folder: StudyFolder) -> None:
    """Remove what a controller left that was killed while it wrote a file of the study."""
    for path in folder.path.glob(".*.tmp"):
        with contextlib.suppress(OSError):
            path.unlink()


def _first_line(error: Any) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
