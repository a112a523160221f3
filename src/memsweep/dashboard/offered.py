"""Which files does the dashboard offer?  Those of the study's folder, where they are: nothing is copied.

Optuna's tools know files by an id; here it follows from the study and the file's name, so that a page that
was opened before the study grew still finds them.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from memsweep.record.folder import StudyFolder
from memsweep.record.outcome import Measured, Reused
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult

# Text that a browser shows, and does not save.
_TYPES = {".html": "text/html", ".csv": "text/csv", ".jsonl": "text/plain"}
_PREFIX = "artifacts:"  # Source: optuna==5.0.0 artifacts/_upload.py


class Files:
    """The files that are offered: an artifact store in Optuna's sense, which only reads.

    Args:
        folder: The study's folder.
        study: What it set out to do.
    """

    def __init__(self, folder: StudyFolder, study: Study) -> None:
        self._folder, self._study = folder, study
        self._paths: dict[str, Path] = {}

    def of_study(self) -> dict[str, str]:
        """Offer the study's files, and return Optuna's attributes for them."""
        return self._offered([self._folder.report, self._folder.front, self._folder.results])

    def of_trial(self, result: TrialResult) -> dict[str, str]:
        """Offer a trial's files, and return Optuna's attributes for them: what it printed, if it failed."""
        folder = self._folder.trial(result.number)
        has_figures = isinstance(result.outcome, Measured | Reused)
        return self._offered([folder.config, *([] if has_figures else [folder.stderr])])

    def open_reader(self, artifact_id: str) -> BinaryIO:
        """Return a file; one that is gone since says so."""
        try:
            return self._paths[artifact_id].open("rb")
        except (KeyError, OSError):
            return io.BytesIO(b"This file is not there any more.\n")

    def write(self, artifact_id: str, content_body: BinaryIO) -> None:  # noqa: ARG002, Optuna names them
        """Refuse: what the dashboard shows is the study's folder."""
        raise PermissionError("the dashboard of a study changes nothing")

    def remove(self, artifact_id: str) -> None:  # noqa: ARG002, Optuna names it
        """Refuse: what the dashboard shows is the study's folder."""
        raise PermissionError("the dashboard of a study changes nothing")

    def _offered(self, paths: list[Path]) -> dict[str, str]:
        attributes = {}
        for path in paths:
            if path.is_file() and path.stat().st_size:
                name = f"{self._study.created}/{path.relative_to(self._folder.path)}"
                artifact = str(uuid.uuid5(uuid.NAMESPACE_URL, name))
                self._paths[artifact] = path
                attributes[_PREFIX + artifact] = json.dumps(_described(artifact, path))
        return attributes


def _described(artifact: str, path: Path) -> Mapping[str, str | None]:
    kind = _TYPES.get(path.suffix, "text/plain")
    return {"artifact_id": artifact, "filename": path.name, "mimetype": kind, "encoding": None}
