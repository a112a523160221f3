"""Where do a trial's processes find each other?

At a store that the process which starts them keeps, on a port of this machine's own loopback that it listens
on before they begin.  So no other program can have that port, nothing outside the machine can reach it, and
no process of one trial can take another trial's store for its own.  `torchrun`, which `accelerate launch`
runs, keeps the store too, and its processes learn of it by the same variables.

Source: torch==2.13.0 distributed/rendezvous.py _create_c10d_store; without the last variable the first
process listens, on all interfaces, at a port that was free some time ago.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from torch.distributed import TCPStore  # type: ignore[attr-defined]  # which its stubs do not list

_HOST, _LOOPBACK = "127.0.0.1", "lo"
_BACKLOG = 1024


class MeetingPoint:
    """A port that is listened on from the first moment, and later the store behind it.

    Attributes:
        port: Its number.
    """

    def __init__(self) -> None:
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.bind((_HOST, 0))
        self._listener.listen(_BACKLOG)
        self.port: int = self._listener.getsockname()[1]
        self._store: Any = None

    def __enter__(self) -> Self:
        """Return the meeting point."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store and the port."""
        self._store = None
        self._listener.close()

    def variables(self, base: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return what lets a process find the others.

        Args:
            base: Its environment otherwise: an interface that is named there stays.
        """
        return {
            "MASTER_ADDR": _HOST,
            "MASTER_PORT": str(self.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            # Processes of one machine: by default gloo takes the interface that the host's name stands for.
            "GLOO_SOCKET_IFNAME": base.get("GLOO_SOCKET_IFNAME", _LOOPBACK),
        }

    def open(self) -> None:
        """Keep the store, from now on.  It starts a thread, so it follows all forks."""
        self._store = TCPStore(
            _HOST,
            self.port,
            is_master=True,
            wait_for_workers=False,
            master_listen_fd=self._listener.detach(),
        )

    def leave(self) -> None:
        """Close the port in a fork of the process that keeps the store."""
        self._listener.close()
