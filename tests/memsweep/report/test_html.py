from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from browser import CHROMIUM, Page, browser
from memsweep.findings.find import find
from memsweep.findings.views import view
from memsweep.findings.words import QUICK
from memsweep.record.folder import StudyFolder
from memsweep.record.outcome import Measured
from memsweep.record.study import Study, read_study
from memsweep.record.trial import TrialResult
from memsweep.report import html
from memsweep.report.html import write_report
from synthetic import measured, study_of, trials_of_every_kind

BASELINE = {"adapter": "baseline", "packing": "baseline"}

VISIBLE = "((query) => [...document.querySelectorAll(query)].filter((element) => element.offsetHeight > 0))"
POINTS = "document.querySelectorAll('#scatter path.point').length"
FRONT = (
    f"{VISIBLE}('#front ~ .wide tr[data-trial]:not([id])')"
    ".map(row => Number(row.dataset.trial)).sort((a, b) => a - b)"
)
TRIALS = f"{VISIBLE}('#trials tbody tr').map(row => Number(row.dataset.trial))"
LINES = (
    "[...new Set(document.getElementById('parallel').data.flatMap((trace) => trace.customdata))]"
    ".filter((number) => number !== null).sort((a, b) => a - b)"
)
COMPARED = "document.getElementById('compared').textContent"
PICKED = "document.getElementById('picked').textContent"


def page_of(results: tuple[TrialResult, ...], study: Study) -> str:
    """Return the page without the plotting library, which is 4.8 MB of someone else's text."""
    text = html.page(find(results, study), {"device": "cpu"})
    scripts = re.split(r"(?<=</script>)", text)
    return "".join(script for script in scripts if len(script) < 1_000_000)


