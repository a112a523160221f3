"""What is said before the first trial."""

from __future__ import annotations

from collections.abc import Iterator

from memsweep.record.study import Study
from memsweep.search.ask import Asker
from memsweep.search.space import Space

from ._settings import SweepSettings

# What the `data` among a trial's conditions is made of, beside the keys of `dataset`.
_DECIDES_DATA = frozenset({"dataset", "measure", "measure.probe_examples", "trainer"})


def opening(settings: SweepSettings, asker: Asker, study: Study, note: str | None) -> Iterator[str]:
    """Yield what is said before the first trial.

    Args:
        settings: What was asked for.
        asker: Knows which cells are legal.
        study: What the study sets out to do.
        note: What else there is to say; None for nothing.
    """
    listed = asker.legal.listed()
    cells = f"{asker.space.n_cells():,.0f} combinations" if asker.space.is_discrete else "an unbounded space"
    is_judged = listed is not None and (asker.space.techniques or len(listed) < asker.space.n_cells())
    legal = f", {len(listed or ()):,} of them legal" if is_judged else ""
    sampler = study.sampler.get("name") or study.sampler.get("_target_")
    yield f"study {study.name}: {settings.n_trials} trials of {cells}{legal}; sampler {sampler}"
    yield f"folder: {settings.folder.path}"
    yield f"watch:  memsweep dashboard {settings.folder.path}"
    if len(settings.stop.in_force) > 1:
        yield ends_text(settings)
    yield from notes(settings, asker.space)
    if note:
        yield note


def ends_text(settings: SweepSettings) -> str:
    """Return when the study ends, at the latest."""
    *others, last = settings.stop.in_force
    return f"ends after {', '.join(others)} or {last}" if others else f"ends after {last}"


def notes(settings: SweepSettings, space: Space) -> Iterator[str]:
    """Yield what is worth knowing before a study begins, a dry run too.

    Args:
        settings: What was asked for.
        space: What is searched.
    """
    again = [f"each set-up is measured {settings.repeats} times"] if settings.repeats > 1 else []
    if settings.front_repeats:
        times = "once" if settings.front_repeats == 1 else f"{settings.front_repeats} times"
        again.append(f"the front is measured {times} more at the end")
    if again:
        yield ", and ".join(again)
    if settings.cut_short and space.techniques:
        yield "trials that cannot come onto the front are cut short (all to their end: cut_short=false)"
    if space.left_out:
        verb = "is" if len(space.left_out) == 1 else "are"
        yield f"{' and '.join(space.left_out)} {verb} left out: what hydra.sweeper.when asks for never holds"
    deciding = [
        parameter.key
        for parameter in space.parameters
        if parameter.key in _DECIDES_DATA or parameter.key.startswith("dataset.")
    ]
    if deciding and space.techniques:
        verb = "decides" if len(deciding) == 1 else "decide"
        yield (
            f"{' and '.join(deciding)} {verb} what is trained on: trials on other data than the first "
            "measured trial's are kept, and do not share its front"
        )
