"""What the proofs share: a trial's configuration, children of a warm template, intervals, bars."""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hydra import compose, initialize

from memsweep.config.schema import TrialConfig, trial_config
from memsweep.config.store import CONFIG_NAME, register
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Measured
from memsweep.record.trial import TrialRecord
from memsweep.student import t_quantile_95
from memsweep.technique.catalogue import Catalogue
from memsweep.technique.settings import merge
from memsweep.trial.environment import trial_environment
from memsweep.trial.isolate import ProcessPool, ProcessRequest, pickled
from memsweep.trial.launch import PRELOAD, run_isolated

REPOSITORY = Path(__file__).resolve().parents[1]
HELD, FAILED, NOTHING_VERIFIED = 0, 1, 2
"""Exit codes: every bar held, one did not, there was nothing to look at."""

_CATALOGUES: list[Catalogue] = []


def catalogue() -> Catalogue:
    """Return the techniques of conf/, made known to Hydra at the first call."""
    if not _CATALOGUES:
        _CATALOGUES.append(register(REPOSITORY / "conf"))
    return _CATALOGUES[0]


def composed(*overrides: str) -> TrialConfig:
    """Return the trial that `python train.py OVERRIDES` asks for."""
    from omegaconf import OmegaConf

    catalogue()
    with initialize(version_base="1.3", config_path=None):
        config = compose(CONFIG_NAME, overrides=list(overrides))
    plain: Any = OmegaConf.to_container(config, resolve=True)
    return trial_config(plain)


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a command line whose help is the script's own text."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )


@dataclass
class Bars:
    """The claims of a script, each held or not.

    Attributes:
        failed: Names of those that did not hold.
    """

    failed: list[str] = field(default_factory=list)

    def check(self, name: str, *, held: bool, figure: str, noise: str = "") -> None:
        """Print a claim, the figure, and whether it holds.

        Args:
            name: The claim.
            held: Whether it holds.
            figure: What was found, beside the bar.
            noise: What of this machine explains a bar that was missed, which then is no failure; empty where
                nothing does.
        """
        if noise and not held:
            print(f"NOISE  {name}: {figure}; this machine cannot tell: {noise}", flush=True)
            return
        print(f"{'HOLDS' if held else 'FAILS'}  {name}: {figure}", flush=True)
        if not held:
            self.failed.append(name)

    @property
    def exit_code(self) -> int:
        """What the script ends with."""
        return FAILED if self.failed else HELD


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its two-sided 95 % confidence interval.

    Attributes:
        mean: The mean.
        low: Lower end.
        high: Upper end.
    """

    mean: float
    low: float
    high: float


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of at least two values with its interval, by Student's t.

    Raises:
        ValueError: If there are fewer than two.
    """
    if len(values) < 2:
        raise ValueError(f"an interval needs at least 2 values, got {len(values)}")
    mean = statistics.fmean(values)
    half = t_quantile_95(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


def spread(values: Sequence[float]) -> float:
    """Return the largest over the smallest, less 1."""
    return max(values) / min(values) - 1


@dataclass
class Bench:
    """A folder to work in, and a warm template whose children do the work.

    Attributes:
        folder: Emptied and removed at the end.
        pool: Keeps the template.
    """

    folder: Path
    pool: ProcessPool
    _number: int = 0

    def trial(self, config: TrialConfig) -> TrialRecord:
        """Run a trial in a child, as a study does."""
        folder = TrialFolder(self._next())
        return run_isolated(config, catalogue(), folder, pool=self.pool)

    def child(self, config: TrialConfig, function: Callable[[TrialConfig, Path], Any]) -> Any:
        """Return what `function` returns in a child with the environment of a trial.

        Raises:
            RuntimeError: If the child ended in another way; the message says how.
        """
        folder = self._next()
        end = self.pool.run(
            ProcessRequest(
                function=pickled(partial(function, config, folder)),
                environment=environment(config),
                folder=folder,
                timeout_seconds=config.launch.timeout_seconds,
                preload=PRELOAD,
            )
        )
        if not end.has_returned:
            raise RuntimeError(f"a child failed: {end.error or end.last_lines}") from end.error
        return end.returned

    def _next(self) -> Path:
        self._number += 1
        folder = self.folder / str(self._number)
        folder.mkdir(parents=True)
        return folder


@contextmanager
def bench() -> Iterator[Bench]:
    """Yield a folder and a pool, both gone at the end."""
    with tempfile.TemporaryDirectory() as folder, ProcessPool(max_templates=2) as pool:
        yield Bench(Path(folder), pool)


def environment(config: TrialConfig) -> dict[str, str]:
    """Return the variables of a trial's process."""
    return trial_environment(config, settings(config), os.environ)


def settings(config: TrialConfig) -> Any:
    """Return what the trial's techniques set."""
    return merge(config.technique, config.trainer.name, catalogue())


def enter_trial_environment(config: TrialConfig) -> None:
    """Give this interpreter a trial's variables, once: libraries read some of them as they are imported."""
    wanted = environment(config)
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], wanted)


def measures_of(record: TrialRecord, name: str) -> dict[str, float]:
    """Return what a trial measured.

    Raises:
        RuntimeError: If it measured nothing; the message says how it ended.
    """
    if not isinstance(record.outcome, Measured):
        raise RuntimeError(f"{name} was not measured: {record.outcome.text}")  # noqa: TRY004, no type error
    return dict(record.outcome.measures)


def forget_accelerator() -> None:
    """Let the next trainer of this process choose its precision anew."""
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)


class Progress:
    """One line to stderr for each step of a script, with the seconds since its start."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        """Write a line."""
        print(f"[{time.monotonic() - self._began:6.1f} s] {text}", file=sys.stderr, flush=True)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began
