"""One side's presets, composed by that side's own code, or kept from the last time.

A side's own code is run, as in a checkout of it, unless nobody wants that; whoever's code it is, its process
has none of the secrets of the environment.

What decides of the answer is the content of the files, the overrides, the installed versions and the
machine; an answer is kept in the cache folder under a hash of these.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from memsweep import machine
from memsweep.data.cache import cache_folder, hash_of, rules_of
from memsweep.diff import compose
from memsweep.diff.entry import Entry, entry_of_composed
from memsweep.diff.repository import CODE, PLUGINS, Project
from memsweep.errors import ConfigError
from memsweep.record.folder import write_text
from memsweep.secret import MASK, is_secret_variable, masked_text

LIMIT = 2_000
"""Cells of a search space that are listed: about 0.3 ms each."""

OnDone = Callable[[int], None]
"""Called with how many presets are done."""

_VARIABLES = ("HF_HUB_OFFLINE", "CUDA_VISIBLE_DEVICES")
_LAST_LINES = 8
_OWN = Path(__file__).resolve().parents[2]
"""Where the package is that runs here: the code of a side that has none of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One preset to compose.

    Attributes:
        name: What it is called.
        overrides: What is typed for it.
        is_baseline: Every technique is at its baseline.
    """

    name: str
    overrides: tuple[str, ...] = ()
    is_baseline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What one side holds.

    Attributes:
        entries: Name of a preset to what it composes to.
        options: `group/option` to its node and package.
        facts: `technique/<technique>/<option>` to what its file says, without prose.
    """

    entries: Mapping[str, Entry]
    options: Mapping[str, Any]
    facts: Mapping[str, Any]


