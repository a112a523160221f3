"""A process that has imported everything, and forks whatever a test asks of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self


class Warm:
    """The process, as tests see it: a line to it, a line back.

    Args:
        script: What it runs.
        paths: Where it finds modules.
    """

    def __init__(self, script: str, paths: Sequence[str | Path]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, script],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
