"""Overrides that somebody else wrote, typed as they stand: none runs anything, or writes elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


def train(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run train.py with `folder` as the working directory."""
    paths = os.pathsep.join(entry for entry in sys.path if entry)
    return subprocess.run(
        [sys.executable, str(ROOT / "train.py"), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def refused(done: subprocess.CompletedProcess[str], folder: Path, *named: str) -> None:
    """Hold that a request was refused in words, with everything that is wrong, and that nothing ran."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    for name in named:
        assert name in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["evil", "work"]
    left = {path.name for path in (folder / "work").rglob("*") if path.is_file()}
    assert left <= {"config.yaml", "hydra.yaml", "overrides.yaml"}  # by Hydra, of a single run
    assert not (folder / "evil" / "pwned").exists()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a working folder, and one with code that leaves a file behind when it runs."""
    (tmp_path / "work").mkdir()
    package = tmp_path / "evil" / "payload"
    package.mkdir(parents=True)
    touches = f"open({str(tmp_path / 'evil' / 'pwned')!r}, 'w').close()\n"
    (package / "__init__.py").write_text(touches, encoding="utf-8")
    (package.parent / "sitecustomize.py").write_text(touches, encoding="utf-8")
    return tmp_path


def test_the_code_that_is_not_to_run_would(folder: Path) -> None:
    paths = {"PYTHONPATH": str(folder / "evil")}
    subprocess.run([sys.executable, "-c", "import payload"], env={**os.environ, **paths}, check=True)

    assert (folder / "evil" / "pwned").exists()


@pytest.mark.parametrize("mode", [(), ("-m",)])
def test_whatever_hydra_would_make_of_a_config_is_refused_at_once(
    mode: tuple[str, ...], folder: Path
) -> None:
    pwned = folder / "evil" / "pwned"
    words = [
        f"+hydra.callbacks.x={{_target_: os.system, command: 'touch {pwned}'}}",
        f"+hydra.callbacks.y={{_target_: subprocess.run, args: [touch, {pwned}]}}",
        "+hydra.callbacks.z=${somewhere}",
        f"+hydra.job_logging.handlers.x={{class: logging.FileHandler, filename: {pwned}}}",
        "+hydra.hydra_logging.formatters.x={class: os.system}",
        "+hydra.job.env_set.PYTHONPATH=../evil",
        "+hydra.launcher.environment.LD_PRELOAD=../evil/x.so",
        "hydra.launcher.preload=[evil.payload]",
        "hydra.output_subdir=../../evil",
        "hydra.job.name=../../evil/pwned",
        "model.name='${oc.env:HF_TOKEN}'",
        "+hydra.sweeper.params.x={_target_: os.system, command: ls}",
        "hydra.sweeper._recursive_=true",
    ]

    paths = os.pathsep.join([str(folder), *filter(None, sys.path)])
    done = train(folder / "work", *mode, *words, HF_TOKEN="hf_canarycanarycanary", PYTHONPATH=paths)

    assert "canary" not in done.stderr + done.stdout
    named = (
        *(
            "callbacks.x._target_=os.system",
            "callbacks.y._target_=subprocess.run",
            "callbacks.z must be written out",
        ),
        *(
            "job_logging.handlers.x.filename=",
            "hydra_logging.formatters.x.class=os.system",
            "env_set.PYTHONPATH",
        ),
        *("environment.LD_PRELOAD", "preload=evil.payload", "hydra.output_subdir=", "hydra.job.name="),
        *("oc.env:HF_TOKEN", "sweeper.params.x._target_=os.system", "sweeper._recursive_"),
    )
    refused(done, folder, *named)


def test_no_package_is_imported_to_look_for_configs(folder: Path) -> None:
    paths = os.pathsep.join([str(folder / "evil"), *filter(None, sys.path)])
    (folder / "evil" / "sitecustomize.py").unlink()

    done = train(folder / "work", "hydra.searchpath=[pkg://payload]", PYTHONPATH=paths)

    refused(done, folder, "may not name pkg://payload")


@pytest.mark.parametrize("mode", [(), ("-m",)])
def test_variables_and_arguments_that_run_code_are_refused_at_once(
    mode: tuple[str, ...], folder: Path
) -> None:
    done = train(
        folder / "work",
        *mode,
        "+launch.environment.PYTHONPATH=../evil",
        "+launch.environment.LD_PRELOAD=../evil/x.so",
        "+launch.environment.CXX=../evil/cxx",
        "trainer.arguments.model_init_kwargs={trust_remote_code: true}",
        "trainer.arguments.push_to_hub=true",
    )

    named = (
        "environment.PYTHONPATH",
        "environment.LD_PRELOAD",
        "environment.CXX",
        "trust_remote_code",
        "push_to_hub",
    )
    refused(done, folder, *named)


@pytest.mark.parametrize("subdir", ["../../../evil/${hydra.job.num}", "/evil/${hydra.job.num}", "."])
def test_a_trials_folder_lies_in_its_studys(subdir: str, folder: Path) -> None:
    done = train(
        folder / "work",
        "-m",
        f"hydra.sweep.subdir='{subdir}'",
        "model=tiny",
        "technique/packing=baseline,bfd",
    )

    assert done.returncode == 2
    assert "hydra.sweep.subdir=" in done.stderr
    assert list((folder / "evil").glob("0")) == []
    assert list((folder / "work").glob("**/trial.json")) == []
