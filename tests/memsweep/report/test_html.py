from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from browser import CHROMIUM, Page, browser
from memsweep.findings.find import find
from memsweep.findings.words import QUICK
from memsweep.record.folder import StudyFolder
from memsweep.record.outcome import Measured
from memsweep.record.study import Study, read_study
from memsweep.record.trial import TrialResult
from memsweep.report.html import page, write_report
from synthetic import measured, study_of, trials_of_every_kind

BASELINE = {"adapter": "baseline", "packing": "baseline"}


def page_of(results: tuple[TrialResult, ...], study: Study) -> str:
    """Return the page without the plotting library, which is 4.8 MB of someone else's text."""
    text = page(find(results, study), {"device": "cpu"})
    scripts = re.split(r"(?<=</script>)", text)
    return "".join(script for script in scripts if len(script) < 1_000_000)


def written(folder: StudyFolder) -> Path:
    study, results = read_study(folder.path)
    return write_report(folder, results, study)


def test_every_trial_is_there_with_the_command_that_repeats_it(
    results: tuple[TrialResult, ...], study: Study
) -> None:
    text = page_of(results, study)

    for result in results:
        assert f'id="trial-{result.number}"' in text
        assert result.command in text


def test_answers_come_before_the_picture(results: tuple[TrialResult, ...], study: Study) -> None:
    text = page_of(results, study)

    titles = re.findall(r"<h[23]>(.*?)</h[23]>", text)
    assert titles == [
        "The baseline",
        "Fastest",
        "Fastest of all",
        "Smallest",
        "Smallest of all",
        "Throughput against peak memory",
        "What is worth having",
        "Not in the picture",
        "Every trial",
        "Where the time went",
        "How this was measured",
    ]


def test_nothing_that_a_study_says_is_taken_for_markup() -> None:
    hostile = "</script><script>alert(1)</script>"
    results = (measured(0, BASELINE, parameters={"x": hostile}, overrides=(f"x={hostile}",)),)
    study = study_of(1, name=hostile, command=hostile, fixed=(hostile,), context={"model": hostile})

    text = page_of(results, study)

    assert "<script>alert(1)" not in text


def test_the_same_study_gives_the_same_bytes(make_study: Callable[..., StudyFolder]) -> None:
    folder = make_study()

    first = written(folder).read_bytes()

    assert written(folder).read_bytes() == first


def test_facts_of_the_machine_come_from_the_baselines_outcome(
    make_study: Callable[..., StudyFolder],
) -> None:
    text = written(make_study()).read_text(encoding="utf-8")

    assert "<dt>threads</dt><dd>2</dd>" in text


def test_the_plotting_library_is_there_once(make_study: Callable[..., StudyFolder]) -> None:
    file = written(make_study())

    assert file.read_text(encoding="utf-8").count("plotly.js v") == 1
    assert file.stat().st_size < 6_000_000


def test_nothing_feasible_says_so_and_shows_what_was_missed(study: Study) -> None:
    result = measured(0, BASELINE, constraints={"memory_budget": 1024.0 * 1024}, feasible=False)

    text = page_of((result,), study)

    assert "Nothing is on offer" in text
    assert "misses peak memory at most 520.0 MiB by 1.0 MiB" in text
    assert "What is worth having" not in text


def test_a_study_without_trials_has_a_page(study: Study) -> None:
    assert "0 trials: none finished" in page_of((), study)


def test_no_number_that_was_not_measured_is_shown() -> None:
    text = page_of(trials_of_every_kind(64), study_of(64))

    cells = re.findall(r'<td class="number[^>]*>(.*?)</td>', text)
    assert cells
    assert not [cell for cell in cells if re.search(r"\b(nan|inf|none)\b", cell, re.IGNORECASE)]


def test_a_thousand_trials_take_less_than_ten_seconds(make_study: Callable[..., StudyFolder]) -> None:
    folder = make_study(1_000)
    started = time.monotonic()

    written(folder)

    assert time.monotonic() - started < 10


