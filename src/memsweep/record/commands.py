"""Commands that a study's files hold, as they may be shown: whoever pastes one runs that one, and no other.

What was written by a study of ours is quoted already, and comes out of this as it went in.
"""

from __future__ import annotations

import shlex
from functools import lru_cache

_PROGRAM = "python"


@lru_cache(maxsize=4096)
def quoted(text: str) -> str:
    """Return words for a shell, quoted anew: nothing in them ends a command, or begins another."""
    try:
        return shlex.join(shlex.split(text))
    except ValueError:  # a quotation that is not closed
        return shlex.quote(text)


@lru_cache(maxsize=4096)
def python_command(text: str) -> str:
    """Return a command that runs a script with Python; any other becomes a comment, which a shell ignores.

    Args:
        text: What is said to have been typed: `python train.py -m ...`.
    """
    command = quoted(text)
    words = shlex.split(command)
    is_script = len(words) > 1 and words[0] == _PROGRAM and not words[1].startswith("-")
    return command if is_script or not command else f"# {command}"
