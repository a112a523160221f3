"""Settings that no config may make, whoever wrote it: they would run code, or send something away.

A preset comes with a branch, an override with a study that somebody else made.  What a person really wants of
these he types where only he types: variables before the command, uploads after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# By what programs and libraries find code or files: where to look, what to load first, what to run, where
# compiled code is kept.  Of Python's own those are left that say how it runs, and name nothing.
_LEADS_TO_CODE = re.compile(
    r"(LD|DYLD|BASH|GIT|SSL|MEMSWEEP|XDG)_.*|PYTHON(?!HASHSEED$|UNBUFFERED$|FAULTHANDLER$|MALLOC$).*"
    r"|HOME|SHELL|IFS|ENV|PS4|PAGER|EDITOR|BROWSER|TMP|TEMP|TMPDIR|(.*_)?(CC|CXX|GCC|PTXAS)|.*PATH|.*PLUGIN.*"
    r"|.*_(HOME|DIR|FILE|CACHE|COMMAND|CMD|PROGRAM|ROOT|BIN|LIBRARY|LIBRARIES|PRELOAD|CONF|CONFIG)"
    r"|.*_(OUT|OUTPUT|TRACE|LOG|PROXY|ENDPOINT|URL|SERVER|HOST)",
    re.IGNORECASE,
)
_HARMLESS = frozenset(
    {
        "CUBLAS_WORKSPACE_CONFIG",
        "JE_ARROW_MALLOC_CONF",
        "MALLOC_CONF",
        "PYTORCH_ALLOC_CONF",
        "PYTORCH_CUDA_ALLOC_CONF",
    }
)

_REASONS: Mapping[str, str] = {
    "trust_remote_code": "runs code that comes with a model or its data",
    "push_to_hub": "uploads what a trial trained",
    "report_to": "sends figures elsewhere; tracking= says where a study's go",
    "resume_from_checkpoint": "reads a checkpoint, and a trial begins with the model",
}
_SENDS = re.compile(r"hub_(?!token$).*|trackio_.*")
_ATTENTION = "attn_implementation"


def variable_problems(names: Iterable[str], where: str) -> Iterator[str]:
    """Yield what is wrong with variables that a config sets for a trial's process, one sentence each.

    Args:
        names: Of the variables.
        where: The setting that has them: `launch.environment`.
    """
    for name in names:
        if _NAME.fullmatch(name) is None:
            yield f"{where}: a variable's name has letters, digits and underscores, got {name!r}"
        elif leads_to_code(name):
            yield (
                f"{where}.{name} cannot be set by a config: it decides which code a trial's process loads, "
                f"or where it writes; typed before the command, {name}=... python train.py, it is in force"
            )


def leads_to_code(name: str) -> bool:
    """Tell whether a variable decides which code a process loads, or which files it takes for its own."""
    return name not in _HARMLESS and _LEADS_TO_CODE.fullmatch(name) is not None


def argument_problems(arguments: Mapping[str, Any], where: str) -> Iterator[str]:
    """Yield what is wrong with a trainer's arguments that would run foreign code or send something away.

    Args:
        arguments: As given; they may hold keywords of a model in turn.
        where: The setting that has them: `trainer.arguments`.
    """
    for name, value in arguments.items():
        path = f"{where}.{name}"
        reason = _REASONS.get(str(name)) or ("is for uploads" if _SENDS.fullmatch(str(name)) else None)
        is_asked = value not in (None, False, "none", [], ["none"])
        if reason is not None and is_asked:
            yield f"{path}={value} {reason}, and no config of a trial may: leave it out"
        elif name == _ATTENTION and "/" in str(value):
            yield f"{path}={value} loads code from a repository; technique/attention= lists what there is"
        elif isinstance(value, Mapping):
            yield from argument_problems(value, path)
