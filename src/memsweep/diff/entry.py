"""One preset of one side, ready to be compared: leaves, chosen options, settings of the training, space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memsweep.config.groups import technique_nodes
from memsweep.diff.compose import as_typed, training
from memsweep.diff.leaves import Leaves, flattened
from memsweep.errors import ConfigError
from memsweep.technique.catalogue import Catalogue

TECHNIQUE = "technique/"
SEAMS = {
    "trainer": "TRL argument",
    "model": "model loading",
    "adapter": "adapter",
    "environment": "environment variable",
    "launch": "launch",
}
"""What is said of a seam that a trial is given something at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What there is to compare of one composed config.

    Attributes:
        leaves: Dotted path to value, as it is composed.
        typed: The same as the types of a trial have it, with the defaults of what is left out; None where a
            trial would refuse it.
        texts: Of those that are looked up elsewhere, how that is written: `${oc.env:HOME}`.
        choices: Config group to chosen option.
        owned: Config group to the paths that its chosen option sets; what is missing is found by the
            group's name.
        training: Seam to what a trial is given there; None where that cannot be told.
        untrained: Why not; empty where it can.
        space: What a sweep would search, as the sweeper tells it; None where nothing is known.
        unsearched: Why not; empty where nothing was asked.
        in_force: What was in force in a trial; None where there was none.
        error: Why it does not compose, and then there is nothing else; empty where it does.
    """

    leaves: Leaves = field(default_factory=dict)
    typed: Leaves | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    owned: Mapping[str, frozenset[str]] = field(default_factory=dict)
    training: Mapping[str, Leaves] | None = None
    untrained: str = ""
    space: Mapping[str, Any] | None = None
    unsearched: str = ""
    in_force: Leaves | None = None
    error: str = ""

    def owns(self, group: str, path: str) -> bool:
        """Tell whether the chosen option of a group decides of a leaf."""
        if group in self.owned:
            return path in self.owned[group]
        name, _, package = group.partition("@")
        return path.startswith((package or name.replace("/", ".")) + ".")


def entry_of_composed(
    raw: Mapping[str, Any],
    options: Mapping[str, Any],
    facts: Mapping[str, Any],
    *,
    shows_resolved: bool = False,
) -> Entry:
    """Return one answer of `compose` as an entry.

    Args:
        raw: What it told of one preset.
        options: What it told of the files that configs are made of.
        facts: What it told of the techniques; a space is judged with their defaults.
        shows_resolved: Whether values that are looked up are shown, and not only compared.
    """
    if "error" in raw:
        return Entry(error=str(raw["error"]))
    written = flattened(raw["config"])
    looked_up = flattened(raw.get("resolved") or {})
    texts = {path: value for path, value in written.items() if _is_reference(value) and path in looked_up}
    leaves = {**written, **{path: looked_up[path] for path in texts}}
    choices: Mapping[str, str] = raw["choices"]
    space = raw.get("space") or {}
    return Entry(
        leaves=leaves,
        typed=None if raw["typed"] is None else _as_typed(leaves, flattened(raw["typed"])),
        texts={} if shows_resolved else texts,
        choices=choices,
        owned=_owned(choices, options),
        training=_flat(raw.get("training")),
        untrained=str(raw.get("untrained", "")),
        space=None
        if "error" in space or not space
        else {**space, "defaults": _defaults(facts), "facts": facts},
        unsearched=str(space.get("error", "")),
    )


def entry_of_config(
    config: Mapping[str, Any],
    catalogue: Catalogue | None,
    choices: Mapping[str, str] | None = None,
    in_force: Leaves | None = None,
) -> Entry:
    """Return a config that was composed before as an entry.

    Args:
        config: Plain data.
        catalogue: Knows what the techniques set; None where there is none.
        choices: Config group to option, where that was recorded.
        in_force: What was in force, where that was recorded.
    """
    hydra = config.get("hydra")
    kept = {key: value for key, value in config.items() if key != "hydra"}
    if isinstance(hydra, Mapping):
        kept["hydra"] = {name: hydra[name] for name in ("sweeper", "launcher", "mode") if name in hydra}
    found: Mapping[str, Any] | None = None
    untrained = ""
    if catalogue is not None and isinstance(config.get("trainer"), Mapping):
        try:
            found = training(config, catalogue)
        except (ConfigError, KeyError, TypeError) as error:
            untrained = f"the techniques of today do not explain it: {error}"
    leaves, typed = flattened(kept), as_typed(kept)
    return Entry(
        leaves=leaves,
        typed=None if typed is None else _as_typed(leaves, flattened(typed)),
        choices=dict(choices or {}) or _technique_choices(config),
        training=_flat(found),
        untrained=untrained,
        in_force=in_force,
    )


def _technique_choices(config: Mapping[str, Any]) -> dict[str, str]:
    try:
        nodes = technique_nodes(config.get("technique"))
    except ConfigError:
        return {}
    return {f"{TECHNIQUE}{name}": str(node["option"]) for name, node in nodes.items() if "option" in node}


def _as_typed(leaves: Mapping[str, Any], typed: Leaves) -> dict[str, Any]:
    """Return leaves as the types have them: 60 is 60.0 where a float is meant, defaults are filled in."""
    found_elsewhere = [path for path, value in leaves.items() if _is_reference(value)]
    below = tuple(f"{path}." for path in found_elsewhere)
    kept = {path: value for path, value in typed.items() if not path.startswith(below)}
    return {**leaves, **{path: value for path, value in kept.items() if path not in found_elsewhere}}


def _is_reference(value: Any) -> bool:
    """Tell whether a value is found elsewhere, or holds one that is."""
    if isinstance(value, list):
        return any(map(_is_reference, value))
    if isinstance(value, Mapping):
        return any(map(_is_reference, value.values()))
    return isinstance(value, str) and "${" in value


def _owned(choices: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    found = {}
    for group, option in choices.items():
        file = options.get(f"{group.partition('@')[0]}/{option}")
        if file is not None and isinstance(file["node"], Mapping):
            package = "" if file["package"] == "_global_" else file["package"]
            found[group] = frozenset(flattened(file["node"], package))
    return found


def _flat(seams: Mapping[str, Any] | None) -> dict[str, Leaves] | None:
    return None if seams is None else {seam: flattened(node) if node else {} for seam, node in seams.items()}


def _defaults(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return `technique/<technique>/<option>/<parameter>` to its default."""
    return {
        f"{label}/{name}": parameter["default"]
        for label, fact in facts.items()
        for name, parameter in fact["parameters"].items()
    }
