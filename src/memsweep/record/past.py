"""What the trial folders of a study say: the ground truth, from which every other file of it can be made.

A folder with trial.json is a trial's; with an outcome.json that can be read it has finished.  Everything else
in the study's folder follows from these two, and may be missing, torn or old.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memsweep.record.asked import Asked
from memsweep.record.folder import StudyFolder, TrialFolder, set_damaged_aside
from memsweep.record.outcome import Interrupted
from memsweep.record.trial import TrialRecord

_DEEPEST = 5
"""Folders between a study's and a trial's, at most: an app may name them by what it searches."""

_NO_TRIALS = frozenset({"repeats", "tries", "wandb", ".hydra", "pictures"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTrial:
    """A trial as its folder tells of it.

    Attributes:
        asked: What it was asked to do.
        folder: The folder.
        record: How it ended; None when it was under way as its controller ended.
        repeats: Which further run of it to how that ended, from 1; only those that came to an end.
    """

    asked: Asked
    folder: TrialFolder
    record: TrialRecord | None
    repeats: Mapping[int, TrialRecord] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The trials of a study until now.

    Attributes:
        trials: By number.
        strangers: Folders with an outcome that do not say whose it is, or cannot be read.
        damaged: What could not be read and was set aside, one sentence each.
    """

    trials: tuple[PastTrial, ...] = ()
    strangers: tuple[Path, ...] = ()
    damaged: tuple[str, ...] = ()

    @property
    def next_number(self) -> int:
        """The first number that no trial has."""
        return max((trial.asked.number for trial in self.trials), default=-1) + 1

    @property
    def next_draw(self) -> int:
        """The first question to the sampler that no trial answers."""
        draws = [trial.asked.draw for trial in self.trials if trial.asked.draw is not None]
        return max(draws, default=-1) + 1

    @property
    def elapsed_seconds(self) -> float:
        """How long the study has been running, as far as its trials tell."""
        return max(
            (
                trial.asked.elapsed_seconds + (0.0 if trial.record is None else total_seconds(trial.record))
                for trial in self.trials
            ),
            default=0.0,
        )

    @property
    def device_seconds(self) -> float:
        """How long all runs together have taken, repeats too."""
        records = [trial.record for trial in self.trials if trial.record is not None]
        records += [record for trial in self.trials for record in trial.repeats.values()]
        return sum(map(total_seconds, records))


def total_seconds(record: TrialRecord) -> float:
    """Return how long a run has taken: what its controller measured, else what the run knew itself."""
    seconds = record.seconds
    return seconds["total"] if "total" in seconds else sum(seconds.values())


def read_past(folder: StudyFolder) -> Past:
    """Return what the trial folders of a study say; what cannot be read in one is set aside.

    Args:
        folder: The study's; whoever reads it has it for himself.
    """
    found: dict[int, PastTrial] = {}
    strangers: list[Path] = []
    damaged: list[str] = []
    for path in _folders(folder.path):
        trial = TrialFolder(path)
        try:
            asked = Asked.read(trial)
        except (FileNotFoundError, ValueError):
            strangers.append(path)
            continue
        past = PastTrial(
            asked=asked, folder=trial, record=_record(trial, damaged), repeats=_repeats(trial, damaged)
        )
        # A launcher may have run a trial elsewhere than where it was expected: what has ended counts.
        known = found.get(asked.number)
        if known is None or known.record is None:
            found[asked.number] = past
    trials = tuple(found[number] for number in sorted(found))
    return Past(trials=trials, strangers=tuple(strangers), damaged=tuple(damaged))


def _folders(top: Path) -> Iterator[Path]:
    """Yield the folders that hold a trial.json or an outcome.json, not those within them."""
    for place, names, files in os.walk(top):
        path = Path(place)
        if path != top and ("trial.json" in files or "outcome.json" in files):
            names.clear()
            yield path
        elif len(path.relative_to(top).parts) >= _DEEPEST:
            names.clear()
        else:
            names[:] = sorted(name for name in names if name not in _NO_TRIALS)


def _record(folder: TrialFolder, damaged: list[str]) -> TrialRecord | None:
    try:
        return TrialRecord.read(folder)
    except FileNotFoundError:
        return None
    except ValueError as error:
        aside = set_damaged_aside(folder.outcome)
        damaged.append(f"{error}; it is {aside.name} now, and the trial runs again")
        return None


def _repeats(folder: TrialFolder, damaged: list[str]) -> dict[int, TrialRecord]:
    """Return the repeats that have ended by themselves, up to the first that has not."""
    found: dict[int, TrialRecord] = {}
    while (repeat := folder.repeat(len(found) + 1)).outcome.exists():
        record = _record(repeat, damaged)
        if record is None or isinstance(record.outcome, Interrupted):
            break
        found[len(found) + 1] = record
    return found
