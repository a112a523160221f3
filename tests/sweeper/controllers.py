"""Controllers of instant trials as real processes, forked from one that has imported everything.

A controller takes seconds to import and a moment to run, so a hundred of them are forked from one warm
process (`python controllers.py`), which is told what to run on its standard input, a JSON object a line.
Each is a process of its own with its own Hydra, and is ended by a real SIGKILL: after some time from outside,
or by itself just before it opens, renames or makes the n-th file in its study's folder.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from footprint import footprint
from warm import Warm

EVENTS = frozenset({"open", "os.rename", "os.mkdir", "os.remove", "os.truncate"})
"""What is counted, of what Python tells of itself: everything that changes files, and reading them too."""

LIMIT_SECONDS = 250
"""After which a controller is taken to hang, and ended by SIGALRM."""

HERE = Path(__file__).parent


class Controllers(Warm):
    """The warm process, as tests see it."""

    def __init__(self) -> None:
        super().__init__(__file__, [HERE.parents[1] / name for name in ("src", "sweeper", "tests")])

    def run(self, folder: Path, arguments: Sequence[str], **how: Any) -> dict[str, Any]:
        """Run a controller to its end, and return how it ended.

        Args:
            folder: The study's.
            arguments: The command line.
            how: `settings` of `hydra.sweeper`; `kill_after_seconds`; `kill_at_event`; `limit_bytes` of
                a file; the `user` to be; `look_at`, numbers of trials in which to look at what it holds;
                `limit_seconds` until it is ended as one that hangs.

        Returns:
            `code` (negative: the signal), `seconds`, `n_events`, `printed`, and `looked` (`footprint.py`).
        """
        self.begin(folder, arguments, **how)
        return self.end()

    def begin(self, folder: Path, arguments: Sequence[str], **how: Any) -> None:
        """Begin what `run` does, without waiting."""
        assert self._process.stdin is not None
        message = {"folder": str(folder), "arguments": list(arguments), **how}
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def end(self) -> dict[str, Any]:
        """Wait for the end of what was begun, and return what `run` does."""
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


def measure(number: int, values: Mapping[str, Any]) -> dict[str, float]:
    """What a trial returns: figures that follow from its choices, and sometimes none."""
    x, y = float(values["x"]), float(values["y"])
    if (x, y) == (3, 3):
        raise ValueError("this one always fails")
    more = sum(float(values[key]) for key in "abcd" if key in values)
    return {"speed": 10 * x - y * y + (x * 7 + y * 3) % 5 + more, "size": x * x + y + 1 + 2 * more}


def _looking(how: Mapping[str, Any]) -> Callable[[int, Mapping[str, Any]], dict[str, float]]:
    """Return what trials do: measure, and in some look first at what this controller holds."""

    def task(number: int, values: Mapping[str, Any]) -> dict[str, float]:
        if number in how.get("look_at", ()):
            folder = Path(how["folder"])
            with folder.with_suffix(".looked").open("a") as file:
                file.write(json.dumps(footprint(folder, number, os.getpid())) + "\n")
        return measure(number, values)

    return task


def _serve() -> None:
    """Answer each request with how its controller ended."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    with contextlib.redirect_stdout(sys.stderr):
        _warm()
    for line in sys.stdin:
        print(json.dumps(_controlled(json.loads(line))), flush=True)


def _warm() -> None:
    """Import everything by running one study, so that what is forked need not."""
    from memsweep.study import publish

    with tempfile.TemporaryDirectory() as place:
        _run({"folder": f"{place}/study", "arguments": ["x=1,2", "y=1"], "settings": {"progress": "off"}})
    publish.write_reports = lambda *_, **__: []  # made from what is looked at here, and slow


def _controlled(how: dict[str, Any]) -> dict[str, Any]:
    log, looked = (Path(how["folder"]).with_suffix(suffix) for suffix in (".log", ".looked"))
    began = time.monotonic()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(how, log, writer)
    os.close(writer)
    if "kill_after_seconds" in how:
        while time.monotonic() < began + how["kill_after_seconds"] and not _has_ended(pid):
            time.sleep(0.001)
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    return {
        "code": os.waitstatus_to_exitcode(status),
        "seconds": time.monotonic() - began,
        "n_events": int(said) if said else None,
        "printed": log.read_text(errors="replace"),
        "looked": [json.loads(line) for line in looked.read_text().splitlines()] if looked.exists() else [],
    }


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _child(how: dict[str, Any], log: Path, writer: int) -> None:
    code = 70
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        os.dup2(file, 1)
        os.dup2(file, 2)
        signal.alarm(how.get("limit_seconds", LIMIT_SECONDS))
        if "limit_bytes" in how:
            resource.setrlimit(resource.RLIMIT_FSIZE, (how["limit_bytes"], resource.RLIM_INFINITY))
        if "user" in how:
            os.setgid(how["user"])
            os.setuid(how["user"])
        count = _counted(how["folder"], how.get("kill_at_event"))
        code = _run(how)
        os.write(writer, str(count[0]).encode())
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _counted(folder: str, last: int | None) -> list[int]:
    """Count what happens to files in a folder, and die just before the event with number `last`."""
    count = [0]

    def hook(event: str, facts: tuple[Any, ...]) -> None:
        if event in EVENTS and str(facts[0]).startswith(folder):
            if count[0] == last:
                os.kill(os.getpid(), signal.SIGKILL)
            count[0] += 1

    sys.addaudithook(hook)
    return count


def _run(how: Mapping[str, Any]) -> int:
    """Run a study in this process, as Hydra would from the command line, and return its exit code."""
    from fake_launcher import Forgetful
    from hydra._internal.callbacks import Callbacks
    from hydra._internal.hydra import Hydra
    from hydra._internal.utils import create_config_search_path
    from hydra.core.config_store import ConfigStore
    from hydra.core.global_hydra import GlobalHydra
    from hydra.types import HydraContext, RunMode
    from omegaconf import OmegaConf

    from hydra_plugins.pareto_sweeper._folder import settle_folder
    from hydra_plugins.pareto_sweeper._sweep import sweep

    sys.argv = ["app.py"]
    node = {"x": 0, "y": 0, "defaults": ["_self_", {"override hydra/sweeper": "pareto"}]}
    ConfigStore.instance().store(name="config", node=node)
    settings = {
        "objectives": "{speed: maximize, size: minimize}",
        "progress": "plain",
        "storage": None,
        "study_name": "killed",
        **how.get("settings", {}),
    }
    texts = {key: "null" if value is None else str(value) for key, value in settings.items()}
    GlobalHydra.instance().clear()
    hydra = Hydra.create_main_hydra2("app", create_config_search_path(None))
    try:
        config = hydra.compose_config(
            config_name="config",
            overrides=[
                *how["arguments"],
                *(f"++hydra.sweeper.{key}={text}" for key, text in texts.items()),
                f"hydra.sweep.dir={how['folder']}",
                "hydra.sweep.subdir=trials/${hydra.job.num}",
            ],
            run_mode=RunMode.MULTIRUN,
            with_log_configuration=False,
        )
        context = HydraContext(config_loader=hydra.config_loader, callbacks=Callbacks(config))
        settle_folder(config)
        raw = {key: value for key, value in config.hydra.sweeper.items() if not key.startswith("_")}
        launcher = None if settings.get("dry_run") else Forgetful(_looking(how))
        typed: Any = OmegaConf.to_container(config.hydra.overrides.task)
        sweep(raw, config, context, launcher, typed)
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        GlobalHydra.instance().clear()
    return 0


if __name__ == "__main__":
    _serve()
