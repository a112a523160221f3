"""Every form of the report, written into a study's folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from memsweep.findings.find import find
from memsweep.record.folder import StudyFolder, write_text
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.report.circumstances import recorded_facts
from memsweep.report.html import write_report
from memsweep.report.markdown import markdown
from memsweep.report.parameters import unsearched
from memsweep.report.pictures import write_pictures

Failed = Callable[[str, Exception], None]
"""Is told which form of the report could not be written, and why."""


def write_reports(
    folder: StudyFolder, results: Sequence[TrialResult], study: Study, failed: Failed | None = None
) -> list[tuple[str, Path]]:
    """Write the page, the Markdown and the pictures; return what each is called and where it is.

    Args:
        folder: The study's folder.
        results: Its finished trials.
        study: What it set out to do.
        failed: What is told of a form that cannot be written, while the others are; None: the error goes on.
    """
    findings = find(results, study)
    drawn: list[Path] = []

    def page() -> Path:
        return write_report(folder, results, study)

    def pictures() -> Path:
        drawn.extend(write_pictures(folder, findings))
        return folder.pictures

    def text() -> Path:
        paths = [path.relative_to(folder.path).as_posix() for path in drawn]
        chosen = unsearched(folder, (result for group in findings.groups() for result in group.results))
        said = markdown(findings, paths, recorded_facts(folder, findings), chosen)
        write_text(folder.report_markdown, said)
        return folder.report_markdown

    written = []
    for name, write in (("report", page), ("pictures", pictures), ("report as Markdown", text)):
        try:
            path = write()
        except Exception as error:
            if failed is None:
                raise
            failed(name, error)
        else:
            if path.exists():
                written.append((name, path))
    return written
