"""What a study has told W&B, and where: `wandb/logged.json`, for whoever wants to refer to it later.

A report in W&B names keys of runs.  One that no run has shows an empty panel and no error, so a report is
held against this file, which is written from what was really logged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memsweep.record.folder import StudyFolder, read_json, write_json

_LEAVES = ("composed", "overrides", "versions")
"""Parts of our config that hold too much to be listed key by key."""


@dataclass(kw_only=True)
class Logged:
    """What was logged.

    Attributes:
        mode: offline or online: how the last run was opened.
        project: W&B's project.
        entity: Whose; None: the account's own.
        group: What the study's runs have in common.
        study_run: The id of the study's own run.
        summary: Keys of the trials' summaries.
        config: Keys of the trials' configs, levels separated by dots.
        history: Keys of the trials' rows.
        study: Keys of the rows of the study's run.
        tables: Keys of the study's tables and pictures.
        told: Number of a trial to a digest of what its run was told last.
    """

    mode: str
    project: str
    entity: str | None
    group: str
    study_run: str
    summary: set[str] = field(default_factory=set)
    config: set[str] = field(default_factory=set)
    history: set[str] = field(default_factory=set)
    study: set[str] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)
    told: dict[str, str] = field(default_factory=dict)

    def note_config(self, config: Mapping[str, Any]) -> None:
        """Take note of a trial's config."""
        self.config.update(_paths(config))

    def write(self, folder: StudyFolder) -> None:
        """Replace the file."""
        data = {key: sorted(value) if isinstance(value, set) else value for key, value in vars(self).items()}
        write_json(logged_file(folder), data)

    def go_on(self, folder: StudyFolder) -> None:
        """Take over what was logged of the same study before, when it goes on after an end."""
        with contextlib.suppress(OSError, ValueError):  # whatever stands there instead is no reason to stop
            before = Logged.read(folder)
            if before.study_run == self.study_run:
                for name in ("summary", "config", "history", "study", "tables", "told"):
                    getattr(self, name).update(getattr(before, name))

    @classmethod
    def read(cls, folder: StudyFolder) -> Logged:
        """Return what `write` wrote.

        Raises:
            FileNotFoundError: If W&B was told nothing.
            ValueError: If the file holds something else; the message names it.
        """
        file = logged_file(folder)
        data = read_json(file)
        facts: dict[str, Any] = {
            k: set(value) if isinstance(value, list) else value for k, value in data.items()
        }
        try:
            return cls(**facts)
        except TypeError as error:
            raise ValueError(f"{file} does not hold what was logged: {error}") from error


def logged_file(folder: StudyFolder) -> Path:
    """Return where it stands."""
    return folder.wandb / "logged.json"


def _paths(config: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in config.items():
        if isinstance(value, Mapping) and value and key not in _LEAVES:
            yield from _paths(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"
