from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

from memsweep.export.shell import environment_text, run_text, variables, withheld
from memsweep.technique.settings import Settings
from tiny import tiny_config


def test_threads_and_the_allocator_are_as_in_the_trial(choose: Any) -> None:
    found = variables(choose())

    assert (found["OMP_NUM_THREADS"], found["OMP_WAIT_POLICY"]) == ("2", "PASSIVE")
    assert found["MALLOC_TRIM_THRESHOLD_"] == str(1 << 30)
    assert "PYTORCH_NVML_BASED_CUDA_CHECK" not in found


def test_what_a_technique_sets_is_set(choose: Any) -> None:
    chosen = replace(choose(), settings=Settings(environment={"PYTORCH_ALLOC_CONF": "max_split_size_mb:128"}))

    assert "export PYTORCH_ALLOC_CONF=max_split_size_mb:128\n" in environment_text(chosen)


def test_a_secret_is_named_and_not_written(choose: Any) -> None:
    config = tiny_config()
    launch = replace(config.launch, environment={"HF_TOKEN": "abc123", "NCCL_DEBUG": "a b"})
    chosen = choose(config=replace(config, launch=launch))
    text = environment_text(chosen)

    assert "abc123" not in text
    assert "# export HF_TOKEN=..." in text
    assert withheld(chosen) == ("HF_TOKEN",)
    assert "export NCCL_DEBUG='a b'" in text


def test_a_device_is_one_unless_somebody_says_otherwise(choose: Any) -> None:
    chosen = choose()
    cuda = replace(chosen, effective={**chosen.effective, "launch": {"device": "cuda:0", "processes": 1}})

    assert "CUDA_VISIBLE_DEVICES" not in environment_text(chosen)
    assert 'export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0}"' in environment_text(cuda)
    assert "MALLOC_TRIM_THRESHOLD_" not in environment_text(cuda)


def test_the_command_runs_in_its_folder_with_the_variables_and_further_words(
    choose: Any, tmp_path: Path
) -> None:
    (tmp_path / "environment.sh").write_text(environment_text(choose()), encoding="utf-8")
    (tmp_path / "run.sh").write_text(
        run_text("sh -c 'pwd; echo \"$OMP_NUM_THREADS $0 $1\"'"), encoding="utf-8"
    )

    done = subprocess.run(
        ["sh", str(tmp_path / "run.sh"), "--max_steps", "20"],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    assert done.stdout.splitlines() == [str(tmp_path.resolve()), "2 --max_steps 20"]


def test_a_command_that_is_not_installed_is_said_with_what_to_type(choose: Any, tmp_path: Path) -> None:
    (tmp_path / "environment.sh").write_text(environment_text(choose()), encoding="utf-8")
    (tmp_path / "run.sh").write_text(run_text("no_such_program sft"), encoding="utf-8")

    done = subprocess.run(
        ["sh", str(tmp_path / "run.sh")], capture_output=True, text=True, check=False, timeout=20
    )
    assert done.returncode == 127
    assert done.stderr == "no_such_program is not on PATH: pip install -r requirements.txt\n"
