"""Are the parameters that a choice gives to an option ones that it has, at values that it takes?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memsweep.technique.catalogue import Catalogue
from memsweep.technique.choice import ChosenOption
from memsweep.technique.option import Option, Parameter
from memsweep.technique.rule import one_of

_Check = Callable[[Mapping[str, ChosenOption]], str | None]


def unknown_names(option: Option, catalogue: Catalogue) -> _Check:
    """Return a check of the names of the parameters: it says what is wrong with a choice, if anything is."""
    known, listed = set(option.parameters), ", ".join(option.parameters) or "none"
    siblings = catalogue.techniques[option.technique].options.values()

    def check(choice: Mapping[str, ChosenOption]) -> str | None:
        given = choice[option.technique].parameters
        unknown = [name for name in given if name not in known] if given else []
        if not unknown:
            return None
        sentence = f"{option.label} has no parameter {', '.join(unknown)}; it has {listed}"
        owners = [sibling.name for sibling in siblings if set(unknown) <= set(sibling.parameters)]
        if owners:
            sentence += f"; {', '.join(unknown)} belongs to technique/{option.technique}={one_of(owners)}"
        return sentence

    return check


def unfit_value(option: Option, parameter: Parameter) -> _Check:
    """Return a check of one parameter's value."""

    def check(choice: Mapping[str, ChosenOption]) -> str | None:
        value = choice[option.technique].parameters.get(parameter.name, parameter.default)
        problem = parameter.problem(value)
        return problem and f"{option.label}: technique.{option.technique}.{parameter.name} {problem}"

    return check
