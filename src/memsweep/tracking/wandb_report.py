"""A study as a report in W&B: text from what was found, panels that W&B draws from the runs themselves.

A panel names keys of runs, and shows nothing where no run has them, so every key of a report is held
against what the study has really logged (`memsweep.tracking.logged`).  W&B draws the panels; what they look
like there cannot be seen from here.
"""

from __future__ import annotations

import json
from typing import Any

from memsweep.errors import ConfigError
from memsweep.findings.answers import answers
from memsweep.findings.find import Findings
from memsweep.findings.words import constraint_text, counts_text, name_text, trials_text
from memsweep.record.study import Direction
from memsweep.record.trial import TrialResult
from memsweep.tracking.content import ON_FRONT, OWN, searched, searched_name
from memsweep.tracking.harmless import Harmless
from memsweep.tracking.logged import Logged
from memsweep.tracking.report_keys import keys_of
from memsweep.tracking.runs import line

TITLE_CHARACTERS, DESCRIPTION_CHARACTERS = 128, 500
WIDTH = 24
"""Columns of W&B's grid of panels."""

INSTALL = "pip install 'memsweep[wandb-report]'"


class WandbReport:
    """A report that is ready to be saved.

    Args:
        findings: What the study found.
        logged: What its runs hold, and where they are.
        harmless: What the texts pass through.
        project: Where the report belongs; its runs are looked for there.
        entity: Whose project it is; None: the account's own, which takes an account to know.

    Raises:
        ConfigError: If W&B's library for reports is missing, the account is not known, or a panel would
            refer to what no run has.
    """

    def __init__(
        self, findings: Findings, logged: Logged, harmless: Harmless, *, project: str, entity: str | None
    ) -> None:
        try:
            import wandb_workspaces.reports.v2 as wr
        except ImportError as error:
            raise ConfigError(f"W&B reports need one more package ({error}): type {INSTALL}") from error
        self._wr: Any = wr
        self._findings, self._logged, self._harmless = findings, logged, harmless
        facts: dict[str, Any] = {
            "project": project,
            "title": f"memsweep: {logged.group}"[:TITLE_CHARACTERS],
            "description": harmless.text(findings.study.command)[:DESCRIPTION_CHARACTERS],
            "width": "fluid",
            "blocks": self._blocks(),
        }
        if entity is not None:
            self._report = self._wr.Report(entity=entity, **facts)
        else:
            try:
                self._report = self._wr.Report(**facts)  # asks W&B whose key it is
            except Exception as error:
                raise ConfigError(
                    f"whose report it is to be is not known ({line(error)}): "
                    "type --entity=NAME, or wandb login"
                ) from error
        missing = keys_of(self.spec).unlogged(logged)
        if missing:
            raise ConfigError(
                f"no run of {logged.group} has logged {', '.join(missing)}: panels would be empty. W&B was "
                "told only a part of the study"
            )

    @property
    def spec(self) -> dict[str, Any]:
        """What W&B is sent: its own form, plain data."""
        text = self._report._to_model().spec.model_dump_json(by_alias=True, exclude_none=True)
        spec: dict[str, Any] = json.loads(text)
        return spec

    def save(self) -> str:
        """Save the report in W&B, and return where it is.

        Raises:
            ConfigError: If W&B does not take it.
        """
        try:
            self._report.save()
        except Exception as error:
            raise ConfigError(
                f"W&B did not take the report ({line(error)}). With --dry-run its spec is written to a file"
            ) from error
        return str(self._report.url)

    def _blocks(self) -> list[Any]:
        wr = self._wr
        return [
            wr.MarkdownBlock(text=self._harmless.text(self._lead())),
            wr.TableOfContents(),
            wr.H1("What is worth having"),
            wr.MarkdownBlock(text=self._harmless.text(self._front())),
            wr.PanelGrid(
                runsets=[self._trials("on the front", on_front=True), self._trials("every trial")],
                panels=[*self._scatter(), *self._coordinates()],
            ),
            wr.H1("What makes the difference"),
            wr.PanelGrid(runsets=[self._trials("measured", measured=True)], panels=self._importance()),
            wr.H1("The front side by side"),
            wr.PanelGrid(
                runsets=[self._trials("on the front", on_front=True)],
                panels=[wr.RunComparer(diff_only="split", layout=_layout(wr, 0, 0, WIDTH, 14))],
            ),
            wr.H1("How the study went"),
            wr.PanelGrid(runsets=[self._study()], panels=self._course()),
            wr.H1("How to have it again"),
            wr.MarkdownBlock(text=f"```\n{self._harmless.text(self._findings.study.command)}\n```"),
        ]

    def _lead(self) -> str:
        findings = self._findings
        demands = [text for text in map(constraint_text, findings.study.constraints.values()) if text]
        context = ", ".join(f"{name} {value}" for name, value in findings.study.context.items())
        lines = [
            f"{trials_text(len(findings.results))}: {counts_text(findings.counts()) or 'none finished'}.",
            *([f"Every trial: {context}."] if context else []),
            *([f"Demanded: {'; '.join(demands)}."] if demands else []),
        ]
        found = [
            f"- **{answer.title}**, {answer.condition}: {findings.sentence(answer.result)}  \n"
            f"  `{answer.result.command}`"
            for answer in answers(findings)
        ]
        return "\n\n".join([*lines, "\n".join(found)])

    def _front(self) -> str:
        findings = self._findings
        if not findings.front:
            return "No trial was measured that meets every demand."
        head = ["trial", "set-up", *map(name_text, findings.objectives), "changes"]
        rows = [head, ["---"] * len(head), *map(self._cells, findings.front)]
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)

    def _cells(self, result: TrialResult) -> list[str]:
        figures = [self._findings.figure(result, name) for name in self._findings.objectives]
        changes = ", ".join(result.changes) or "nothing"
        return [str(result.number), result.label.replace("|", "\\|"), *figures, changes]

    def _scatter(self) -> list[Any]:
        if len(self._findings.objectives) < 2:
            return []
        y_name, x_name = self._findings.objectives[:2]
        return [
            self._wr.ScatterPlot(
                title=f"{name_text(y_name)} against {name_text(x_name)}",
                x=self._metric(f"objective/{x_name}"),
                y=self._metric(f"objective/{y_name}"),
                layout=_layout(self._wr, 0, 0, WIDTH // 2, 12),
            )
        ]

    def _coordinates(self) -> list[Any]:
        wr, directions = self._wr, self._findings.study.objectives
        columns = [
            wr.ParallelCoordinatesPlotColumn(metric=wr.Config(key), display_name=key.rpartition(".")[2])
            for key in self._varied()
        ]
        columns += [
            wr.ParallelCoordinatesPlotColumn(
                metric=self._metric(f"objective/{name}"),
                display_name=name_text(name),
                inverted=direction is Direction.MINIMIZE or None,
            )
            for name, direction in directions.items()
        ]
        title = "what was chosen, and what came of it"
        layout = _layout(wr, WIDTH // 2, 0, WIDTH // 2, 12)
        return [wr.ParallelCoordinatesPlot(columns=columns, title=title, layout=layout)]

    def _importance(self) -> list[Any]:
        names = self._findings.objectives
        width = WIDTH // max(1, len(names))
        return [
            self._wr.ParameterImportancePlot(
                with_respect_to=f"objective/{name}", layout=_layout(self._wr, index * width, 0, width, 10)
            )
            for index, name in enumerate(names)
        ]

    def _course(self) -> list[Any]:
        wr = self._wr
        panels = [
            wr.LinePlot(
                title="hypervolume of the front, and its size",
                x="trial/number",
                y=[key for key in ("front/hypervolume", "front/size") if key in self._logged.study],
                layout=_layout(wr, 0, 0, WIDTH, 8),
            )
        ]
        tables = [key for key in ("front", "trials", "effects") if key in self._logged.tables]
        return panels + [
            wr.WeavePanelSummaryTable(table_name=key, layout=_layout(wr, 0, 8 + 10 * index, WIDTH, 10))
            for index, key in enumerate(tables)
        ]

    def _varied(self) -> list[str]:
        """Return the keys of the config that were not the same in every measured trial."""
        found: dict[str, set[str]] = {}
        for result in self._findings.measured:
            for name, option in result.choice.items():
                found.setdefault(f"{OWN}.choice.{searched_name(name)}", set()).add(option)
            for name, value in searched(result).items():
                found.setdefault(f"{OWN}.searched.{name}", set()).add(str(value))
        return [key for key, values in found.items() if len(values) > 1]

    def _trials(self, name: str, *, on_front: bool = False, measured: bool = False) -> Any:
        from wandb_workspaces import expr

        filters = [expr.Metric("Group") == self._logged.group, expr.Metric("JobType") == "trial"]
        if on_front:
            filters.append(expr.Summary(ON_FRONT) == True)  # noqa: E712 - it makes a filter, no truth
        if measured:
            filters.append(expr.Summary("trial/outcome") == "measured")
        return self._wr.Runset(name=name, filters=filters)

    def _study(self) -> Any:
        from wandb_workspaces import expr

        filters = [expr.Metric("Group") == self._logged.group, expr.Metric("JobType") == "study"]
        return self._wr.Runset(name="the study", filters=filters)

    def _metric(self, key: str) -> Any:
        return self._wr.SummaryMetric(key)


def _layout(wr: Any, x: int, y: int, width: int, height: int) -> Any:
    return wr.Layout(x=x, y=y, w=width, h=height)
