"""`hydra.launcher`, as far as the pool of processes does not check it itself: every problem at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from memsweep.config.schema import not_variables
from memsweep.errors import ConfigError


def require_launcher(settings: Mapping[str, Any]) -> None:
    """Raise unless a launcher can do what it is asked for.

    Args:
        settings: Of the launcher (`config.IsolatedLauncherConf`).

    Raises:
        ConfigError: All problems at once.
    """
    problems, seconds = [], settings["timeout_seconds"]
    if settings["slots"] < 1:
        problems.append(f"hydra.launcher.slots must be at least 1, got {settings['slots']}")
    if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
        problems.append(
            f"hydra.launcher.timeout_seconds must be positive and finite, or null for none, got {seconds}"
        )
    problems += not_variables("hydra.launcher.environment", dict(settings["environment"] or {}))
    if problems:
        raise ConfigError("\n".join(problems))
