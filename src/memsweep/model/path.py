"""What does `model.path` name, and can it be read here?

A folder that `save_pretrained` made, a GGUF file, or a folder with one GGUF file in it.  This looks at names
only and loads neither torch nor transformers, so that a mistyped path is refused before any process starts.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from memsweep.config.schema import ModelConfig, ModelSource
from memsweep.errors import ConfigError

GGUF = ".gguf"
_WANTED = f"a folder that save_pretrained made, a {GGUF} file, or a folder that holds one"


def require_model(config: ModelConfig) -> None:
    """Raise if the model is to come from a path and is not there; what transformers makes of it shows later.

    Raises:
        ConfigError: As `model_files` does.
    """
    if config.source is ModelSource.PATH:
        model_files(config)


def model_files(config: ModelConfig) -> Path:
    """Return the folder that `from_pretrained` takes, or the GGUF file.

    Args:
        config: Of a model that comes from a path.

    Raises:
        ConfigError: If the path does not exist, holds no model or several GGUF files, or is a GGUF file and
            the package that reads them is not installed.
    """
    try:
        return _named(Path(str(config.path)).expanduser())
    except (OSError, RuntimeError) as error:  # a folder that may not be listed, a name too long, ~nobody
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"model.path={config.path} cannot be read ({why}); it must be {_WANTED}") from error


def _named(path: Path) -> Path:
    if path.is_dir():
        return path if (path / "config.json").is_file() else _readable(_only_gguf(path))
    if not path.exists():
        raise ConfigError(f"model.path={path} is not there; the working folder is {Path.cwd()}")
    if path.suffix.lower() != GGUF:
        raise ConfigError(f"model.path={path} must be {_WANTED}; it is a file that does not end in {GGUF}")
    return _readable(path)


def _only_gguf(folder: Path) -> Path:
    """Return the one GGUF file of a folder that has no config.json."""
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() == GGUF and file.is_file())
    if not files:
        raise ConfigError(
            f"model.path={folder} must be {_WANTED}; it holds neither config.json nor a {GGUF} file"
        )
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise ConfigError(
            f"model.path={folder} holds {len(files)} {GGUF} files ({names}); name one of them: "
            f"model.path={files[0]}"
        )
    return files[0]


def _readable(file: Path) -> Path:
    if find_spec("gguf") is None:
        raise ConfigError(
            f"model.path={file} is read with the package gguf, which is not installed; type: "
            'pip install "memsweep[gguf]"'
        )
    return file
