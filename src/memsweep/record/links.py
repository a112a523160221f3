"""Do a study's files lie in its folder?  One that somebody else made may hold links that lead out of it.

Through `trials/3/stderr.log -> ~/.bashrc` a study that goes on would write elsewhere, through
`trials/3/repeats/1 -> ~` one that is thinned would delete elsewhere.  So whoever opens a study refuses what
memsweep itself reads or writes there and is a link out of the folder, or no file: a pipe would be waited for.
Other files of an app are its own affair; nothing here follows them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from memsweep.errors import ConfigError
from memsweep.record.folder import StudyFolder, TrialFolder

_HYDRA, _TRACKING, _REMOTE = ".hydra", "wandb", "settings"
_INNER = frozenset({"ranks", "repeats", "tries", _HYDRA})
_DEEPEST = 9
"""Folders below a study's, at most: five to a trial's, and what a trial's may hold of its kind."""

_MOST = 5
"""Problems that are told."""


def require_closed(folder: StudyFolder) -> None:
    """Raise if something of a study's is a link out of its folder, or neither file nor folder.

    Args:
        folder: The study's; it need not exist.

    Raises:
        ConfigError: With what it is, and what to type.
    """
    found = list(_problems(folder.path))
    if found:
        more = f"\n  and {len(found) - _MOST} more" if len(found) > _MOST else ""
        told = "\n".join(f"  {text}" for text in found[:_MOST])
        raise ConfigError(
            f"{folder.path} is not used: what belongs to a study lies in its folder, and nothing is read or "
            f"written elsewhere in its name\n{told}{more}\nRemove these (a copy of what a link leads to may "
            "take its place), then type the same again"
        )


def _problems(top: Path) -> Iterator[str]:
    try:
        if not top.is_dir():
            return
    except OSError:  # a name that is longer than names can be: then nothing is there
        return
    real = Path(os.path.realpath(top))
    own = _own_names()
    for entry, depth in _entries(top):
        if entry.is_symlink():
            target = Path(os.path.realpath(entry.path))
            if target.is_relative_to(real):
                continue
            is_own = entry.name in own or entry.name.isdecimal() or entry.name.endswith(".log")
            if depth == 0 or is_own or target.is_dir():
                yield f"{entry.path} is a link to {target}"
        elif not (entry.is_file() or entry.is_dir()) and (depth == 0 or entry.name in own):
            yield f"{entry.path} is neither a file nor a folder"
    settings = top / _TRACKING / _REMOTE
    if os.path.lexists(settings):
        yield f"{settings} would say to which server W&B's client sends runs and key, and no study writes it"


def _entries(top: Path) -> Iterator[tuple[os.DirEntry[str], int]]:
    """Yield what lies in a study's folder, as far as memsweep looks into it, with how deep it lies."""
    waiting: list[tuple[str, int, bool]] = [(str(top), 0, False)]
    while waiting:
        place, depth, in_trial = waiting.pop()
        with os.scandir(place) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
        is_trial = in_trial or any(entry.name in ("trial.json", "outcome.json") for entry in entries)
        for entry in entries:
            yield entry, depth
            if entry.is_symlink() or not entry.is_dir() or depth >= _DEEPEST:
                continue
            name = Path(place).name
            if depth == 1 and name == _TRACKING:
                continue  # a run's folder is W&B's own
            if is_trial and name not in _INNER and entry.name not in _INNER:
                continue  # an app's own, in a trial's folder
            waiting.append((entry.path, depth + 1, is_trial))


def _own_names() -> frozenset[str]:
    """Return what files and folders of a trial are called that memsweep, or Hydra for it, reads or writes."""
    folder = TrialFolder(Path())
    properties = (
        name for name, value in vars(TrialFolder).items() if isinstance(value, property) and name != "path"
    )
    files = {str(getattr(folder, name)) for name in properties}
    return frozenset({*files, *_INNER, "config.yaml", "hydra.yaml", "overrides.yaml"})
