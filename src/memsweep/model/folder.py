"""Where is the model that a trial trains?

A trainer gets a folder or a repository's name, never a model in memory: such a model has no name, and a
trainer that needs a reference model would look for one on a hub.  `model.geometry` is made once, with random
weights, into a folder of the cache that holds its tokenizer as well; so is what a GGUF file holds.  Other
folders, and repositories, are passed through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

from memsweep.config.schema import ModelConfig, ModelSource, TrialConfig
from memsweep.data.cache import cached_path, hash_of, rules_of
from memsweep.errors import ConfigError
from memsweep.model.gguf import gguf_folder, said
from memsweep.model.path import model_files
from memsweep.model.tokenizer import tokenizer_folder

SEED = 0  # neither speed nor memory depends on the values, so all studies share one model
# A field of these trainers' arguments.  Source: trl==1.16.0 trainer/sft_config.py, trainer/reward_config.py
TEMPLATE, WITH_TEMPLATE = "chat_template_path", ("sft", "reward")


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
        ConfigError: If the geometry is not one that transformers knows, the path holds no model that can be
            read, or the repository cannot be.
    """
    if config.source is ModelSource.GEOMETRY:
        made = model_folder(config.geometry)
        # Not AutoTokenizer: it would take the architecture's own class, which splits words in another way.
        return ModelPlace(str(made), None, PreTrainedTokenizerFast.from_pretrained(made))
    if config.source is ModelSource.HUB:
        return _place(config.name, config.revision, f"model=hub model.name={config.name}")
    files = model_files(config)
    folder = files if files.is_dir() else gguf_folder(files)
    return _place(str(folder), None, f"model.path={files}")


def require_template(config: TrialConfig, place: ModelPlace, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise if the data are conversations and nothing says how the model writes them.

    Args:
        config: What is asked for; its trainer may bring a template of its own.
        place: Where the model is.
        rows: What it is to be trained on; all in one format.

    Raises:
        ConfigError: It says what would do instead.
    """
    columns = [column for column, value in rows[0].items() if isinstance(value, list)] if rows else []
    if columns and place.tokenizer.chat_template is None and TEMPLATE not in config.trainer.arguments:
        asked = config.model
        model = f"model.path={asked.path}" if asked.source is ModelSource.PATH else f"model={asked.name}"
        own = (
            f", or type trainer.arguments.{TEMPLATE}=template.jinja"
            if config.trainer.name in WITH_TEMPLATE
            else ""
        )
        raise ConfigError(
            f"{model} has a tokenizer without a chat template, and the data are conversations "
            f"({', '.join(columns)}): bring data whose columns are text, or save a template with the "
            f"tokenizer (tokenizer.chat_template = ...; tokenizer.save_pretrained(folder)){own}"
        )


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
        raise ConfigError(f"{asked} has no tokenizer that can be read: {said(error)}") from error
    # Where the files are missing transformers makes a tokenizer that knows no word, for many architectures.
    if not set(tokenizer("words")["input_ids"]) - set(tokenizer.all_special_ids):
        raise ConfigError(f"{asked} has a tokenizer without a vocabulary: is its tokenizer.json there?")
    return ModelPlace(name, revision, tokenizer)
