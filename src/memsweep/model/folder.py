"""Where is the model that a trial trains?

A trainer gets a folder or a repository's name, never a model in memory: such a model has no name, and a
trainer that needs a reference model would look for one on a hub.  `model.geometry` is made once, with random
weights, into a folder of the cache that holds its tokenizer as well; `model=path` and `model=hub` are passed
through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from memsweep.config.schema import ModelConfig, ModelSource
from memsweep.data.cache import cached_path, hash_of, rules_of
from memsweep.errors import ConfigError
from memsweep.model.tokenizer import tokenizer_folder

SEED = 0  # neither speed nor memory depends on the values, so all studies share one model


@dataclass(frozen=True, slots=True)
class ModelPlace:
    """What `from_pretrained` is called with.

    Attributes:
        name: A folder, or a repository's name.
        revision: Of the repository; None means its default.
        tokenizer: Read from the same place.
    """

    name: str
    revision: str | None
    tokenizer: PreTrainedTokenizerBase


def model_place(config: ModelConfig) -> ModelPlace:
    """Return where the model is, made first when it is described by its geometry.

    Raises:
        ConfigError: If the geometry is not one that transformers knows, the folder holds no model, or the
            repository cannot be read.
    """
    if config.source is ModelSource.GEOMETRY:
        made = model_folder(config.geometry)
        # Not AutoTokenizer: it would take the architecture's own class, which splits words in another way.
        return ModelPlace(str(made), None, PreTrainedTokenizerFast.from_pretrained(made))
    if config.source is ModelSource.HUB:
        return _place(config.name, config.revision, f"model=hub model.name={config.name}")
    folder = Path(str(config.path)).expanduser()
    if not (folder / "config.json").is_file():
        raise ConfigError(
            f"model.path={folder} must be a folder that save_pretrained made: it holds no config.json"
            f"{'' if folder.is_dir() else ' (there is no such folder)'}"
        )
    return _place(str(folder), None, f"model.path={folder}")


def model_folder(geometry: Mapping[str, Any]) -> Path:
    """Return the folder of a model with random weights, made when it is not in the cache.

    Args:
        geometry: Fields of the transformers config; `model_type` and `vocab_size` are among them.
    """
    if "vocab_size" not in geometry:
        raise ConfigError("model.geometry must say vocab_size, e.g. 4096 (see conf/model/small.yaml)")
    tokenizer = tokenizer_folder(int(geometry["vocab_size"]))
    name = (
        f"model/{hash_of(rules_of(__file__), SEED, dict(geometry), tokenizer.name, transformers.__version__)}"
    )
    return cached_path(name, lambda folder: _make(geometry, tokenizer, folder))


def _make(geometry: Mapping[str, Any], tokenizer_path: Path, folder: Path) -> None:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(tokenizer_path)
    tokens = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    try:
        config = AutoConfig.for_model(**{**geometry, **tokens, "bos_token_id": None})
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            # Half the disk; a trainer loads them in the precision that it is asked for.
            model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"model.geometry makes no model: {error}") from error
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _place(name: str, revision: str | None, asked: str) -> ModelPlace:
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, revision=revision)
    except (OSError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"{asked} has no tokenizer that can be read: {first}") from error
    return ModelPlace(name, revision, tokenizer)
