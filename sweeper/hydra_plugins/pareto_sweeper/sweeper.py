"""`hydra/sweeper=pareto`: the door that Hydra knocks on.  Everything behind it is imported when needed."""

import sys
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from . import config as _config  # noqa: F401, registers the nodes where an entry point is all that Hydra reads


class ParetoSweeper(Sweeper):
    """Searches for the Pareto front of an app's objectives; see sweeper/README.md."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.hydra_context: HydraContext | None = None
        self.config: DictConfig | None = None
        self.launcher: Launcher | None = None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Settle where the study goes, and make the launcher."""
        from memsweep.complaint import complaint
        from memsweep.errors import ConfigError

        from ._folder import settle_folder

        self.hydra_context, self.config = hydra_context, config
        try:
            settle_folder(config)
        except ConfigError as error:
            print(complaint(error), file=sys.stderr)
            sys.exit(2)
        try:
            self.launcher = Plugins.instance().instantiate_launcher(
                hydra_context=hydra_context, task_function=task_function, config=config
            )
        except (ImportError, RuntimeError) as error:  # what Hydra raises of a class that is no launcher
            print(f"hydra.launcher: {complaint(error)}; type hydra/launcher=isolated", file=sys.stderr)
            sys.exit(2)

    def sweep(self, arguments: list[str]) -> Any:
        """Run the study; see `_sweep.py` for how it ends."""
        from ._sweep import sweep

        assert self.config is not None
        assert self.hydra_context is not None
        return sweep(self.settings, self.config, self.hydra_context, self.launcher, arguments)

    @staticmethod
    def cells(config: DictConfig, loader: ConfigLoader, arguments: list[str], limit: int) -> dict[str, Any]:
        """Return what a sweep with `config` would search, and what is refused: see `_listed.py`."""
        from ._listed import listed_cells

        return listed_cells(config, loader, arguments, limit)
