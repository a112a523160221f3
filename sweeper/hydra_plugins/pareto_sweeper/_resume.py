"""Whether a study is begun or continued: what its folder holds, whether that is asked for, how far it goes.

Nothing here runs a trial or draws anything; `_restored.py` brings sampler and book to where they were.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from memsweep.errors import ConfigError, OtherStudy, StudyExists
from memsweep.record.folder import StudyFolder, set_damaged_aside
from memsweep.record.outcome import Crashed, Interrupted
from memsweep.record.past import Past, PastTrial, read_past
from memsweep.record.study import INTERRUPTED, Study
from memsweep.study.fingerprint import differences
from memsweep.study.rebuild import check_results, remove_leftovers

from ._launches import TRIED
from ._settings import SweepSettings

_SHOWN = 12
"""Differences that are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a study begins.

    Attributes:
        study: What it sets out to do, with what is known already.
        past: Its trials from before.
        before: study.json as it was; None where there was none that can be read.
        notices: What was damaged and is made anew, one sentence each.
    """

    study: Study
    past: Past
    before: Study | None
    notices: tuple[str, ...] = ()

    @property
    def is_as_before(self) -> bool:
        """Whether space, sampler and plan are those of before, so that what was drawn is drawn again."""
        if self.before is None:
            return False
        now, before = self.study.fingerprint, self.before.fingerprint
        same = all(now.get(key) == before.get(key) for key in ("space", "given", "excluded", "plan"))
        return same and dict(self.study.sampler) == dict(self.before.sampler)

    @property
    def texts(self) -> list[str]:
        """What is to be said before the first trial."""
        said = list(self.notices)
        if self.past.trials:
            n_ended = sum(is_finished(trial) for trial in self.past.trials)
            said.append(f"continues the study: {n_ended} trial(s) have finished before")
        return said


def start_of(settings: SweepSettings, study: Study) -> Start:
    """Return where the study begins; its folder is this process's alone.

    Args:
        settings: What was asked for.
        study: What it sets out to do.

    Raises:
        StudyExists: If there is one that must not, or cannot, be continued.
        OtherStudy: If the one that is there asks for something else.
        ConfigError: If there is none to continue, and one is required.
    """
    folder = settings.folder
    remove_leftovers(folder)
    past = read_past(folder)
    notices = list(past.damaged)
    if not past.trials and not past.strangers:
        if settings.resume == "require":
            raise ConfigError(
                f"hydra.sweeper.resume=require: {folder.path} holds no trial to continue; type its study's "
                "name with hydra.sweeper.study_name=<name>, or leave resume out to begin one"
            )
        extra = settings.extra_trials
        before = _study_before(folder, notices)
        notices += check_results(folder, past)
        if before is not None:  # which the copy for Optuna may have already
            study = replace(study, created=before.created)
        return Start(
            study=replace(study, n_trials=study.n_trials + extra, extra_trials=extra),
            past=past,
            before=None,
            notices=tuple(notices),
        )
    _require_continuable(settings, past)
    before = _study_before(folder, notices)
    is_bound = any(is_finished(trial) for trial in past.trials)
    if before is not None and is_bound:
        _require_same(study, before, folder)
    elif before is None:
        notices.append(
            f"{folder.study.name} is made anew: what was asked for before cannot be compared with what is now"
        )
    notices += check_results(folder, past)
    return Start(study=_merged(settings, study, before), past=past, before=before, notices=tuple(notices))


def is_finished(trial: PastTrial) -> bool:
    """Tell whether a trial has come to an end of its own, which stands.

    One that crashed for a reason that may pass is tried again; its controller ended before the last try.
    """
    if trial.record is None or isinstance(trial.record.outcome, Interrupted):
        return False
    outcome = trial.record.outcome
    return not (isinstance(outcome, Crashed) and outcome.may_pass and TRIED not in outcome.reason)


def _require_continuable(settings: SweepSettings, past: Past) -> None:
    n_trials = len(past.trials) + len(past.strangers)
    there = f"{settings.folder.path} already holds {n_trials} trial(s)"
    other = f"give the new one another name: hydra.sweeper.study_name={settings.folder.path.name}-2"
    if settings.resume == "never":
        raise StudyExists(f"{there}, and hydra.sweeper.resume=never adds to none; {other}")
    if past.strangers:
        names = ", ".join(str(path) for path in past.strangers[:3])
        raise StudyExists(
            f"{there}, and cannot be continued: there is no trial.json that can be read in {names}, which "
            f"says what was asked of it; move that away, or {other}"
        )


def _study_before(folder: StudyFolder, notices: list[str]) -> Study | None:
    try:
        return Study.read(folder)
    except FileNotFoundError:
        return None
    except ValueError as error:
        aside = set_damaged_aside(folder.study)
        notices.append(f"{folder.study.name} cannot be read ({error}); it was set aside as {aside.name}")
        return None


def _require_same(study: Study, before: Study, folder: StudyFolder) -> None:
    found = differences(study.fingerprint, before.fingerprint)
    if not found:
        return
    lines = [f"  {sentence}" for sentence in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"  and {len(found) - _SHOWN} more")
    name = folder.path.name
    raise OtherStudy(
        "\n".join(
            [
                f"the study in {folder.path} is another than the one asked for:",
                *lines,
                f"Ask for what it was, to continue it: {before.command}",
                f"Or begin another, which may learn from it: hydra.sweeper.study_name={name}-2 "
                f"hydra.sweeper.warm_start={name}",
            ]
        )
    )


def _merged(settings: SweepSettings, study: Study, before: Study | None) -> Study:
    """Return the study with what is known of it already, and how many trials it is to have."""
    extra, n_trials = settings.extra_trials, settings.n_trials
    if before is None:
        return replace(study, n_trials=n_trials + extra, extra_trials=extra)
    if extra:
        # The same command once more, because it was interrupted, adds nothing a second time.
        is_added = before.ended in (None, INTERRUPTED) and before.extra_trials == extra
        n_trials = before.n_trials if is_added else before.n_trials + extra
    return replace(
        study,
        name=before.name,
        created=before.created,
        reference=before.reference,
        compared_with=before.compared_with,
        conditions=before.conditions,
        trial_versions=before.trial_versions,
        n_trials=n_trials,
        extra_trials=extra,
    )