def test_the_front_says_how_far_it_is_to_be_believed(study: Study) -> None:
    measures = {"tokens_per_second": 100.0, "peak_memory_bytes": 1_000.0}
    outcome = Measured(
        measures=measures,
        intervals={"tokens_per_second": (90.0, 110.0)},
        remarks=("memory was <still> growing",),
    )
    facts = {"outcome": outcome, "objectives": measures, "measures": measures, "constraints": {}}
    slower = {**facts, "objectives": {**measures, "tokens_per_second": 95.0}}
    results = (
        measured(0, BASELINE, **facts, repeats=(outcome,)),
        measured(1, BASELINE, **facts),
        measured(2, BASELINE, **slower),
    )

    text = page_of(results, study)

    assert QUICK in text
    assert "<small>tied with 1</small><small>median of 2 runs</small>" in text
    assert "memory was &lt;still&gt; growing" in text
    assert 'Might as well be on it: <a href="#trial-2">trial 2</a> (tied with 0 and 1)' in text
    assert "100 tokens/s \N{PLUS-MINUS SIGN}10 %" in text
    assert "<dt>Figures in Optuna&#x27;s storage</dt>" in text


def test_what_cannot_be_compared_says_why(study: Study) -> None:
    unlike = measured(1, BASELINE, feasible=False, unlike=("other data than trial 0: a, not b",))

    text = page_of((measured(0, BASELINE), unlike), study)

    assert "measured, not comparable" in text
    assert "other data than trial 0: a, not b" in text


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
class TestInABrowser:
    """The page as a person meets it."""

    def ready(self, page: Page, file: Path, width: int = 1200) -> None:
        page.open(file, width)
        page.wait_for("document.querySelectorAll('#scatter path.point').length > 0")

    def test_it_draws_without_errors_or_requests(self, make_study: Callable[..., StudyFolder]) -> None:
        folder = make_study()
        file = written(folder)
        study, results = read_study(folder.path)
        with browser() as page:
            self.ready(page, file)

            n_points = page.run("document.querySelectorAll('#scatter path.point').length")
            assert n_points == len(find(results, study).measured)
            assert page.problems == []
            assert page.requests == []

    def test_picking_a_point_shows_its_trial_and_command(
        self, make_study: Callable[..., StudyFolder]
    ) -> None:
        with browser() as page:
            self.ready(page, written(make_study()))

            page.click("#scatter path.point")
            page.wait_for("!document.getElementById('picked').hidden")

            assert "python train.py" in page.run("document.getElementById('picked').textContent")
            assert page.run("document.querySelectorAll('tr.picked').length") == 1

    def test_unticking_a_group_hides_its_points(self, make_study: Callable[..., StudyFolder]) -> None:
        count = "document.querySelectorAll('#scatter path.point').length"
        with browser() as page:
            self.ready(page, written(make_study()))
            before = page.run(count)

            page.click(".legend label:nth-child(3) input")

            page.wait_for(f"{count} < {before}")
            assert page.problems == []

    def test_dark_is_drawn_in_the_colours_of_dark(self, make_study: Callable[..., StudyFolder]) -> None:
        color = "getComputedStyle(document.querySelector('#scatter .annotation-text')).fill"
        with browser() as page:
            self.ready(page, written(make_study()))
            light = page.run(color)

            page.set_dark(True)

            page.wait_for(f"{color} !== {light!r}")

    def test_a_phone_scrolls_in_one_direction_only(self, make_study: Callable[..., StudyFolder]) -> None:
        with browser() as page:
            self.ready(page, written(make_study()), width=390)

            assert page.run("document.documentElement.scrollWidth") == 390

    def test_a_thousand_trials_are_usable(self, make_study: Callable[..., StudyFolder]) -> None:
        with browser() as page:
            started = time.monotonic()
            self.ready(page, written(make_study(1_000)))

            assert time.monotonic() - started < 20
            page.click("#scatter path.point")
            page.wait_for("!document.getElementById('picked').hidden")
