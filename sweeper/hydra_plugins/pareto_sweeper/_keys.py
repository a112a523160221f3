"""What a key stands for, named in `when` and `exclude`: searched, typed, or as the app's config has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from memsweep.search.grammar import label_text
from memsweep.search.parameter import Condition, Fixed, Parameter
from memsweep.search.space import Conditional, Entry
from memsweep.search.verdict import ABSENT, Request

from ._groups import options_of

Compose = Callable[[Sequence[str]], DictConfig]


class Keys:
    """The keys of a sweep.

    Args:
        entries: What is searched, and what every trial gets besides.
        named: Keys that `hydra.sweeper.params` names, in use or not.
        typed: Keys that the command line names.
        config: Composed from everything that is not searched.
        loader: Knows the config groups.
        compose: Composes the config of a trial with some overrides.
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        named: Iterable[str],
        typed: Iterable[str],
        config: DictConfig,
        loader: ConfigLoader,
        compose: Compose,
    ) -> None:
        self._entries = tuple(entries)
        self._named, self._typed = set(named), set(typed)
        self._config, self._loader, self._compose = config, loader, compose
        self._in_entries = {key_of_entry(entry) for entry in self._entries}
        self._composed_with: dict[tuple[str, str], DictConfig | None] = {}
        self._constants: dict[str, Any] = {}

    @property
    def names(self) -> list[str]:
        """The keys that are typed or searched."""
        return sorted(self._in_entries | self._named)

    def parameters(self, key: str) -> list[Parameter]:
        """Return the parameters searched at a key: several where options of a group differ in them."""
        return [entry for entry in self._entries if isinstance(entry, Parameter) and entry.key == key]

    def options(self, key: str) -> list[str]:
        """Return the options of a config group; empty for a key that is none."""
        return options_of(self._loader, key.partition("@")[0])

    def is_known(self, key: str) -> bool:
        """Tell whether there is such a key, in some trial at least."""
        if key in self._in_entries or key in self._named or self.options(key):
            return True
        decider = self.decider(key)
        if decider is None:
            return self._select(self._config, key) is not ABSENT
        return any(self.under(decider, label, key) is not ABSENT for label in decider.labels)

    def offered(self, key: str) -> Sequence[Any] | None:
        """Return the values that a key may have; None where nobody lists them, or only the command line."""
        options = self.options(key)
        if options:
            return [*options, None]
        found = self.parameters(key)
        if key in self._typed or len(found) != 1 or not found[0].labels:
            return None
        return found[0].values

    def is_interpolated(self, key: str) -> bool:
        """Tell whether the value in the composed config depends on other keys, and so on the trial."""
        if key in self._in_entries or self.options(key):
            return False
        parent, _, name = key.rpartition(".")
        node = OmegaConf.select(self._config, parent) if parent else self._config
        return OmegaConf.is_dict(node) and OmegaConf.is_interpolation(node, name)

    def decider(self, key: str) -> Parameter | None:
        """Return the searched config group whose options say what is at a key that nobody names."""
        if key in self._in_entries:
            return None
        groups = [
            entry
            for entry in self._entries
            if isinstance(entry, Parameter) and self.options(entry.key) and key.startswith(_node(entry.key))
        ]
        return max(groups, key=lambda entry: len(_node(entry.key)), default=None)

    def under(self, group: Parameter, label: str, key: str) -> Any:
        """Return the value at a key in trials with an option of a group; ABSENT where there is none."""
        at = (group.key, label)
        if at not in self._composed_with:
            try:
                self._composed_with[at] = self._compose([*self._fixed, f"{group.typed}={label}"])
            except (HydraException, OmegaConfBaseException):
                self._composed_with[at] = None  # such a trial cannot run at all, and will say why
        config = self._composed_with[at]
        return ABSENT if config is None else self._select(config, key)

    def constant(self, key: str) -> Any:
        """Return the value at a key that is not searched; ABSENT where there is none."""
        for entry in self._entries:
            override = entry.override if isinstance(entry, Conditional) else entry
            if isinstance(override, Fixed) and override.key == key:
                return override.value
        if key not in self._constants:
            self._constants[key] = self._select(self._config, key)
        return self._constants[key]

    def conditions(self, key: str) -> list[Condition]:
        """Return what must hold for a key that is not searched to be given to a trial."""
        return [
            condition
            for entry in self._entries
            if isinstance(entry, Conditional) and entry.override.key == key
            for condition in entry.conditions
        ]

    def lookup(self, key: str, request: Request) -> Any:
        """Return the value that a trial has at a key; ABSENT where it has none."""
        value = request.value(key)
        if value is not ABSENT or key in self._in_entries:
            return value
        decider = self.decider(key)
        if decider is None:
            return self.constant(key)
        option = request.value(decider.key)
        return ABSENT if option is ABSENT else self.under(decider, label_text(option), key)

    @property
    def _fixed(self) -> list[str]:
        return [entry.text for entry in self._entries if isinstance(entry, Fixed)]

    def _select(self, config: DictConfig, key: str) -> Any:
        if self.options(key):
            return config.hydra.runtime.choices.get(key, ABSENT)
        try:
            value = OmegaConf.select(config, key, default=ABSENT)
        except OmegaConfBaseException:  # it refers to what only a running trial has
            return ABSENT
        return OmegaConf.to_container(value) if OmegaConf.is_config(value) else value


def key_of_entry(entry: Entry) -> str:
    """Return what an entry of a space is about."""
    return entry.override.key if isinstance(entry, Conditional) else entry.key


def _node(group: str) -> str:
    """Return where the options of a group put what they hold, with a dot at its end."""
    name, _, package = group.partition("@")
    return (package or name.replace("/", ".")) + "."
