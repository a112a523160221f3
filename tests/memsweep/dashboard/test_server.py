from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from browser import CHROMIUM, browser
from memsweep.dashboard.server import FIRST_PORT, HOST, bound, require_dashboard, serve
from memsweep.errors import DashboardUnavailable
from memsweep.findings.find import find
from memsweep.record.folder import StudyFolder
from memsweep.record.study import read_study

ROOT = Path(__file__).resolve().parents[3]


def silent(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [])
    return []


@contextmanager
def taken() -> Iterator[int]:
    """Yield a port that another program listens on."""
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        yield other.getsockname()[1]


@contextmanager
def serving(folder: StudyFolder, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Yield a process that serves, and the study's address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "memsweep", "dashboard", str(folder.path), "--port", "0", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/\S+", process.stdout.readline())
        assert found is not None, process.stderr and process.stderr.read()
        yield process, found[0]
    finally:
        process.kill()
        process.wait(timeout=20)


def asked(address: str, path: str) -> Any:
    host = address.split("/dashboard")[0]
    with urllib.request.urlopen(host + path, timeout=30) as answer:
        return json.load(answer)


def test_without_the_extra_it_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(DashboardUnavailable, match=r"pip install 'memsweep\[dashboard\]'"):
        require_dashboard()


def test_a_port_that_is_taken_is_named() -> None:
    with (
        taken() as port,
        pytest.raises(DashboardUnavailable, match=f"port {port} is taken by another program"),
    ):
        bound(silent, port)


def test_without_a_port_the_first_free_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with taken() as port:
        monkeypatch.setattr("memsweep.dashboard.server.FIRST_PORT", port)
        monkeypatch.setattr("memsweep.dashboard.server.N_PORTS", 50)
        with bound(silent, None) as server:
            assert server.server_port > port
            assert server.server_address[0] == "127.0.0.1"
    assert FIRST_PORT == 8080


def test_when_all_usual_ports_are_taken_it_says_how_to_get_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with taken() as port:
        monkeypatch.setattr("memsweep.dashboard.server.FIRST_PORT", port)
        monkeypatch.setattr("memsweep.dashboard.server.N_PORTS", 1)
        with pytest.raises(DashboardUnavailable, match="type --port 0"):
            bound(silent, None)


def test_the_page_is_opened_when_asked_for(
    make_study: Callable[..., StudyFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna_dashboard", reason="the extra `dashboard` is not installed")

    def interrupted(server: Any) -> None:
        raise KeyboardInterrupt

    opened, said = list[str](), list[str]()
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("memsweep.dashboard.server._Server.serve_forever", interrupted)

    serve(make_study(), 0, opens=True, say=said.append)

    assert said[0].endswith(opened[0])
    assert opened[0].startswith("http://127.0.0.1:")
    assert said[-1] == "ended"


@pytest.mark.slow
class TestTheRealDashboard:
    @pytest.fixture(autouse=True)
    def needs_the_extra(self) -> None:
        pytest.importorskip("optuna_dashboard", reason="the extra `dashboard` is not installed")

    def test_it_tells_constraints_notes_files_and_names(self, make_study: Callable[..., StudyFolder]) -> None:
        folder = make_study()
        folder.trial(1).path.mkdir(parents=True)
        folder.trial(1).config.write_text("seed: 0\n", encoding="utf-8")

        with serving(folder) as (_, address):
            detail = asked(address, "/api/studies/0")

        assert detail["objective_names"] == ["throughput (tokens/s)", "peak memory (MiB)"]
        assert all(trial["constraints"] and trial["note"]["body"] for trial in detail["trials"])
        assert [file["filename"] for file in detail["trials"][1]["artifacts"]] == ["config.yaml"]
        assert all(max(trial["constraints"]) <= 0 for trial in detail["best_trials"])

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_it_ends_cleanly_and_leaves_nothing(
        self, number: int, make_study: Callable[..., StudyFolder]
    ) -> None:
        folder = make_study()
        before = sorted(folder.path.rglob("*"))
        with serving(folder) as (process, address):
            port = int(address.split(":")[2].split("/")[0])
            asked(address, "/api/meta")
            process.send_signal(number)
            out, err = process.communicate(timeout=20)

        assert (process.returncode, err) == (0, "")
        assert out.endswith("ended\n")
        assert sorted(folder.path.rglob("*")) == before
        with pytest.raises(OSError):
            socket.create_connection((HOST, port), timeout=1)

    def test_it_follows_a_study_that_grows(self, make_study: Callable[..., StudyFolder]) -> None:
        folder = make_study()
        whole = folder.results.read_bytes()
        folder.results.write_bytes(b"")
        with serving(folder) as (_, address):
            assert asked(address, "/api/studies/0")["trials"] == []
            folder.results.write_bytes(whole)
            deadline = time.monotonic() + 20
            while len(asked(address, "/api/studies/0")["trials"]) < 24:
                assert time.monotonic() < deadline
                time.sleep(0.5)

    def test_a_busy_port_is_one_line_and_exit_code_2(self, make_study: Callable[..., StudyFolder]) -> None:
        command = [sys.executable, "-m", "memsweep", "dashboard", str(make_study().path)]
        with taken() as port:
            ended = subprocess.run(
                [*command, "--port", str(port)],
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
                cwd=ROOT,
            )

        assert ended.returncode == 2
        assert ended.stderr.startswith(f"memsweep: port {port} is taken by another program")

    @pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path")
    def test_in_a_browser_the_feasible_front_is_what_is_best(
        self, make_study: Callable[..., StudyFolder]
    ) -> None:
        folder = make_study()
        study, results = read_study(folder.path)
        front = sorted(result.number for result in find(results, study).front)
        with serving(folder) as (_, address), browser() as page:
            page.open(address)
            page.wait_for("document.body.textContent.includes('The feasible front: the picture that counts')")
            page.wait_for("document.body.textContent.includes('Objective Values')")
            text = page.run("document.body.innerText")
            problems = page.problems

        assert [int(number) for number in re.findall(r"^Trial (\d+)$", text, re.MULTILINE)] == front
        assert problems == []