def choose(page: Page, title: str, option: str) -> None:
    """Pick an option of the filter that is labelled with a title."""
    page.run(
        f"""(() => {{ const label = [...document.querySelectorAll('.selects label')].find(
            (one) => one.firstChild.textContent === {title!r});
        const select = label.querySelector('select');
        select.value = [...select.options].find((one) => one.textContent === {option!r}).value;
        select.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"""
    )


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

    assert re.findall(r"<h2[^>]*>(.*?)</h2>", text) == [
        "Throughput against peak memory",
        "What is worth having",
        "What each choice brings",
        "What each choice does over all trials",
        "All set-ups side by side",
        "How the front grew",
        "Refused, and why",
        "Where the time went",
        "Every trial",
        "How this was measured",
    ]
    assert text.index("What the baseline costs") < text.index("Fastest that fits in 520.0 MiB")
    assert text.index("Fastest that fits in 520.0 MiB") < text.index("Throughput against peak memory")


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


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """One browser for all tests of a page: each opens a tab of its own."""
    with browser() as page:
        yield page


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
class TestInABrowser:
    """The page as a person meets it; a load takes seconds, so a test looks at several things of one."""

    def ready(self, page: Page, file: Path, width: int = 1200, *, dark: bool = False) -> None:
        page.problems.clear()
        page.requests.clear()
        page.open(file, width, dark=dark)
        page.wait_for(f"{POINTS} > 0")

    def test_at_first_it_compares_what_trains_the_same_and_all_at_a_click(
        self, page: Page, make_study: Callable[..., StudyFolder]
    ) -> None:
        folder = make_study()
        study, results = read_study(folder.path)
        found = find(results, study)
        self.ready(page, written(folder))

        assert page.run(POINTS) == sum(not result.changes for result in found.measured)
        assert page.run(FRONT) == sorted(result.number for result in found.same_front)
        assert page.run(TRIALS) == [result.number for result in results if not result.changes]
        assert "only set-ups that train exactly what the baseline trains" in page.run(COMPARED)
        answers = page.run(f"{VISIBLE}('.answer h3').map(title => title.textContent)")
        assert answers[0] == "What the baseline costs"
        assert [title.split(" ")[0] for title in answers[1:]] == ["Fastest", "Smallest"]

        page.click("#compare-all")
        page.wait_for(f"{POINTS} === {len(found.measured)}")
        assert page.run(FRONT) == sorted(result.number for result in found.front)
        assert page.problems == []
        assert page.requests == []

    def test_changes_are_accepted_one_by_one_and_options_and_outcomes_filter(
        self, page: Page, make_study: Callable[..., StudyFolder]
    ) -> None:
        folder = make_study()
        study, results = read_study(folder.path)
        self.ready(page, written(folder))

        page.click("#filters summary")
        page.click("#filters [name=accept]")  # the first: which examples share a step
        kept = [result.number for result in results if set(result.changes) <= {"batch"}]
        page.wait_for(f"JSON.stringify({TRIALS}) === '{json.dumps(kept, separators=(',', ':'))}'")
        front = view(find(results, study), ("batch",)).front
        assert page.run(FRONT) == sorted(result.number for result in front)
        assert "which examples share a step" in page.run(COMPARED)
        measured = [result.number for result in find(results, study).measured]
        assert page.run(LINES) == [number for number in measured if number in kept]

        page.click("#compare-all")
        choose(page, "adapter", "lora")
        lora = [result for result in results if result.choice["adapter"] == "lora"]
        assert page.run(TRIALS) == [result.number for result in lora]
        choose(page, "outcome", "out of memory")
        assert page.run(TRIALS) == [r.number for r in lora if r.outcome.type == "out_of_memory"]
        assert page.run(POINTS) == 0

        page.click("#filters [type=reset]")
        page.wait_for(f"{POINTS} > 0")
        assert page.run(TRIALS) == [result.number for result in results if not result.changes]
        assert page.problems == []

    def test_whatever_is_picked_shows_its_details_and_command(
        self, page: Page, make_study: Callable[..., StudyFolder]
    ) -> None:
        folder = make_study()
        _, results = read_study(folder.path)
        self.ready(page, written(folder))

        page.click("#scatter path.point")
        page.wait_for("!document.getElementById('picked').hidden")
        assert "python train.py" in page.run(PICKED)
        assert page.run("document.querySelectorAll('tr.picked').length") == 1
        page.click("#picked .close")
        assert page.run("document.getElementById('picked').hidden")

        page.click("#compare-all")
        marks = page.run(f"{VISIBLE}('.mark').map(mark => Number(mark.dataset.pick))")
        assert sorted(marks) == [result.number for result in results if not result.objectives]
        page.click(".mark[data-pick='3']")
        page.wait_for("!document.getElementById('picked').hidden")
        assert "device out of memory in warm_up" in page.run(PICKED)

        page.run("document.getElementById('parallel').emit('plotly_click', {points: [{customdata: 0}]})")
        page.wait_for(f"{PICKED}.includes('Trial 0')")
        assert page.problems == []

    def test_the_table_of_every_trial_turns_pages_sorts_and_is_linked_to(
        self, page: Page, make_study: Callable[..., StudyFolder]
    ) -> None:
        folder = make_study(200)
        _, results = read_study(folder.path)
        number = next(result.number for result in reversed(results) if result.changes)
        self.ready(page, written(folder))

        choose(page, "adapter", "lora")
        page.run(f"location.hash = '#trial-{number}'")  # which both kinds of filter hide
        page.wait_for(f"document.getElementById('trial-{number}').offsetHeight > 0")

        page.click("#compare-all")
        page.run("document.querySelector('#trials [data-sort=\"\"]').click()")
        assert page.run(TRIALS) == list(range(50))
        page.click("[data-step='1']")
        assert page.run(TRIALS) == list(range(50, 100))
        page.click("[data-sort='1']")
        memory = {r.number: r.objectives.get("peak_memory_bytes", float("inf")) for r in results}
        assert page.run(TRIALS)[0] == min(memory, key=lambda number: (memory[number], number))
        assert page.problems == []

    def test_dark_is_drawn_in_the_colours_of_dark_and_paper_is_light_without_controls(
        self, page: Page, make_study: Callable[..., StudyFolder]
    ) -> None:
        text = "document.querySelector('#scatter .annotation-text')"
        color = f"getComputedStyle({text}).fill"
        self.ready(page, written(make_study()))
        light = page.run(color)

        page.set_dark(True)
        page.wait_for(f"{color} !== {light!r}")

        page.send("Emulation.setEmulatedMedia", media="print")
        page.wait_for(f"{color} === 'rgb(0, 0, 0)'")
        assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.run(f"{VISIBLE}('#compare-all, .copy, #filters details').length") == 0
        assert page.send("Page.printToPDF")["data"]
        page.send("Emulation.setEmulatedMedia", media="")

    def test_a_phone_scrolls_in_one_direction_only(
        self, page: Page, make_study: Callable[..., StudyFolder]
    ) -> None:
        self.ready(page, written(make_study()), width=390)
        page.click("#compare-all")
        page.click("#filters summary")

        assert page.run("document.documentElement.scrollWidth") == 390
        controls = "[...document.querySelectorAll('#filters *')]"
        assert page.run(f"{controls}.every(one => one.getBoundingClientRect().right <= 390)")

    def test_a_thousand_trials_are_usable(self, page: Page, make_study: Callable[..., StudyFolder]) -> None:
        started = time.monotonic()
        self.ready(page, written(make_study(1_000)))
        page.click("#compare-all")
        page.wait_for(f"{POINTS} > 500")

        assert time.monotonic() - started < 30
        page.click("#scatter path.point")
        page.wait_for("!document.getElementById('picked').hidden")
