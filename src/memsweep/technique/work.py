"""Does an optimizer step come out even, shared out among processes, micro-batches and groups of completions?

Options and the study's own arguments decide it together, and it is arithmetic: no rule of one option could
say it.  What the division of the batch by one option's number comes to is left to that option's own rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memsweep.technique.catalogue import Catalogue
from memsweep.technique.choice import ChosenOption
from memsweep.technique.option import Option, Seam
from memsweep.technique.settings import filled

MICRO, ACCUMULATION = "per_device_train_batch_size", "gradient_accumulation_steps"
GENERATIONS = "num_generations"

TRLS_GENERATIONS: Mapping[str, int] = {"grpo": 8, "rloo": 2}
"""Completions for a prompt where nobody sets them.  Source: trl==1.16.0 trainer/{grpo,rloo}_config.py."""

_LEAST_MICRO: Mapping[str, tuple[int, str]] = {
    "kto": (2, "its KL term pairs each prompt with another example of the same micro-batch"),
}
"""Source: trl==1.16.0 trainer/kto_trainer.py: Actual (not effective) batch size must be > 1."""

_PROCESSES = "processes"
_RELEVANT = (MICRO, ACCUMULATION, GENERATIONS)


class Work:
    """Judges how choices share out the work; what does not depend on the choice is settled once.

    Args:
        catalogue: Where the options are.
        trainer: The trainer's name.
        batch: `trainer.batch`; None, or 0, when that is not known: then nothing is judged.
        arguments: `trainer.arguments`; None when they are not known: then groups are not judged.
        n_devices: That processes can have one each of; None when there are as many as processes.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        trainer: str,
        batch: int | None,
        arguments: Mapping[str, Any] | None,
        n_devices: int | None,
    ) -> None:
        self._trainer, self._batch, self._n_devices = trainer, batch, n_devices
        own = arguments or {}
        self._own = {name: own[name] for name in _RELEVANT if name in own}
        if arguments is not None and trainer in TRLS_GENERATIONS:
            self._own.setdefault(GENERATIONS, TRLS_GENERATIONS[trainer])
        self._asking = {
            (option.technique, option.name): asked
            for technique in catalogue.techniques.values()
            for option in technique.options.values()
            if (asked := _asked_by(option, trainer))
        }
        self._techniques = {technique for technique, _ in self._asking}

    def problems(self, choice: Mapping[str, ChosenOption]) -> list[str]:
        """Return one sentence for each way in which the work does not come out even; empty when it does."""
        asked: dict[str, Any] = {}
        for technique in self._techniques & choice.keys():
            chosen = choice[technique]
            for name, value in self._asking.get((technique, chosen.option), {}).items():
                asked[name] = filled(value, chosen.parameters)
        n_processes = _number(asked.pop(_PROCESSES, 1)) or 1
        found = []
        if 1 < (self._n_devices or 0) < n_processes:  # of fewer than two, the options say so themselves
            found.append(
                f"{n_processes} processes need a device each, and there are {self._n_devices}: ask for "
                f"{self._n_devices}, or for fewer"
            )
        if self._batch:
            judged = frozenset(asked)
            found += uneven(self._trainer, self._batch, n_processes, {**self._own, **asked}, judged)
        return found


def uneven(
    trainer: str,
    batch: int,
    n_processes: int,
    asked: Mapping[str, Any],
    judged: frozenset[str] = frozenset(),
) -> list[str]:
    """Return one sentence for each way in which a step does not come out even; empty when it does.

    Args:
        trainer: The trainer's name.
        batch: `trainer.batch`: what a step takes in all.
        n_processes: Of the trial.
        asked: Fields of the trainer's arguments that study and techniques set, by their names.
        judged: Fields of which something else says whether they divide the batch.
    """
    if batch % n_processes:
        return [
            f"trainer.batch={batch} cannot be shared out to {n_processes} processes: make it a multiple of "
            f"{n_processes}, or take {_listed(_divisors(batch))} of them"
        ]
    found = []
    share = batch // n_processes
    micro = _number(asked.get(MICRO, share))
    least, why = _LEAST_MICRO.get(trainer, (1, ""))
    if micro is not None and (micro < 1 or share % micro):
        if not (MICRO in judged and (micro < 1 or batch % micro)):
            found.append(
                f"trainer.batch={batch} is not a multiple of the micro-batch {micro}"
                f"{f' times {n_processes} processes' if n_processes > 1 else ''}: "
                f"choose one of {_listed(_divisors(share))}"
            )
    elif micro is not None:
        if micro < least and MICRO not in judged:
            found.append(
                f"trainer={trainer} needs a micro-batch of {least} or more, got {micro} of "
                f"trainer.batch={batch} in each of {n_processes} process(es): {why}"
            )
        accumulation = share // micro
        if _number(asked.get(ACCUMULATION, accumulation)) not in (None, accumulation):
            found.append(
                f"{ACCUMULATION}={asked[ACCUMULATION]} changes the batch; it follows from trainer.batch="
                f"{batch} and the micro-batch {micro}: {accumulation}"
            )
    group = _number(asked.get(GENERATIONS))
    if group and batch % group and GENERATIONS not in judged:
        found.append(
            f"trainer.batch={batch} counts completions: it must be a multiple of {GENERATIONS}={group}; or "
            f"set trainer.arguments.{GENERATIONS} to one of {_listed(_divisors(batch)[1:])}"
        )
    return found


def _asked_by(option: Option, trainer: str) -> dict[str, Any]:
    """Return what an option says of processes, micro-batches and groups; its parameters are not filled in."""
    found: dict[str, Any] = {}
    for part in (option.settings, option.settings_by_trainer.get(trainer, {})):
        launch = part.get(Seam.LAUNCH) or {}
        found |= {name: launch[name] for name in (_PROCESSES,) if name in launch}
        for key, value in (part.get(Seam.TRAINER) or {}).items():
            found |= dict.fromkeys(set(key.split("|")) & set(_RELEVANT), value)
    return found


def _number(value: object) -> int | None:
    """Return `value` if it is a whole number; anything else is the trainer's own to refuse."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
