"""A request that cannot be meant, as a row of a table; and what its refusal must be.

One clear message: exit code 2, no traceback, no more than can be read, the value or key that was typed, what
is allowed or what to type instead.  Nothing is left behind that a next run would find.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from answering import MEMSWEEP, TRAIN, Answer

from memsweep.record.folder import StudyFolder
from memsweep.record.trial import TrialRecord
from synthetic import study_of, trials_of_every_kind

MOST_LINES, MOST_CHARACTERS = 40, 6_000

Content = str | bytes | None
Edit = Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is typed, and where.

    Attributes:
        typed: The command line after the program.
        says: What the refusal must hold: what was got, what helps.
        program: Which program (`answering.py`).
        files: Path in the working folder to what it holds; None: a folder.
        modes: Path to its permissions.
        edits: Path of a JSON file to what is made of its object; of several lines the first.
        environment: Variables.
        studies: There is a finished study in outputs/example.
    """

    typed: tuple[str, ...]
    says: tuple[str, ...]
    program: str = TRAIN
    files: Mapping[str, Content] = field(default_factory=dict)
    modes: Mapping[str, int] = field(default_factory=dict)
    edits: Mapping[str, Edit] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    studies: bool = False

    def __str__(self) -> str:
        """Return a name for a test: as it would be typed."""
        text = shlex.join([*([self.program] if self.program != TRAIN else []), *self.typed])
        for file in (*self.files, *self.edits, *self.modes):
            text += f" [{file}]"
        return text.encode("unicode_escape").decode()[:100]

    def prepare(self, folder: Path) -> None:
        """Make the working folder of a process that is asked this."""
        work = folder / "work"
        work.mkdir(parents=True)
        if self.studies:
            _write_study(StudyFolder(work / "outputs" / "example"))
        for name, content in self.files.items():
            path = work / name
            if content is None:
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        for name, edit in self.edits.items():
            text = (work / name).read_text()
            first, rest = text.split("\n", 1) if name.endswith(".jsonl") else (text, "")
            (work / name).write_text(json.dumps(edit(json.loads(first))) + "\n" + rest)
        for name, mode in self.modes.items():
            (work / name).chmod(mode)


def train(typed: str | Sequence[str], *says: str, **how: Any) -> Request:
    """Return a request to train.py; one text is split as a shell would."""
    words = shlex.split(typed) if isinstance(typed, str) else typed
    return Request(typed=tuple(words), says=says, **how)


def memsweep(typed: str | Sequence[str], *says: str, **how: Any) -> Request:
    """Return a request to the `memsweep` command."""
    return train(typed, *says, program=MEMSWEEP, **how)


READERS = ("report {}", "recommend {}", "clean {}", "export {} 0 --to there", "lengths --study {}")
"""Commands about a finished study."""


def reading(command: str, study: str) -> str:
    """Return one of these about a study."""
    return command.format(study)


def tree(folder: Path) -> dict[str, bytes | None]:
    """Return every path below a folder with what the file holds; None for folders and what cannot be read."""
    found: dict[str, bytes | None] = {}
    for path in sorted(folder.rglob("*")):
        is_file = path.is_file() and not path.is_symlink()
        found[path.relative_to(folder).as_posix()] = path.read_bytes() if is_file else None
    return found


def complaints(answer: Answer, says: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with an answer, as that of a request that had to be refused."""
    if answer.code != 2:
        yield f"exit code {answer.code} instead of 2" if answer.code is not None else "it hangs"
    yield from unclear(answer)
    yield from (f"it does not say {text!r}" for text in says if text not in answer.stderr)


def unclear(answer: Answer) -> Iterator[str]:
    """Yield what is wrong with what an answer says, whatever it says."""
    if "Traceback (most recent call last)" in answer.stderr:
        yield "a traceback"
    if not answer.stderr.strip() and answer.code:
        yield "it says nothing"
    if answer.stderr.count("\n") > MOST_LINES:
        yield f"{answer.stderr.count(chr(10))} lines"
    if len(answer.stderr) > MOST_CHARACTERS:
        yield f"{len(answer.stderr):,} characters"


def left_behind(before: Mapping[str, bytes | None], after: Mapping[str, bytes | None]) -> list[str]:
    """Return what a refused request has changed in its folder.

    A single trial has a folder of its own, with what was asked and why it was refused; no other run finds it.
    """
    own = ("out", "err", "work/outputs/single")
    changed = [path for path in {*before, *after} if before.get(path, b"-") != after.get(path, b"-")]
    return sorted(
        path
        for path in changed
        if not path.startswith(own) and path != "work/outputs" and not path.endswith("/.lock")
    )


def _write_study(folder: StudyFolder) -> None:
    finished = trials_of_every_kind(24)
    study_of(24, name=folder.path.name).write(folder)
    lines = [json.dumps(result.to_mapping()) for result in finished]
    folder.results.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for result in finished[:1]:
        TrialRecord(outcome=result.outcome, facts={"device": "cpu", "threads": 2}).write(
            folder.trial(result.number)
        )
