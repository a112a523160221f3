"""A study in Weights & Biases: the process that does the logging.  Nothing else imports wandb.

    python -m memsweep.tracking.process

It reads one JSON object a line from its standard input (`wandb_log` writes them) and answers each with a
line on its standard output.  One run a finished trial, with an exit code that tells the truth and the figures
of its first run; one run for the study, with hypervolume, outcome counts and the front, whose figures are
medians over all runs at the end.  When its input ends without `end`, the study was
killed: the runs are ended all the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from memsweep.findings.find import Findings, find
from memsweep.findings.intervals import ends, n_runs
from memsweep.findings.words import OUTCOMES, name_text, outcome_text, reason_text, remarks_text
from memsweep.record.folder import StudyFolder
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.technique.yaml_text import read_yaml

KILLED = 1
"""Exit code of a study that ended without saying how."""

TABLE_EVERY = 5
"""Trials between two loggings of the front: at least so many, and at least a tenth of those so far."""

SECRET = re.compile(r"(^|_)(token|secret|password|passwd|api_?key|credentials?)$", re.IGNORECASE)
"""Names of settings whose values are not logged, when they look like a key."""

SETTINGS: dict[str, Any] = {
    "console": "off",
    "disable_git": True,
    "save_code": False,
    "silent": True,
    "symlink": False,
    # Machine facts and statistics would hold the host's name, the user's and paths; ours are in the config.
    "host": "",
    "x_disable_machine_info": True,
    "x_disable_meta": True,
    "x_disable_stats": True,
    "x_save_requirements": False,
    # 15 s by default: what a killed process had logged in that time would be lost.
    "x_transaction_log_flush_interval": 1.0,
    "init_timeout": 15.0,
    "finish_timeout": 20.0,
}
"""What every run is opened with, as far as the installed wandb knows it."""


class Session:
    """The runs of one study.

    Attributes:
        notice: What the user should know although nothing failed; empty when nothing.
    """

    def __init__(self, message: Mapping[str, Any]) -> None:
        import wandb  # here, so that a wandb that cannot be imported is a failure like any other

        self.notice = ""
        self._wandb = wandb
        self._folder = StudyFolder(Path(message["folder"]))
        self._study = Study.read(self._folder)
        self._results: dict[int, TrialResult] = {}
        self._n_at_last_table = 0
        self._place = {"project": message["project"], "entity": message["entity"]}
        self._mode = message["mode"]
        # The same study always has the same ids; another one of the same name has others.
        digest = hashlib.sha256(f"{self._study.name} {self._study.created}".encode()).hexdigest()[:8]
        self._stem = f"{re.sub(r'[^A-Za-z0-9_-]+', '-', self._study.name)[:80]}-{digest}"
        try:
            self._run = self._open_study()
        except Exception as error:
            if self._mode != "online":
                raise
            self._mode = "offline"
            wandb.teardown()  # the service holds the id of a run that did not open
            self._run = self._open_study()
            self.notice = f"online did not work ({_line(error)}), so runs are kept for `wandb sync`"

    def trial(self, message: Mapping[str, Any]) -> None:
        """Log one finished trial as a run of its own, and what it means for the study."""
        result = TrialResult.from_mapping(message["result"])
        self._results[result.number] = result
        run = self._open(
            f"{self._stem}-{result.number:04d}",
            name=_harmless(f"{result.number:03d} {result.label}"[:120]),
            job_type="trial",
            tags=[result.outcome.type],
            config=self._trial_config(result),
        )
        summary: dict[str, Any] = {
            "trial/number": result.number,
            "trial/outcome": result.outcome.type,
            "trial/feasible": result.feasible,
            "trial/changes": ", ".join(result.changes) or "nothing",
            "trial/reason": reason_text(result, self._study),
            **{f"objective/{name}": value for name, value in result.objectives.items()},
            **{f"objective/{name}": value for name, value in ends(result).items()},
            **{f"constraint/{name}": value for name, value in result.constraints.items()},
            **{f"measure/{name}": value for name, value in result.measures.items()},
            **{f"seconds/{name}": value for name, value in result.seconds.items()},
        }
        if result.remarks:
            summary["trial/remarks"] = remarks_text(result)
        if result.reused_from is not None:
            summary["trial/reused_from"] = result.reused_from
        run.summary.update(_harmless(summary))
        run.finish(exit_code=result.outcome.exit_code)
        n_trials = len(self._results)
        if n_trials - self._n_at_last_table >= max(TABLE_EVERY, n_trials // 10):
            self._n_at_last_table = n_trials
            self._log_study(result.number, with_front=True)
        else:
            self._log_study(result.number, with_front=False)

    def end(self, message: Mapping[str, Any]) -> None:
        """Log the study as it stands at its end, and end its run."""
        results = map(TrialResult.from_mapping, message.get("results", ()))
        self._results.update({result.number: result for result in results})
        findings = self._findings()
        if self._results:
            self._log_study(max(self._results), with_front=True)
            table = self._table(findings, findings.results, with_outcome=True)
            self._run.log({"trials": table})
            if findings.measured and len(findings.objectives) > 1:
                y_name, x_name = findings.objectives[:2]
                points = self._table(findings, findings.measured, with_outcome=True)
                title = f"{name_text(y_name)} against {name_text(x_name)}"
                self._run.log({"scatter": self._wandb.plot.scatter(points, x_name, y_name, title)})
        self._run.finish(exit_code=message.get("exit_code", KILLED))

    def _findings(self) -> Findings:
        self._study = Study.read(self._folder)  # its reference point is fixed by the baseline's measures
        return find(self._results.values(), self._study)

    def _log_study(self, number: int, *, with_front: bool) -> None:
        findings = self._findings()
        row: dict[str, Any] = {"trial/number": number, "front/size": len(findings.front)}
        volume = findings.hypervolume()
        if volume is not None:
            row["front/hypervolume"] = volume
            row |= {f"reference/{name}": at.value for name, at in self._study.reference.items()}
        counts = findings.counts()
        row |= {f"outcome/{name}": counts.get(name, 0) for name in OUTCOMES}
        if with_front:
            row["front"] = self._table(findings, findings.front, with_outcome=False)
        self._run.log(row)

    def _table(self, findings: Findings, results: tuple[TrialResult, ...], *, with_outcome: bool) -> Any:
        extra = ["outcome", "reason"] if with_outcome else []
        ends = [f"{name}_{end}" for name in findings.objectives for end in ("low", "high")]
        columns = ["trial", "set-up", *findings.objectives, *ends, "runs", "changes", *extra, "command"]
        rows = []
        for result in results:
            why = [outcome_text(result), reason_text(result, self._study)] if with_outcome else []
            figures: list[float | None] = [result.objectives.get(name) for name in findings.objectives]
            for name in findings.objectives:
                figures += findings.interval(result, name) or (None, None)
            changes = ", ".join(result.changes) or "nothing"
            command = _harmless(result.command)
            rows.append([result.number, result.label, *figures, n_runs(result), changes, *why, command])
        return self._wandb.Table(columns=columns, data=rows)

    def _trial_config(self, result: TrialResult) -> dict[str, Any]:
        """Return all that a person may filter by, under one key: other libraries write configs too."""
        composed: Any = {}
        file = self._folder.trial(result.number).config
        if file.exists():
            composed = read_yaml(file)
        chosen = {
            "choice": dict(result.choice),
            "parameters": dict(result.parameters),
            "overrides": list(result.overrides),
            "requested_hash": result.requested_hash,
            "effective_hash": result.effective_hash,
            "versions": dict(result.versions),
            "composed": composed,
        }
        return {"memsweep": _harmless(chosen)}

    def _open_study(self) -> Any:
        study = self._study
        config = {
            "objectives": {name: direction.value for name, direction in study.objectives.items()},
            "parameters": dict(study.parameters),
            "fixed": list(study.fixed),
            "sampler": dict(study.sampler),
            "context": dict(study.context),
            "versions": dict(study.versions),
            "command": study.command,
        }
        run = self._open(
            f"{self._stem}-study",
            name=study.name,
            job_type="study",
            tags=[],
            config={"memsweep": _harmless(config)},
        )
        run.define_metric("trial/number", hidden=True)
        for name in ("front/*", "outcome/*"):
            run.define_metric(name, step_metric="trial/number")
        return run

    def _open(self, run_id: str, **facts: Any) -> Any:
        known = self._wandb.Settings.model_fields
        return self._wandb.init(
            id=run_id,
            group=self._study.name[:120],
            dir=str(self._folder.path),
            mode=self._mode,
            reinit="create_new",
            resume="allow" if self._mode == "online" else None,
            settings=self._wandb.Settings(**{k: v for k, v in SETTINGS.items() if k in known}),
            **self._place,
            **facts,
        )


def _harmless(value: Any) -> Any:
    """Return `value` without what must not leave this machine: keys and passwords, home and host."""
    if isinstance(value, Mapping):
        return {
            str(key): "(not logged)" if SECRET.search(str(key)) and _looks_secret(item) else _harmless(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_harmless(item) for item in value]
    if isinstance(value, str):
        return value.replace(str(Path.home()) + os.sep, "~" + os.sep).replace(os.uname().nodename, "(host)")
    return value


def _looks_secret(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= 8 and not value.startswith("<")


def _line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def serve(messages: TextIO, answers: TextIO) -> None:
    """Handle messages until `end` or the end of input; answer each with one line."""
    session: Session | None = None
    for line in messages:
        message = json.loads(line)
        answer: dict[str, Any] = {"done": message["kind"]}
        if session is None:
            session = Session(message)
            answer |= {"notice": session.notice} if session.notice else {}
        elif message["kind"] == "trial":
            session.trial(message)
        else:
            session.end(message)
            session = None
        _answer(answers, answer)
    if session is not None:
        session.end({})


def _answer(answers: TextIO, answer: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the study was killed: nobody listens, and there is work to end
        print(json.dumps(answer), file=answers, flush=True)


def main() -> None:
    """Serve on standard input and output; whatever else writes to standard output goes to the log."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    os.nice(5)  # a trial is being measured on the same machine
    try:
        serve(sys.stdin, answers)
    except BaseException as error:
        traceback.print_exc()
        _answer(answers, {"failed": _line(error)})
        sys.stderr.flush()
        os._exit(1)  # wandb's own clean-up at exit may wait for what has just failed


if __name__ == "__main__":
    main()
