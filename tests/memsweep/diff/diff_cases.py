"""What the tests of comparisons are fed with: git in a folder, spaces and sides without composing any."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from memsweep.diff.entry import Entry


def git(folder: Path, *words: str) -> str:
    """Run git in a folder, as nobody in particular."""
    who = {f"GIT_{role}_{part}": "tests" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", "-C", str(folder), *words],
        env={**kept, **who, "GIT_CONFIG_GLOBAL": os.devnull},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.strip()


def space(*parameters: tuple[str, list[Any]], refuse: Callable[..., str] = lambda **_: "") -> dict[str, Any]:
    """Return a space as the sweeper tells it.

    Args:
        parameters: Key and values of each.
        refuse: Told the values of a cell by the last part of their keys, the rule that refuses it, if any.
    """
    cells: list[Any] = [[]]
    for _, values in parameters:
        cells = [[*at, index] for at in cells for index in range(len(values))]
    sentences: dict[str, int] = {}
    listed = []
    for at in cells:
        pairs = zip(parameters, at, strict=True)
        named = {key.rpartition("/")[2].rpartition(".")[2]: values[index] for (key, values), index in pairs}
        sentence = refuse(**named)
        listed.append([at, [sentences.setdefault(sentence, len(sentences))] if sentence else []])
    return {
        "parameters": [{"key": key, "values": values, "only_with": []} for key, values in parameters],
        "n_cells": len(cells),
        "n_legal": sum(not broken for _, broken in listed),
        "cells": listed,
        "sentences": list(sentences),
        "defaults": {},
    }


def entry(leaves: Mapping[str, Any] | None = None, **facts: Any) -> Entry:
    """Return one side of a preset."""
    return Entry(leaves=leaves or {}, **facts)
