"""Where does the exported folder find its model, and which tokenizer does TRL's own command read from there?

A model that memsweep made, or unpacked, is copied into the folder; any other is referred to.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoProcessor, AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from memsweep.config.schema import ModelConfig, ModelSource
from memsweep.export.examples import from_folder
from memsweep.model.folder import ModelPlace, model_place
from memsweep.model.path import model_files

OWN_FOLDER = "model"
_TOKENIZER = "tokenizer_config.json"

# Where two tokenizers of one vocabulary differ: how they split blanks, digits, signs and contractions.
_TELLING = "Return it's 2024.5:\n\n    >>> split('a  b')\t# doesn't,   naïve\n<|im_end|>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What a trainer is given as its model.

    Attributes:
        name: A folder, from the exported one on, or a repository's name.
        revision: Of the repository; None means its default.
        is_random: Whether the weights are random numbers: only a geometry was measured.
        source: What is copied to `OWN_FOLDER`; None when nothing is.
        tokenizer_class: The class that reads the trial's tokenizer.
        loads_alike: Whether the trainer, left to itself, reads the trial's tokenizer too.
    """

    name: str
    revision: str | None
    is_random: bool
    source: Path | None
    tokenizer_class: str
    loads_alike: bool

    def write(self, folder: Path) -> None:
        """Copy the model, where it is to be copied."""
        if self.source is not None:
            shutil.copytree(self.source, folder / OWN_FOLDER, dirs_exist_ok=True)
            _name_class(folder / OWN_FOLDER)


def weights(config: ModelConfig, folder: Path, *, with_processor: bool, scratch: Path) -> Weights:
    """Return where the model is, made first when it is described by its geometry.

    Args:
        config: The model.
        folder: The folder that is exported to.
        with_processor: Whether the trainer reads an `AutoProcessor`; else it reads an `AutoTokenizer`.
        scratch: An empty folder, to try out what is read from a copy of the tokenizer's files.

    Raises:
        ConfigError: If it is not there any more.
    """
    place = model_place(config)
    is_own = config.source is ModelSource.GEOMETRY or (
        config.source is ModelSource.PATH and model_files(config).is_file()
    )
    where = _tokenizer_alone(Path(place.name), scratch) if is_own else place.name
    loader = AutoProcessor if with_processor else AutoTokenizer
    name = place.name
    if is_own:
        name = OWN_FOLDER
    elif config.source is ModelSource.PATH:
        name = from_folder(Path(place.name), folder)
    reads_auto = _reads_alike(AutoTokenizer, where, place)
    return Weights(
        name=name,
        revision=place.revision,
        is_random=config.source is ModelSource.GEOMETRY,
        source=Path(place.name) if is_own else None,
        tokenizer_class="AutoTokenizer" if reads_auto else "PreTrainedTokenizerFast",
        loads_alike=_reads_alike(loader, where, place),
    )


def _tokenizer_alone(model: Path, scratch: Path) -> str:
    """Return a folder with what tokenizers are read from, as it will be in the exported folder."""
    for file in model.iterdir():
        if file.suffix in (".json", ".jinja") and ".safetensors" not in file.name:
            shutil.copy(file, scratch / file.name)
    _name_class(scratch)
    return str(scratch)


def _name_class(folder: Path) -> None:
    """Let `AutoProcessor` read the tokenizer as it was saved.

    Else it takes the architecture's own class, which splits words in another way.
    Source: transformers==5.24.0 models/auto/processing_auto.py, processor_class.
    """
    path = folder / _TOKENIZER
    known = json.loads(path.read_text(encoding="utf-8"))
    known.setdefault("processor_class", PreTrainedTokenizerFast.__name__)
    path.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _reads_alike(loader: Any, where: str, place: ModelPlace) -> bool:
    try:
        found = loader.from_pretrained(where, revision=place.revision)
    except Exception:
        # The readers' errors share no class; whatever it was, nothing is read.
        return False
    return isinstance(found, PreTrainedTokenizerBase) and _said(found) == _said(place.tokenizer)


def _said(tokenizer: PreTrainedTokenizerBase) -> tuple[Any, ...]:
    special = tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.bos_token_id
    return tokenizer(_TELLING)["input_ids"], special, tokenizer.chat_template
