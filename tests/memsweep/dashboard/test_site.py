from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest

from memsweep.record.folder import StudyFolder
from memsweep.record.study import read_study

pytest.importorskip("optuna_dashboard", reason="the extra `dashboard` is not installed")

from memsweep.dashboard.site import DETAIL, LOOK_EVERY_SECONDS, Site


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Answer:
    """What a site answers to a request."""

    def __init__(self, site: Site, path: str, method: str = "GET", **environ: str) -> None:
        asked: dict[str, Any] = {"PATH_INFO": path, "REQUEST_METHOD": method, **environ}
        setup_testing_defaults(asked)
        asked.setdefault("HTTP_ACCEPT_ENCODING", "")
        self.status, self.headers = "", {}
        self.body = b"".join(site(asked, self._start))

    def _start(self, status: str, headers: list[tuple[str, str]], *_: Any) -> None:
        self.status, self.headers = status, dict(headers)

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@pytest.fixture
def folder(make_study: Callable[..., StudyFolder]) -> StudyFolder:
    return make_study()


def cut_to(folder: StudyFolder, n_trials: int) -> None:
    lines = folder.results.read_text(encoding="utf-8").splitlines()
    folder.results.write_text("".join(f"{line}\n" for line in lines[:n_trials]), encoding="utf-8")


def test_the_best_trials_are_the_feasible_front(folder: StudyFolder) -> None:
    detail = Answer(Site(folder), DETAIL).data

    on_front = {result.number for result in read_study(folder.path)[1] if result.number in front_of(folder)}
    assert {trial["number"] for trial in detail["best_trials"]} == on_front != set()
    assert all(max(trial["constraints"]) <= 0 for trial in detail["best_trials"])


def front_of(folder: StudyFolder) -> set[int]:
    from memsweep.findings.find import find

    study, results = read_study(folder.path)
    return {result.number for result in find(results, study).front}


def test_optunas_own_list_would_have_named_an_infeasible_trial_best(folder: StudyFolder) -> None:
    # What the list is replaced for; if this fails, optuna-dashboard has learned about constraints.
    import optuna_dashboard

    from memsweep.dashboard.exhibit import exhibit
    from memsweep.dashboard.site import _asked

    shown = exhibit(folder)
    detail = _asked(optuna_dashboard.wsgi(shown.storage), DETAIL)

    assert any(max(trial["constraints"]) > 0 for trial in detail["best_trials"])


def test_the_page_asks_only_for_what_it_does_not_have(folder: StudyFolder) -> None:
    site = Site(folder)

    everything, rest = Answer(site, DETAIL).data, Answer(site, DETAIL + "/", QUERY_STRING="after=20").data

    assert len(everything["trials"]) == 24
    assert rest["trials"] == everything["trials"][20:]
    assert Answer(site, DETAIL, QUERY_STRING="after=x").status.startswith(("4", "5"))


def test_names_notes_pictures_constraints_and_files_are_there(folder: StudyFolder) -> None:
    folder.trial(1).path.mkdir(parents=True)
    folder.trial(1).config.write_text("seed: 0\n", encoding="utf-8")

    detail = Answer(site := Site(folder), DETAIL).data

    assert detail["objective_names"] == ["throughput (tokens/s)", "peak memory (MiB)"]
    assert "What counts is the feasible front" in detail["note"]["body"]
    pictures = [graph["id"] for graph in detail["plotly_graph_objects"]]
    assert pictures == ["feasible-front", "parallel-coordinates"]
    assert all(trial["note"]["body"] and trial["constraints"] for trial in detail["trials"])
    (config,) = detail["trials"][1]["artifacts"]
    answer = Answer(site, f"/artifacts/0/1/{config['artifact_id']}")
    assert (answer.body, answer.headers["Content-Type"]) == (b"seed: 0\n", "text/plain")


