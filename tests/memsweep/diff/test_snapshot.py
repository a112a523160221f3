from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from diff_cases import git

import memsweep
from memsweep.diff import compose
from memsweep.diff.repository import Project
from memsweep.diff.snapshot import Composing, Job, composing, snapshot
from memsweep.errors import ConfigError

ANSWER = {"entries": {"default": {"error": "none"}}, "options": {}, "facts": {}}
JOBS = (Job(name="default"),)


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script that answers in the place of the one that composes; it counts its runs."""
    script = tmp_path / "answering.py"
    script.write_text(
        "import json, pathlib, sys\n"
        "request = json.load(sys.stdin)\n"
        f"runs = pathlib.Path({str(tmp_path / 'runs')!r})\n"
        "with runs.open('a') as file: file.write(json.dumps(request) + '\\n')\n"
        "print(json.dumps({'done': 1}))\n"
        f"print({json.dumps(ANSWER)!r})\n"
    )
    monkeypatch.setattr(compose, "__file__", str(script))
    return script


def asked(root: Path, commit: str | None = None, jobs: tuple[Job, ...] = JOBS, **wishes: Any) -> Any:
    wishes = {"resolve": False, "use_cache": True, "on_done": lambda _: None, **wishes}
    with composing(Project(root), commit, jobs, **wishes) as side:
        return side.raw()


def runs(script: Path) -> list[Any]:
    return [json.loads(line) for line in (script.parent / "runs").read_text().splitlines()]


def test_an_answer_is_kept_for_files_of_equal_content(checkout: Path, scripts: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")

    assert asked(checkout) == asked(checkout, head) == ANSWER
    assert len(runs(scripts)) == 1


def test_other_files_overrides_and_presets_are_asked_about_anew(checkout: Path, scripts: Path) -> None:
    asked(checkout)
    asked(checkout, git(checkout, "rev-parse", "v1"))
    asked(checkout, jobs=(Job(name="default", overrides=("seed=1",)),))
    asked(checkout, jobs=(Job(name="default", is_baseline=True),))

    assert len(runs(scripts)) == 4


def test_what_is_looked_up_outside_is_not_kept(checkout: Path, scripts: Path) -> None:
    asked(checkout, resolve=True)
    asked(checkout, resolve=True)

    assert len(runs(scripts)) == 2
    assert not list((scripts.parent / "cache").rglob("*.json"))


def test_a_damaged_answer_is_asked_for_again(checkout: Path, scripts: Path) -> None:
    asked(checkout)
    (kept,) = (scripts.parent / "cache" / "diff").glob("*.json")
    kept.write_text('{"entr')

    assert asked(checkout) == ANSWER
    assert len(runs(scripts)) == 2


def test_a_commit_is_composed_outside_of_the_checkout_and_what_was_exported_goes(
    checkout: Path, scripts: Path
) -> None:
    asked(checkout, git(checkout, "rev-parse", "v1"))
    asked(checkout)

    exported, own = (Path(run["conf"]) for run in runs(scripts))
    assert not exported.is_relative_to(checkout)
    assert not exported.exists()
    assert own == checkout / "conf"


def test_progress_is_told_also_where_nothing_had_to_be_composed(checkout: Path, scripts: Path) -> None:
    done: list[int] = []
    asked(checkout, on_done=done.append)
    asked(checkout, on_done=done.append)

    assert done == [1, 1]


def test_a_process_that_ends_without_an_answer_says_its_last_words(checkout: Path, scripts: Path) -> None:
    scripts.write_text("import sys; sys.exit('no such module, hf_abcdefghijklmnopqrst')")

    with pytest.raises(ConfigError, match=r"exit code 1 and no answer:\n  no such module, \*\*\*"):
        asked(checkout)


def test_a_failure_of_all_presets_is_not_kept(checkout: Path, scripts: Path) -> None:
    scripts.write_text('print(\'{"failed": "no techniques"}\')')

    assert snapshot(asked(checkout), JOBS).entries["default"].error == "no techniques"
    assert not list((scripts.parent / "cache").rglob("*.json"))


def test_leaving_ends_a_process_that_would_go_on(checkout: Path, scripts: Path) -> None:
    scripts.write_text("import time; time.sleep(600)")
    side = Composing(Project(checkout), None, JOBS, resolve=False, use_cache=False, on_done=lambda _: None)
    process: subprocess.Popen[str] = side._process  # type: ignore[assignment]

    side.close()

    assert process.returncode == -9


@pytest.fixture
def watching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script in the place of the one that composes, which writes down what its process has."""
    seen, script = tmp_path / "seen.json", tmp_path / "watching.py"
    script.write_text(
        "import json, os, pathlib, sys\n"
        "json.load(sys.stdin)\n"
        f"pathlib.Path({str(seen)!r}).write_text(json.dumps(dict(os.environ)))\n"
        f"print({json.dumps(ANSWER)!r})\n"
    )
    monkeypatch.setattr(compose, "__file__", str(script))
    return seen


@pytest.mark.parametrize("resolve", [False, True])
def test_the_environments_secrets_are_not_where_a_sides_code_runs(
    resolve: bool, checkout: Path, watching: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_canary")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    monkeypatch.setenv("N_THREADS", "2")

    asked(checkout, use_cache=False, resolve=resolve)

    text = watching.read_text()
    assert "canary" not in text
    assert json.loads(text)["N_THREADS"] == "2"


def test_a_sides_code_runs_unless_nobody_wants_that(checkout: Path, watching: Path) -> None:
    (checkout / "src" / "memsweep").mkdir(parents=True)
    (checkout / "src" / "memsweep" / "__init__.py").write_text("raise SystemExit(3)\n")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "code")
    places = {}
    for runs_code in (True, False):
        asked(checkout, git(checkout, "rev-parse", "HEAD"), use_cache=False, runs_code=runs_code)
        places[runs_code] = json.loads(watching.read_text())["PYTHONPATH"].split(":")[0]

    assert "memsweep-diff-" in places[True]
    assert Path(places[False]) == Path(memsweep.__file__).parents[1]


def test_without_a_sides_code_no_answer_is_kept(checkout: Path, scripts: Path) -> None:
    asked(checkout, runs_code=False)
    asked(checkout, runs_code=False)
    asked(checkout)

    assert len(runs(scripts)) == 3
