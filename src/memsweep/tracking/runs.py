"""The runs of a study: opened, ended, and kept on disk where W&B cannot be reached.  Only this imports wandb.

Online is tried as long as it works.  The first time that it does not, all that is open is ended as far as it
goes, and everything from there on is kept on disk, for `wandb sync`.  So a server that is dead or slow costs
its limits once, not once a run.  `wandb sync` leaves out what was opened online, so a run that did not arrive
as a whole is to be logged again; a row that arrives twice is one point of a curve twice.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from memsweep.record.folder import StudyFolder
from memsweep.tracking.reach import unreachable

KILLED = 1
"""Exit code of a run that ended without anybody saying how."""

TEARDOWN_SECONDS = 5.0
"""How long W&B's own service may take to end."""

SETTINGS: dict[str, Any] = {
    "console": "off",
    "disable_git": True,
    "save_code": False,
    "silent": True,
    "symlink": False,
    # Machine facts and statistics would hold the host's name, the user's and paths; ours are in the config.
    "host": "",
    "username": "",
    "email": "",
    "program": "memsweep",
    "x_executable": "python",
    "x_disable_machine_info": True,
    "x_disable_meta": True,
    "x_disable_stats": True,
    "x_save_requirements": False,
    # 15 s by default: what a killed process had logged in that time would be lost.
    "x_transaction_log_flush_interval": 1.0,
    "finish_timeout_raises": True,
}
"""What every run is opened with, as far as the installed wandb knows it."""

INIT_SHARE, FINISH_SHARE = 0.4, 2 / 3
"""What opening a run and ending one may take of the time that W&B may go without a sign of life."""


class Runs:
    """Opens and ends runs.

    Attributes:
        wandb: The library, for its tables and pictures.
        is_online: Whether what is opened is uploaded.
        trouble: Why not, although it was to be; empty when nothing is wrong.
    """

    def __init__(
        self,
        folder: StudyFolder,
        *,
        mode: str,
        group: str,
        project: str,
        entity: str | None,
        limit_seconds: float,
        alive: Callable[[], None],
    ) -> None:
        """Open nothing.

        Args:
            folder: W&B's files go to its `wandb`.
            mode: online or offline.
            group: What the runs have in common.
            project: Where they belong.
            entity: Whose they are; None: the account's own.
            limit_seconds: How long anything online may take.
            alive: Called before whatever may take long.
        """
        import wandb  # here, so that a wandb that cannot be imported is a failure like any other

        self.wandb: Any = wandb
        self.is_online, self.trouble = mode == "online", ""
        self._folder, self._alive = folder, alive
        known = wandb.Settings.model_fields
        limits = {"init_timeout": INIT_SHARE * limit_seconds, "finish_timeout": FINISH_SHARE * limit_seconds}
        self._settings = {name: value for name, value in (SETTINGS | limits).items() if name in known}
        self._place = {"group": group, "project": project, "entity": entity}
        self._open: list[Any] = []

    def open(self, run_id: str, **facts: Any) -> Any:
        """Open a run, or open it again.

        Args:
            run_id: Its id: the same again is the same run.
            facts: What `wandb.init` takes beside.
        """
        if self.is_online and not self._open:
            trouble = unreachable(self.wandb.setup().settings.base_url)
            if trouble is not None:
                self.give_up(trouble)
        if self.is_online:
            self._alive()
            try:
                return self._init(run_id, "online", facts)
            except Exception as error:
                self.give_up(line(error))
        return self._init(run_id, "offline", facts)

    def end(self, run: Any, exit_code: int) -> bool:
        """End a run; online, wait within bounds until all of it is uploaded, and tell whether it was."""
        self._alive()
        self._open.remove(run)
        try:
            run.finish(exit_code=exit_code)
        except TimeoutError:
            if not self.is_online:
                raise
            self.give_up("the server took too long to take a run")
            return False
        return True

    def give_up(self, trouble: str) -> None:
        """Go on offline."""
        self.is_online, self.trouble = False, trouble
        for run in self._open:
            self._alive()
            with contextlib.suppress(Exception):  # all of it is on disk too
                run.finish(exit_code=KILLED)
        self._open.clear()
        self.close()  # the service holds the id of a run that did not open

    def close(self) -> None:
        """End W&B's service, within bounds."""
        self._alive()
        closing = threading.Thread(target=self.wandb.teardown, daemon=True)
        closing.start()
        closing.join(TEARDOWN_SECONDS)

    def _init(self, run_id: str, mode: str, facts: dict[str, Any]) -> Any:
        run = self.wandb.init(
            id=run_id,
            dir=str(self._folder.path),
            mode=mode,
            reinit="create_new",
            resume="allow",
            settings=self.wandb.Settings(**self._settings),
            **self._place,
            **facts,
        )
        self._open.append(run)
        return run


def line(error: BaseException) -> str:
    """Return an error in one line."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
