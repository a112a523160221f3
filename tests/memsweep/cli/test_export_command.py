from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memsweep.cli.command import main
from memsweep.record.folder import StudyFolder


@pytest.mark.parametrize(
    ("trial", "message"),
    [
        ("seven", "TRIAL must be the number of a trial, e.g. 7, got 'seven'"),
        ("-1", "TRIAL must be the number of a trial"),
        ("99", "example has no trial 99; those that were measured: 0, 1, 2"),
        ("3", "trial 3 was not measured (device out of memory in warm_up"),
        ("6", "trial 6 is the same set-up as trial 0, which measured it: export 0"),
        ("1", "does not hold what an export is made from (config.yaml, effective.json, outcome.json)"),
    ],
)
def test_a_trial_that_cannot_be_exported_is_refused_in_words(
    trial: str,
    message: str,
    make_study: Callable[..., StudyFolder],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    there = tmp_path / "there"

    assert main(["export", str(make_study().path), "--to", str(there), "--", trial]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert not there.exists()


def test_where_to_must_be_said(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["export", "example", "7"])

    assert ended.value.code == 2
    assert "--to" in capsys.readouterr().err
