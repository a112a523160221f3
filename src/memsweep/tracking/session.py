"""A study as W&B sees it: one run a finished trial, and one for the study itself.

A trial's run has what was composed, chosen and measured, what its trainer logged, and an exit code that tells
the truth.  The study's run has hypervolume, front and outcomes after each trial, and everything at the end.
What only the end knows, as whether a trial stayed on the front, and what further runs of it measured, is told
to the trial's run then, which is opened again for that.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from memsweep.findings.find import Findings, find
from memsweep.findings.words import name_text
from memsweep.record.folder import StudyFolder
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.tracking import content
from memsweep.tracking.artifact import artifact_files
from memsweep.tracking.harmless import Harmless
from memsweep.tracking.logged import Logged
from memsweep.tracking.plots import effect_bars, parallel_coordinates
from memsweep.tracking.runs import KILLED, Runs, line

TABLE_EVERY = 5
"""Trials between two loggings of the front: at least so many, and at least a tenth of those so far."""

CORRECTION_SECONDS = 60.0
"""How long runs may be opened again at the end; the tables have what is not corrected by then."""


class Session:
    """The runs of one study.

    Args:
        message: What the study says of itself: `folder`, `mode`, `project`, `entity`, `limit_seconds`.
        alive: Called before whatever may take long.
    """

    def __init__(self, message: Mapping[str, Any], alive: Callable[[], None] = lambda: None) -> None:
        self._folder = StudyFolder(Path(message["folder"]))
        self._study = Study.read(self._folder)
        self._harmless = Harmless.of(self._folder)
        self._results: dict[int, TrialResult] = {}
        self._rows: list[dict[str, Any]] = []
        self._n_at_last_table = 0
        group = self._harmless.text(self._study.name)[:120]
        place = {"project": message["project"], "entity": message["entity"]}
        self._runs = Runs(
            self._folder,
            mode=message["mode"],
            group=group,
            limit_seconds=message["limit_seconds"],
            alive=alive,
            **place,
        )
        # The same study always has the same ids; another one of the same name has others.
        digest = _digest([self._study.name, self._study.created])[:8]
        self._stem = f"{re.sub(r'[^A-Za-z0-9_-]+', '-', self._study.name)[:80]}-{digest}"
        self._logged = Logged(mode=message["mode"], group=group, study_run=f"{self._stem}-study", **place)
        self._logged.go_on(self._folder)
        self._run = self._open_study()

    @property
    def trouble(self) -> str:
        """Why runs are kept on disk although they were to be uploaded; empty when nothing is wrong."""
        return self._runs.trouble

    @property
    def url(self) -> str | None:
        """Where the study's run is to be seen; None while it is on disk alone."""
        return getattr(self._run, "url", None) if self._runs.is_online else None

    def earlier(self, message: Mapping[str, Any]) -> None:
        """Take note of trials from before a study went on: they have runs, and count for its figures."""
        results = map(TrialResult.from_mapping, message["results"])
        self._results.update({result.number: result for result in results})

    def trial(self, message: Mapping[str, Any]) -> None:
        """Log one finished trial as a run of its own, and what it means for the study."""
        result = TrialResult.from_mapping(message["result"])
        self._results[result.number] = result
        findings = self._findings()
        self._log_trial(result, findings)
        n_trials = len(self._results)
        with_front = n_trials - self._n_at_last_table >= max(TABLE_EVERY, n_trials // 10)
        if with_front:
            self._n_at_last_table = n_trials
        self._log_study(findings, result.number, with_front=with_front)
        self._write_logged()

    def end(self, message: Mapping[str, Any]) -> None:
        """Log the study as it stands at its end, and end its run."""
        results = map(TrialResult.from_mapping, message.get("results", ()))
        self._results.update({result.number: result for result in results})
        findings = self._findings()
        if self._results:
            self._correct(findings)
            self._log_study(findings, max(self._results), with_front=True)
            self._tried(lambda: self._log_end(findings))
        self._run.config.update(self._harmless(content.study_config(self._study)), allow_val_change=True)
        self._write_logged()
        exit_code = message.get("exit_code", KILLED)
        if not self._runs.end(self._run, exit_code):
            self._follow()
            if self._results:
                self._log_end(findings)
            self._runs.end(self._run, exit_code)

    def close(self) -> None:
        """End W&B's service: all files are complete then."""
        self._runs.close()

    def _findings(self) -> Findings:
        self._study = Study.read(self._folder)  # its reference point is fixed by the baseline's measures
        return find(self._results.values(), self._study)

    def _log_trial(self, result: TrialResult, findings: Findings) -> None:
        """Log a trial; one that was logged before is told what has changed since."""
        summary = self._harmless(content.trial_summary(result, findings))
        repeats = list(content.runs(result))
        number, digest = str(result.number), _digest([summary, repeats])
        is_new = number not in self._logged.told
        if self._logged.told.get(number) == digest:
            return
        config = self._harmless(content.trial_config(result, self._folder.trial(result.number)))
        run = self._runs.open(
            f"{self._stem}-{result.number:04d}",
            name=self._harmless.text(f"{result.number:03d} {result.label}")[:120],
            job_type="trial",
            tags=[result.outcome.type],
            config=config,
        )
        _define_metrics(run)
        trained = list(content.trained(self._folder.trial(result.number)))
        for row in (*(trained if is_new else ()), *repeats):
            run.log(self._harmless(row))
            self._logged.history.update(row)
        # All of it each time: what is uploaded later replaces the summary by that of the last opening.
        run.summary.update({**self._harmless(content.last_of(trained)), **summary})
        self._logged.told[number] = digest
        self._logged.summary.update(summary)
        self._logged.note_config(config)
        if not self._runs.end(run, result.outcome.exit_code):
            del self._logged.told[number]
            self._log_trial(result, findings)
        self._follow()

    def _correct(self, findings: Findings) -> None:
        """Tell the trials' runs what has changed since they were logged."""
        until = time.monotonic() + CORRECTION_SECONDS
        for result in findings.results:
            if time.monotonic() < until:
                self._log_trial(result, findings)

    def _log_study(self, findings: Findings, number: int, *, with_front: bool) -> None:
        row = content.study_row(findings, number)
        self._rows.append(row)
        self._logged.study.update(row)
        self._run.log(row)
        if with_front:
            front = content.table(findings, findings.front, with_outcome=False)
            self._tried(lambda: self._show("front", self._table(front)))

    def _log_end(self, findings: Findings) -> None:
        self._show("trials", self._table(content.table(findings, findings.results, with_outcome=True)))
        plot = self._runs.wandb.plot
        covered = content.covered_table(findings)
        if covered.rows:
            drawn = plot.line(self._table(covered), "trial", "hypervolume", title="hypervolume of the front")
            self._show("covered", drawn)
        if findings.measured and len(findings.objectives) > 1:
            y_name, x_name = findings.objectives[:2]
            points = self._table(content.table(findings, findings.measured, with_outcome=True))
            title = f"{name_text(y_name)} against {name_text(x_name)}"
            self._show("scatter", plot.scatter(points, x_name, y_name, title))
        pictures = {"parallel_coordinates": parallel_coordinates(findings), "effects": effect_bars(findings)}
        for key, picture in pictures.items():
            if picture is not None:
                self._show(key, picture)
        self._log_artifact(findings)

    def _log_artifact(self, findings: Findings) -> None:
        artifact = self._runs.wandb.Artifact(f"{self._stem}-front", type="pareto-front")
        with tempfile.TemporaryDirectory(dir=self._folder.wandb) as made:
            for name, text in artifact_files(self._folder, findings, self._harmless):
                file = Path(made) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            artifact.add_dir(made, skip_cache=True)
            self._run.log_artifact(artifact)

    def _show(self, key: str, shown: Any) -> None:
        self._run.log({key: shown})
        self._logged.tables.add(key)

    def _table(self, table: content.Table) -> Any:
        rows: Sequence[Any] = self._harmless(table.rows)
        return self._runs.wandb.Table(columns=list(table.columns), data=rows)

    def _open_study(self) -> Any:
        self._is_online: bool
        run = self._runs.open(
            f"{self._stem}-study",
            name=self._harmless.text(self._study.name)[:120],
            job_type="study",
            tags=[],
            config=self._harmless(content.study_config(self._study)),
        )
        self._is_online = self._runs.is_online
        run.define_metric("trial/number", hidden=True)
        for name in ("front/*", "outcome/*", "reference/*"):
            run.define_metric(name, step_metric="trial/number")
        return run

    def _tried(self, log: Callable[[], None]) -> None:
        """Log something; where that fails online, log it offline."""
        try:
            log()
        except Exception as error:
            if not self._runs.is_online:
                raise
            self._runs.give_up(line(error))
            self._follow()
            log()

    def _follow(self) -> None:
        """Go on in a run on disk, when online did not work any more and the study's run has been ended."""
        if self._is_online and not self._runs.is_online:
            self._run = self._open_study()
            for row in self._rows:
                self._run.log(row)

    def _write_logged(self) -> None:
        self._logged.mode = "online" if self._runs.is_online else "offline"
        self._logged.write(self._folder)


def _digest(data: Any) -> str:
    """Return what stands for plain data."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def _define_metrics(run: Any) -> None:
    """Say which rows of a trial's run belong to which count."""
    for step in (content.STEP, "repeat/number"):
        run.define_metric(step, hidden=True, summary="none")
    for name in ("train/*", "eval/*"):  # no summary asked for: the last value, as a plain number
        run.define_metric(name, step_metric=content.STEP)
    run.define_metric("repeat/*", step_metric="repeat/number", summary="none")
