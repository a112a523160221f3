from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest

from memsweep.cli.command import main
from memsweep.record.folder import StudyFolder


def test_without_the_extra_it_is_one_message(
    make_study: Callable[..., StudyFolder],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    assert main(["dashboard", str(make_study().path)]) == 2
    assert "pip install 'memsweep[dashboard]'" in capsys.readouterr().err


def test_an_unknown_study_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("optuna_dashboard", reason="the extra `dashboard` is not installed")

    assert main(["dashboard", "nowhere"]) == 2
    assert "no study 'nowhere'" in capsys.readouterr().err


def test_a_damaged_study_is_one_message(
    make_study: Callable[..., StudyFolder], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("optuna_dashboard", reason="the extra `dashboard` is not installed")
    folder = make_study()
    folder.results.write_text('{"number": 0}\n', encoding="utf-8")

    assert main(["dashboard", str(folder.path), "--port", "0"]) == 2
    assert "holds no study that can be read" in capsys.readouterr().err


@pytest.mark.parametrize("typed", ["-1", "70000", "http"])
def test_a_port_that_is_none_is_refused(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["dashboard", "x", f"--port={typed}"])

    assert ended.value.code == 2
    assert "must be a port from 0 to 65535" in capsys.readouterr().err
