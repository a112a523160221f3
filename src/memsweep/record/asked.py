"""What a trial was asked to do, and by whom: trial.json, written before it begins.

With outcome.json beside it, it is all that a study needs to know of a finished trial; without one, the trial
was under way when its controller ended.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from memsweep.record.folder import TrialFolder, read_json, write_json
from memsweep.record.typed import require_numbers, require_types


class Origin(StrEnum):
    """Who asked for a trial.

    Attributes:
        GIVEN: It is the baseline, or was named: by a file, as an option alone, by an earlier study's front.
        SAMPLER: The sampler proposed it.
        LADDER: It explains the front.
        AGAIN: It asks for what another trial was asked for that did not come to its end.
    """

    GIVEN = "given"
    SAMPLER = "sampler"
    LADDER = "ladder"
    AGAIN = "again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What trial.json holds.

    Attributes:
        number: The trial's number.
        parameters: Searched key to label.
        overrides: What it is given, in order.
        choice: Technique to option, complete; empty for an app without techniques.
        changes: What the choice changes beside speed and memory, sorted; empty when nothing.
        violations: One sentence for each rule that it breaks; such a trial is not run.
        requested_hash: Hash of what is asked for; empty when rules are broken.
        inside: Parameter name to label, of those that the sampler could have drawn.
        is_baseline: It is what the others are compared with.
        origin: Who asked.
        draw: The how-manieth question to the sampler it answers, from 0; None when nobody asked the sampler.
        again_of: Number of the trial that it takes the place of; None for none.
        reused_from: Number of the trial whose outcome it has without being run; None when it is run.
        elapsed_seconds: How long the study had been running, all its controllers together.
    """

    number: int
    parameters: Mapping[str, str] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    choice: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    requested_hash: str = ""
    inside: Mapping[str, str] = field(default_factory=dict)
    is_baseline: bool = False
    origin: Origin = Origin.GIVEN
    draw: int | None = None
    again_of: int | None = None
    reused_from: int | None = None
    elapsed_seconds: float = 0.0

    def write(self, folder: TrialFolder) -> None:
        """Replace the trial's trial.json durably: what its outcome means must not be lost before it is."""
        data = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}
        write_json(folder.asked, data, durable=True)

    @classmethod
    def read(cls, folder: TrialFolder) -> Asked:
        """Return what `write` wrote.

        Raises:
            FileNotFoundError: If the folder is no trial's.
            ValueError: If the file does not hold that; the message names it.
        """
        facts: dict[str, Any] = read_json(folder.asked)
        try:
            for name in ("overrides", "changes", "violations"):
                facts[name] = tuple(facts[name])
            facts["origin"] = Origin(facts["origin"])
            require_types(cls, facts)
            require_numbers(facts, "number", "draw", "again_of", "reused_from")
            return cls(**facts)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{folder.asked} does not say what was asked of a trial: {error}") from error
