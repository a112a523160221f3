"""One process at a time may write in a study's folder.

A record lock (fcntl): the kernel lets it go at the end of the process that has it, however that ends, and no
process that it leaves behind keeps it, as a flock would be kept that forks inherit.  So a study whose
controller was killed can be continued at once.  Whoever comes second is refused and not kept waiting: two
controllers on one study are a mistake, or a command typed too early, and a silent wait looks like a hang.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import socket
from types import TracebackType
from typing import Self

from memsweep.errors import ConfigError, StudyBusy
from memsweep.record.folder import StudyFolder

log = logging.getLogger(__name__)

_TAKEN = frozenset({errno.EACCES, errno.EAGAIN})
_UNKNOWN = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})
"""What a file system says that has no locks."""


class StudyLock:
    """Held while the block lasts; the study's folder is made when missing.

    Args:
        folder: The study's.
    """

    def __init__(self, folder: StudyFolder) -> None:
        self._folder = folder
        self._file: int | None = None

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            StudyBusy: If another process has it.
            ConfigError: If nothing can be written in the study's folder.
        """
        path = self._folder.lock
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            raise ConfigError(
                f"the study's folder {self._folder.path} cannot be written ({error.strerror}): make it "
                "writable, or put the study elsewhere with hydra.sweep.dir=<folder>"
            ) from error
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _TAKEN:
                raise self._busy() from error
            if error.errno not in _UNKNOWN:
                self._close()
                raise ConfigError(f"{path} cannot be locked: {error.strerror}") from error
            log.warning("%s cannot be locked here: nothing else may run this study", path)
        self._write(f"process {os.getpid()} on {socket.gethostname()}\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let it go."""
        self._write("")
        self._close()

    def _busy(self) -> StudyBusy:
        assert self._file is not None
        holder = os.pread(self._file, 200, 0).decode(errors="replace").strip() or "another process"
        self._close()
        return StudyBusy(
            f"{holder} is at work on the study in {self._folder.path}: wait for its end, end it (it loses no "
            f"finished trial), or give this one another name: hydra.sweeper.study_name="
            f"{self._folder.path.name}-2"
        )

    def _write(self, holder: str) -> None:
        """Say who has it, for people; on a full disk nothing is said."""
        assert self._file is not None
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, holder.encode(), 0)

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def is_busy(folder: StudyFolder) -> bool:
    """Tell whether another process is at work on a study."""
    try:
        file = os.open(folder.lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _TAKEN
    finally:
        os.close(file)
    return False