class Composing:
    """A side that is being composed, in a process that is ended with this.

    Args:
        project: The project.
        commit: None for the working tree.
        jobs: The presets.
        resolve: Whether values are looked up that others or the environment hold; such an answer is not kept.
        use_cache: Whether an answer may be kept from the last time.
        runs_code: Whether the side's own code composes it, as in a checkout; else the code that runs here.
        on_done: Called as presets are done.
    """

    def __init__(
        self,
        project: Project,
        commit: str | None,
        jobs: Sequence[Job],
        *,
        resolve: bool,
        use_cache: bool,
        on_done: OnDone,
        runs_code: bool = True,
    ) -> None:
        self._jobs, self._on_done = tuple(jobs), on_done
        self._raw: dict[str, Any] | None = None
        self._process: subprocess.Popen[str] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        files = project.files(commit)
        parts = [sorted(files.items()), project.conf, [_of_job(job) for job in jobs], LIMIT, _circumstances()]
        name = hash_of(rules_of(compose.__file__), *parts)
        self._kept = (
            None if resolve or not use_cache or not runs_code else cache_folder() / "diff" / f"{name}.json"
        )
        self._raw = self._read()
        if self._raw is None:
            self._folder = tempfile.TemporaryDirectory(prefix="memsweep-diff-")
            root = project.root if commit is None else Path(self._folder.name)
            if commit is not None:
                project.export(commit, root)
            self._start(
                root / project.conf, root if runs_code and _has_code(files) else _OWN.parent, resolve=resolve
            )

    def _read(self) -> dict[str, Any] | None:
        if self._kept is None or not self._kept.is_file():
            return None
        try:
            raw: dict[str, Any] = json.loads(self._kept.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        self._on_done(len(self._jobs))
        return raw

    def _start(self, conf: Path, code: Path, *, resolve: bool) -> None:
        plugins = code / PLUGINS / compose.PLUGINS
        is_there = plugins.is_dir()  # else it is installed beside the package
        paths = [
            str(_OWN if code == _OWN.parent else code / CODE),
            *([str(code / PLUGINS)] if is_there else []),
        ]
        environment = {
            **{name: MASK if is_secret_variable(name) else value for name, value in os.environ.items()},
            "PYTHONPATH": os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])]),
            "PYTHONDONTWRITEBYTECODE": "1",  # the working tree is left as it is
            "MEMSWEEP_CONF": str(conf),
        }
        request = {
            "conf": str(conf),
            "plugins": str(plugins) if is_there else None,
            "jobs": [_of_job(job) for job in self._jobs],
            "resolve": resolve,
            "limit": LIMIT,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-P", compose.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
            encoding="utf-8",
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it ended already, and says why
            self._process.stdin.write(json.dumps(request))
            self._process.stdin.close()

    def raw(self) -> Mapping[str, Any]:
        """Wait for the answer and return it.

        Raises:
            ConfigError: If the process ended without one; the message has its last lines.
        """
        if self._raw is None:
            self._raw = self._answer()
            if self._kept is not None and "failed" not in self._raw:
                self._kept.parent.mkdir(parents=True, exist_ok=True)
                self._kept.parent.chmod(0o700)  # it holds what the configs hold
                write_text(self._kept, json.dumps(self._raw))
        return self._raw

    def _answer(self) -> dict[str, Any]:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        assert process.stderr is not None
        said: list[str] = []
        reader = threading.Thread(target=_drain, args=(process.stderr, said), daemon=True)
        reader.start()
        for line in process.stdout:
            data = json.loads(line)
            if "done" not in data:
                process.wait()
                return dict(data)
            self._on_done(int(data["done"]))
        code = process.wait()
        reader.join()
        last = "\n".join(f"  {line.rstrip()}" for line in said[-_LAST_LINES:])
        raise ConfigError(f"composing ended with exit code {code} and no answer:\n{masked_text(last)}")

    def close(self) -> None:
        """End the process, and remove what was exported."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
        if self._folder is not None:
            self._folder.cleanup()


@contextlib.contextmanager
def composing(*arguments: Any, **keywords: Any) -> Iterator[Composing]:
    """Compose a side, and leave nothing behind however this ends; arguments are those of `Composing`."""
    side = Composing(*arguments, **keywords)
    try:
        yield side
    finally:
        side.close()


def snapshot(raw: Mapping[str, Any], jobs: Sequence[Job], *, shows_resolved: bool = False) -> Snapshot:
    """Return the answer of a side as types; where all of it failed, every preset says so."""
    if "failed" in raw:
        entry = Entry(error=str(raw["failed"]))
        return Snapshot(entries={job.name: entry for job in jobs}, options={}, facts={})
    options, facts = raw["options"], raw["facts"]
    entries = {
        name: entry_of_composed(one, options, facts, shows_resolved=shows_resolved)
        for name, one in raw["entries"].items()
    }
    return Snapshot(entries=entries, options=options, facts=facts)


def _drain(pipe: IO[str], lines: list[str]) -> None:
    with contextlib.suppress(ValueError):  # closed, because nobody wants to know any more
        lines.extend(pipe)


def machine_text() -> str:
    """Return what the rules are judged for where `launch.device` does not say, in words."""
    device, _ = machine.device()
    native, _ = machine.has_native_bf16()
    is_emulated = device is machine.Device.CPU and not native
    return f"{device} with {'emulated' if is_emulated else 'native'} bfloat16"


def _has_code(files: Mapping[str, str]) -> bool:
    return f"{CODE}/memsweep/__init__.py" in files


def _of_job(job: Job) -> dict[str, Any]:
    return {"name": job.name, "overrides": list(job.overrides), "is_baseline": job.is_baseline}


def _circumstances() -> list[Any]:
    """Return what else decides of an answer: versions, and the machine that rules are judged for."""
    here = [str(machine.device()), machine.compute_capability(), machine.has_native_bf16()[0]]
    folders = [Path(path) for path in sys.path if Path(path).is_dir()]
    installed = {found.name for folder in folders for found in folder.glob("*.dist-info")}
    return [platform.python_version(), sorted(installed), here, [os.environ.get(name) for name in _VARIABLES]]
