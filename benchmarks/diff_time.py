"""How long does `memsweep diff` take for many presets, cold and when both sides are known from the last time?

    python benchmarks/diff_time.py                 50 presets, HEAD against the working tree
    python benchmarks/diff_time.py -n 10

Makes a repository of this project's conf/, src/ and sweeper/ with that many presets, changes one value and
one rule in its working tree, and runs the command as a person does, a new interpreter included: with an empty
cache, and again.  The presets are the project's own three in turn, each with threads of its own.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _common import REPOSITORY, Bars, parser

MOST_COLD_SECONDS, MOST_CACHED_SECONDS = 60.0, 5.0
"""The bars, for 50 presets."""

_OWN = ("first_look", "dpo_on_a_gpu", "qlora_7b_on_24gib")


def main() -> int:
    """Time both, print them with their bars, and return the exit code."""
    command = parser(__doc__)
    command.add_argument("-n", type=int, default=50, metavar="PRESETS", help="presets beside the default; 50")
    n_presets = command.parse_args().n
    bars = Bars()
    with tempfile.TemporaryDirectory() as folder:
        root = _checkout(Path(folder) / "checkout", n_presets)
        environment = {**os.environ, "MEMSWEEP_CACHE": str(Path(folder) / "cache")}
        environment.pop("MEMSWEEP_CONF", None)
        cold_seconds, cold_cpu_seconds, cold = _timed(root, environment)
        cached_seconds, cached_cpu_seconds, cached = _timed(root, environment)
    n_compared = len(cold["presets"])
    bars.check(
        f"{n_compared} presets on two sides, nothing cached",
        held=cold_seconds < MOST_COLD_SECONDS,
        figure=f"{cold_seconds:.1f} s, {cold_cpu_seconds:.1f} s of a core (at most {MOST_COLD_SECONDS:g} s)",
    )
    bars.check(
        "the same, both sides cached",
        held=cached_seconds < MOST_CACHED_SECONDS,
        figure=f"{cached_seconds:.2f} s, {cached_cpu_seconds:.2f} s of a core "
        f"(at most {MOST_CACHED_SECONDS:g} s)",
    )
    n_found = sum(len(one["presets"]) for one in cold["differences"])
    is_found = any(one["presets"] == cold["presets"] for one in cold["differences"])
    bars.check(
        "the changed value is told of all presets at once, and the cached answer is the same",
        held=is_found and cold == cached,
        figure=f"{len(cold['differences'])} blocks for {n_found} differing presets",
    )
    return bars.exit_code


def _checkout(root: Path, n_presets: int) -> Path:
    """Return a repository with many presets, whose working tree differs from its only commit."""
    root.mkdir()
    for part in ("conf", "src", "sweeper"):
        shutil.copytree(REPOSITORY / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    folder = root / "conf" / "experiment"
    texts = [(folder / f"{name}.yaml").read_text(encoding="utf-8") for name in _OWN]
    shutil.rmtree(folder)
    folder.mkdir()
    for number in range(n_presets):
        text = texts[number % len(texts)].replace("\nhydra:", f"\nlaunch: {{threads: {number}}}\n\nhydra:")
        (folder / f"preset_{number:03d}.yaml").write_text(text, encoding="utf-8")
    who = ["-c", "user.name=bench", "-c", "user.email=bench"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "before"]):
        subprocess.run(["git", "-C", str(root), *words], check=True)
    _edit(root / "conf" / "launch" / "local.yaml", "timeout_seconds: 600.0", "timeout_seconds: 900.0")
    rule = "excludes:\n  - adapter: [lora]\n    because: a proof says so\n    source: a proof\n"
    _edit(root / "conf" / "technique" / "packing" / "bfd.yaml", "excludes:\n", rule)
    return root


def _edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text, f"{file} does not hold {old!r} any more"
    file.write_text(text.replace(old, new), encoding="utf-8")


def _timed(root: Path, environment: dict[str, str]) -> tuple[float, float, Any]:
    """Return seconds of wall clock, seconds of computing, and what the command found."""
    began, computed = time.monotonic(), _computed_seconds()
    done = subprocess.run(
        [sys.executable, "-m", "memsweep", "diff", "--json"],
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    seconds = time.monotonic() - began
    return seconds, _computed_seconds() - computed, json.loads(done.stdout)


def _computed_seconds() -> float:
    """Return what processes that have ended, and those they started, computed for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
