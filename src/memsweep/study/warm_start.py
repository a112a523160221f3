"""What an earlier study has measured, as knowledge for a new one.

Its trials teach the sampler, and of them only the members of its front are measured again, first of all: a
figure of another study is never a figure of this one.  Only what was measured of the same data, on the same
machine, with the same versions counts, which is known once the new study has measured its first trial.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from memsweep.errors import ConfigError
from memsweep.record.comparable import differences
from memsweep.record.study import Study, read_study
from memsweep.record.trial import TrialResult
from memsweep.search.ask import Asker
from memsweep.search.proposal import Proposal
from memsweep.search.space import Cell
from memsweep.search.tell import told, worst_values


class WarmStart:
    """An earlier study, to learn from.

    Args:
        folder: Of the earlier study.
        asker: Of the new one.
        study: The new one.

    Raises:
        ConfigError: If there is no such study, or it was about something else; all differences at once.
    """

    def __init__(self, folder: Path, asker: Asker, study: Study) -> None:
        try:
            earlier, results = read_study(folder)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"hydra.sweeper.warm_start: {folder} holds no study ({error}); name the folder of one, or "
                "the study where its folder is beside the new one's"
            ) from error
        found = _differences(study, earlier)
        if found:
            raise ConfigError(
                f"hydra.sweeper.warm_start: {earlier.name} was about something else: {'; '.join(found)}"
            )
        self._asker, self._earlier = asker, earlier
        self._results = [result for result in results if result.reused_from is None and not result.unlike]

    def after(self, first: TrialResult, study: Study) -> tuple[str, list[Proposal]]:
        """Teach the sampler what the earlier study knows, if it was measured as the first trial was.

        Args:
            first: The first trial that the new study has measured.
            study: The new study, with the bounds that follow from that trial.

        Returns:
            What there is to say of it, and the members of the earlier front, to be measured again.
        """
        name = self._earlier.name
        apart = [
            *differences(self._earlier.conditions, first.conditions, f"trial {first.number}"),
            *differences(self._earlier.trial_versions, first.versions, f"trial {first.number}"),
        ]
        if apart:
            return f"nothing is taken from {name}: {'; '.join(apart)}", []
        worst = worst_values(self._earlier, self._results)
        placed = [(cell, result) for result in self._results if (cell := self._cell(result)) is not None]
        for cell, result in placed:
            sentence = told(_judged(result, study), study, worst)
            self._asker.learn(cell, sentence, is_enough=not result.on_front)
        again = [cell for cell, result in placed if result.on_front and not self._asker.is_tried(cell)]
        proposals = [self._asker.of_cell(cell) for cell in again]
        return (
            f"{len(placed)} of {len(self._results)} trials of {name} are in this space and teach the "
            f"sampler; {len(proposals)} of its front are measured again first"
        ), proposals

    def _cell(self, result: TrialResult) -> Cell | None:
        """Return the cell that asks for what a trial has asked for; None where this space has none."""
        if not result.requested_hash:
            return None
        space = self._asker.space
        cell = space.cell(
            {p.name: result.parameters.get(p.key, _composed(result, p.key)) for p in space.parameters}
        )
        same = self._asker.legal.verdict(cell).requested_hash == result.requested_hash
        return cell if same else None


def _judged(result: TrialResult, study: Study) -> TrialResult:
    """Return a trial judged by a study's constraints, as far as its measures tell."""
    if not result.measures:
        return result
    violations = {
        name: constraint.violation(result.medians) for name, constraint in study.constraints.items()
    }
    return replace(result, constraints={name: v for name, v in violations.items() if v is not None})


def _composed(result: TrialResult, key: str) -> str | None:
    """Return the option of a technique that was not searched then."""
    return result.choice.get(key.removeprefix("technique/"))


def _differences(study: Study, earlier: Study) -> list[str]:
    """Return how two studies differ in what makes their figures comparable, one sentence each."""
    now = f"the new study {study.name}"
    found = list(differences(earlier.context, study.context, now))
    if dict(earlier.objectives) != dict(study.objectives):
        texts = [
            ", ".join(f"{name} {direction}" for name, direction in one.objectives.items())
            for one in (earlier, study)
        ]
        found.append(f"its objectives are {texts[0]}, those of {now} {texts[1]}")
    return found
