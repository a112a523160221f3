"""A trial's configuration as types: what Hydra composed, checked and frozen.

Each class checks only itself; it reads no environment, disk, network or device.  Whether this machine
can run a trial is asked before launch (`memsweep.technique.compatibility`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from memsweep.config.filled import from_mapping
from memsweep.config.forbidden import argument_problems, variable_problems
from memsweep.config.groups import technique_nodes
from memsweep.errors import ConfigError
from memsweep.machine import Device
from memsweep.technique.choice import ChosenOption

LARGEST_SEED = 2**32 - 1
"""NumPy's generators take no larger one.  Source: numpy==2.4.6 numpy.random.seed"""


class DataKind(StrEnum):
    """What a row of the data must hold.  Source: trl==1.16.0 docs, dataset formats."""

    PROMPT_COMPLETION = "prompt_completion"
    PREFERENCE = "preference"
    UNPAIRED_PREFERENCE = "unpaired_preference"
    PROMPT_ONLY = "prompt_only"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerConfig:
    """Which TRL trainer, and the work that every trial of a study does.

    Attributes:
        name: Module of `memsweep.trainers`.
        data: What a row of the data must hold.
        batch: Source examples per optimizer step: micro-batch times accumulation.  Techniques may split
            it differently, never change it.
        completion_tokens: Longest completion an online trainer generates; None for the others.
        arguments: Fields of the trainer's TRL config class that every trial gets.
    """

    name: str
    data: DataKind
    batch: int
    completion_tokens: int | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tokens = self.completion_tokens
        problems = [f"trainer.batch must be at least 1, got {self.batch}"] if self.batch < 1 else []
        if tokens is not None and tokens < 1:
            problems.append(f"trainer.completion_tokens must be at least 1, got {tokens}")
        problems += argument_problems(self.arguments, "trainer.arguments")
        if problems:
            raise ConfigError("\n".join(problems))


