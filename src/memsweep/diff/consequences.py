"""What trials of a search get otherwise, because an option that is searched says something else.

A composed config shows what its own options set; of the options that a sweep would choose instead it shows
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memsweep.diff.entry import SEAMS, TECHNIQUE, Entry
from memsweep.diff.leaves import Change, compared, flattened


def consequences(
    old: Entry, new: Entry, is_ignored: Callable[[str], bool] = lambda _: False
) -> Iterator[str]:
    """Yield one sentence for each value that trials of both searches get otherwise, and of how many.

    An option that both sides compose is left out: what it says is among the leaves that are compared.

    Args:
        old: The first side; its space is known.
        new: The second side; likewise.
        is_ignored: Told a path, whether it does not count.
    """
    assert old.space is not None
    assert new.space is not None
    before, after = (side.get("facts", {}) for side in (old.space, new.space))
    for group, option in sorted({*_options(old.space)} & {*_options(new.space)}):
        label = f"{group}/{option}"
        if old.choices.get(group) == new.choices.get(group) == option:
            continue
        was, now = before.get(label), after.get(label)
        if was is None or now is None or was == now:
            continue
        for change in compared(_defaults(was), _defaults(now)):
            key = f"{group.replace('/', '.')}.{change.path}"
            if is_ignored(key) or _is_pinned(old, group, key) or _is_pinned(new, group, key):
                continue
            yield from _sentence(new.space, (group, option), change, change.path, key)
        for change in compared(_settings(was, old), _settings(now, new), is_ignored):
            seam, _, name = change.path.partition(".")
            yield from _sentence(new.space, (group, option), change, f"{SEAMS.get(seam, seam)} {name}")


def _options(space: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every technique with each option of it that is searched."""
    for parameter in space["parameters"]:
        if parameter["key"].startswith(TECHNIQUE):
            yield from ((parameter["key"], str(value)) for value in parameter.get("values", ()))


def _defaults(fact: Mapping[str, Any]) -> dict[str, Any]:
    return {name: parameter["default"] for name, parameter in fact["parameters"].items()}


def _settings(fact: Mapping[str, Any], entry: Entry) -> dict[str, Any]:
    """Return `seam.key` to what an option sets for the trainer of a side."""
    own = fact["settings_by_trainer"].get(str(entry.leaves.get("trainer.name")), {})
    kept = {
        seam: {**(fact["settings"].get(seam) or {}), **(own.get(seam) or {})}
        for seam in {**fact["settings"], **own}
    }
    return flattened({seam: values for seam, values in kept.items() if values})


def _is_pinned(entry: Entry, group: str, key: str) -> bool:
    """Tell whether a preset sets a parameter itself, whatever its option's default is."""
    if key not in entry.leaves:
        return False
    option = entry.choices.get(group)
    default = (entry.space or {})["defaults"].get(f"{group}/{option}/{key.rpartition('.')[2]}")
    return not entry.owns(group, key) or bool(entry.leaves[key] != default)


def _sentence(
    space: Mapping[str, Any], chosen: tuple[str, str], change: Change, name: str, key: str = ""
) -> Iterator[str]:
    """Yield what becomes of one value, if any trial has it.

    Args:
        space: What is searched.
        chosen: Technique and option.
        change: The value.
        name: What it is called.
        key: What is searched where the value does not count, because it is searched itself.
    """
    count = _count(space, chosen, key)
    if not count:
        return
    group, option = chosen
    old, new = change.text(change.old), change.text(change.new)
    if change.new is None:
        what = f"no {name} any more, which was {old}"
    elif change.old is None:
        what = f"{name} {new}, which they did not get"
    else:
        what = f"{name} {new} instead of {old}"
    yield f"trials with {group.removeprefix(TECHNIQUE)}={option} get {what} ({count})"


def _count(space: Mapping[str, Any], chosen: tuple[str, str], key: str) -> str:
    """Return how many combinations have an option, and a parameter of it at its default, in words."""
    parameters = space["parameters"]
    if space["cells"] is None:
        if any(one["key"] == key and not one["only_with"] for one in parameters):
            return ""
        size = space["n_cells"]
        return f"some of its {size:,} combinations" if size else "some of unboundedly many combinations"
    n_found = 0
    for at, broken in space["cells"]:
        values = {
            parameter["key"]: parameter["values"][index]
            for parameter, index in zip(parameters, at, strict=True)
            if index is not None
        }
        n_found += not broken and str(values.get(chosen[0])) == chosen[1] and key not in values
    legal = "" if space["n_legal"] == space["n_cells"] else "legal "
    return f"{n_found:,} of its {space['n_legal']:,} {legal}combinations" if n_found else ""
