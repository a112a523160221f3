"""One trial, or a study of many: which of TRL's memory-saving techniques are worth combining.

    python train.py technique/packing=bfd technique/adapter=lora
    python train.py -m space=sft_memory hydra.sweeper.n_trials=24

The first prints tokens per second and peak memory of that set-up on this machine; the second ends with the
Pareto front of both.  `python train.py --help` lists what there is to choose.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

try:
    import hydra

    import hydra_plugins.pareto_sweeper  # noqa: F401, Hydra finds it by name: conf/config.yaml
    from memsweep import entry
except ModuleNotFoundError as error:
    sys.exit(
        f"{error.name} is not installed for {sys.executable}.\n"
        "  `make sweep` sets everything up and runs the default study;\n"
        "  `pip install -e .` installs into an environment of your own."
    )

if TYPE_CHECKING:
    from omegaconf import DictConfig

CATALOGUE = entry.catalogue()


@hydra.main(version_base="1.3", config_path=None, config_name="config")
def main(config: DictConfig) -> dict[str, Any]:
    """Run the trial that `config` asks for and return its outcome."""
    return entry.trial(config, CATALOGUE)


if __name__ == "__main__":
    sys.exit(entry.run(main))
