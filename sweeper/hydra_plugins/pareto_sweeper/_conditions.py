"""`hydra.sweeper.when` and `hydra.sweeper.exclude`: read, and held against what there is.

Both are data: nothing in them is evaluated as code (`memsweep/search/match.py` has the language).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memsweep.complaint import near
from memsweep.search.exclusion import Exclusion
from memsweep.search.grammar import label_text
from memsweep.search.match import WORDS, Match, read_match, same_value
from memsweep.search.parameter import Condition, Fixed, Parameter
from memsweep.search.space import Conditional, Entry
from memsweep.search.verdict import ABSENT

from ._keys import Keys, key_of_entry

WHEN, EXCLUDE = "hydra.sweeper.when", "hydra.sweeper.exclude"
BECAUSE = "because"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditioned:
    """The entries of a space with what `when` says.

    Attributes:
        entries: Those that exist in some trial, with their conditions.
        left_out: Keys of those that exist in none, since what decides of them is not searched.
    """

    entries: tuple[Entry, ...]
    left_out: tuple[str, ...] = ()


def conditioned(when: Any, entries: Sequence[Entry], keys: Keys, problems: list[str]) -> Conditioned:
    """Return `entries` with the conditions that `when` states.

    Args:
        when: Key to a mapping of other keys to what each must be, all of them.
        entries: What is searched, and what every trial gets besides.
        keys: Knows what else there is.
        problems: Told what is wrong.
    """
    read: dict[str, dict[str, Match]] = {}
    for key, node in _by_key(when, keys, problems):
        where = f"{WHEN}.{key}"
        if not keys.is_known(key):
            problems.append(f"{where}: {_unknown(key, keys)}")
        elif not isinstance(node, Mapping) or not node:
            problems.append(f"{where} must map keys to what each must be, as {{model: [a, b]}}; got {node!r}")
        else:
            matches = {str(k): _match(where, str(k), value, keys, problems) for k, value in node.items()}
            read[key] = {k: match for k, match in matches.items() if match is not None}
    problems.extend(_circles(read))
    if problems:
        return Conditioned(entries=tuple(entries))
    found = [_with(entry, _demands(key_of_entry(entry), read, keys, problems)) for entry in entries]
    kept = _existing([entry for entry in found if entry is not None])
    names = [key_of_entry(entry) for entry in kept]
    gone = dict.fromkeys(key for entry in entries if (key := key_of_entry(entry)) not in names)
    return Conditioned(entries=tuple(kept), left_out=tuple(gone))


def read_exclusions(exclude: Any, keys: Keys, problems: list[str]) -> tuple[Exclusion, ...]:
    """Return what is excluded.

    Args:
        exclude: A list of mappings of key to what it must be; `because` says why.  None excludes nothing.
        keys: Knows what there is.
        problems: Told what is wrong.
    """
    found: list[Exclusion] = []
    if exclude is None:
        return ()
    if not isinstance(exclude, list):
        problems.append(
            f"{EXCLUDE} must be a list of mappings, as [{{model: large, batch: 64}}]; got {exclude!r}"
        )
        return ()
    for number, node in enumerate(exclude, start=1):
        where = f"{EXCLUDE}, entry {number}"
        because = node.get(BECAUSE, "") if isinstance(node, Mapping) else ""
        pairs = {str(k): v for k, v in node.items() if k != BECAUSE} if isinstance(node, Mapping) else {}
        if not pairs:
            problems.append(f"{where} must map keys to what each must be, as {{model: large}}; got {node!r}")
            continue
        if not isinstance(because, str):
            problems.append(f"{where}: because must be text, got {because!r}")
        read = {key: _match(where, key, value, keys, problems) for key, value in pairs.items()}
        matches = {key: match for key, match in read.items() if match is not None}
        found.append(Exclusion(pairs=matches, because=str(because)))
    return tuple(found)


def _by_key(when: Any, keys: Keys, problems: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield key and conditions; keys typed on a command line are nested by Hydra, those of a file are not."""
    if not isinstance(when, Mapping):
        problems.append(
            f"{WHEN} must map keys to conditions, as {{momentum: {{optimizer: sgd}}}}; got {when!r}"
        )
        return
    for key, node in when.items():
        below = {f"{key}.{name}": value for name, value in node.items()} if isinstance(node, Mapping) else {}
        if below and all(_is_nested(value) for value in below.values()) and any(map(keys.is_known, below)):
            yield from _by_key(below, keys, problems)
        else:
            yield str(key), node


