"""What makes two studies one: a study is continued only by what asks for the same.

A fingerprint is plain data, kept in study.json:

    objectives   [[name, direction], ...]
    constraints  name to demand, in words
    space        searched key to its values (or the bounds of its interval), and with what it exists
    given        overrides that only some trials get, with what they get them
    excluded     combinations that are ruled out, in words
    config       every setting of the composed config that a trial gets unless it is searched
    choices      config group to option; looked up, never compared
    options      searched option to a hash of what it sets
    data         local file or folder to what it held
    versions     package to version, of those that can change a figure

Only settings enter: an option's prose can change without any of this.  A space may grow, by values or keys,
and combinations that were ruled out may be let in: the cells that were tried are cells of the larger space.
How many trials are asked for, the sampler, and what is only shown are no part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memsweep.search.grammar import label_text

Fingerprint = Mapping[str, Any]

_COMPARED = {"options": "what {} sets", "data": "what {} holds", "versions": "{}"}


def differences(now: Fingerprint, before: Fingerprint) -> list[str]:
    """Return what keeps `now` from continuing `before`, one sentence a key; empty when nothing does.

    Args:
        now: Of what is asked for.
        before: Of the study that is there.
    """
    try:
        return _differences(now, before)
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # edited by hand, say
        return [f"what was asked for before cannot be read in study.json ({type(error).__name__}: {error})"]


def _differences(now: Fingerprint, before: Fingerprint) -> list[str]:
    return [
        *_objectives(now, before),
        *_changed(now, before, "constraints", "the constraint {}"),
        *_space(now, before),
        *_config(now, before),
        *_changed(now, before, "given", "{}"),
        *(
            f"{text} is excluded; it was not before"
            for text in now.get("excluded", ())
            if text not in before.get("excluded", ())
        ),
        *(one for section, words in _COMPARED.items() for one in _changed(now, before, section, words)),
    ]


def config_key(key: str) -> str:
    """Return where in the config a searched key has its value: `technique/adapter` has it at that node."""
    group, at, package = key.partition("@")
    return package if at else group.replace("/", ".")


def label_before(key: str, before: Fingerprint) -> str | None:
    """Return what every trial had at a key that was not searched, as it is typed; None where it had none."""
    choices: Mapping[str, Any] = before.get("choices", {})
    if key in choices:
        return None if choices[key] is None else str(choices[key])
    config: Mapping[str, Any] = before.get("config", {})
    return label_text(config[config_key(key)]) if config_key(key) in config else None


def _objectives(now: Fingerprint, before: Fingerprint) -> Iterator[str]:
    texts = [
        ", ".join(f"{name} {direction}" for name, direction in one.get("objectives", ()))
        for one in (now, before)
    ]
    if texts[0] != texts[1]:
        yield f"the objectives are {texts[0]}; they were {texts[1]}"


def _space(now: Fingerprint, before: Fingerprint) -> Iterator[str]:
    """Yield what of the earlier space is not in this one."""
    searched, were = now.get("space", {}), before.get("space", {})
    for name, old in were.items():
        new = searched.get(name)
        if new is None:
            yield f"{name} is not searched any more; it was, over {_domain(old)}"
        elif not _holds(new, old):
            yield f"{name} is searched over {_domain(new)}; that does not hold all of {_domain(old)}"
        elif not _keeps(new.get("when", {}), old.get("when", {}), were):
            yield f"{name} exists {_with(new)}; it existed {_with(old)}"
    for name, new in searched.items():
        if name in were or _was_impossible(new.get("when", {}), were):
            continue
        label = label_before(str(new.get("key", name)), before)
        if new.get("when") or not _offers(new, label):
            had = f"the trials until now had {label}" if label is not None else "no trial until now had it"
            yield f"{name} is searched over {_domain(new)}; {had}"


def _keeps(new: Mapping[str, Any], old: Mapping[str, Any], were: Mapping[str, Any]) -> bool:
    """Tell whether a key exists in the cells of the earlier space where it existed then, and nowhere else.

    Args:
        new: Parameter to its labels with which the key exists, or the demand in words.
        old: The same, of the earlier space.
        were: That space.
    """
    if new.keys() != old.keys():
        return False
    for parent, among in old.items():
        if isinstance(among, str) or isinstance(new[parent], str):
            if among != new[parent]:
                return False
            continue
        offered = set(map(str, were.get(parent, {}).get("values", ())))
        if set(new[parent]) & offered != set(among):
            return False
    return True


def _was_impossible(when: Mapping[str, Any], were: Mapping[str, Any]) -> bool:
    """Tell whether a key that exists only with other choices could exist in no cell of the earlier space."""
    return any(
        parent in were
        and not isinstance(among, str)
        and not set(among) & set(map(str, were[parent].get("values", ())))
        for parent, among in when.items()
    )


def _domain(node: Mapping[str, Any]) -> str:
    if "values" in node:
        return ", ".join(map(str, node["values"]))
    return f"{node.get('low')} to {node.get('high')}" + (", logarithmic" if node.get("log") else "")


def _with(node: Mapping[str, Any]) -> str:
    when: Mapping[str, Any] = node.get("when", {})
    demands = [
        among if isinstance(among, str) else f"{parent}={' or '.join(among)}"
        for parent, among in when.items()
    ]
    return f"only with {' and '.join(demands)}" if demands else "always"


def _holds(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Tell whether every value of `old` is one of `new`."""
    if "values" in old:
        return all(_offers(new, value) for value in old["values"])
    if "values" in new or new.get("log") != old.get("log"):
        return False
    return bool(new["low"] <= old["low"] and old["high"] <= new["high"])


