"""Models and data that somebody else made: their files are data, and no code in them runs."""

from __future__ import annotations

import json
import pickle
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memsweep.config.schema import DatasetConfig, DatasetSource, ModelConfig, ModelSource
from memsweep.errors import ConfigError, DatasetError
from tiny import share_cache, tiny_config

pytestmark = pytest.mark.slow


class Touches:
    """What touches a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    return tmp_path / "canary"


@pytest.fixture
def model(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> ModelConfig:
    """A tiny model in a folder of its own, as a person has it."""
    from memsweep.model.folder import model_folder

    share_cache(tmp_path_factory, monkeypatch)
    folder = tmp_path / "model"
    shutil.copytree(model_folder(tiny_config().model.geometry), folder)
    return ModelConfig(name="theirs", source=ModelSource.PATH, path=str(folder))


def loaded(config: ModelConfig) -> Any:
    """Load tokenizer and model as a trial does."""
    from transformers import AutoModelForCausalLM

    from memsweep.model.folder import model_place

    place = model_place(config)
    return AutoModelForCausalLM.from_pretrained(place.name, revision=place.revision)


def test_pickled_weights_run_nothing(model: ModelConfig, canary: Path) -> None:
    folder = Path(str(model.path))
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Touches(canary)))

    with pytest.raises(Exception):  # noqa: B017 - the reader's errors share no class
        loaded(model)

    assert not canary.exists()


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_that_comes_with_a_model_does_not_run(file: str, model: ModelConfig, canary: Path) -> None:
    folder = Path(str(model.path))
    for name in ("configuration_evil", "modeling_evil", "tokenization_evil"):
        (folder / f"{name}.py").write_text(f"open({str(canary)!r}, 'w').close()\n", encoding="utf-8")
    path = folder / file
    named = {
        "AutoConfig": "configuration_evil.Evil",
        "AutoModelForCausalLM": "modeling_evil.Evil",
        "AutoTokenizer": ["tokenization_evil.Evil", None],
    }
    data = json.loads(path.read_text(encoding="utf-8")) | {"auto_map": named, "model_type": "evil"}
    path.write_text(json.dumps(data | {"tokenizer_class": "Evil"}), encoding="utf-8")

    with suppress(ConfigError, ValueError, OSError):  # a class that is not known is left out, or refused
        loaded(model)

    assert not canary.exists()


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.system('touch CANARY') }}",
        "{{ messages.append.__self__.__class__.__base__.__subclasses__() }}",
    ],
)
def test_a_chat_template_stays_in_its_sandbox(template: str, model: ModelConfig, canary: Path) -> None:
    from memsweep.model.folder import model_place

    (Path(str(model.path)) / "chat_template.jinja").write_text(
        template.replace("CANARY", str(canary)), encoding="utf-8"
    )
    tokenizer = model_place(model).tokenizer
    assert tokenizer.chat_template is not None

    with pytest.raises(Exception, match=r"unsafe|undefined"):
        tokenizer.apply_chat_template([{"role": "user", "content": "x"}], tokenize=False)

    assert not canary.exists()


def test_a_script_that_comes_with_data_does_not_run(tmp_path: Path, canary: Path) -> None:
    from memsweep.data.files import read_rows

    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "theirs.py").write_text(f"open({str(canary)!r}, 'w').close()\n", encoding="utf-8")

    config = DatasetConfig(name=str(folder), source=DatasetSource.HUB)
    with pytest.raises(DatasetError):
        read_rows(config)
    with pytest.raises(DatasetError):
        read_rows(replace(config, name=str(folder / "theirs.py")))

    assert not canary.exists()


@pytest.mark.parametrize("source", [DatasetSource.JSONL, DatasetSource.CSV, DatasetSource.PARQUET])
def test_a_data_file_is_not_unpickled(source: DatasetSource, tmp_path: Path, canary: Path) -> None:
    from memsweep.data.files import read_rows

    path = tmp_path / f"data.{source}"
    path.write_bytes(pickle.dumps(Touches(canary)))

    with pytest.raises(DatasetError):
        read_rows(DatasetConfig(name="theirs", source=source, path=str(path)))

    assert not canary.exists()
