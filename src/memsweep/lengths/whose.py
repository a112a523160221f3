"""Whose lengths are asked for?  From what is typed to the data, the tokenizer and what the trainer does.

The same overrides as for a trial, composed and merged as for a trial; nothing is trained, and no model is
made where its tokenizer is enough.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memsweep.complaint import complaint
from memsweep.config.schema import ModelConfig, ModelSource, TrialConfig, trial_config
from memsweep.config.store import CONFIG_NAME, register
from memsweep.data.ready import require_data
from memsweep.errors import ConfigError
from memsweep.lengths.preparation import FIELDS, Preparation, preparation
from memsweep.model.path import require_model
from memsweep.technique.catalogue import Catalogue, conf_folder
from memsweep.technique.settings import merge


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Whose lengths are asked for.

    Attributes:
        config: The trial that is asked for.
        how: What its trainer does to an example by its length.
        tokenizer: The model's.
    """

    config: TrialConfig
    how: Preparation
    tokenizer: Any


def composed(overrides: Sequence[str]) -> tuple[TrialConfig, Catalogue]:
    """Return the trial that `python train.py OVERRIDES` asks for, and the techniques there are.

    Raises:
        ConfigError: If there is no such trial; the message says what there is.
    """
    from hydra import compose, initialize
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    techniques = register(conf_folder())
    try:
        with initialize(version_base="1.3", config_path=None):
            found = compose(CONFIG_NAME, overrides=list(overrides))
        plain: Any = OmegaConf.to_container(found, resolve=True, throw_on_missing=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(complaint(error, overrides)) from error
    config = trial_config(plain)
    # Before anything heavy is imported; what only all of the data can tell, counting them will.
    require_model(config.model)
    require_data(config.dataset, config.trainer.data)
    return config, techniques


def asked(config: TrialConfig, techniques: Catalogue) -> Asked:
    """Return all that counting the lengths of a trial's data needs.

    Raises:
        ConfigError: If there is no such trainer, model or tokenizer, or a setting has no field.
    """
    return Asked(config=config, how=_how(config, techniques), tokenizer=_tokenizer(config))


def _how(config: TrialConfig, techniques: Catalogue) -> Preparation:
    # At import it warns that a processor lacks 4-bit kernels, of which nothing is used here.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    from memsweep.trainers.build import recipe_of
    from memsweep.trainers.fields import resolved

    recipe, settings = (
        recipe_of(config.trainer.name),
        merge(config.technique, config.trainer.name, techniques),
    )
    given = {
        **recipe.arguments,
        **resolved(config.trainer.arguments, recipe.config_class),
        **resolved(settings.trainer, recipe.config_class),
    }
    defaults = {entry.name: entry.default for entry in dataclasses.fields(recipe.config_class)}
    arguments = {name: given.get(name, defaults[name]) for name in FIELDS if name in defaults}
    field = recipe.completion_field
    tokens = 0 if field is None else given.get(field, config.trainer.completion_tokens or defaults[field])
    return preparation(
        config.trainer.name, config.trainer.data, arguments, int(tokens), makes_room=recipe.makes_room
    )


def _tokenizer(config: TrialConfig) -> Any:
    from memsweep.model.folder import TEMPLATE, WITH_TEMPLATE

    tokenizer = _of_model(config.model)
    named = config.trainer.arguments.get(TEMPLATE) if config.trainer.name in WITH_TEMPLATE else None
    if named is not None:
        tokenizer.chat_template = _template(str(named), TEMPLATE)
    return tokenizer


def _of_model(model: ModelConfig) -> Any:
    """Return a model's tokenizer; of a geometry without the model, which may be too large to make here."""
    if model.source is ModelSource.GEOMETRY and "vocab_size" in model.geometry:
        from transformers import PreTrainedTokenizerFast

        from memsweep.model.tokenizer import tokenizer_folder

        return PreTrainedTokenizerFast.from_pretrained(tokenizer_folder(int(model.geometry["vocab_size"])))
    from memsweep.model.folder import model_place

    return model_place(model).tokenizer


def _template(named: str, field: str) -> str:
    from pathlib import Path

    path = Path(named).expanduser()
    if path.suffix not in (".jinja", ".j2") or not path.is_file():
        raise ConfigError(
            f"trainer.arguments.{field}={named} must be a file that ends in .jinja or .j2 to count lengths "
            "with it; save another model's template as such a file"
        )
    return path.read_text(encoding="utf-8")