def test_other_pages_can_read_no_file_from_it(folder: StudyFolder) -> None:
    site = Site(folder)
    artifact = Answer(site, DETAIL).data["artifacts"][0]["artifact_id"]

    answer = Answer(site, f"/artifacts/0/{artifact}")

    assert answer.status.startswith("200")
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]
    assert Answer(site, DETAIL, HTTP_HOST="evil.example:8080").status == "403 Forbidden"
    assert Answer(site, DETAIL, HTTP_HOST="localhost:9").status == "200 OK"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", DETAIL),
        ("PUT", f"{DETAIL}/note"),
        ("POST", "/api/studies"),
        ("POST", f"{DETAIL}/rename"),
        ("POST", "/api/artifacts/0"),
    ],
)
def test_nothing_can_be_changed(folder: StudyFolder, method: str, path: str) -> None:
    site = Site(folder)

    answer = Answer(site, path, method)

    assert answer.status.startswith("405")
    assert "changes nothing" in answer.data["reason"]


def test_the_page_itself_and_the_other_routes_are_optunas(folder: StudyFolder) -> None:
    site = Site(folder)

    assert b"<title>Optuna Dashboard</title>" in Answer(site, "/dashboard/studies/0").body
    assert Answer(site, "/api/meta").data["artifact_is_available"] is True
    assert len(Answer(site, f"{DETAIL}/param_importances").data["param_importances"]) == 2
    assert Answer(site, "/csv/0").body.count(b"\n") == 25


def test_a_growing_study_is_followed(folder: StudyFolder) -> None:
    whole = folder.results.read_bytes()
    cut_to(folder, 3)
    site = Site(folder, clock := Clock())
    before = len(Answer(site, DETAIL).data["trials"])
    folder.results.write_bytes(whole)

    at_once = len(Answer(site, DETAIL).data["trials"])
    clock.seconds += LOOK_EVERY_SECONDS
    later = len(Answer(site, DETAIL).data["trials"])

    assert (before, at_once, later) == (3, 3, 24)


def test_a_trial_that_begins_is_shown_as_running(folder: StudyFolder) -> None:
    cut_to(folder, 3)
    data = json.loads(folder.study.read_text(encoding="utf-8"))
    folder.study.write_text(json.dumps({**data, "ended": None}), encoding="utf-8")
    site = Site(folder, clock := Clock())
    folder.trial(3).path.mkdir(parents=True)

    clock.seconds += LOOK_EVERY_SECONDS
    trials = Answer(site, DETAIL).data["trials"]

    assert [trial["state"] for trial in trials[2:]] == ["Complete", "Running"]


def test_files_that_cannot_be_read_leave_what_was_shown(
    folder: StudyFolder, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site(folder, clock := Clock())
    folder.results.write_text("{torn", encoding="utf-8")

    clock.seconds += LOOK_EVERY_SECONDS
    with caplog.at_level(logging.WARNING):
        trials = Answer(site, DETAIL).data["trials"]

    assert len(trials) == 24
    assert "cannot be read any more" in caplog.text


def test_a_folder_that_does_not_change_is_not_read_again(
    folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(folder, clock := Clock())
    monkeypatch.setattr(site, "_made", lambda: pytest.fail("made anew"))

    for _ in range(3):
        clock.seconds += LOOK_EVERY_SECONDS
        assert Answer(site, DETAIL).status == "200 OK"


def test_a_page_among_a_studys_files_is_no_part_of_the_dashboard(folder: StudyFolder) -> None:
    folder.report.write_text("<script>fetch('/api/studies')</script>", encoding="utf-8")
    site = Site(folder)
    artifacts = Answer(site, DETAIL).data["artifacts"]
    (page,) = (one["artifact_id"] for one in artifacts if one["filename"] == "report.html")

    answer = Answer(site, f"/artifacts/0/{page}")

    assert answer.status == "200 OK"
    assert answer.headers["Content-Security-Policy"] == "sandbox allow-scripts"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Content-Security-Policy" not in Answer(site, DETAIL).headers