def _is_nested(node: Any) -> bool:
    return isinstance(node, Mapping) and not set(node) <= WORDS


def _match(where: str, key: str, node: Any, keys: Keys, problems: list[str]) -> Match | None:
    """Return the demand on a key; None where it cannot be meant."""
    if not keys.is_known(key):
        problems.append(f"{where}: {_unknown(key, keys)}")
        return None
    if keys.is_interpolated(key):
        problems.append(f"{where}: the value of {key} refers to other keys; name those instead")
        return None
    try:
        match = read_match(node, of_options=bool(keys.options(key)))
    except ValueError as error:
        problems.append(f"{where}: {key} {error}")
        return None
    offered = keys.offered(key)
    if offered is not None:
        problems += [
            f"{where}: {key} is never {label_text(value)}{near(str(value), [str(one) for one in offered])}; "
            f"it is one of {', '.join(label_text(one) for one in offered if one is not None)}"
            for value in match.named
            if not any(same_value(value, one) for one in offered)
        ]
        if match.has_bounds and not any(match.holds(one) for one in offered) and not match.named:
            problems.append(f"{where}: no value of {key} is that, {match.text(key)}")
    return match


def _unknown(key: str, keys: Keys) -> str:
    searched = ", ".join(keys.names) or "nothing"
    return f"{key} is neither searched nor in the config{near(key, keys.names)}; searched or set: {searched}"


def _demands(
    key: str, read: Mapping[str, Mapping[str, Match]], keys: Keys, problems: list[str]
) -> list[Condition | bool]:
    """Return what the conditions of a key come to: on searched parameters, or settled already."""
    found: list[Condition | bool] = []
    for other, match in read.get(key, {}).items():
        searched = keys.parameters(other)
        if len(searched) > 1:
            problems.append(
                f"{WHEN}.{key}: {other} is searched anew for each option; name it in hydra.sweeper.params"
            )
        elif searched:
            found.append(_on_parameter(searched[0], match))
        elif (decider := keys.decider(other)) is not None:
            values = {label: keys.under(decider, label, other) for label in decider.labels}
            among = {label for label, one in values.items() if one is not ABSENT and match.holds(one)}
            found.append(Condition(parent=decider.name, among=frozenset(among)))
        else:
            value = keys.constant(other)
            found.append(value is not ABSENT and match.holds(value))
            # Itself it may be given to some trials only.
            found += [*keys.conditions(other), *_demands(other, read, keys, problems)]
    return found


def _on_parameter(parameter: Parameter, match: Match) -> Condition:
    pairs = zip(parameter.labels, parameter.values, strict=True)
    among = frozenset(label for label, value in pairs if match.holds(value))
    return Condition(parent=parameter.name, among=among, match=match)


def _with(entry: Entry, demands: Sequence[Condition | bool]) -> Entry | None:
    """Return an entry with further conditions; None where one of them is settled, and does not hold."""
    conditions = tuple(demand for demand in demands if isinstance(demand, Condition))
    if any(demand is False for demand in demands):
        return None
    if not conditions:
        return entry
    if isinstance(entry, Fixed):
        return Conditional(override=entry, conditions=conditions)
    return replace(entry, conditions=(*entry.conditions, *conditions))


def _existing(entries: list[Entry]) -> list[Entry]:
    """Return the entries without those that depend on what has been left out, and so never exist."""
    while True:
        names = {entry.name for entry in entries if isinstance(entry, Parameter)}
        kept = [
            entry
            for entry in entries
            if isinstance(entry, Fixed) or all(one.parent in names for one in entry.conditions)
        ]
        if len(kept) == len(entries):
            return kept
        entries = kept


def _circles(read: Mapping[str, Mapping[str, Match]]) -> Iterator[str]:
    """Yield a sentence if keys decide of one another in a circle."""
    left = {key: set(demands) for key, demands in read.items()}
    while True:
        free = [key for key, needed in left.items() if not needed & set(left)]
        if not free:
            break
        for key in free:
            del left[key]
    if left:
        needs = [f"{key} exists only with {one}" for key in left for one in sorted(left[key] & set(left))]
        yield f"{WHEN} goes in a circle: {', '.join(needs)}; leave one of them out"
