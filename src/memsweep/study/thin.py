"""What trial folders may lose: logs, checkpoints, whatever an app wrote; never what was asked and found.

A thinned study is the same study: it can be reported on, made anew from its folders and continued.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from memsweep.record.folder import StudyFolder, TrialFolder
from memsweep.record.past import read_past
from memsweep.record.study import read_study
from memsweep.study.lock import StudyLock

_REPEATS = "repeats"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinned:
    """What one trial's folder loses.

    Attributes:
        number: Of the trial.
        paths: Files and folders that go.
        n_bytes: What they take of the disk.
    """

    number: int
    paths: tuple[Path, ...]
    n_bytes: int


def front_of(folder: StudyFolder) -> frozenset[int]:
    """Return the trials on a study's front, those that they reuse, and the baseline.

    Raises:
        ValueError: If the study's files cannot be read.
    """
    _, results = read_study(folder.path)
    kept = {result.number for result in results if result.on_front}
    kept |= {result.reused_from for result in results if result.on_front and result.reused_from is not None}
    asked = {trial.asked.number for trial in read_past(folder).trials if trial.asked.is_baseline}
    return frozenset(kept | asked)


def thin(folder: StudyFolder, keep: Callable[[], Collection[int]], *, is_dry: bool = False) -> list[Thinned]:
    """Take from the folders of finished trials what a study can do without, and return what that is.

    Args:
        folder: The study's.
        keep: Returns the numbers of the trials that stay as they are; asked once nobody else is at work on
            the study.  Those that have not finished stay too.
        is_dry: Only say what would go.

    Raises:
        StudyBusy: If another process is at work on the study.
        ConfigError: If its folder cannot be written; and what `keep` raises.
        OSError: If something cannot be removed.
    """
    with StudyLock(folder):
        kept = keep()
        found = []
        for trial in read_past(folder).trials:
            if trial.record is None or trial.asked.number in kept:
                continue
            paths = tuple(_spare(trial.folder))
            if paths:
                n_bytes = sum(map(_n_bytes, paths))
                found.append(Thinned(number=trial.asked.number, paths=paths, n_bytes=n_bytes))
        for path in () if is_dry else [path for thinned in found for path in thinned.paths]:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    return found


def _spare(folder: TrialFolder) -> Iterator[Path]:
    """Yield what may go of a trial's folder."""
    kept = {folder.asked, folder.outcome, folder.config, folder.overrides, folder.effective}
    for path in sorted(folder.path.iterdir()):
        if path.name == _REPEATS and not path.is_symlink():
            for repeat in sorted(path.iterdir()):
                is_own = repeat.is_dir() and not repeat.is_symlink()
                yield from _spare(TrialFolder(repeat)) if is_own else ()
        elif path not in kept:
            yield path


def _n_bytes(path: Path) -> int:
    """Return what a file, or all files of a folder, take of the disk; what links lead to does not count."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_blocks * 512
    return sum(_n_bytes(inner) for inner in path.iterdir())
