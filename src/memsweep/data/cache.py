"""Where does what is expensive to make wait for the next trial?

In the cache folder: `MEMSWEEP_CACHE`, else `memsweep` in the user's cache folder.  An entry is named by a
hash of all that it depends on, so it is never out of date; it appears in one step, complete, so any number
of processes may want it at once: each makes its own, one wins, and all use the winner's.

Making happens in a fork of the process where that is safe: what it leaves in the heap would otherwise change
what the first trial on a machine measures of its memory, by some MiB.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memsweep.record.folder import write_text


def cache_folder() -> Path:
    """Return the folder that entries are kept in; it need not exist yet."""
    if chosen := os.environ.get("MEMSWEEP_CACHE"):
        return Path(chosen)
    user = os.environ.get("XDG_CACHE_HOME")
    return (Path(user) if user else Path.home() / ".cache") / "memsweep"


@functools.cache
def rules_of(*files: str) -> str:
    """Return a hash of source files: what other rules would make is another entry of the cache.

    Args:
        files: `__file__` of every module whose code decides what an entry holds.
    """
    text = b"".join(Path(file).read_bytes() for file in files)
    return hashlib.sha256(text).hexdigest()[:16]


def hash_of(*parts: Any) -> str:
    """Return a name for what is made from `parts`: 16 hexadecimal digits of a SHA-256.

    Args:
        parts: JSON-ready data, and mappings whose order does not count.
    """
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def cached_text(name: str, make: Callable[[], str]) -> str:
    """Return the entry `name`, made by `make` when it is not there.

    Args:
        name: Path inside the cache folder; a hash of all that the entry depends on is part of it.
        make: Returns what the entry holds.
    """
    path = cache_folder() / name
    if not path.is_file():
        _apart(lambda: write_text(path, make()))
    return path.read_text(encoding="utf-8")


def cached_path(name: str, make: Callable[[Path], None]) -> Path:
    """Return the folder of the entry `name`, filled by `make` when it is not there.

    Args:
        name: Path inside the cache folder; a hash of all that the entry depends on is part of it.
        make: Fills the empty folder that it is given.
    """
    path = cache_folder() / name
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        _apart(lambda: _fill(path, make))
    return path


def _fill(path: Path, make: Callable[[Path], None]) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    partial.mkdir()
    try:
        make(partial)
        partial.rename(path)
    except OSError:
        # Somebody else was faster: a folder cannot be renamed onto one that holds something.
        if not path.is_dir():
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _apart(make: Callable[[], None]) -> None:
    """Run `make` in a fork of this process; here, where a fork is unsafe or did not do it."""
    if _n_threads() == 1:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                make()
                code = 0
            finally:
                os._exit(code)  # an error is raised again, in the process that asked
        _, status = os.waitpid(pid, 0)
        if status == 0:
            return
    make()


def _n_threads() -> int:
    """Return the threads of this process, those that Python does not know among them; 2 when unknown."""
    tasks = Path("/proc/self/task")
    return sum(1 for _ in tasks.iterdir()) if tasks.is_dir() else 2
