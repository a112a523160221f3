"""What the environment holds in secret is in no file of a study, and in nothing that is printed."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memsweep.record.study import read_study

ROOT = Path(__file__).resolve().parents[2]

CANARIES = {
    "WANDB_API_KEY": "c0ffee0123456789abcdef0123456789abcdef01",
    "HF_TOKEN": "hf_Canary0123456789Canary0123456789",
    "AWS_SECRET_ACCESS_KEY": "CanaryAws0123456789/CanaryAws0123456789",
    "OPENAI_API_KEY": "sk-Canary0123456789Canary0123456789",
    "DB_PASSWORD": "CanaryInTheEnvironment0123",
}
TYPED = "CanaryTyped0123456789"

DRIVER = """\
paramstyle, apilevel, threadsafety, __version__ = "pyformat", "2.0", 2, "2.9.9"
class Error(Exception): pass
class OperationalError(Error): pass
def connect(*words, **named):
    raise OperationalError(f"cannot connect with {words} {named}")
"""
"""A driver that says everything that it knows."""

pytestmark = pytest.mark.slow


def contents(file: Path) -> Iterator[bytes]:
    """Yield what a file holds, and what it holds when it is unpacked."""
    data = file.read_bytes()
    yield data
    if data.startswith(b"\x1f\x8b"):
        yield gzip.decompress(data)
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as packed:
            yield from (packed.read(name) for name in packed.namelist())


def found(folder: Path, secrets: dict[str, str]) -> list[str]:
    """Return where secrets are: in names and contents of everything below a folder."""
    places = []
    for path in folder.rglob("*"):
        texts = [str(path).encode(), *(contents(path) if path.is_file() and not path.is_symlink() else ())]
        places += [
            f"{name} in {path}"
            for name, secret in secrets.items()
            if any(secret.encode() in text or secret.encode("utf-16-le") in text for text in texts)
        ]
    return places


TRAINS = (
    *(
        "train.py",
        "-m",
        "model=tiny",
        "measure=quick",
        "technique/packing=baseline,bfd",
        "tracking=wandb_offline",
    ),
    *("tracking=wandb_offline", "hydra.sweeper.n_trials=2", "measure.front_repeats=0"),
)
FITS = (
    *("sweeper/examples/fit.py", "-m", "hparams_search=front", "hydra/launcher=isolated"),
    "hydra.sweeper.n_trials=3",
)


@pytest.mark.parametrize(
    ("words", "password", "n_trials"),
    [
        pytest.param(TRAINS, "${oc.env:DB_PASSWORD}", 2, id="a study of ours, with W&B"),
        pytest.param(FITS, TYPED, 3, id="any app, with a password that was typed"),
    ],
)
@pytest.mark.timeout(400)
def test_a_study_holds_no_secret(
    words: tuple[str, ...], password: str, n_trials: int, tmp_path: Path
) -> None:
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver" / "psycopg2.py").write_text(DRIVER, encoding="utf-8")
    (tmp_path / "work").mkdir()
    folder = tmp_path / "work" / "study"
    paths = os.pathsep.join([str(tmp_path / "driver"), *filter(None, sys.path)])
    url = f"postgresql+psycopg2://memsweep:{password}@127.0.0.1:9/studies"

    done = subprocess.run(
        [
            *(sys.executable, str(ROOT / words[0]), *words[1:]),
            *(f"hydra.sweep.dir={folder}", f"hydra.sweeper.storage='{url}'"),
        ],
        cwd=tmp_path / "work",
        env={**os.environ, "PYTHONPATH": paths, **CANARIES},
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )

    secrets = {**CANARIES, "typed": TYPED}
    assert done.returncode == 0, done.stderr
    assert "is left behind from here on" in done.stdout + done.stderr
    assert len(read_study(folder)[1]) == n_trials
    assert list(folder.glob("**/.hydra/hydra.yaml"))
    # A run that the end corrects is opened again, in a folder more: ids are counted, not folders.
    logged = {log.stem for log in folder.glob("wandb/offline-run-*/run-*.wandb")}
    assert len(logged) == (n_trials + 1) * (words is TRAINS)
    assert found(tmp_path, secrets) == []
    assert [name for name, secret in secrets.items() if secret in done.stdout + done.stderr] == []


def test_the_search_finds_secrets_packed_or_not(tmp_path: Path) -> None:
    secret = {"typed": TYPED}
    (tmp_path / "plain").write_bytes(b"\x00" + TYPED.encode())
    (tmp_path / "packed").write_bytes(gzip.compress(TYPED.encode()))
    with zipfile.ZipFile(tmp_path / "zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a", TYPED)
    (tmp_path / TYPED).touch()

    assert len(found(tmp_path, secret)) == 4
