"""Every error this package raises on purpose.

MemsweepError
|-- ConfigError                   the user asked for something that is not on offer; exit code 2
|   |-- UnknownOption             no such technique, no such option of it, no such parameter
|   |-- IncompatibleTechniques    the options exist, but not together, or not here
|   |-- TwoOwners                 two chosen options set the same key
|   |-- CatalogueError            a file under conf/ says something that cannot be meant
|   |-- DatasetError              the data lacks what the trainer needs
|   |-- StudyExists               the study is already there, and cannot or must not go on
|   |-- OtherStudy                what is asked for is another study than the one that is there
|   |-- StudyBusy                 another process is at work on the study
|   `-- DashboardUnavailable      Optuna's dashboard is not installed, or has no port
|-- StudyUnwritable               the folder of a study that runs cannot be written any more; exit code 1
`-- TrialError                    a trial ended without a measurement
    |-- ProcessEnded              its process ended before it could say how: signal, exit code
    `-- ProcessTimedOut           its process was ended for taking too long

Running out of memory is not an error here: it is a measurement (`memsweep.record.outcome`).
"""

from __future__ import annotations

from collections.abc import Sequence


class MemsweepError(Exception):
    """The root: `except MemsweepError` catches everything that is meant for a person to read."""


class ConfigError(MemsweepError, ValueError):
    """What was asked is not on offer; the message says what is, and what to type."""


class UnknownOption(ConfigError):
    """A technique, an option or a parameter that does not exist."""


class IncompatibleTechniques(ConfigError):
    """Options that exist, but not together, not with this trainer, or not on this machine.

    Attributes:
        violations: One sentence for each broken rule.
    """

    def __init__(self, violations: Sequence[str]) -> None:
        self.violations = tuple(violations)
        lines = "\n".join(f"  {violation}" for violation in self.violations)
        super().__init__(f"{len(self.violations)} rule(s) broken:\n{lines}")

    def __reduce__(self) -> tuple[type[IncompatibleTechniques], tuple[tuple[str, ...]]]:
        return type(self), (self.violations,)


class TwoOwners(ConfigError):
    """Two chosen options set the same key, and no order of merging is the right one."""


class CatalogueError(ConfigError):
    """A file under `conf/` says something that cannot be meant."""


class DatasetError(ConfigError):
    """The data lacks what the trainer needs."""


class StudyExists(ConfigError):
    """The study is already there, and cannot or must not be continued."""


class OtherStudy(ConfigError):
    """What is asked for is not the study that is there; the message says in what they differ."""


class StudyBusy(ConfigError):
    """Another process is at work on the study."""


class DashboardUnavailable(ConfigError):
    """Optuna's dashboard is not installed, or there is no port for it."""


class StudyUnwritable(MemsweepError):
    """The folder of a study that runs cannot be written any more: a full disk, say."""


class TrialError(MemsweepError):
    """A trial ended without a measurement."""


class ProcessEnded(TrialError):
    """A trial's process ended before it could say how.

    Attributes:
        exit_code: What it exited with, None when a signal ended it.
        signal: The signal that ended it, None when it exited.
    """

    def __init__(self, message: str, exit_code: int | None = None, signal: int | None = None) -> None:
        self.exit_code = exit_code
        self.signal = signal
        super().__init__(message)

    def __reduce__(self) -> tuple[type[ProcessEnded], tuple[str, int | None, int | None]]:
        return type(self), (str(self), self.exit_code, self.signal)


class ProcessTimedOut(TrialError):
    """A trial's process was ended for taking longer than it was given."""
