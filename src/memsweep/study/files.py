"""The files of a study, replaced as a whole after every trial: a reader sees the old or the new."""

from __future__ import annotations

import csv
import io
import json
import re
from operator import is_not
from typing import Any

import yaml

from memsweep.findings.intervals import Interval, interval, n_runs
from memsweep.record.folder import StudyFolder, write_bytes, write_text, writing
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.search.grammar import read_value
from memsweep.study.book import Book

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?[\d.]+(e[+-]?\d+)?", re.IGNORECASE)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # ten times faster in C
    """Writes equal lists out, where YAML would refer to the first by an anchor."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002, PyYAML names it
        """Say that nothing is an alias."""
        return True


class StudyFiles:
    """Writes what a study leaves behind.

    What has not changed since it was written last is not made anew: of thousands of trials one has ended.

    Args:
        folder: The study's folder.
    """

    def __init__(self, folder: StudyFolder) -> None:
        self._folder = folder
        self._lines: dict[int, tuple[TrialResult, bytes]] = {}
        self._front: tuple[list[TrialResult], str, str] | None = None
        self._study: Study | None = None

    def write(self, book: Book) -> None:
        """Write every file that `book` changes.

        Raises:
            StudyUnwritable: If one cannot be.
        """
        lines = b"".join(self._line(result) for result in book.results)
        front, solutions = self._of_front(book)
        with writing(self._folder.path):
            write_bytes(
                self._folder.results, lines
            )  # can be made from the trial folders: nobody waits for it
            write_text(self._folder.front, front)
            write_text(self._folder.optimization_results, solutions + _yaml({"outcomes": book.counts()}))
            if book.study != self._study or not self._folder.study.exists():
                book.study.write(self._folder)
                self._study = book.study

    def _line(self, result: TrialResult) -> bytes:
        kept = self._lines.get(result.number)
        if kept is None or kept[0] is not result:
            text = json.dumps(result.to_mapping(), sort_keys=True, ensure_ascii=False, allow_nan=False)
            kept = self._lines[result.number] = (result, f"{text}\n".encode(errors="backslashreplace"))
        return kept[1]

    def _of_front(self, book: Book) -> tuple[str, str]:
        """Return front.csv, and optimization_results.yaml up to what is not about the front."""
        rows = book.front
        kept = self._front
        if kept is None or len(kept[0]) != len(rows) or any(map(is_not, kept[0], rows)):
            kept = self._front = (rows, front_csv(book), _yaml(optimization_results(book)))
        return kept[1:]


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
    writer.writerow(map(_cell, head))
    for row in rows:
        cells = [
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
        writer.writerow(map(_cell, cells))
    return file.getvalue()


def _cell(value: Any) -> Any:
    """Return a cell that a spreadsheet shows: a text that begins as a formula does would be computed."""
    begins = isinstance(value, str) and value.startswith(_FORMULA)
    return f"'{value}" if begins and not _NUMBER.fullmatch(value) else value


def optimization_results(book: Book) -> dict[str, Any]:
    """Return what the official Optuna plugin writes, with where each solution is and how it was made.

    How many trials ended in which way is left out.  For one objective `best_params` and `best_value`; always
    `solutions`: the front, best first, each with `values` (medians over its runs) and the 95 % interval of
    each, null where nothing is known of the spread.
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
    return {**found, "objectives": list(book.study.objectives), "solutions": solutions}


def _yaml(data: dict[str, Any]) -> str:
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000)
    return text


def _pair(bounds: Interval | None) -> list[float] | None:
    return None if bounds is None else list(bounds)
