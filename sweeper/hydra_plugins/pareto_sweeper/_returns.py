"""What a launcher gives back, as a record: the app's numbers, our trials' outcomes, or what went wrong.

Any launcher may have run the job, and any app may have been in it.
"""

from __future__ import annotations

import contextlib
import copy
import errno
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn, JobRuntime, JobStatus
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException

from memsweep.errors import ConfigError, StudyUnwritable
from memsweep.record.folder import TrialFolder, writing
from memsweep.record.outcome import (
    OUTCOME_TYPES,
    Crashed,
    Incompatible,
    Interrupted,
    Measured,
    Outcome,
    OutOfMemory,
    Phase,
    from_mapping,
)
from memsweep.record.required import judged
from memsweep.record.study import Study
from memsweep.record.trial import RETURNED, TrialRecord

_REASON_LENGTH = 500

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
_ROOM_BYTES = 16 << 10
"""Free on a disk, below which it is full: a trial's record takes as much."""


def folder_of(job: JobReturn, default: Path) -> Path:
    """Return the job's output folder; `default` where the launcher does not say."""
    if job.hydra_cfg is None:
        return default
    found = OmegaConf.select(job.hydra_cfg, "hydra.runtime.output_dir", throw_on_missing=False)
    return default if found is None else Path(str(found))


def record_of(job: JobReturn, folder: TrialFolder, study: Study, *, are_named: bool) -> TrialRecord:
    """Return what became of a job, as its folder is to hold it.  What the trial wrote itself stands.

    Args:
        job: What the launcher gave back.
        folder: Where the job ran.
        study: Its objectives.
        are_named: The app must return a mapping with the objectives' names.
    """
    if folder.outcome.exists():
        try:
            return TrialRecord.read(folder)
        except ValueError as error:
            return TrialRecord(outcome=_crashed(str(error)))
    outcome = judged(_outcome_of(job, study, are_named=are_named), study)
    facts = {RETURNED: _storable(returned_value(job))} if isinstance(outcome, Measured) else {}
    return TrialRecord(outcome=outcome, facts=facts)


def failed_job(overrides: Sequence[str], error: BaseException) -> JobReturn:
    """Return what a launcher that raised should have given back."""
    job = JobReturn(overrides=list(overrides), status=JobStatus.FAILED)
    if isinstance(error, SystemExit):
        error = RuntimeError(f"the app ended the interpreter: sys.exit({error.code!r})")
    job.return_value = error
    return job


def not_begun(overrides: list[str], error: Exception) -> JobReturn:
    """Return the failure of a job whose config cannot be composed, or whose folder cannot be made."""
    reason = f"it could not begin: {str(error).splitlines()[0] if str(error) else repr(error)}"
    error.outcome = Crashed(reason=reason, phase=Phase.START)  # type: ignore[attr-defined]
    job_return = JobReturn(overrides=overrides, status=JobStatus.FAILED)
    job_return.return_value = error
    return job_return


def failed_process(config: DictConfig, folder: TrialFolder, error: BaseException) -> JobReturn:
    """Return what `run_job` would have, had it lived to tell."""
    config = copy.deepcopy(config)
    with read_write(config.hydra.runtime), open_dict(config.hydra.runtime):
        config.hydra.runtime.output_dir = str(folder.path)
    task_config = copy.deepcopy(config)
    with read_write(task_config), open_dict(task_config):
        del task_config["hydra"]
    job_return = JobReturn(
        overrides=[str(override) for override in config.hydra.overrides.task],
        cfg=task_config,
        hydra_cfg=OmegaConf.masked_copy(config, ["hydra"]),
        working_dir=str(folder.path) if config.hydra.job.chdir else os.getcwd(),  # noqa: PTH109, as text
        task_name=JobRuntime.instance().get("name"),
        status=JobStatus.FAILED,
    )
    job_return.return_value = error
    return job_return


def keep(record: TrialRecord, folder: TrialFolder) -> None:
    """Have the trial's folder say how it ended, which is when it has: a file that says so already stays.

    Raises:
        StudyUnwritable: If it cannot be written, so that the trial has not ended.
    """
    with contextlib.suppress(OSError, ValueError):
        if TrialRecord.read(folder) == record:
            return
    with writing(folder.path):
        record.write(folder)


