"""The dashboard as a web application: Optuna's own, of a study that may be growing, which nobody can change.

What it adds to Optuna's: it is made anew when the study's folder has changed, for whoever asks next; its list
of best trials holds the feasible front, where Optuna's ignores constraints; the picture that counts comes
first; it takes no request that would change something, and none from another site's page.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs
from wsgiref.util import setup_testing_defaults

from memsweep.dashboard.exhibit import PICTURES, exhibit
from memsweep.record.folder import StudyFolder

log = logging.getLogger(__name__)

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]

DETAIL = "/api/studies/0"
"""The route that tells all of the study.  Source: optuna-dashboard==0.21.0 _app.py"""

LOOK_EVERY_SECONDS, MOST_SECONDS = 2.0, 30.0
"""How often the folder is looked at: at least and at most so many seconds lie between."""
WORK_SHARE = 0.1
"""The most of the time that is spent on making a growing study anew, as far as that allows it."""

_SAFE = ("GET", "HEAD")
_FILES = "/artifacts/"  # Source: optuna-dashboard==0.21.0 artifact/_backend.py, its routes
_OWN_NAMES = ("127.0.0.1", "localhost", "[::1]")


class Site:
    """A WSGI application that shows the study in a folder.

    Args:
        folder: The study's folder.
        clock: Seconds that only grow.

    Raises:
        FileNotFoundError: If the folder holds no study.
        KeyError, TypeError, ValueError: If one of its files holds something else.
    """

    def __init__(self, folder: StudyFolder, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = folder, clock
        self._lock = threading.Lock()
        self._seen = self._state()
        self._next_look = 0.0
        self._app, self._detail = self._made()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        host = str(environ.get("HTTP_HOST", "127.0.0.1"))
        if host.rpartition(":")[0] not in _OWN_NAMES and host not in _OWN_NAMES:
            # A page of another site may send a request here, under its own name for this address.
            return _refused(start_response, "403 Forbidden", f"this dashboard is not called {host}")
        if environ["REQUEST_METHOD"] not in _SAFE:
            reason = "this dashboard shows what is in the study's folder, and changes nothing"
            return _refused(start_response, "405 Method Not Allowed", reason)
        app, detail = self._current()
        if environ.get("PATH_INFO", "").rstrip("/") == DETAIL:
            after = parse_qs(environ.get("QUERY_STRING", "")).get("after", ["0"])[0]
            if after.isdecimal():
                body = {**detail, "trials": detail["trials"][int(after) :]}
                return _answered(start_response, "200 OK", body)
        return app(environ, _without_sharing(start_response, is_file=_is_file(environ)))

    def _current(self) -> tuple[Application, Mapping[str, Any]]:
        """Return the application and the study's detail, made anew if the folder has changed.

        Whoever asks while another request is making it gets what was there before.
        """
        if self._clock() >= self._next_look and self._lock.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._lock.release()
        return self._app, self._detail

    def _look(self) -> None:
        state = self._state()
        if state == self._seen:
            self._next_look = self._clock() + LOOK_EVERY_SECONDS
            return
        self._seen = state
        try:
            self._app, self._detail = self._made()
        except (OSError, KeyError, TypeError, ValueError) as error:
            # It shows what it showed: the study's files are on their way, or are gone.
            log.warning("%s cannot be read any more (%s); shown as it was", self._folder.path, error)
            self._next_look = self._clock() + LOOK_EVERY_SECONDS

    def _made(self) -> tuple[Application, Mapping[str, Any]]:
        import optuna_dashboard

        began = self._clock()
        shown = exhibit(self._folder)
        app: Application = optuna_dashboard.wsgi(shown.storage, artifact_store=shown.files)
        detail = _asked(app, DETAIL)
        best = [trial for trial in detail["trials"] if trial["number"] in shown.front]
        pictures = sorted(detail["plotly_graph_objects"], key=lambda picture: PICTURES.index(picture["id"]))
        ended = self._clock()
        self._next_look = ended + min(max(LOOK_EVERY_SECONDS, (ended - began) / WORK_SHARE), MOST_SECONDS)
        return app, {**detail, "best_trials": best, "plotly_graph_objects": pictures}

    def _state(self) -> tuple[object, ...]:
        """Return what changes with the folder's content: of its files, and of its list of trials."""
        folder = self._folder
        states: list[object] = []
        for path in (folder.study, folder.results, folder.report, folder.trials):
            try:
                stat = path.stat()
                states.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
            except OSError:
                states.append(None)
        return tuple(states)


def _asked(app: Application, path: str) -> dict[str, Any]:
    """Return what an application answers, as JSON.

    Raises:
        ValueError: If it does not answer with that.
    """
    environ: Environ = {"PATH_INFO": path}
    setup_testing_defaults(environ)
    statuses: list[str] = []
    body = b"".join(app(environ, lambda status, *_: statuses.append(status)))
    if not statuses or not statuses[0].startswith("200"):
        raise ValueError(f"optuna-dashboard answers {statuses} to {path}: {body[:200]!r}")
    answer: dict[str, Any] = json.loads(body)
    return answer


def _answered(start_response: StartResponse, status: str, body: Mapping[str, Any]) -> Iterable[bytes]:
    text = json.dumps(body).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(text)))])
    return [text]


def _refused(start_response: StartResponse, status: str, reason: str) -> Iterable[bytes]:
    return _answered(start_response, status, {"reason": reason})


def _is_file(environ: Environ) -> bool:
    return str(environ.get("PATH_INFO", "")).startswith(_FILES)


def _without_sharing(start_response: StartResponse, *, is_file: bool) -> StartResponse:
    """Return a `start_response` that lets no other site's page read an answer: Optuna's would, of files.

    A page among a study's files may be anybody's: it may run, but not as a part of the dashboard.
    """

    def started(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
        kept = [header for header in headers if not header[0].lower().startswith("access-control-")]
        own = [("Content-Security-Policy", "sandbox allow-scripts"), ("X-Content-Type-Options", "nosniff")]
        return start_response(status, [*kept, *(own if is_file else ())], *rest)

    return started
