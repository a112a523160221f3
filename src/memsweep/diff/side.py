"""What a person may name as one side of a comparison, and which it was."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from memsweep.diff.recorded import is_baseline
from memsweep.diff.repository import Project
from memsweep.errors import ConfigError
from memsweep.record.folder import TrialFolder
from memsweep.technique.option import BASELINE

WORKING_TREE = "."
ALLOWED = (
    "a side is a git ref (main, HEAD~1, v1.0), . for the working tree, a trial's folder "
    "(outputs/<study>/trials/7), a config file, or baseline"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The project at a commit, or as it stands.

    Attributes:
        label: What it is called.
        commit: None for the working tree.
        preset: The one override that chooses what is compared, `experiment=first_look`; None for every
            preset.
        is_baseline: Every technique is at its baseline.
    """

    label: str
    commit: str | None = None
    preset: str | None = None
    is_baseline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What one trial was given, and what was in force.

    Attributes:
        label: What it is called.
        folder: Its folder.
    """

    label: str
    folder: TrialFolder

    def overrides(self) -> list[str]:
        """Return what was typed for it."""
        file = self.folder.overrides
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A config that is composed already, or none of the project's.

    Attributes:
        label: What it is called.
        path: The file.
    """

    label: str
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The other side with every technique at its baseline.

    Attributes:
        label: What it is called.
    """

    label: str = field(default=BASELINE)


Side = Tree | Trial | File | Baseline


def sides(first: str, second: str, project: Project | None) -> tuple[Side, Side]:
    """Return what two words name.

    Args:
        first: The first side.
        second: The second side.
        project: Where refs and presets are looked up; None outside of any.

    Raises:
        ConfigError: All that is wrong with both, at once.
    """
    found: list[Side] = []
    problems: list[str] = []
    for word in (first, second):
        try:
            found.append(_named(word, project))
        except ConfigError as error:
            problems.append(str(error))
    if first == second == BASELINE:
        problems.append("baseline is the other side with every technique at its baseline: name another side")
    if problems:
        raise ConfigError("\n".join([*dict.fromkeys(problems), ALLOWED]))
    return _completed(found[0], found[1], project)


def _named(word: str, project: Project | None) -> Side:
    if word == BASELINE:
        return Baseline()
    path = Path(word)
    if not word:
        raise ConfigError("a side is empty")
    if word != WORKING_TREE:
        for folder in (path, Path("outputs") / path):
            if (folder / "config.yaml").is_file() and not _is_conf(folder, project):
                return Trial(label=str(folder), folder=TrialFolder(folder))
            if (folder / "study.json").is_file():
                raise ConfigError(
                    f"{folder} is a study, not a trial: name one of its trials, {folder}/trials/0"
                )
    if path.is_file():
        return _file(path, project)
    if project is None:
        raise ConfigError(
            f"{word!r} is no trial's folder and no config file, and here is no project to look for it: "
            "run this in a checkout, or set MEMSWEEP_CONF to its conf folder"
        )
    if word == WORKING_TREE or (path.is_dir() and path.resolve() == project.root):
        return Tree(label="working tree")
    commit = project.commit(word)
    if commit is None:
        raise ConfigError(_no_such(word, path, project))
    return Tree(label=word if commit.startswith(word) else f"{word} ({commit[:10]})", commit=commit)


def _no_such(word: str, path: Path, project: Project) -> str:
    if path.is_dir():
        return f"{word} is a folder without a trial's config.yaml"
    if not project.is_in_git():
        return f"{word!r} is no file or trial, and {project.root} is in no git repository"
    close = difflib.get_close_matches(word, project.refs(), n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"{word!r} is no commit, file or trial{hint}"


def _is_conf(folder: Path, project: Project | None) -> bool:
    return project is not None and folder.resolve() == project.root / project.conf


def _file(path: Path, project: Project | None) -> Side:
    """Return a file of the project's as the preset that chooses it, any other as it is."""
    conf = None if project is None else project.root / project.conf
    if conf is None or path.suffix != ".yaml" or not path.resolve().is_relative_to(conf):
        return File(label=str(path), path=path)
    inside = path.resolve().relative_to(conf)
    preset = "" if len(inside.parts) == 1 else f"{inside.parent.as_posix()}={inside.stem}"
    return Tree(label=f"working tree, {preset or 'the default'}", preset=preset)


def _completed(first: Side, second: Side, project: Project | None) -> tuple[Side, Side]:
    """Return both sides with what each takes from the other: its preset, its baseline."""
    if isinstance(first, Baseline):
        return _baseline_of(second, project), second
    if isinstance(second, Baseline):
        return first, _baseline_of(first, project)
    if isinstance(first, Tree) and isinstance(second, Tree):
        # A preset against a tree: the same preset there.
        if first.preset is None and second.preset is not None:
            return replace(first, preset=second.preset), second
        if second.preset is None and first.preset is not None:
            return first, replace(second, preset=first.preset)
    return first, second


def _baseline_of(other: Side, project: Project | None) -> Side:
    if isinstance(other, Tree):
        return replace(other, label=f"baseline of {other.label}", is_baseline=True)
    if isinstance(other, Trial) and (found := _baseline_trial(other)) is not None:
        return found
    if project is None:
        raise ConfigError(
            f"there is no project here to compose the baseline of {other.label} from\n{ALLOWED}"
        )
    return Tree(label="baseline of the working tree", is_baseline=True)


def _baseline_trial(trial: Trial) -> Trial | None:
    """Return the trial of the same study that chose every baseline; None if there is none."""
    beside: Sequence[Path] = sorted(
        (path for path in trial.folder.path.resolve().parent.glob("*") if path.name.isdigit()),
        key=lambda path: int(path.name),
    )
    for path in beside:
        if is_baseline(TrialFolder(path)):
            return Trial(label=f"baseline, trial {path.name}", folder=TrialFolder(path))
    return None