def require_room(job: JobReturn, outcome: Outcome, folder: Path) -> None:
    """Raise where a job has crashed because the disk is full, as every other would until there is room.

    Its folder says no more that it has ended, so that it is run again.

    Args:
        job: What the launcher gave back.
        outcome: How it ended.
        folder: Its folder.

    Raises:
        StudyUnwritable: If so.
    """
    error = job._return_value
    number = (
        error.errno if isinstance(error, OSError) and str(error.filename).startswith(str(folder)) else None
    )
    if not isinstance(outcome, Crashed) or not (number in _NO_ROOM or _is_full(folder)):
        return
    number = number if number in _NO_ROOM else errno.ENOSPC
    with writing(folder):
        TrialFolder(folder).outcome.unlink(missing_ok=True)
        raise OSError(number, os.strerror(number), str(folder))


def interrupted_record(folder: Path, study: Study) -> TrialRecord:
    """Return how a job ended that was with the launcher when Ctrl-C came: it may have just finished."""
    record = TrialRecord(outcome=Interrupted(reason="Ctrl-C, or the controller was told to end"))
    with contextlib.suppress(OSError, ValueError):
        record = TrialRecord.read(TrialFolder(folder))
    with contextlib.suppress(StudyUnwritable):  # it ends anyway, and what is not there is not finished
        keep(record, TrialFolder(folder))
    return replace(record, outcome=judged(record.outcome, study))


def outcome_of_error(error: BaseException) -> Outcome:
    """Return the outcome that an exception stands for."""
    if is_composition_error(error):
        return Incompatible(violations=(_one_line(error, with_type=False),))
    named: Outcome | None = getattr(error, "outcome", None)  # the isolated launcher's errors have one
    if isinstance(named, Outcome):
        return named
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & {"MemoryError", "OutOfMemoryError"}:  # by name: torch is not imported here
        where = "host" if "MemoryError" in kinds else "device"
        return OutOfMemory(
            where=where, phase=Phase.START, requested_bytes=None, held_bytes=None, evidence=_one_line(error)
        )
    return _crashed(_one_line(error))


def is_composition_error(error: BaseException) -> bool:
    """Tell whether a config could not be made, so that nothing has run."""
    return isinstance(error, HydraException | OmegaConfBaseException | ConfigError)


def plain(value: Any) -> Any:
    """Return what an app returned as data that any file can hold."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {
            key: plain(item)
            for key, item in sorted(
                ((str(key), item) for key, item in value.items()), key=lambda pair: pair[0]
            )
        }
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    number = _number(value)
    return repr(value) if number is None else number


def returned_value(job: JobReturn) -> Any:
    """Return what the app returned, without raising what it raised."""
    return plain(job._return_value) if job.status is JobStatus.COMPLETED else None


def _outcome_of(job: JobReturn, study: Study, *, are_named: bool) -> Outcome:
    value = job._return_value
    if job.status is JobStatus.FAILED:
        return outcome_of_error(value) if isinstance(value, BaseException) else _crashed(repr(value))
    if job.status is not JobStatus.COMPLETED:
        return _crashed("the launcher did not wait for the job, so what it returned is not known")
    if OmegaConf.is_config(value):
        value = OmegaConf.to_container(value, resolve=True)
    if isinstance(value, Mapping):
        if value.get("type") in OUTCOME_TYPES:
            try:
                return from_mapping(value)
            except ValueError as error:
                return _crashed(str(error))
        numbers = {str(key): _number(item) for key, item in value.items()}
        return Measured(measures={key: number for key, number in numbers.items() if number is not None})
    items = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    wanted = ", ".join(study.objectives)
    if are_named and len(study.objectives) > 1:
        return _crashed(f"the app must return a mapping with {wanted}, got {_short(value)}")
    found = [number for item in items if (number := _number(item)) is not None]
    if len(found) != len(study.objectives) or len(items) != len(found):
        count = len(study.objectives)
        return _crashed(f"the app must return {count} number(s), for {wanted}, got {_short(value)}")
    return Measured(measures=dict(zip(study.objectives, found, strict=True)))


def _is_full(folder: Path) -> bool:
    """Tell whether next to nothing can be written in a folder."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    n_free = found.f_bfree if os.geteuid() == 0 else found.f_bavail
    return n_free * found.f_frsize < _ROOM_BYTES or (found.f_files > 0 and found.f_ffree == 0)


def _storable(value: Any) -> Any:
    """Return plain data without numbers that JSON has not."""
    if isinstance(value, dict):
        return {key: _storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_storable(item) for item in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any) -> float | None:
    """Return a number, of whatever library it is; None for what is none."""
    if value is None or isinstance(value, str | bytes | bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _crashed(reason: str) -> Crashed:
    return Crashed(reason=reason[:_REASON_LENGTH], phase=Phase.START)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _one_line(error: BaseException, *, with_type: bool = True) -> str:
    text = " ".join(str(error).split())[:_REASON_LENGTH]
    return f"{type(error).__name__}: {text}" if with_type or not text else text
