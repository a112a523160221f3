"""Where a trial's processes find each other: a port that nobody else can have, on loopback only."""

from __future__ import annotations

import os
import socket
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from torch.distributed import TCPStore

from memsweep.ranks.meeting import MeetingPoint


def test_the_port_is_taken_from_the_first_moment() -> None:
    with MeetingPoint() as meeting, MeetingPoint() as other:
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", meeting.port))

        assert meeting.port != other.port


def test_nothing_is_listened_on_outside_this_machine() -> None:
    with MeetingPoint() as meeting:
        meeting.open()
        files = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
        sockets = [line.split() for file in files for line in file.read_text().splitlines()[1:]]
        listening = [words[1] for words in sockets if words[3] == "0A"]

        assert [name for name in listening if name.endswith(f":{meeting.port:04X}")] == [
            f"0100007F:{meeting.port:04X}"
        ]


def test_who_comes_before_the_store_is_open_finds_it_all_the_same() -> None:
    found = []

    def come(port: int) -> None:
        store = TCPStore("127.0.0.1", port, is_master=False, timeout=timedelta(seconds=20))
        store.set("who", "me")
        found.append(store.get("who"))

    with MeetingPoint() as meeting:
        thread = threading.Thread(target=come, args=(meeting.port,))
        thread.start()
        thread.join(0.2)
        meeting.open()
        thread.join(20)

    assert found == [b"me"]


def test_the_interface_is_loopback_unless_another_is_named() -> None:
    with MeetingPoint() as meeting:
        assert meeting.variables({})["GLOO_SOCKET_IFNAME"] == "lo"
        assert meeting.variables({"GLOO_SOCKET_IFNAME": "eth1"})["GLOO_SOCKET_IFNAME"] == "eth1"
        assert meeting.variables(os.environ)["MASTER_PORT"] == str(meeting.port)
