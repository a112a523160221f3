"""Does a server answer at all?  Asked before W&B's client is, which takes minutes to find out."""

from __future__ import annotations

import socket
import ssl
import threading
import urllib.error
import urllib.request

ANSWER_SECONDS = 4.0
"""How long a server may take to answer; from one that is far away an answer takes a tenth of that."""


def unreachable(url: str, limit_seconds: float = ANSWER_SECONDS) -> str | None:
    """Return why the server at `url` cannot be talked to, None when it answers, whatever it says.

    Args:
        url: Its address; the proxies of the environment are used.
        limit_seconds: How long all of it may take: finding, connecting, answering.
    """
    found: list[str | None] = [f"{url} does not answer within {limit_seconds:g} s"]
    asking = threading.Thread(target=_ask, args=(url, limit_seconds, found), daemon=True)
    asking.start()
    asking.join(limit_seconds)  # looking a name up has no limit of its own
    return found[-1]


def _ask(url: str, limit_seconds: float, found: list[str | None]) -> None:
    try:
        with urllib.request.urlopen(url, timeout=limit_seconds):
            found.append(None)
    except urllib.error.HTTPError:
        found.append(None)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLError):  # W&B's client has certificates of its own
            found.append(None)
        elif not isinstance(reason, TimeoutError):
            name = "its name is not known" if isinstance(reason, socket.gaierror) else reason
            found.append(f"{url} cannot be reached: {name}")
