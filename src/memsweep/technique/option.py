"""What one file of conf/technique says, as types: option, parameter, need, and the rules that it holds.

These classes hold; `reading` makes them from YAML, `compatibility` judges with them and `settings` merges
what they set.  None of them knows a technique by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from memsweep.technique.rule import Rule

BASELINE = "baseline"
"""The option that every technique has: what TRL does when nothing is asked."""


class Seam(StrEnum):
    """The places where an option's settings may enter a trial; there are no others.

    Attributes:
        MODEL: How the model is loaded: `from_pretrained` arguments, and `quantization`.
        TRAINER: Fields of the trainer's TRL config class.
        ADAPTER: `type`, and fields of that PEFT config class.
        ENVIRONMENT: Variables of the trial's process, in place before any library reads them.
        LAUNCH: How the trial's processes are started.
    """

    MODEL = "model"
    TRAINER = "trainer"
    ADAPTER = "adapter"
    ENVIRONMENT = "environment"
    LAUNCH = "launch"


class Saves(StrEnum):
    """What an option needs less of."""

    WEIGHTS = "weights"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"
    ACTIVATIONS = "activations"
    FRAGMENTATION = "fragmentation"
    NOTHING = "nothing"


class Changes(StrEnum):
    """What an option changes beside speed and memory: fronts are fair only among equals in this.

    Attributes:
        NOTHING: The same numbers, but for the order of summation.
        NUMERICS: Other rounding, or other arithmetic: another optimizer, another engine for generation.
        BATCH: Which examples share an optimizer step.
        TRAINED_PARAMETERS: Which parameters are trained.
        DATA: Which tokens are trained on.
    """

    NOTHING = "nothing"
    NUMERICS = "numerics"
    BATCH = "batch"
    TRAINED_PARAMETERS = "trained_parameters"
    DATA = "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A number or word that an option lets a person choose; at `technique.<folder>.<name>`.

    Attributes:
        name: As in the settings: `${name}`.
        default: The value when nothing is asked; its type is the parameter's type.
        search: Values that a space tries; empty when a space leaves it alone.
        help: What it does, in a few words.
        minimum: Least legal value; None when there is no least.
        maximum: Greatest legal value; None when there is no greatest.
    """

    name: str
    default: bool | int | float | str
    search: tuple[bool | int | float | str, ...]
    help: str
    minimum: float | None = None
    maximum: float | None = None

    def problem(self, value: object) -> str | None:
        """Say in half a sentence what is wrong with `value`; None when nothing is."""
        kind = type(self.default)
        fits = isinstance(value, (int, float)) if kind is float else isinstance(value, kind)
        if not fits or (isinstance(value, bool) and kind is not bool):
            return f"must be {kind.__name__}, got {value!r}"
        if self.minimum is not None and value < self.minimum:  # type: ignore[operator]
            return f"must be at least {self.minimum:g}, got {value!r}"
        if self.maximum is not None and value > self.maximum:  # type: ignore[operator]
            return f"must be at most {self.maximum:g}, got {value!r}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What an option needs of the machine.

    Attributes:
        packages: Requirements as pip takes them: `bitsandbytes`, `kernels>=0.18`.
        device: `any` or `cuda`.
        min_compute_capability: Of the CUDA device, e.g. 9.0; None means any.
        network: Whether it downloads something when a trial runs.
        several_devices: Whether a trial takes several processes, with a device each.
        several_processes: Whether something else must run beside a trial: a server of its own.
        verified: On what its effect was seen: `cpu`; `simulated`, several processes on a CPU in place of
            devices; `hardware`; or `source` (read, not run).
    """

    packages: tuple[str, ...] = ()
    device: str = "any"
    min_compute_capability: float | None = None
    network: bool = False
    several_devices: bool = False
    several_processes: bool = False
    verified: str = "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """The trainers that an option works in.

    Attributes:
        allowed: Their names.
        because: What happens in the others.
        source: Where that is known from.
    """

    allowed: tuple[str, ...]
    because: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """A declared equality: this option asks for what another of the technique asks for.

    Attributes:
        option: The other option.
        trainers: Where it is one; empty means everywhere.
        parameters: It is one only at these values.
        when: It is one only where each of these techniques has one of these options.
    """

    option: str
    trainers: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One file of conf/technique.

    Attributes:
        technique: Its folder.
        name: Its file, without `.yaml`.
        summary: What it does, in one sentence.
        saves: What it needs less of.
        costs: What it costs, in words.
        source: Where it is described.
        changes: What it changes beside speed and memory.
        needs: What it needs of the machine.
        support: The trainers it works in; None means all.
        rules: What it requires and excludes.
        parameters: Name to parameter.
        settings: Seam to settings, for every trainer.
        settings_by_trainer: Trainer to seam to settings, beside `settings`.
        same_as: Declared equalities.
    """

    technique: str
    name: str
    summary: str
    saves: tuple[str, ...]
    costs: str
    source: str
    changes: tuple[str, ...]
    needs: Needs = field(default_factory=Needs)
    support: Support | None = None
    rules: tuple[Rule, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    settings_by_trainer: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    same_as: tuple[Equivalence, ...] = ()

    @property
    def label(self) -> str:
        """`adapter=lora`."""
        return f"{self.technique}={self.name}"

    def defaults(self) -> dict[str, Any]:
        """Return every parameter with its default."""
        return {name: parameter.default for name, parameter in self.parameters.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Technique:
    """One folder of conf/technique.

    Attributes:
        name: The folder's name.
        options: Name to option, `baseline` first.
    """

    name: str
    options: Mapping[str, Option]
