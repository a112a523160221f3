from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest

from memsweep.dashboard.offered import Files
from memsweep.record.folder import StudyFolder
from memsweep.record.outcome import Crashed
from memsweep.record.study import read_study


@pytest.fixture
def folder(make_study: Callable[..., StudyFolder]) -> StudyFolder:
    made = make_study()
    made.report.write_text("<p>a report</p>", encoding="utf-8")
    for number in range(8):
        trial = made.trial(number)
        trial.path.mkdir(parents=True, exist_ok=True)
        trial.config.write_text(f"seed: {number}\n", encoding="utf-8")
        trial.stderr.write_text("words\n" if number > 2 else "", encoding="utf-8")
    return made


def names(attributes: dict[str, str]) -> dict[str, str]:
    """Return artifact id to its file's name and type."""
    found = [json.loads(value) for value in attributes.values()]
    return {meta["artifact_id"]: f"{meta['filename']} {meta['mimetype']}" for meta in found}


def test_the_studys_files_are_offered_where_they_are(folder: StudyFolder) -> None:
    files = Files(folder, read_study(folder.path)[0])

    offered = names(files.of_study())

    assert sorted(offered.values()) == ["report.html text/html", "results.jsonl text/plain"]
    report = next(key for key, name in offered.items() if name.startswith("report"))
    assert files.open_reader(report).read() == b"<p>a report</p>"


def test_what_a_trial_printed_is_offered_when_it_has_no_figures(folder: StudyFolder) -> None:
    study, results = read_study(folder.path)
    files = Files(folder, study)
    crashed = next(result for result in results if isinstance(result.outcome, Crashed))

    assert list(names(files.of_trial(results[0])).values()) == ["config.yaml text/plain"]
    assert len(names(files.of_trial(crashed))) == 2


def test_a_file_keeps_its_address_when_the_study_grows(folder: StudyFolder) -> None:
    study, results = read_study(folder.path)

    assert Files(folder, study).of_trial(results[1]) == Files(folder, study).of_trial(results[1])


def test_a_file_that_is_gone_says_so(folder: StudyFolder) -> None:
    files = Files(folder, read_study(folder.path)[0])
    (report, *_) = names(files.of_study())
    folder.report.unlink()

    assert b"not there any more" in files.open_reader(report).read()
    assert b"not there any more" in files.open_reader("../../../etc/passwd").read()


def test_nothing_can_be_written_or_removed(folder: StudyFolder) -> None:
    files = Files(folder, read_study(folder.path)[0])
    (report, *_) = names(files.of_study())

    with pytest.raises(PermissionError):
        files.write(report, io.BytesIO(b"other"))
    with pytest.raises(PermissionError):
        files.remove(report)
    assert folder.report.exists()
