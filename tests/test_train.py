"""`python train.py ...` as a person runs it: bad requests, the one line, the exit code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import yaml

from memsweep import entry
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Incompatible, Measured
from memsweep.record.trial import TrialRecord

TRAIN = Path(__file__).parents[1] / "train.py"


def train(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run train.py with `folder` as the working directory."""
    paths = os.pathsep.join(entry for entry in sys.path if entry)
    return subprocess.run(
        [sys.executable, str(TRAIN), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def only_trial(folder: Path) -> TrialFolder:
    (path,) = (folder / "outputs" / "single").iterdir()
    return TrialFolder(path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["technique/packing=foo"], "technique/packing has no option 'foo'; it has baseline, bfd"),
        (["technique/pakking=bfd"], "did you mean technique/packing?"),
        (["technique.adapter.r=8"], "r belongs to technique/adapter=dora"),
        (["technique.adapter=lora"], "technique.adapter is a group: type technique/adapter=lora"),
        (["technique.adapter=null"], "technique.adapter is a group: type technique/adapter=baseline"),
        (["technique.adapter.option=lora"], "technique.adapter is a group: type technique/adapter=lora"),
        (
            ["-m", "technique.adapter=lora,baseline"],
            "technique.adapter is a group: type technique/adapter=lora,baseline",
        ),
        (["-m", "technique.adapter=lora"], "technique.adapter is a group: type technique/adapter=lora"),
        (
            ["technique/optimizer=adafactor", "trainer.arguments.optim=sgd"],
            "optimizer=adafactor and trainer.arguments.optim both set it: drop one of them",
        ),
        (
            ["technique/reference=sync", "trainer=grpo"],
            "while `beta=0.0`); set trainer.arguments.beta above 0",
        ),
        (
            ["+technique/adapter=lora"],
            "technique/adapter is there already, so drop the +: type technique/adapter=lora",
        ),
        (["technique=lora"], "technique holds groups, and is none: type technique/<group>=<option>"),
        (["n_trials=3"], "n_trials is not a setting; did you mean hydra.sweeper.n_trials=3"),
        (["n_trails=3"], "did you mean hydra.sweeper.n_trials=3"),
        (
            ["+trainer.argument.beta=1"],
            "trainer.argument is not a setting; did you mean trainer.arguments?",
        ),
        (
            ["-m", "+trainer.argument.beta=1"],
            "trainer.argument is not a setting; did you mean trainer.arguments?",
        ),
        (
            ["-m", "+trainer.argument.beta=1", "hydra.sweeper.dry_run=true"],
            "trainer.argument is not a setting; did you mean trainer.arguments?",
        ),
        (["-m", "trainer.batch=0"], "trainer.batch must be at least 1, got 0"),
        (
            ["-m", "technique/packing=bfdd,wrapped"],
            "has no option 'bfdd' (did you mean bfd?); it has baseline",
        ),
        (["trainer.bach=8"], "trainer.bach is not a setting (did you mean batch?)"),
        (["trainer.batch=many"], "trainer.batch must be int, got 'many'"),
        (["trainer.batch=0"], "trainer.batch must be at least 1, got 0"),
        (["launch.device=tpu"], "launch.device must be one of auto, cpu, cuda, got 'tpu'"),
        (["model=path"], "model=path needs a folder: model.path=/path/to/model"),
        (["model=path", "model.path=/nowhere"], "model.path=/nowhere is not there"),
        (["-m", "model=path", "model.path=/nowhere"], "model.path=/nowhere is not there"),
        (["seed=[1"], "cannot read the override 'seed=[1'"),
        (["seed=${nothing}"], "Interpolation key 'nothing' not found"),
        (["--config-name", "nope"], "there is no config 'nope'"),
        (["-m", "hydra.sweeper.n_trials=many"], "could not be converted to Integer"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_bad_request_is_told_in_words_and_exits_with_2(
    tmp_path: Path, words: list[str], message: str
) -> None:
    done = train(tmp_path, *words)

    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 2
    assert "-m" not in words or not (tmp_path / "outputs").exists()


def test_broken_rules_are_all_told_before_anything_heavy_is_imported(tmp_path: Path) -> None:
    began = time.monotonic()
    done = train(tmp_path, "trainer=grpo", "technique/packing=bfd", "technique/quantization=nf4")
    seconds = time.monotonic() - began

    assert done.returncode == 2
    assert re.search(r"rule\(s\) broken:\n  packing=bfd .*\n", done.stderr) or "packing=bfd" in done.stderr
    assert "quantization=nf4 needs adapter=" in done.stderr
    assert isinstance(TrialRecord.read(only_trial(tmp_path)).outcome, Incompatible)
    assert seconds < 10  # under 2 s on an idle machine; importing torch and TRL alone takes longer than this


def test_the_users_wish_for_whole_tracebacks_is_kept(tmp_path: Path) -> None:
    done = train(tmp_path, "technique/packing=foo", HYDRA_FULL_ERROR="1")

    assert "Traceback" in done.stderr


def test_a_fault_in_conf_is_told_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "conf" / "technique" / "packing").mkdir(parents=True)
    (tmp_path / "conf" / "technique" / "packing" / "baseline.yaml").write_text("summary: [\n")
    done = train(tmp_path, MEMSWEEP_CONF=str(tmp_path / "conf"))

    assert "technique/packing/baseline.yaml" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 2


def test_a_missing_install_is_told_with_what_to_type(tmp_path: Path) -> None:
    code = f"import runpy; runpy.run_path({str(TRAIN)!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert "hydra is not installed for" in done.stderr
    assert "make sweep" in done.stderr
    assert "pip install -e ." in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.alone
def test_help_is_a_page_that_lists_every_technique(tmp_path: Path) -> None:
    began = time.monotonic()
    done = train(tmp_path, "--help")

    assert time.monotonic() - began < 5  # under 2 s on an idle machine
    assert done.returncode == 0
    assert "technique/packing" in done.stdout
    assert not re.search(r"^technique: ", done.stdout, re.MULTILINE)


def test_measures_are_told_with_units() -> None:
    measures = {
        "tokens_per_second": 1331.2,
        "peak_memory_bytes": 391 * 2**20,
        "kept_tokens": 500,
        "source_tokens": 1000,
    }

    assert entry.measures_text(measures) == "1,331 tokens/s, peak 391.0 MiB, kept 50.0 % of tokens"


@pytest.mark.slow
def test_a_trial_prints_one_line_with_units_and_keeps_what_was_asked(tmp_path: Path) -> None:
    words = ["model=tiny", "technique/adapter=lora", "measure.probe_examples=4", "trainer.batch=2"]
    done = train(tmp_path, *words)

    assert done.returncode == 0, done.stderr
    line, *remarks = done.stdout.splitlines()
    assert all(remark.startswith("  ") for remark in remarks)
    assert re.fullmatch(
        r"sft adapter=lora .*: [\d,.]+ tokens/s ±[\d.]+ %, peak [\d.]+ [KMG]iB, kept [\d.]+ % of tokens "
        r"\(outputs/single/[^)]*\)",
        line,
    )
    folder = only_trial(tmp_path)
    record = TrialRecord.read(folder)
    assert isinstance(record.outcome, Measured)
    assert folder.overrides.read_text().splitlines() == words
    assert yaml.safe_load(folder.config.read_text())["technique"]["adapter"]["option"] == "lora"


@pytest.mark.slow
def test_a_trial_that_takes_too_long_says_so_and_exits_with_5(tmp_path: Path) -> None:
    done = train(tmp_path, "model=tiny", "launch.timeout_seconds=0.2")

    assert done.returncode == 5
    assert "sft baseline: ended after 0.20 s" in done.stderr
    assert "repeat: python train.py model=tiny launch.timeout_seconds=0.2" in done.stderr


def test_an_app_may_import_the_entry_without_torch() -> None:
    code = textwrap.dedent("""
        import sys
        from memsweep import entry
        entry.catalogue()
        assert not {"torch", "transformers", "trl", "wandb", "optuna"} & sys.modules.keys()
    """)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
