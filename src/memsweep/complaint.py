"""Errors of a request as a person can use them: what was typed, what there is, what to type.

Hydra's and OmegaConf's errors know the key, the node and the options; their texts also hold search paths and
types, which help nobody who mistyped a name.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.errors import ConfigCompositionException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

_SWEEPER = "hydra.sweeper"
_OPEN = frozenset(f"{_SWEEPER}.{name}" for name in ("params", "when", "objectives", "constraints"))
"""Nodes whose keys are a person's own; Hydra lets those be added with a + alone."""

_LONGEST, _MOST_LINES = 1_500, 8
_NO_OPTION = re.compile(r"null|true|false|[-+]?[\d.]+|\{.*\}", re.IGNORECASE)
"""What Hydra's grammar reads as something else than text, which the name of an option must be."""
_HELP = "`python train.py --help` lists the groups and their options."


def complaint(error: BaseException, typed: Sequence[str] = ()) -> str:
    """Return what to tell the user about `error`; of a line that is too long to be read, both ends.

    Args:
        error: What was raised.
        typed: The words of the command line.
    """
    return "\n".join(_cut(line) for line in _told(error, typed).splitlines())


def unread(error: BaseException, typed: Sequence[str]) -> str:
    """Return what to tell the user about an error that Hydra, or what it uses, met while it read a request.

    Args:
        error: What was raised: any class at all, its text meant for programmers.
        typed: The words of the command line.
    """
    if lines := list(_misused_groups(typed)):
        return "\n".join(map(_cut, lines))
    lines = [line for line in str(error).splitlines() if line.strip()][:_MOST_LINES]
    if isinstance(error, RecursionError):
        lines = ["something in it is nested too deep, or refers to itself"]
    said = "\n".join(map(_cut, lines)) or type(error).__name__
    words = _cut(shlex.join(typed))
    return f"cannot read {words}: {said}\n{_HELP}  HYDRA_FULL_ERROR=1 before the command shows where it was."


def _cut(line: str) -> str:
    if len(line) <= _LONGEST:
        return line
    half = _LONGEST // 3
    return f"{line[:half]} ... ({len(line):,} characters) ... {line[-half:]}"


def _told(error: BaseException, typed: Sequence[str]) -> str:
    if isinstance(error, MissingConfigException):
        return _missing_option(error)
    if isinstance(error, ConfigCompositionException) and (lines := list(_misused_groups(typed))):
        return "\n".join(lines)
    if isinstance(error, OverrideParseException):
        return (
            f"cannot read the override {error.override!r}: {str(error.message).splitlines()[0]}\n"
            "It reads key=value; quote what the shell would change: 'technique/packing=glob(*)'."
        )
    cause = error if isinstance(error, OmegaConfBaseException) else error.__cause__
    if isinstance(cause, ConfigAttributeError | ConfigKeyError) and cause.full_key:
        return _unknown_key(str(cause.full_key), cause.parent_node, typed)
    lines = [str(error)]
    if isinstance(cause, OmegaConfBaseException) and cause is not error:
        lines.append(str(cause.msg or cause).splitlines()[0])
    return "\n".join(line for line in lines if line)


def _missing_option(error: MissingConfigException) -> str:
    asked = str(error.missing_cfg_file)
    group, _, option = asked.rpartition("/")
    options = [str(name) for name in error.options or ()]
    if error.missing_cfg_file is None:
        return f"{str(error).strip()}\n{_HELP}"
    if not options:
        return f"there is no config {asked!r}.\n{_HELP}"
    return f"{group} has no option {option!r}{near(option, options)}; it has {', '.join(options)}"


def _misused_groups(typed: Sequence[str]) -> Iterable[str]:
    """Yield what to type for each word that adds a group that is there, or names no option of one."""
    repo = ConfigStore.instance().repo
    groups = set(_groups(repo))
    for word in typed:
        key, _, value = word.lstrip("+").partition("=")
        if key in groups and not _has_options(repo, key):
            yield f"{key} holds groups, and is none: type {key}/<group>=<option>"
        elif key in groups and word.startswith("+"):
            yield f"{key} is there already, so drop the +: type {word.lstrip('+')}"
        elif key in groups and _NO_OPTION.fullmatch(value):
            yield f"{key} is a group, and {value} no option of it; it has {', '.join(_options(repo, key))}"


def _has_options(repo: Any, group: str) -> bool:
    return bool(_options(repo, group))


def _options(repo: Any, group: str) -> list[str]:
    for part in group.split("/"):
        repo = repo[part]
    return [str(name).removesuffix(".yaml") for name, value in repo.items() if not isinstance(value, dict)]


def _unknown_key(key: str, parent: Any, typed: Sequence[str]) -> str:
    if "/" in key:
        groups = list(_groups(ConfigStore.instance().repo))
        return f"there is no config group {key!r}{near(key, groups)}\n{_HELP}"
    node, _, name = key.rpartition(".")
    if node in _OPEN:
        words = [word for word in typed if word.startswith(node)] or [f"{key}=..."]
        there = ", ".join(map(str, parent)) if isinstance(parent, DictConfig) else ""
        return f"{node} has {there or 'nothing'} to change; to add {name} to it, type ++{words[0]}"
    known = [str(one) for one in parent if one != "hydra"] if isinstance(parent, DictConfig) else []
    where = f"{node} has" if node else "the config has"
    if not node and not near(name, known) and (sweeper := OmegaConf.select(parent, _SWEEPER)) is not None:
        values = [value for word, _, value in (text.partition("=") for text in typed) if word == name]
        close = difflib.get_close_matches(name, [str(one) for one in sweeper], n=1, cutoff=0.8)
        if close:
            return f"{key} is not a setting; did you mean {_SWEEPER}.{close[0]}={(*values, '...')[0]}"
    text = f"{key} is not a setting{near(name, known)}; {where} {', '.join(known) or 'none'}"
    owners = list(_options_with(node, name))
    if owners:
        group = node.replace(".", "/")
        text += (
            f"\n{name} belongs to {', '.join(f'{group}={owner}' for owner in owners)}: choose one of them too"
        )
    return text


def _groups(repo: dict[str, Any], prefix: str = "") -> Iterable[str]:
    for name, value in repo.items():
        if isinstance(value, dict):
            yield prefix + name
            yield from _groups(value, f"{prefix}{name}/")


def _options_with(node: str, name: str) -> Iterable[str]:
    """Yield the options of the group at `node` that have a key `name`."""
    group: Any = ConfigStore.instance().repo
    for part in node.split("."):
        group = group.get(part) if isinstance(group, dict) else None
    for file, stored in (group or {}).items():
        if not isinstance(stored, dict) and isinstance(stored.node, DictConfig) and name in stored.node:
            yield str(file).removesuffix(".yaml")


def near(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean lora?)` for the known name that is like `name`; empty when none is."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
