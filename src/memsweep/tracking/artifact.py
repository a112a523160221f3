"""What of a study's folder goes to W&B as one artifact: what it found, and how to have it again.

front.csv, results.jsonl, study.json       the figures
report.html, report.md                     for people
front/<number>/config.yaml, overrides.txt  of every trial on the front
"""

from __future__ import annotations

from collections.abc import Iterator

from memsweep.findings.find import Findings
from memsweep.record.folder import StudyFolder
from memsweep.tracking.harmless import Harmless


def artifact_files(folder: StudyFolder, findings: Findings, harmless: Harmless) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file that there is, made harmless.

    Args:
        folder: The study's.
        findings: What it found.
        harmless: It must have met the study's configs: secrets in a page are found by what they are.
    """
    if folder.results.exists():
        lines = folder.results.read_text(encoding="utf-8").splitlines()
        yield folder.results.name, harmless.lines(lines)
    yield folder.study.name, harmless.lines([folder.study.read_text(encoding="utf-8")])
    for result in findings.front:
        trial = folder.trial(result.number)
        for file in (trial.config, trial.overrides):
            if file.exists():
                text = harmless.text(file.read_text(encoding="utf-8"))
                yield f"front/{result.number}/{file.name}", text
    if folder.front.exists():
        yield folder.front.name, harmless.text(folder.front.read_text(encoding="utf-8"))
    for file in (folder.report, folder.report.with_suffix(".md")):
        if file.exists():
            yield file.name, harmless.known(file.read_text(encoding="utf-8"))
