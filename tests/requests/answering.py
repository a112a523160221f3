"""Requests answered by the real programs, in processes forked from one that has imported everything.

`python train.py ...` takes two seconds to import and a quarter to refuse a request, so hundreds of them are
forked from one warm process (`python answering.py`), which is told of each on its standard input, a JSON
object a line.  Each is a process of its own: working folder, command line, standard streams, exit code.  Of
root's powers those are laid down that make files readable whatever their permissions say.
"""

from __future__ import annotations

import atexit
import copy
import ctypes
import json
import logging
import os
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warm import Warm

ROOT = Path(__file__).resolve().parents[2]
TRAIN, ANEW, MEMSWEEP = "train.py", "train.py, conf/ read anew", "memsweep"
LIMIT_SECONDS = 20

# Source: linux/capability.h; CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH are bits 1 and 2.
_VERSION_3, _PERMISSIONS = 0x20080522, 0b110

_BEFORE: dict[str, Any] = {}
"""What Hydra knew before conf/ was read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request.

    Attributes:
        code: Exit code; negative: the signal; None when it took too long.
        stdout: What it printed.
        stderr: What it said.
        seconds: How long it took.
    """

    code: int | None
    stdout: str
    stderr: str
    seconds: float


class Answering(Warm):
    """The warm process, as tests see it."""

    def __init__(self) -> None:
        inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        super().__init__(
            __file__, [*(ROOT / name for name in ("src", "sweeper", "tests")), *filter(None, inherited)]
        )

    def answer(
        self, program: str, typed: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> Answer:
        """Run a program to its end.

        Args:
            program: One of the names above.
            typed: Its command line.
            folder: Holds `work`, where it is typed; what it says is kept beside that.
            environment: Variables beside the usual ones.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {
            "program": program,
            "typed": list(typed),
            "folder": str(folder),
            "environment": dict(environment),
        }
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        code, seconds = json.loads(self._process.stdout.readline())
        said = [(folder / name).read_text(encoding="utf-8", errors="replace") for name in ("out", "err")]
        return Answer(code, *said, seconds)


def _serve() -> None:
    train = _imported()
    for line in sys.stdin:
        began = time.monotonic()
        pid = os.fork()
        if pid == 0:
            _answer(json.loads(line), train)
        code = _code_of(pid, began + LIMIT_SECONDS)
        print(json.dumps([code, time.monotonic() - began]), flush=True)


def _imported() -> Any:
    """Return train.py as a module, with everything imported that refusing a request takes."""
    import optuna  # noqa: F401
    from hydra.core.config_store import ConfigStore
    from hydra.core.plugins import Plugins

    import hydra_plugins.pareto_sweeper._sweep  # noqa: F401
    import memsweep.cli.command
    import memsweep.findings.advice
    import memsweep.findings.shortfall  # noqa: F401

    Plugins.instance()
    _BEFORE.update(copy.deepcopy(ConfigStore.instance().repo))
    sys.path.insert(0, str(ROOT))
    import train

    # As Hydra finds it where train.py is what is run.
    train.main.__wrapped__.__module__ = "__main__"
    return train


def _code_of(pid: int, deadline: float) -> int | None:
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def _answer(asked: Mapping[str, Any], train: Any) -> None:
    """Be the process of a request.  Never returns."""
    folder = Path(asked["folder"])
    os.setsid()
    for number, name in enumerate((os.devnull, folder / "out", folder / "err")):
        file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder / "work")
    os.environ.update(asked["environment"])
    os.environ.pop("HYDRA_FULL_ERROR", None)
    _lay_down_powers()
    code = 1
    try:
        _run(asked["program"], asked["typed"], train)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        logging.shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(program: str, typed: Sequence[str], train: Any) -> None:
    if program == MEMSWEEP:
        from memsweep.cli.command import main

        sys.argv = ["memsweep", *typed]
        sys.exit(main())
    sys.argv = [str(ROOT / "train.py"), *typed]
    if program == ANEW:
        from hydra.core.config_store import ConfigStore

        ConfigStore.instance().repo = _BEFORE
        runpy.run_path(sys.argv[0], run_name="__main__")
    sys.exit(train.entry.run(train.main))


def _lay_down_powers() -> None:
    """Let permissions count for root as for anybody."""
    if os.geteuid() != 0:
        return
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None)
    if libc.capget(header, data) == 0:
        data[0] &= ~_PERMISSIONS  # effective, of the first 32
        libc.capset(header, data)


if __name__ == "__main__":
    _serve()
