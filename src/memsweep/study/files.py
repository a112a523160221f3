"""The files of a study, replaced as a whole after every trial: a reader sees the old or the new."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import yaml

from memsweep.findings.intervals import Interval, interval, n_runs
from memsweep.record.folder import StudyFolder, write_text, writing
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.search.grammar import read_value
from memsweep.study.book import Book


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # ten times faster in C
    """Writes equal lists out, where YAML would refer to the first by an anchor."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002, PyYAML names it
        """Say that nothing is an alias."""
        return True


class StudyFiles:
    """Writes what a study leaves behind.

    Args:
        folder: The study's folder.
    """

    def __init__(self, folder: StudyFolder) -> None:
        self._folder = folder
        self._lines: dict[int, tuple[TrialResult, str]] = {}
        self._study: Study | None = None

    def write(self, book: Book) -> None:
        """Write every file that `book` changes.

        Raises:
            StudyUnwritable: If one cannot be.
        """
        lines = "".join(self._line(result) for result in book.results)
        front = front_csv(book)
        results = optimization_results(book)
        text = yaml.dump(results, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000)
        with writing(self._folder.path):
            write_text(self._folder.results, lines)  # can be made from the trial folders: nobody waits for it
            write_text(self._folder.front, front)
            write_text(self._folder.optimization_results, text)
            if book.study != self._study:
                book.study.write(self._folder)
                self._study = book.study

    def _line(self, result: TrialResult) -> str:
        kept = self._lines.get(result.number)
        if kept is None or kept[0] is not result:
            text = json.dumps(result.to_mapping(), sort_keys=True, ensure_ascii=False, allow_nan=False)
            kept = self._lines[result.number] = (result, text + "\n")
        return kept[1]


def front_csv(book: Book) -> str:
    """Return the front as CSV: number, objectives, every measure, what it is, how to repeat it.

    Figures are medians over a trial's `n_runs` runs; `<objective>_low` and `_high` are the ends of the 95 %
    interval, empty where nothing is known of the spread.
    """
    rows = book.front
    measures = sorted({name for row in rows for name in row.measures} - set(book.study.objectives))
    techniques = sorted({name for row in rows for name in row.choice})
    keys = sorted({key for row in rows for key in row.parameters if not key.startswith("technique/")})
    head = [
        "number",
        *book.study.objectives,
        *(f"{name}_{end}" for name in book.study.objectives for end in ("low", "high")),
        "n_runs",
        *techniques,
        *keys,
        "changes",
        *measures,
        "output_dir",
        "command",
    ]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow(
            [
                row.number,
                *(row.objectives[name] for name in book.study.objectives),
                *(end for name in book.study.objectives for end in interval(row, name) or ("", "")),
                n_runs(row),
                *(row.choice.get(name, "") for name in techniques),
                *(row.parameters.get(key, "") for key in keys),
                " ".join(row.changes) or "nothing",
                *(row.medians.get(name, "") for name in measures),
                book.ended[row.number].folder,
                row.command,
            ]
        )
    return file.getvalue()


def optimization_results(book: Book) -> dict[str, Any]:
    """Return what the official Optuna plugin writes, with where each solution is and how it was made.

    For one objective `best_params` and `best_value`; always `solutions`: the front, best first, each with
    `values` (medians over its runs) and the 95 % interval of each, null where nothing is known of the spread.
    """
    solutions = [
        {
            "params": {key: read_value(label) for key, label in sorted(row.parameters.items())},
            "values": list(row.objectives.values()),
            "intervals": [_pair(interval(row, name)) for name in row.objectives],
            "n_runs": n_runs(row),
            "job_num": row.number,
            "output_dir": str(book.ended[row.number].folder),
            "overrides": list(row.overrides),
            "return_value": book.ended[row.number].returned,
            "constraints": dict(sorted(row.constraints.items())),
        }
        for row in book.front
    ]
    found: dict[str, Any] = {"name": "pareto"}
    if len(book.study.objectives) == 1 and solutions:
        found["best_params"] = solutions[0]["params"]
        found["best_value"] = solutions[0]["values"][0]
    return {
        **found,
        "objectives": list(book.study.objectives),
        "solutions": solutions,
        "outcomes": book.counts(),
    }


def _pair(bounds: Interval | None) -> list[float] | None:
    return None if bounds is None else list(bounds)
