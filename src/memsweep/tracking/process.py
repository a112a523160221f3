"""A study in Weights & Biases: the process that does the logging.

    python -m memsweep.tracking.process

It reads one JSON object a line from its standard input (`memsweep.tracking.log` writes them) and answers each
with a line on its standard output; a line `{"alive": ...}` comes in between before whatever may take long.
When its input ends without `end`, the study was killed: the runs are ended all the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import Any, TextIO

from memsweep.tracking.runs import line
from memsweep.tracking.session import Session

FLUSH_SECONDS = 1.2
"""How long files that are open get to reach the disk, once something has failed."""


def serve(messages: TextIO, answers: TextIO) -> None:
    """Handle messages until `end` or the end of input; answer each with one line."""
    session: Session | None = None
    has_told = False
    for text in messages:
        message = json.loads(text)
        answer: dict[str, Any] = {"done": message["kind"]}
        if session is None:
            session = Session(message, lambda: _answer(answers, {"alive": True}))
        elif message["kind"] == "earlier":
            session.earlier(message)
        elif message["kind"] == "trial":
            session.trial(message)
        else:
            answer |= _ended(session, message)
        if session.trouble and not has_told:
            has_told = True
            answer["notice"] = session.trouble
        _answer(answers, answer)
        if message["kind"] == "end":
            return
    if session is not None:
        _ended(session, {})


def _ended(session: Session, message: Mapping[str, Any]) -> dict[str, Any]:
    """End a session, and return where it is to be seen, if anywhere."""
    url = session.url
    session.end(message)
    session.close()
    return {"url": url} if url and not session.trouble else {}


def _answer(answers: TextIO, answer: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the study was killed: nobody listens, and there is work to end
        print(json.dumps(answer), file=answers, flush=True)


def main() -> None:
    """Serve on standard input and output; whatever else writes to standard output goes to the log."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    os.nice(5)  # a trial is being measured on the same machine
    code = 0
    try:
        serve(sys.stdin, answers)
    except BaseException as error:
        traceback.print_exc()
        _answer(answers, {"failed": line(error)})
        sys.stderr.flush()
        threading.Event().wait(FLUSH_SECONDS)
        code = 1
    os._exit(code)  # wandb's own clean-up at exit may wait for a server, or for what has just failed


if __name__ == "__main__":
    main()
