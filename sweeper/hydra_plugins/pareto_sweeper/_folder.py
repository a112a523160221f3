"""Where a study goes: its name, its folder, settled once and pinned for every trial.

A trial composes its own config, in which `${now:...}` and `${trainer.name}` may say something else; so
the settled folder is handed to it as an override, which also covers launchers on other machines.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Quote, QuotedString
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from memsweep.errors import ConfigError, StudyExists
from memsweep.record.folder import StudyFolder

_NAME_PARTS = ("trainer.name", "model.name")


def settle_folder(config: DictConfig) -> None:
    """Give the study in `config` a name and a folder, and pin both for its trials.

    Args:
        config: Hydra's composed config; changed.

    Raises:
        ConfigError: If the name asked for cannot be a folder's.
    """
    with read_write(config.hydra), open_dict(config.hydra):
        name = config.hydra.sweeper.study_name
        if name is None:
            name = default_name(config)
            config.hydra.sweeper.study_name = name
        check_name(str(name))
        with known_to_hydra(config):
            folder = Path(str(config.hydra.sweep.dir)).absolute()
        config.hydra.sweep.dir = str(folder)
        # hydra-core 1.4 refuses jobs whose hydra.sweeper is not the sweep's own: its name is pinned as well.
        for key, text in (("hydra.sweep.dir", str(folder)), ("hydra.sweeper.study_name", str(name))):
            pinned = QuotedString(text=text, quote=Quote.single).with_quotes()
            config.hydra.overrides.hydra.append(f"{key}={pinned}")


def trial_folder(config: DictConfig, number: int) -> Path:
    """Return where Hydra would put a job of this number, of those that are not launched."""
    with read_write(config.hydra), open_dict(config.hydra):
        config.hydra.job.num, config.hydra.job.id = number, str(number)
        with known_to_hydra(config):
            return Path(str(config.hydra.sweep.dir), str(config.hydra.sweep.subdir))


@contextmanager
def known_to_hydra(config: DictConfig) -> Iterator[None]:
    """Let `${hydra:...}` resolve to `config`, which `HydraConfig.set_config` would make read-only."""
    hydra = HydraConfig.instance()
    before = hydra.cfg
    hydra.cfg = cast(Any, config)
    try:
        yield
    finally:
        hydra.cfg = before


def default_name(config: DictConfig) -> str:
    """Return a name made of what is trained and the time: `sft-small-20260927-181203`.

    Apps that have no trainer and no model are called by Hydra's name for the job.
    """
    parts = [OmegaConf.select(config, key) for key in _NAME_PARTS]
    words = [str(part) for part in parts if isinstance(part, str)]
    words = words or [str(config.hydra.job.name)]
    words = [re.sub(r"[^A-Za-z0-9_.]+", "_", word).strip("._")[:40] for word in words]
    return "-".join([*[word for word in words if word], time.strftime("%Y%m%d-%H%M%S")])


def check_name(name: str) -> None:
    """Raise unless `name` can name a folder, inside the folder it is meant for.

    Raises:
        ConfigError: With what is wrong.
    """
    if not name or len(name) > 200 or name.startswith(".") or re.search(r"[/\\\x00-\x1f]", name):
        raise ConfigError(
            "hydra.sweeper.study_name must be 1 to 200 characters without slashes, backslashes and control "
            f"characters, not beginning with a dot: it names a folder; got {name!r}"
        )


def require_no_trials(folder: StudyFolder) -> None:
    """Raise if the folder already holds finished trials.

    Raises:
        StudyExists: With what to type instead.
    """
    results = folder.results.read_text(encoding="utf-8").splitlines() if folder.results.exists() else []
    # A controller that was killed may have left trials that no results.jsonl tells of.
    outcomes = [*folder.path.glob("*/outcome.json"), *folder.trials.glob("*/outcome.json")]
    n_trials = max(len(results), len(outcomes))
    if n_trials:
        raise StudyExists(
            f"{folder.path} already holds {n_trials} trial(s), and this version does not add to a study; "
            f"give the new one another name: hydra.sweeper.study_name={folder.path.name}-2"
        )
