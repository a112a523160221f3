"""Which folder stands for a GGUF file?

transformers reads such a file and unpacks its weights, but goes on to mark the model as quantized, and no
trainer takes a model that is.  Reading takes long, too.  So a file is read once: the model is saved to the
cache without that mark, with its tokenizer, and trials are given the folder.

The weights are saved in bfloat16: what most of these models were published in, at half the disk of float32.
It moves a weight by 1/512 of itself at most, and 4 bits have moved it by far more already: in SmolLM2-135M's
Q4_1, 60 times as much in the root mean square, taking a block's step over sqrt(12) for what 4 bits lose.
The loss on 24 of the embedded texts is 3.3731 then, and 3.3726 with float32.  A file in F16 or F32 loses that
1/512 too, on which neither speed nor memory depends; who wants it all brings the folder it was made from.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from memsweep.data.cache import cache_folder, cached_path, hash_of, rules_of
from memsweep.errors import ConfigError
from memsweep.units import bytes_text, seconds_text

DTYPE = torch.bfloat16
_SHOWN = 3  # names in a message

# Warnings, because a trial's process shows nothing less.
log = logging.getLogger(__name__)


def gguf_folder(file: Path) -> Path:
    """Return the folder of the model and the tokenizer in a GGUF file, made when it is not in the cache.

    An entry is known by the file's path, size and time, not by what the file holds: every trial asks, and
    would spend 2 s on each GB to hash it.

    Raises:
        ConfigError: If transformers cannot read the file, or it lacks weights of its model.
    """
    stat = file.stat()
    facts = str(file.resolve()), stat.st_size, stat.st_mtime_ns, transformers.__version__
    name = f"model/gguf-{hash_of(rules_of(__file__), *facts)}"
    is_new, began = not (cache_folder() / name).is_dir(), time.monotonic()
    if is_new:
        log.warning(
            "reading %s (%s): about 25 s for 100 MB, this once; later trials take what is saved now",
            file,
            bytes_text(stat.st_size),
        )
    folder = cached_path(name, lambda empty: _unpack(file, empty))
    if is_new:
        log.warning("read %s in %s: %s", file.name, seconds_text(time.monotonic() - began), folder)
    return folder


def said(error: Exception) -> str:
    """Return the first line of what a library said."""
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def _unpack(file: Path, folder: Path) -> None:
    config, tokenizer = _described(file)
    model = _loaded(file, config)
    # On no device, so that there is never a second copy: it is given the first one's weights.
    with torch.device("meta"):
        plain = AutoModelForCausalLM.from_config(config, dtype=DTYPE)
    plain.load_state_dict(model.state_dict(), assign=True)
    plain.tie_weights()
    plain.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _described(file: Path) -> tuple[Any, Any]:
    """Return the config and the tokenizer: cheap beside the weights, and where an architecture is refused."""
    try:
        config = AutoConfig.from_pretrained(file.parent, gguf_file=file.name)
        return config, AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    except Exception as error:
        # The readers' errors share no class: what a damaged file gives depends on where it is damaged.
        raise _unreadable(file, error) from error


def _loaded(file: Path, config: Any) -> Any:
    keywords: dict[str, Any] = {"config": config, "gguf_file": file.name, "dtype": DTYPE}
    if hasattr(transformers, "GgufConfig"):  # which unpacks weights only if told to, for some architectures
        keywords["quantization_config"] = transformers.GgufConfig(dequantize=True)
    try:
        model, report = AutoModelForCausalLM.from_pretrained(
            file.parent, output_loading_info=True, **keywords
        )
    except (ValueError, KeyError, NotImplementedError, ImportError, OSError) as error:
        raise _unreadable(file, error) from error
    if missing := sorted(report["missing_keys"]):
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise ConfigError(
            f"model.path={file} lacks weights of a {type(model).__name__}: "
            f"{', '.join(missing[:_SHOWN])}{more}; if it is one of several parts, merge them first"
        )
    return model


def _unreadable(file: Path, error: Exception) -> ConfigError:
    return ConfigError(
        f"model.path={file} cannot be read by transformers {transformers.__version__}: "
        f"{type(error).__name__}: {said(error).rstrip('.')}; bring the folder that it was made from"
    )
