"""Serves a study's dashboard on this machine alone, until Ctrl-C: one process, nothing left behind."""

from __future__ import annotations

import errno
import importlib.util
import signal
import socketserver
import webbrowser
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from memsweep.dashboard.notes import STUDY_PAGE
from memsweep.errors import ConfigError, DashboardUnavailable
from memsweep.record.folder import StudyFolder

if TYPE_CHECKING:
    from memsweep.dashboard.site import Application

HOST = "127.0.0.1"
"""Nothing but this machine can reach it: a study's commands and paths are nobody else's business."""

FIRST_PORT, N_PORTS = 8080, 20
"""Where it is when no port is asked for: the first of these that is free."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        """Bind; the standard library's would ask the name service what this machine is called."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, int(self.server_address[1])
        self.setup_environ()


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002, the standard library names it
        """Say nothing: a line a request would bury the address."""


def require_dashboard() -> None:
    """Raise if Optuna's dashboard is not installed.

    Raises:
        DashboardUnavailable: It says what to type.
    """
    if importlib.util.find_spec("optuna_dashboard") is None:
        raise DashboardUnavailable(
            "Optuna's dashboard is not installed; it comes with: pip install 'memsweep[dashboard]' "
            "(or pip install optuna-dashboard). report.html in the study's folder needs nothing."
        )


def bound(app: Application, port: int | None) -> WSGIServer:
    """Return a server that listens already.

    Args:
        app: What it serves.
        port: Where; 0 means any that is free; None means the first of the usual ones that is.

    Raises:
        DashboardUnavailable: If there is none.
    """
    ports = range(FIRST_PORT, FIRST_PORT + N_PORTS) if port is None else [port]
    for candidate in ports:
        try:
            server = _Server((HOST, candidate), _Quiet)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            why = "is taken by another program" if error.errno == errno.EADDRINUSE else "is not for you"
            continue
        server.set_app(app)
        return server
    if port is None:
        raise DashboardUnavailable(
            f"the ports {FIRST_PORT} to {FIRST_PORT + N_PORTS - 1} are all taken; type --port 0 for any other"
        )
    raise DashboardUnavailable(f"port {port} {why}; leave --port out for the first that is free")


def serve(
    folder: StudyFolder, port: int | None = None, *, opens: bool = False, say: Callable[[str], None] = print
) -> None:
    """Show the study in `folder` until Ctrl-C or a signal to end.

    Args:
        folder: The study's folder.
        port: As for `bound`.
        opens: Open it in the browser.
        say: Where to write a line.

    Raises:
        ConfigError: If the folder holds no study that can be read.
        DashboardUnavailable: If it is not installed, or there is no port for it.
    """
    require_dashboard()
    from memsweep.dashboard.site import Site

    try:
        site = Site(folder)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{folder.path} holds no study that can be read: {error}") from error
    with bound(site, port) as server:
        address = f"http://{HOST}:{server.server_port}{STUDY_PAGE}"
        say(f"{folder.path}: {address}")
        if port is None and server.server_port != FIRST_PORT:
            say(f"port {FIRST_PORT} is taken, so it is on {server.server_port}")
        say("It follows the study while that runs; Ctrl-C ends it.")
        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            if opens:
                webbrowser.open(address)
            server.serve_forever()
        except KeyboardInterrupt:
            say("ended")
        finally:
            signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001, signal passes both
    raise KeyboardInterrupt
