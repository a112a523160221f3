"""What `model.path` may name, looked at before anything is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memsweep.config.schema import ModelConfig, ModelSource
from memsweep.errors import ConfigError
from memsweep.model import path as model_path
from memsweep.model.path import model_files, require_model
from tiny import GEOMETRY


@pytest.fixture(autouse=True)
def gguf_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read here, so it does not matter whether the package is."""
    monkeypatch.setattr(model_path, "find_spec", lambda name: object())


def mine(path: Path) -> ModelConfig:
    return ModelConfig(name="mine", source=ModelSource.PATH, path=str(path))


def test_a_folder_with_a_config_is_the_model(tmp_path: Path) -> None:
    for name in ("config.json", "a.gguf", "b.gguf"):
        (tmp_path / name).touch()

    assert model_files(mine(tmp_path)) == tmp_path


def test_a_gguf_file_is_the_model(tmp_path: Path) -> None:
    (tmp_path / "A.GGUF").touch()

    assert model_files(mine(tmp_path / "A.GGUF")) == tmp_path / "A.GGUF"


def test_the_only_gguf_file_of_a_folder_is_the_model(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").touch()
    (tmp_path / "README.md").touch()

    assert model_files(mine(tmp_path)) == tmp_path / "a.gguf"


def test_the_home_folder_may_be_written_as_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.gguf").touch()

    assert model_files(mine(Path("~/a.gguf"))) == tmp_path / "a.gguf"


@pytest.mark.parametrize(
    ("files", "asked", "message"),
    [
        ([], "nowhere", r"model\.path=.*nowhere is not there; the working folder is /"),
        ([], ".", r"holds neither config\.json nor a \.gguf file"),
        (["a.bin"], "a.bin", r"a\.bin must be a folder .*does not end in \.gguf"),
        (["a.gguf", "b.gguf"], ".", r"2 \.gguf files \(a\.gguf, b\.gguf\).*: model\.path=.*/a\.gguf$"),
    ],
    ids=["nowhere", "empty folder", "another file", "two GGUF files"],
)
def test_anything_else_is_refused_with_what_would_do(
    tmp_path: Path, files: list[str], asked: str, message: str
) -> None:
    for name in files:
        (tmp_path / name).touch()

    with pytest.raises(ConfigError, match=message):
        require_model(mine(tmp_path / asked))


def test_a_missing_package_is_told_with_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_path, "find_spec", lambda name: None)
    (tmp_path / "a.gguf").touch()

    with pytest.raises(ConfigError, match=r'a\.gguf .*: pip install "memsweep\[gguf\]"$'):
        require_model(mine(tmp_path / "a.gguf"))


def test_models_that_come_from_elsewhere_are_not_looked_for() -> None:
    require_model(ModelConfig(name="tiny", source=ModelSource.GEOMETRY, geometry=GEOMETRY))
    require_model(ModelConfig(name="organization/model", source=ModelSource.HUB))


def test_looking_loads_no_torch() -> None:
    script = (
        "import memsweep.model.path, sys; print([m for m in ('torch', 'transformers') if m in sys.modules])"
    )
    paths = [path for path in sys.path if path]
    found = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {paths!r}; {script}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert found.stdout.strip() == "[]"
