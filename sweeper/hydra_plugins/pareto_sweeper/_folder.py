"""Where a study goes: its name, its folder, settled once and pinned for every trial.

A trial composes its own config, in which `${now:...}` and `${trainer.name}` may say something else; so
the settled folder is handed to it as an override, which also covers launchers on other machines.
"""

from __future__ import annotations

import glob
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Quote, QuotedString
from omegaconf import DictConfig, OmegaConf, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException

from memsweep.errors import ConfigError
from memsweep.record.folder import StudyFolder
from memsweep.record.study import INTERRUPTED, Study
from memsweep.secret import masked_override
from memsweep.study.lock import is_busy

_NAME_PARTS = ("trainer.name", "model.name")
_DIFFERS = re.compile(r"\$\{(?:now:[^}]*|hydra[.:]sweeper\.study_name)\}")
"""What is another in the folder of every study."""

_REFERENCE = re.compile(r"\$\{([^}]*)")
_OF_NUMBER = frozenset({"hydra.job.num", "hydra.job.id", "hydra:job.num", "hydra:job.id"})
_FREE = (
    "hydra.sweep.dir=",
    "hydra.sweeper.study_name=",
    "hydra.sweeper.n_trials=",
    "hydra.sweeper.extra_trials=",
    "hydra.sweeper.resume=",
    "hydra.sweeper.progress=",
)
"""Words of a command that may be others when it goes on with what it began."""

_LONGEST_NAME = 200
"""Bytes: folders may have 255, and `-2` and the like are put behind a name."""

Compose = Callable[[Sequence[str]], DictConfig]


def settle_folder(config: DictConfig) -> None:
    """Give the study in `config` a name and a folder, and pin both for its trials.

    Where no name is typed it is that of a study that the same command began and did not end, if there is one.

    Args:
        config: Hydra's composed config; changed.

    Raises:
        ConfigError: If the name asked for cannot be a folder's.
    """
    sweeper = config.hydra.sweeper
    with read_write(config.hydra), open_dict(config.hydra):
        if sweeper.study_name is None:
            found = None if sweeper.get("dry_run") or sweeper.get("resume") == "never" else _unended(config)
            if found is None:
                _name_anew(config)
            else:
                sweeper.study_name, config.hydra.sweep.dir = found[0], str(found[1])
        name = str(sweeper.study_name)
        check_name(name)
        folder = study_folder(config)
        _require_path(folder)
        config.hydra.sweep.dir = str(folder)
        # hydra-core 1.4 refuses jobs whose hydra.sweeper is not the sweep's own: its name is pinned as well.
        for key, text in (("hydra.sweep.dir", str(folder)), ("hydra.sweeper.study_name", name)):
            pinned = QuotedString(text=text, quote=Quote.single).with_quotes()
            config.hydra.overrides.hydra.append(f"{key}={pinned}")


def study_folder(config: DictConfig) -> Path:
    """Return the folder that the study has under its name."""
    with known_to_hydra(config):
        return Path(str(config.hydra.sweep.dir)).absolute()


def typed(config: DictConfig) -> tuple[str, ...]:
    """Return the overrides of the command, without secrets and without what may differ when it goes on."""
    # Unresolved: what is typed may refer to what only a trial has, as ${hydra.job.num}.
    lists: Any = OmegaConf.to_container(config.hydra.overrides, resolve=False)
    words = [str(text) for text in (*lists["task"], *lists["hydra"])]
    return tuple(sorted(masked_override(word) for word in words if not word.lstrip("+").startswith(_FREE)))


def _unended(config: DictConfig) -> tuple[str, Path] | None:
    """Return name and folder of the newest study that the same command began and did not end."""
    raw: Any = OmegaConf.to_container(config.hydra.sweep, resolve=False)
    pattern = _DIFFERS.sub("*", str(raw["dir"]))
    if "*" not in pattern:
        return None
    config.hydra.sweep.dir = pattern
    try:
        places = glob.glob(str(study_folder(config)))  # noqa: PTH207, an absolute pattern
    except OmegaConfBaseException:
        return None
    finally:
        config.hydra.sweep.dir = raw["dir"]
    own = typed(config)
    found = []
    for place in places:
        folder = StudyFolder(Path(place))
        try:
            study = Study.read(folder)
        except (OSError, ValueError):
            continue
        if study.ended in (None, INTERRUPTED) and study.typed == own and not is_busy(folder):
            found.append((study.created, study.name, folder.path))
    return max(found)[1:] if found else None


def _name_anew(config: DictConfig) -> None:
    """Give the study a name that no other has yet, if its folder depends on that."""
    name = default_name(config)
    config.hydra.sweeper.study_name = name
    _require_path(study_folder(config))
    for number in range(1, 100):
        config.hydra.sweeper.study_name = name if number == 1 else f"{name}-{number}"
        if not study_folder(config).exists():
            return
    config.hydra.sweeper.study_name = name


def trial_folder(config: DictConfig, number: int, overrides: Sequence[str], compose: Compose) -> Path:
    """Return where Hydra will put a job.

    Args:
        config: The sweep's.
        number: Of the job.
        overrides: The job's.
        compose: Composes a job's config; asked where the folder's name depends on more than the number.

    Raises:
        ConfigError: If that is not within the study's folder.
    """
    raw: Any = OmegaConf.to_container(config.hydra.sweep, resolve=False)
    if set(_REFERENCE.findall(str(raw["subdir"]))) - _OF_NUMBER:
        with suppress(Exception):  # what is wrong with the job's config its own launch will say
            config = compose(overrides)
    with read_write(config.hydra), open_dict(config.hydra):
        config.hydra.job.num, config.hydra.job.id = number, str(number)
        with known_to_hydra(config):
            top, subdir = Path(str(config.hydra.sweep.dir)), str(config.hydra.sweep.subdir)
    place, within = (Path(os.path.normpath(path)) for path in (top / subdir, top))
    if place == within or not place.is_relative_to(within):
        raise ConfigError(
            f"hydra.sweep.subdir={subdir} puts trial {number} into {place}, and the trials of a study lie "
            f"within its folder, {top}: leave hydra.sweep.subdir out, or name a folder there"
        )
    return Path(top, subdir)


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


def _require_path(folder: Path) -> None:
    """Raise unless a folder could be there.

    Raises:
        ConfigError: If its name is longer than names can be, say.
    """
    try:
        folder.exists()
    except OSError as error:
        raise ConfigError(
            f"the study's folder cannot be {str(folder)!r}: {error.strerror}; it comes from "
            "hydra.sweep.dir and hydra.sweeper.study_name"
        ) from error


def check_name(name: str) -> None:
    """Raise unless `name` can name a folder, inside the folder it is meant for.

    Raises:
        ConfigError: With what is wrong.
    """
    is_long = len(name.encode("utf-8", "replace")) > _LONGEST_NAME
    if (
        not name.strip()
        or is_long
        or name.startswith(".")
        or re.search(r"[/\\]", name)
        or not name.isprintable()
    ):
        raise ConfigError(
            f"hydra.sweeper.study_name must be 1 to {_LONGEST_NAME} bytes of characters that can be seen, "
            f"without slashes and backslashes, not beginning with a dot: it names a folder; got {name!r}"
        )
