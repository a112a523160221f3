"""A trial of a study that somebody else made, as a folder that trains: its texts stay texts."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from memsweep.errors import ConfigError
from memsweep.export.chosen import Chosen, chosen_trial
from memsweep.export.page import requirements
from memsweep.export.shell import environment_text
from memsweep.export.write import export_trial
from memsweep.record.folder import StudyFolder
from memsweep.record.study import read_study
from tiny import tiny_config

LINES = "x\nimport os; os.system('touch pwned')\n"
ENDS = '"""\nimport os; os.system("touch pwned")\n"""\\'


def with_texts(chosen: Chosen, text: str) -> Chosen:
    result = replace(chosen.result, parameters={"batch": text, text: "1"})
    study = replace(chosen.findings.study, name=f"theirs {text}")
    return replace(chosen, result=result, findings=replace(chosen.findings, study=study))


@pytest.mark.parametrize("text", [LINES, ENDS, f"{LINES}{ENDS}\x1b[2J\u2028push_to_hub: true"])
def test_a_title_ends_no_comment_and_no_docstring(text: str, choose: Any, tmp_path: Path) -> None:
    chosen = with_texts(choose(options={"adapter": "ia3"}), text)
    folder = export_trial(chosen, tmp_path / "out").folder
    plain = export_trial(choose(options={"adapter": "ia3"}), tmp_path / "plain").folder

    (script, as_it_is) = (
        ast.parse((place / "train.py").read_text(encoding="utf-8")) for place in (folder, plain)
    )
    assert ast.dump(ast.Module(script.body[1:], [])) == ast.dump(ast.Module(as_it_is.body[1:], []))
    assert "touch pwned" in (ast.get_docstring(script) or "")
    texts = [(place / "config.yaml").read_text(encoding="utf-8") for place in (folder, plain)]
    assert yaml.safe_load(texts[0]) == yaml.safe_load(texts[1])


def test_a_variables_name_ends_no_line(choose: Any, tmp_path: Path) -> None:
    chosen = choose()
    hostile = {
        "OMP_X=1; touch pwned; OMP_Y": "1",
        "OMP_Z\ntouch pwned\n": "1",
        "MALLOC_$(touch pwned)": "1",
        "OMP_NUM_THREADS": "2; touch pwned",
        "OMP_TOOL_LIBRARIES": "/evil.so",
    }
    text = environment_text(replace(chosen, effective={**chosen.effective, "environment": hostile}))
    (tmp_path / "environment.sh").write_text(f"{text}\necho $OMP_NUM_THREADS\n", encoding="utf-8")

    done = subprocess.run(["sh", "environment.sh"], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout == "2; touch pwned\n"
    assert "evil.so" not in text
    assert [path.name for path in tmp_path.iterdir()] == ["environment.sh"]


def test_only_what_a_trial_records_is_installed(choose: Any) -> None:
    chosen = choose()
    versions = {
        "torch": "2.13.0+cpu",
        "trl": "1.16.0\n--index-url http://evil",
        "evil-package": "1.0",
        "python": "3.11\nevil-package",
        "peft @ http://evil/x.whl #": "1.0",
        "transformers": "5.24.0+cpu\nevil-package",
    }
    text = requirements(replace(chosen, record=replace(chosen.record, versions=versions)))

    assert "evil" not in text
    assert "\ntorch==2.13.0\n" in text


@pytest.mark.parametrize(
    "setting",
    [
        {"launch": {"environment": {"LD_PRELOAD": "/evil.so"}}},
        {"launch": {"environment": {"A; touch pwned; B": "1"}}},
        {"trainer": {"arguments": {"trust_remote_code": True}}},
        {"trainer": {"arguments": {"model_init_kwargs": {"trust_remote_code": True}}}},
        {"trainer": {"arguments": {"push_to_hub": True}}},
    ],
)
def test_a_config_that_would_run_code_is_not_exported(
    setting: dict[str, dict[str, Any]], make_study: Callable[..., StudyFolder]
) -> None:
    folder = make_study(4)
    study, results = read_study(folder.path)
    config = tiny_config()
    data = {
        "trainer": {"name": "sft", "data": "prompt_completion", "batch": 4},
        "model": {"name": "tiny", "source": "geometry", "geometry": dict(config.model.geometry)},
        "dataset": {"name": "embedded", "source": "embedded"},
        "reward": {"name": "length"},
        "technique": {},
        "measure": {name: getattr(config.measure, name) for name in config.measure.__slots__},
        "budget": {"name": "unlimited"},
        "launch": {"name": "local", "device": "cpu", "threads": 0, "timeout_seconds": 60.0},
    }
    for group, facts in setting.items():
        data[group] |= facts
    trial = folder.trial(0)
    trial.config.write_text(yaml.safe_dump(data), encoding="utf-8")
    parts = dict.fromkeys(("trainer", "model", "launch", "environment"), "{}")
    trial.effective.write_text("{" + ", ".join(f'"{name}": {text}' for name, text in parts.items()) + "}")

    with pytest.raises(ConfigError, match=r"launch\.environment|trainer\.arguments"):
        chosen_trial(folder, study, results, 0)
