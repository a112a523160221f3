from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from memsweep.tracking.reach import unreachable


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A socket that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def url_of(server: socket.socket) -> str:
    return f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_server_that_refuses_is_known_at_once(listener: socket.socket) -> None:
    url = url_of(listener)
    listener.close()
    started = time.monotonic()

    reason = unreachable(url)

    assert reason is not None
    assert "refused" in reason
    assert time.monotonic() - started < 1


def test_a_server_that_never_answers_costs_the_limit(listener: socket.socket) -> None:
    started = time.monotonic()

    assert unreachable(url_of(listener), 0.3) == f"{url_of(listener)} does not answer within 0.3 s"
    assert 0.2 < time.monotonic() - started < 1.5


def test_a_server_that_answers_whatever_it_says_is_there() -> None:
    class NotFound(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), NotFound)
    Thread(target=server.handle_request, daemon=True).start()

    assert unreachable(f"http://127.0.0.1:{server.server_address[1]}") is None
    server.server_close()


def test_a_name_that_nobody_knows_is_said_to_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)

    reason = unreachable("http://no.such.host.invalid")

    assert reason == "http://no.such.host.invalid cannot be reached: its name is not known"


def test_an_address_that_is_none_is_a_reason_too() -> None:
    assert unreachable("not an address") is not None
