"""How long does the report of a large study take to make, and to open?

    python benchmarks/report_time.py                   1,000 trials
    python benchmarks/report_time.py --trials 5000

A study with every kind of end is written without any training (tests/synthetic.py), and its report is made:
the page, the Markdown, the pictures.  Then a real headless Chromium opens the page from its file, draws it,
compares all set-ups and turns a page of the table; where there is no Chromium that part is left out, and said
to be.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _common import REPOSITORY, Bars, parser

sys.path.insert(0, str(REPOSITORY / "tests"))

from browser import CHROMIUM, Page, browser
from memsweep.findings.find import find
from memsweep.record.folder import StudyFolder
from memsweep.record.study import read_study
from memsweep.report.html import write_report
from memsweep.report.markdown import markdown
from memsweep.report.pictures import write_pictures
from memsweep.units import bytes_text
from synthetic import study_of, trials_of_every_kind

MOST_SECONDS, MOST_TO_OPEN, MOST_TO_COMPARE = 10.0, 10.0, 2.0
"""The bars: seconds to make the report, to open and draw its page, and to draw it anew with all set-ups."""

POINTS = "document.querySelectorAll('#scatter path.point').length"


def main() -> int:
    """Make a study, its report, and look at it."""
    command = parser(__doc__)
    command.add_argument("--trials", type=int, default=1_000)
    n_trials = command.parse_args().trials
    bars = Bars()
    with tempfile.TemporaryDirectory() as path:
        folder = StudyFolder(Path(path) / "outputs" / "large")
        study_of(n_trials).write(folder)
        lines = [json.dumps(result.to_mapping()) for result in trials_of_every_kind(n_trials)]
        folder.results.write_text("\n".join(lines) + "\n", encoding="utf-8")
        study, results = read_study(folder.path)
        parts: dict[str, Callable[[], object]] = {
            "page": lambda: write_report(folder, results, study),
            "Markdown": lambda: markdown(find(results, study)),
            "pictures": lambda: write_pictures(folder, find(results, study)),
        }
        taken = {name: seconds(part) for name, part in parts.items()}
        size = bytes_text(folder.report.stat().st_size)
        said = ", ".join(f"{name} {took:.1f} s" for name, took in taken.items())
        total = sum(taken.values())
        bars.check(
            f"the report of {n_trials:,} trials is made",
            held=total <= MOST_SECONDS,
            figure=f"{total:.1f} s ({said}; page of {size}), at most {MOST_SECONDS:g}",
        )
        if CHROMIUM is None:
            print("no Chromium on this machine: the page was not opened")
        else:
            with browser() as page:
                look(page, folder, sum(bool(r.objectives) and r.reused_from is None for r in results), bars)
    return bars.exit_code


def seconds(part: Callable[[], object]) -> float:
    """Return how long something takes."""
    began = time.monotonic()
    part()
    return time.monotonic() - began


def look(page: Page, folder: StudyFolder, n_points: int, bars: Bars) -> None:
    """Open the page, compare all set-ups, turn a page of the table."""

    def opened() -> None:
        page.open(folder.report)
        page.wait_for(f"{POINTS} > 0")

    def compared() -> None:
        page.run("document.getElementById('compare-all').click()")
        page.wait_for(f"{POINTS} === {n_points}")

    def turned() -> None:
        page.run("document.querySelector('[data-step=\"1\"]').click()")
        page.wait_for("document.querySelector('#trials .pages span').textContent.startsWith('51 to 100')")

    steps = {
        "its page opens and is drawn": (opened, MOST_TO_OPEN),
        "all its set-ups are compared": (compared, MOST_TO_COMPARE),
        "the table turns a page": (turned, MOST_TO_COMPARE),
    }
    for name, (step, most) in steps.items():
        took = seconds(step)
        bars.check(name, held=took <= most, figure=f"{took:.2f} s, at most {most:g}")
    held = not page.problems and not page.requests
    bars.check(
        "without an error or a request", held=held, figure=f"{len(page.problems)}, {len(page.requests)}"
    )


if __name__ == "__main__":
    sys.exit(main())