class ModelSource(StrEnum):
    """Where a model comes from."""

    GEOMETRY = "geometry"
    PATH = "path"
    HUB = "hub"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The model to train.

    Attributes:
        name: What reports call it; the repository's name when `source` is hub.
        source: `geometry` (random weights: neither speed nor memory depends on their values), `path`
            (a local folder or GGUF file) or `hub`.
        geometry: Fields of the transformers config, `model_type` among them, when `source` is geometry.
        path: The folder or the GGUF file, when `source` is path (`memsweep.model.path`).
        revision: Of the hub's repository; None means its default.
    """

    name: str
    source: ModelSource
    geometry: Mapping[str, Any] = field(default_factory=dict)
    path: str | None = None
    revision: str | None = None

    def __post_init__(self) -> None:
        if self.source is ModelSource.GEOMETRY and "model_type" not in self.geometry:
            raise ConfigError("model.geometry must name a model_type, e.g. qwen2 (see conf/model/small.yaml)")
        if self.source is ModelSource.PATH and not self.path:
            raise ConfigError("model=path needs a folder: model.path=/path/to/model")
        if self.source is ModelSource.HUB and not self.name:
            raise ConfigError("model=hub needs a repository: model.name=organization/model")


class DatasetSource(StrEnum):
    """Where the data come from."""

    EMBEDDED = "embedded"
    JSONL = "jsonl"
    PARQUET = "parquet"
    CSV = "csv"
    HUB = "hub"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetConfig:
    """The data to train on.

    Attributes:
        name: What reports call it; the repository's name when `source` is hub.
        source: `embedded` (the running Python's documentation) or a kind of file, or `hub`.
        path: The file, or a folder of such files.
        split: Of the hub's repository.
    """

    name: str
    source: DatasetSource
    path: str | None = None
    split: str = "train"

    def __post_init__(self) -> None:
        files = {DatasetSource.JSONL, DatasetSource.PARQUET, DatasetSource.CSV}
        if self.source in files and not self.path:
            raise ConfigError(f"dataset={self.source} needs a file: dataset.path=/path/to/data.{self.source}")
        if self.source is DatasetSource.HUB and not self.name:
            raise ConfigError("dataset=hub needs a repository: dataset.name=organization/data")


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardConfig:
    """How an online trainer scores completions.  Other trainers ignore it.

    Attributes:
        name: Function of `memsweep.trainers.rewards`.
        arguments: What that function is called with, beside the completions.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureConfig:
    """How long to measure, and how sure to be.

    Attributes:
        name: What reports call it.
        probe_examples: Source examples that every trial trains on, over and over; a pass is all of them
            once.  Chosen at even quantiles of length, so that short and long ones are both there.
        evaluation_examples: Source examples that every trial evaluates on once, after the first optimizer
            step and outside what is timed; other ones than it trains on.  0 means that nothing is evaluated.
        worst_step: Whether one step trains on the longest examples of all the data together, outside what is
            timed, so that the peak of memory is not one that appears hours later.
        precision: Half the width of the 95 % confidence interval of the throughput, as a share of it, at
            which measuring ends.
        min_passes: Passes that are timed at least.
        max_passes: Passes that are timed at most, those too that turn out to be warm-up.
        max_seconds: No further pass is begun after so many seconds of timed passes.
        repeats: How often each set-up of a study is measured, in shuffled order.
        front_repeats: How often the set-ups on a study's front are measured again at its end.
    """

    name: str
    probe_examples: int
    precision: float
    min_passes: int
    max_passes: int
    max_seconds: float
    evaluation_examples: int = 0
    worst_step: bool = True
    repeats: int = 1
    front_repeats: int = 0

    def __post_init__(self) -> None:
        problems = [
            f"measure.{name} must be at least {least}, got {getattr(self, name)}"
            for name, least in (
                ("probe_examples", 1),
                ("min_passes", 2),
                ("max_passes", 2),
                ("repeats", 1),
                ("front_repeats", 0),
                ("evaluation_examples", 0),
            )
            if getattr(self, name) < least
        ]
        if not 0 < self.precision < 1:
            problems.append(f"measure.precision must be between 0 and 1, e.g. 0.03, got {self.precision}")
        problems += _not_seconds("measure.max_seconds", self.max_seconds)
        if self.min_passes > self.max_passes:
            problems.append(
                f"measure.min_passes={self.min_passes} exceeds measure.max_passes={self.max_passes}"
            )
        if problems:
            raise ConfigError("\n".join(problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetConfig:
    """The memory that a trial may take.

    Attributes:
        name: What reports call it.
        memory_bytes: The ceiling; None means all there is.
    """

    name: str
    memory_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.memory_bytes is not None and self.memory_bytes < 1:
            raise ConfigError(f"budget.memory_bytes must be at least 1, got {self.memory_bytes}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchConfig:
    """How a trial is started.

    Attributes:
        name: What reports call it.
        device: `auto` takes CUDA where there is one.
        threads: Compute threads on a CPU, of each process of a trial; 0 shares out the cores.
        timeout_seconds: A trial that takes longer is ended.
        stall_seconds: A trial of several processes none of which computes for so long is ended.
        simulates_devices: Whether processes on a CPU may stand in for devices, one each, so that sharding
            shards for real where there are none.  Ignored on CUDA.
        environment: Variables that every trial's process gets.
    """

    name: str
    device: Device
    threads: int
    timeout_seconds: float
    stall_seconds: float = 60.0
    simulates_devices: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = []
        if self.threads < 0:
            problems.append(f"launch.threads must be at least 0, got {self.threads}")
        problems += _not_seconds("launch.timeout_seconds", self.timeout_seconds)
        problems += _not_seconds("launch.stall_seconds", self.stall_seconds)
        problems += not_variables("launch.environment", self.environment)
        problems += variable_problems(self.environment, "launch.environment")
        if problems:
            raise ConfigError("\n".join(problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialConfig:
    """All that one trial is asked to do.

    Attributes:
        trainer: Which TRL trainer, and its work.
        model: The model to train.
        dataset: The data to train on.
        reward: How completions are scored, for online trainers.
        technique: Technique to its chosen option, complete.
        measure: How long to measure.
        budget: The memory that the trial may take.
        launch: How it is started.
        seed: Of everything random.
    """

    trainer: TrainerConfig
    model: ModelConfig
    dataset: DatasetConfig
    reward: RewardConfig
    technique: Mapping[str, ChosenOption]
    measure: MeasureConfig
    budget: BudgetConfig
    launch: LaunchConfig
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.seed <= LARGEST_SEED:
            raise ConfigError(f"seed must be from 0 to {LARGEST_SEED}, got {self.seed}")

    @property
    def numbers(self) -> dict[str, int]:
        """Return the numbers that rules may be about (`memsweep.technique.catalogue.NUMBERS`)."""
        return {
            "batch": self.trainer.batch,
            "measure.evaluation_examples": self.measure.evaluation_examples,
        }


def not_variables(where: str, environment: Mapping[str, str]) -> list[str]:
    """Return what no process can have in its environment, one sentence each.

    Args:
        where: What it is called in messages.
        environment: Name to value.
    """
    return [
        f"{where} has the variable {name!r}: a name has at least one character, none of them = or NUL, and a "
        "value no NUL"
        for name, value in environment.items()
        if not name or "=" in name or "\0" in f"{name}{value}"
    ]


def _not_seconds(where: str, seconds: float) -> list[str]:
    """Return what is wrong with a time that something may take: nothing, or one sentence."""
    is_one = math.isfinite(seconds) and seconds > 0
    return [] if is_one else [f"{where} must be positive and finite, e.g. 600, got {seconds}"]


def trial_config(data: Mapping[str, Any]) -> TrialConfig:
    """Return the trial that a composed config asks for.

    Args:
        data: The whole composed config as plain mappings; keys that a trial does not read (`tracking`,
            `hydra`) are ignored.

    Raises:
        ConfigError: All problems at once.
    """
    known = {entry.name for entry in fields(TrialConfig)}
    relevant = {key: value for key, value in data.items() if key in known}
    relevant["technique"] = {
        name: {"option": node.pop("option", None), "parameters": node}
        for name, node in technique_nodes(relevant.get("technique")).items()
    }
    return from_mapping(TrialConfig, relevant)
