"""May a folder be written to?  Asked before anything heavy is imported."""

from __future__ import annotations

from pathlib import Path

from memsweep.errors import ConfigError


def require_room(folder: Path, *, is_forced: bool) -> None:
    """Raise if a folder cannot be written to without losing what is there.

    Raises:
        ConfigError: If it is a file, or holds something and nobody insists.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--to {folder} is a file; name a folder, which is made when missing")
    if folder.is_dir() and any(folder.iterdir()) and not is_forced:
        raise ConfigError(
            f"--to {folder} holds something already; name another folder, or type --force to replace what an "
            "export writes there"
        )
