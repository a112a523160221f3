"""The sweeper that was chosen is the one that runs, whatever class a file names beside the choice.

A search file for the official Optuna plugin often ends with that plugin's class in `hydra.sweeper._target_`,
which Hydra merges over the class of whatever `hydra/sweeper=` on the command line chose.  Where that was
`pareto`, this callback puts the chosen class back before Hydra makes it.
"""

from __future__ import annotations

from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, read_write

_OFFICIAL = "hydra_plugins.hydra_optuna_sweeper."
_OURS = "hydra_plugins.pareto_sweeper.sweeper.ParetoSweeper"


class ChosenSweeper(Callback):
    """Lets `hydra/sweeper=pareto` win over the official plugin's class."""

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        """Put the class back; another class than the official plugin's is left alone."""
        target = str(config.hydra.sweeper.get("_target_"))
        if config.hydra.runtime.choices.get("hydra/sweeper") == "pareto" and target.startswith(_OFFICIAL):
            with read_write(config.hydra):
                config.hydra.sweeper._target_ = _OURS
                # For the jobs too: hydra-core 1.4 refuses those whose hydra.sweeper is not the sweep's own.
                config.hydra.overrides.hydra.append(f"hydra.sweeper._target_={_OURS}")