def _offers(node: Mapping[str, Any], value: Any) -> bool:
    """Tell whether a value is one of those that are searched: by its text, or within the interval."""
    if value is None:
        return False
    if "values" in node:
        return str(value) in map(str, node["values"])
    try:
        return bool(node["low"] <= float(value) <= node["high"])
    except (TypeError, ValueError):
        return False


def _config(now: Fingerprint, before: Fingerprint) -> Iterator[str]:
    """Yield the settings that differ, but for those that are searched: each trial has its own."""
    spaces = (now.get("space", {}), before.get("space", {}))
    searched = {config_key(str(node.get("key", key))) for space in spaces for key, node in space.items()}

    def settled(one: Fingerprint) -> dict[str, Any]:
        return {
            key: value
            for key, value in one.get("config", {}).items()
            if not any(key == other or key.startswith(f"{other}.") for other in searched)
        }

    yield from _unequal(settled(now), settled(before), "{}")


def _changed(now: Fingerprint, before: Fingerprint, section: str, words: str) -> Iterator[str]:
    new, old = dict(now.get(section, {})), dict(before.get(section, {}))
    if section == "options":  # of options that one of the two does not try nothing is known
        new = {key: value for key, value in new.items() if key in old}
        old = {key: value for key, value in old.items() if key in new}
        yield from (f"{words.format(key)} has changed" for key in old if new[key] != old[key])
        return
    if section == "data":
        yield from (f"{words.format(key)} has changed" for key in old if key in new and new[key] != old[key])
        return
    yield from _unequal(new, old, words)


def _unequal(new: Mapping[str, Any], old: Mapping[str, Any], words: str) -> Iterator[str]:
    for key in sorted({*new, *old}):
        name = words.format(key)
        if key not in old:
            yield f"{name} is {_text(new[key])}; it was not there before"
        elif key not in new:
            yield f"{name} is not there any more; it was {_text(old[key])}"
        elif new[key] != old[key]:
            yield f"{name} is {_text(new[key])}; it was {_text(old[key])}"


def _text(value: Any) -> str:
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 200 else text[:197] + "..."
