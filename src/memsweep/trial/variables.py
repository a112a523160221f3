"""Which environment variables a forked process may still change, and which must be there from the start.

A template process has already imported everything.  What a library reads at import, or the C library at
the start of a program, must be in the template's own environment; every such variable that differs asks
for another template.  Only what is read later, and verified to be, is on the LATE list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memsweep.machine import ALLOCATOR_VARIABLES

DEVICES, TEMPORARY = "CUDA_VISIBLE_DEVICES", "TMPDIR"
COMPILED = "TORCHINDUCTOR_CACHE_DIR"
"""Where torch's compiler keeps what it has made; imports set it to a folder that all trials would share."""
TEMPLATE = "MEMSWEEP_TEMPLATE"
"""What all descendants of one template have in common."""
TRIAL = "MEMSWEEP_TRIAL"
"""The process that a trial runs in: programs that it starts have it from there."""


@dataclass(frozen=True, slots=True)
class Names:
    """A set of variable names.

    Attributes:
        exact: Whole names.
        prefix: What further names begin with.
    """

    exact: frozenset[str]
    prefix: str

    def matches(self, name: str) -> bool:
        """Tell whether `name` is in the set."""
        return name in self.exact or name.startswith(self.prefix)


LATE = Names(exact=frozenset({*ALLOCATOR_VARIABLES, COMPILED, DEVICES, TEMPORARY}), prefix="MEMSWEEP_")


def early(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that must be there when a process starts."""
    return {name: value for name, value in environment.items() if not LATE.matches(name)}


def hides_devices(environment: Mapping[str, str]) -> bool:
    """Tell whether every CUDA device is hidden: libraries note at import whether there is one."""
    return environment.get(DEVICES, "all").strip() in ("", "-1")


def template_key(environment: Mapping[str, str]) -> tuple[object, ...]:
    """Return what two environments have in common when forks of one template can have either."""
    return tuple(sorted(early(environment).items())), hides_devices(environment)


def template_environment(environment: Mapping[str, str], token: str) -> dict[str, str]:
    """Return the environment to start a template with, for trials that want `environment`.

    Args:
        environment: A trial's, complete.
        token: What marks the template's descendants, in case it ends before them.
    """
    devices = {DEVICES: environment[DEVICES]} if DEVICES in environment else {}
    return {**early(environment), **devices, TEMPLATE: token}
