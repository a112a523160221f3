"""What a study would do: how much there is to try, what is refused and why, how long it would take."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

from memsweep.record.folder import StudyFolder
from memsweep.record.study import Study, read_study
from memsweep.search.ask import Asker
from memsweep.search.legal import COUNTED
from memsweep.search.space import Space
from memsweep.units import seconds_text

from ._enqueue import first_cell
from ._opening import ends_text, notes
from ._settings import SweepSettings

GUESS_SECONDS = 10.0
"""What a trial is taken to need where no study like this one has been run."""

_EXAMPLES = 12


def describe(settings: SweepSettings, space: Space, asker: Asker, study: Study) -> str:
    """Return what a study with these settings would do, as text.

    Args:
        settings: What was asked for.
        space: What is searched.
        asker: Knows which cells are legal.
        study: What the study sets out to do.
    """
    lines = [f"dry run of {settings.study_name}: nothing is run"]
    for parameter in space.parameters:
        values = ", ".join(parameter.labels) or str(parameter.distribution)
        demands = " and ".join(condition.text for condition in parameter.conditions)
        where = f"  (only with {demands})" if demands else ""
        lines.append(f"  {parameter.name}: {values}{where}")
    lines += [f"  {text}  (fixed)" for text in space.fixed]
    n_cells = space.n_cells()
    n_runs = settings.n_trials
    if n_cells > COUNTED:
        size = f"{n_cells:,.0f}" if space.is_discrete else "unboundedly many"
        lines.append(f"{size} combinations: more than {COUNTED:,}, so the legal ones are not counted")
        lines += [f"  refused: {rule}" for rule in asker.legal.refusals_alone()]
    else:
        listed = asker.legal.listed(COUNTED) or []
        lines.append(f"{n_cells:,.0f} combinations, {len(listed):,} of them legal")
        refusals = asker.legal.refusals().most_common()
        lines += [f"  {count:,} refused: {rule}" for rule, count in refusals]
        n_runs = min(n_runs, max(len(listed), 1))
    broken = asker.legal.verdict(first_cell(asker)).violations
    lines += [f"the baseline itself cannot run: {sentence}" for sentence in broken]
    seconds, reason = seconds_a_trial(settings.folder, study)
    lines += [ends_text(settings), *notes(settings, space)]
    total = seconds_text(n_runs * settings.repeats * seconds)
    each = f", {settings.repeats} times" if settings.repeats > 1 else ""
    then = ", and the front again after that" if settings.front_repeats else ""
    lines.append(f"about {total} for {n_runs} trials{each}, at {seconds_text(seconds)} each: {reason}{then}")
    return "\n".join(lines)


def seconds_a_trial(folder: StudyFolder, study: Study) -> tuple[float, str]:
    """Return how long a trial may take, and how that is known.

    Args:
        folder: The study's folder; studies beside it may have had the same trainer, model and measure.
        study: What the study sets out to do.
    """
    for other in _newest_first(folder.path.parent):
        try:
            earlier, results = read_study(other)
        except (OSError, ValueError, KeyError, TypeError, json.JSONDecodeError):
            continue
        seconds = [r.seconds["total"] for r in results if r.objectives and "total" in r.seconds]
        if study.context and earlier.context == study.context and seconds:
            return median(seconds), f"the median of {len(seconds)} trials of {earlier.name}"
    return GUESS_SECONDS, "a guess, since no study like this one is beside it"


def _newest_first(folder: Path) -> list[Path]:
    studies = [file for file in folder.glob("*/study.json") if file.is_file()]
    studies.sort(key=lambda file: file.stat().st_mtime, reverse=True)
    return [file.parent for file in studies[:_EXAMPLES]]
