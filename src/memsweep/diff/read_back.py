"""What was in force in one trial and not in another, as far as a person can act on it.

Hashes of facts, and how many modules or tensors of each kind there are, decide whether two set-ups are one,
but tell nobody what to do: hashes are left out, and of counts only kinds that one side lacks are told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from memsweep.diff.leaves import Change, Kind, Leaves, compared, json_text

_HASH = re.compile(r"[0-9a-f]{16,64}")
_COUNTED = ("model.modules.", "model.dtypes.", "model.base_dtypes.", "adapter.dtypes.", "optimizer.states.")
"""Nodes that hold a number for each kind of something."""

_NUMBER = "number_of_modules"
_BROUGHT = ("adapter.", "model.quantization.", "optimizer.defaults.")
"""Nodes of which a library fills in whatever nobody asked for."""

_AGAIN = "adapter.per_module."
"""What each module has of what the node beside it says already."""

_GROUPS, _DEFAULTS = "optimizer.groups", "optimizer.defaults."
_OF_GROUPS = ("numbers", "initial_lr")
_CLASS, _WRAPPER = "model.class", "model.wrapper"
_NOTHING = ("null", "[]", "{}")
_NOTHING_MUCH = (*_NOTHING, "false", "0", "0.0", '"none"')


def in_force_changes(
    old: Leaves,
    new: Leaves,
    asked: tuple[Collection[str] | None, Collection[str] | None] = (None, None),
    is_ignored: Callable[[str], bool] = lambda _: False,
) -> tuple[Change, ...]:
    """Return what was different between two trials, sorted by path.

    Args:
        old: What was in force in the first.
        new: The same of the second.
        asked: Of each, the names of the settings that it was given; None where that is not known.
        is_ignored: Told a path, whether it does not count.
    """
    before, after = (
        _folded({path: value for path, value in side.items() if not is_ignored(path)}) for side in (old, new)
    )
    changes = {change.path: change for change in compared(before, after, is_ignored)}
    model, wrapper = changes.get(_CLASS), changes.get(_WRAPPER)
    if model and wrapper and (model.old, model.new) == (wrapper.old, wrapper.new):
        del changes[_WRAPPER]
    found = map(_kinds, changes.values())
    return tuple(change for change in found if _says_something(change, asked))


def _folded(leaves: Leaves) -> dict[str, Any]:
    """Return facts without hashes and counts; kinds that were counted are a list."""
    found: dict[str, Any] = {}
    for path, value in leaves.items():
        node = next((one for one in _COUNTED if path.startswith(one)), None)
        if node is not None:
            found.setdefault(node[:-1], []).append(path.removeprefix(node))
        elif f"{path}." in _COUNTED or path.rpartition(".")[2] == _NUMBER or _is_hash(path, value):
            continue  # the first: nothing was there to be counted
        elif path == _GROUPS and isinstance(value, list):
            found[path] = list(_own_of_groups(value, leaves))
        elif isinstance(value, list) and value and all(isinstance(one, bool) for one in value):
            found[path] = sorted(set(value))
        else:
            found[path] = value
    return found


def _is_hash(path: str, value: Any) -> bool:
    is_named_so = path.endswith(("sha256", "_hash"))
    return is_named_so or (isinstance(value, str) and _HASH.fullmatch(value) is not None)


def _own_of_groups(groups: list[Any], leaves: Leaves) -> Iterator[Any]:
    """Yield of each group of parameters what it does otherwise than the optimizer's defaults."""
    for group in groups:
        if not isinstance(group, Mapping):
            yield group
            continue
        yield {
            name: value
            for name, value in group.items()
            if name not in _OF_GROUPS and (f"{_DEFAULTS}{name}", value) not in leaves.items()
        }


def _kinds(change: Change) -> Change:
    """Return of two lists of kinds only those that one side lacks."""
    if f"{change.path}." not in _COUNTED:
        return change
    old, new = (json.loads(text) if text else [] for text in (change.old, change.new))
    if not isinstance(old, list) or not isinstance(new, list):
        return change
    gone, come = ([one for one in a if one not in b] for a, b in ((old, new), (new, old)))
    return Change(
        path=change.path,
        old=json_text(sorted(gone)) if gone else None,
        new=json_text(sorted(come)) if come else None,
    )


def _says_something(change: Change, asked: tuple[Collection[str] | None, Collection[str] | None]) -> bool:
    if {change.old, change.new} <= {None, *_NOTHING}:
        return False
    if change.kind not in (Kind.ADDED, Kind.REMOVED) or not change.path.startswith(_BROUGHT):
        return True
    if f"{change.path}." in _COUNTED or change.path.startswith(_AGAIN):
        return False
    names, text = (asked[1], change.new) if change.kind is Kind.ADDED else (asked[0], change.old)
    if names is None:
        return text not in _NOTHING_MUCH
    return change.path.rpartition(".")[2] in names
