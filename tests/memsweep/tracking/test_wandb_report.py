"""What a report in W&B would show, held against what the study's runs have."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from memsweep.cli.command import main
from memsweep.cli.report_wandb import add_wandb, wandb_places
from memsweep.errors import ConfigError
from memsweep.findings.find import find
from memsweep.record.folder import StudyFolder
from memsweep.record.study import read_study
from memsweep.tracking import content
from memsweep.tracking.harmless import Harmless
from memsweep.tracking.logged import Logged, logged_file
from memsweep.tracking.report_keys import keys_of
from memsweep.tracking.wandb_report import WandbReport
from wandb_stub import ENTITY, wandb_stub

pytest.importorskip("wandb_workspaces")

Say = Callable[[StudyFolder], Logged]


@pytest.fixture
def folder(make_study: Callable[..., StudyFolder], monkeypatch: pytest.MonkeyPatch) -> StudyFolder:
    """A study that is said to have been logged as a whole, and nobody's account."""
    for name in ("WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_ENTITY", "WANDB_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    made = make_study()
    monkeypatch.setenv("HOME", str(made.path.parent))
    say_logged(made)
    return made


def say_logged(folder: StudyFolder) -> Logged:
    """Write what W&B would have been told of the study."""
    study, results = read_study(folder.path)
    findings = find(results, study)
    logged = Logged(mode="offline", project="tests", entity=None, group=study.name, study_run="example-study")
    for result in results:
        logged.summary.update(content.trial_summary(result, findings))
        logged.note_config(content.trial_config(result, folder.trial(result.number)))
    logged.study.update(content.study_row(findings, results[-1].number))
    logged.tables.update({"front", "trials", "effects"})
    folder.wandb.mkdir(exist_ok=True)
    logged.write(folder)
    return logged


def report_of(folder: StudyFolder, logged: Logged, entity: str | None = ENTITY) -> WandbReport:
    study, results = read_study(folder.path)
    return WandbReport(find(results, study), logged, Harmless.of(folder), project="tests", entity=entity)


def panels(spec: dict[str, Any]) -> list[dict[str, Any]]:
    grids = [block for block in spec["blocks"] if block["type"] == "panel-grid"]
    return [panel for grid in grids for panel in grid["metadata"]["panelBankSectionConfig"]["panels"]]


def test_every_panel_that_was_asked_for_is_there(folder: StudyFolder) -> None:
    spec = report_of(folder, Logged.read(folder)).spec

    assert {panel["viewType"] for panel in panels(spec)} == {
        "Scatter Plot",
        "Parallel Coordinates Plot",
        "Parameter Importance",
        "Run Comparer",
        "Run History Line Plot",
        "Weave",
    }
    (comparer,) = [panel for panel in panels(spec) if panel["viewType"] == "Run Comparer"]
    assert comparer["config"]["diffOnly"] == "split"
    assert {"front", "trials"} <= keys_of(spec).tables


def test_every_key_of_the_report_was_logged(folder: StudyFolder) -> None:
    logged = Logged.read(folder)
    keys = keys_of(report_of(folder, logged).spec)

    assert {"objective/tokens_per_second", "objective/peak_memory_bytes", "pareto/on_front"} <= keys.summary
    assert "memsweep.choice.adapter" in keys.config
    assert {"front/hypervolume", "trial/number"} <= keys.study
    assert keys.unlogged(logged) == []


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("summary", "objective/tokens_per_second"),
        ("summary", "pareto/on_front"),
        ("config", "memsweep.choice.adapter"),
        ("study", "trial/number"),
    ],
)
def test_a_key_that_no_run_has_is_refused_by_name(kind: str, key: str, folder: StudyFolder) -> None:
    logged = Logged.read(folder)
    getattr(logged, kind).discard(key)

    with pytest.raises(ConfigError, match=f"no run of example has logged {key}"):
        report_of(folder, logged)


