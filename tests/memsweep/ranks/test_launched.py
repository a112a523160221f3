"""What a trial's processes get, against what accelerate's own launcher gives a script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memsweep.ranks.launched import launch_variables, rank_variables, write_files
from memsweep.ranks.meeting import MeetingPoint
from memsweep.ranks.plan import Plan, plan_of
from memsweep.record.folder import TrialFolder
from memsweep.technique.catalogue import conf_folder, read_catalogue
from memsweep.technique.settings import merge

CATALOGUE = read_catalogue(conf_folder())
OPTIONS = ("ddp", "fsdp2", "zero2", "zero3")
# What a launcher that watches processes sets for itself, and what differs from start to start.
_LAUNCHERS_OWN = ("TORCHELASTIC_", "TORCH_", "GROUP_", "ROLE_", "MASTER_PORT", "PYTHONPATH", "OMP_", "NCCL_")

SHOW = """\
import json, os
if os.environ["RANK"] == "1":
    print(json.dumps(dict(os.environ)))
"""


def plan(option: str) -> Plan:
    found = plan_of(merge(CATALOGUE.choose({"sharding": option}), "sft", CATALOGUE).launch)
    assert found is not None
    return found


def written(option: str, folder: Path, *, on_cpu: bool) -> TrialFolder:
    trial = TrialFolder(folder)
    write_files(plan(option), trial, on_cpu=on_cpu)
    return trial


@pytest.mark.slow
@pytest.mark.parametrize("option", ["ddp", "fsdp2"])
def test_a_rank_gets_the_variables_that_a_script_gets_from_accelerate_launch(
    option: str, tmp_path: Path
) -> None:
    """For DeepSpeed this launcher wants a device, so there its own function is all that can be asked."""
    trial = written(option, tmp_path, on_cpu=False)
    script = tmp_path / "show.py"
    script.write_text(SHOW)
    bare = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    launch = ["-m", "accelerate.commands.launch", "--config_file", str(trial.accelerate)]
    said = subprocess.run(
        [sys.executable, *launch, "--main_process_port", "0", str(script)],
        env=bare,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    given = json.loads(said.stdout.splitlines()[-1])

    with MeetingPoint() as meeting:
        own = {**launch_variables(plan(option), trial.accelerate), **rank_variables(1)}
        mine = {**own, **{name: value for name, value in meeting.variables().items() if name in given}}

    wanted = {
        name: value
        for name, value in given.items()
        if name not in bare and not name.startswith(_LAUNCHERS_OWN) and name in mine
    }
    unread = {name for name in given if name.startswith(("ACCELERATE_", "FSDP_"))} - set(mine)
    assert unread == set()
    differing = ("MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE")
    assert {name: value for name, value in mine.items() if name not in differing} == wanted
    assert mine["TORCHELASTIC_USE_AGENT_STORE"] == given["TORCHELASTIC_USE_AGENT_STORE"]


@pytest.mark.parametrize("option", OPTIONS)
def test_the_files_that_follow_from_an_option_are_kept_with_the_trial(option: str, tmp_path: Path) -> None:
    trial = written(option, tmp_path, on_cpu=False)

    variables = launch_variables(plan(option), trial.accelerate)

    assert trial.accelerate.exists()
    assert trial.deepspeed.exists() == option.startswith("zero")
    assert variables.get("ACCELERATE_USE_FSDP", "false") == str(option == "fsdp2").lower()
    assert variables.get("ACCELERATE_USE_DEEPSPEED", "false") == str(option.startswith("zero")).lower()
    if option == "fsdp2":
        assert variables["FSDP_VERSION"] == "2"
    if option.startswith("zero"):
        stage = json.loads(trial.deepspeed.read_text())["zero_optimization"]["stage"]
        assert stage == int(option[-1])
        assert variables["ACCELERATE_DEEPSPEED_CONFIG_FILE"] == str(trial.deepspeed)
        assert variables["ACCELERATE_DEEPSPEED_ZERO3_INIT"] == str(option == "zero3").lower()


def test_processes_on_a_cpu_are_told_so(tmp_path: Path) -> None:
    variables = launch_variables(plan("ddp"), written("ddp", tmp_path, on_cpu=True).accelerate)

    assert variables["ACCELERATE_USE_CPU"] == "true"
    assert (variables["WORLD_SIZE"], rank_variables(1)) == ("2", {"RANK": "1", "LOCAL_RANK": "1"})