def test_what_was_not_logged_and_can_be_left_out_is_left_out(folder: StudyFolder) -> None:
    logged = Logged.read(folder)
    logged.tables.clear()
    logged.study.discard("front/hypervolume")

    keys = keys_of(report_of(folder, logged).spec)

    assert keys.tables == set()
    assert "front/hypervolume" not in keys.study


def test_runs_are_those_of_this_study_alone(folder: StudyFolder) -> None:
    spec = report_of(folder, Logged.read(folder)).spec
    grids = [block["metadata"] for block in spec["blocks"] if block["type"] == "panel-grid"]

    for runs in [runs for grid in grids for runs in grid["runSets"]]:
        asked = {one["key"]["name"]: one["value"] for one in runs["filters"]["filters"]}
        assert asked["group"] == "example"
        assert asked["jobType"] in ("trial", "study")


def test_the_text_answers_with_commands_and_holds_the_front(folder: StudyFolder) -> None:
    study, results = read_study(folder.path)
    blocks = report_of(folder, Logged.read(folder)).spec["blocks"]
    text = "\n".join(block["content"] for block in blocks if block["type"] == "markdown-block")

    assert "**Fastest" in text
    assert "`python train.py" in text
    assert all(f"| {member.number} | {member.label} |" in text for member in find(results, study).front)


def test_no_secret_is_in_the_text(make_study: Callable[..., StudyFolder]) -> None:
    folder = make_study(command="python train.py -m launch.environment.HF_TOKEN=hf_abcdefghijklmnop1")

    assert "hf_abcdefghijklmnop1" not in json.dumps(report_of(folder, say_logged(folder)).spec)


def test_a_dry_run_writes_the_spec_and_needs_no_account(folder: StudyFolder) -> None:
    parser = argparse.ArgumentParser()
    add_wandb(parser)

    places = wandb_places(parser.parse_args(["--wandb", "--dry-run"]), folder, *read_study(folder.path))

    spec = json.loads((folder.wandb / "report.json").read_text(encoding="utf-8"))
    assert len(panels(spec)) >= 7
    assert places == [("what W&B would be sent", folder.wandb / "report.json")]


def test_a_study_without_runs_in_wandb_is_told_how_to_have_some(
    folder: StudyFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    logged_file(folder).unlink()

    assert main(["report", str(folder.path), "--wandb"]) == 2
    assert "tracking=wandb_offline" in capsys.readouterr().err


@pytest.mark.parametrize("stray", [["--dry-run"], ["--entity", "me"], ["--project", "p"]])
def test_arguments_of_wandb_without_wandb_are_refused(
    stray: list[str], folder: StudyFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(folder.path), *stray]) == 2
    assert f"{stray[0]} belongs to --wandb" in capsys.readouterr().err


def test_without_the_library_the_message_says_what_to_install(
    folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb_workspaces", None)
    monkeypatch.setitem(sys.modules, "wandb_workspaces.reports.v2", None)

    with pytest.raises(ConfigError, match=r"pip install 'memsweep\[wandb-report\]'"):
        report_of(folder, Logged.read(folder))


@pytest.mark.slow
def test_a_report_is_saved_where_the_runs_are(
    folder: StudyFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with wandb_stub() as stub:
        for name, value in stub.environment.items():
            monkeypatch.setenv(name, value)
        assert main(["report", str(folder.path), "--wandb"]) == 0

    (view,) = stub.views
    assert view["entityName"] == ENTITY
    assert view["projectName"] == "tests"
    assert keys_of(json.loads(view["spec"])).unlogged(Logged.read(folder)) == []
    assert f"W&B report: {stub.url}" in capsys.readouterr().out


@pytest.mark.slow
def test_nobodys_account_is_one_message(
    folder: StudyFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with wandb_stub() as stub:
        monkeypatch.setenv("WANDB_BASE_URL", stub.url)
        assert main(["report", str(folder.path), "--wandb"]) == 2

    assert "--entity=NAME, or wandb login" in capsys.readouterr().err
    assert stub.views == []
