from __future__ import annotations

import dataclasses
import io

import pytest
from rich.console import Console

from memsweep.findings.find import find
from memsweep.findings.words import QUICK
from memsweep.record.outcome import CutShort, Measured, OutOfMemory, Phase
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.report.text import (
    belief_lines,
    markdown_table,
    outcome_line,
    print_study,
    refusal_lines,
    shown_fronts,
)
from synthetic import ended, measured, study_of, trials_of_every_kind

BASELINE = {"adapter": "baseline", "packing": "baseline"}


def printed(results: tuple[TrialResult, ...], study: Study, **facts: object) -> str:
    out = io.StringIO()
    print_study(results, study, Console(file=out, highlight=False, **facts))  # type: ignore[arg-type]
    return out.getvalue()


def test_a_pipe_gets_one_line_a_trial_without_control_characters(
    results: tuple[TrialResult, ...], study: Study
) -> None:
    text = printed(results, study)

    fronts = shown_fronts(find(results, study))
    lines = [line for line in text.splitlines() if " tokens/s (" in line and not line.startswith("Fast")]
    assert len(lines) == sum(len(shown.front) for shown in fronts)
    assert "\x1b" not in text
    assert not set(text) & set("─━│┃")


def test_a_narrow_terminal_keeps_every_figure(results: tuple[TrialResult, ...], study: Study) -> None:
    text = printed(results, study, force_terminal=True, width=80, color_system=None)

    assert "1,756 tokens/s" in text
    assert "(1.50 x)" in text
    assert "500.8 MiB" in text


def test_words_of_a_choice_are_not_read_as_markup(study: Study) -> None:
    result = measured(0, BASELINE, parameters={"note": "[red]x[/red]"})

    assert "note=[red]x[/red]" in printed((result,), study)


def test_counts_are_told_in_words(results: tuple[TrialResult, ...], study: Study) -> None:
    line = outcome_line(find(results, study))

    assert line.startswith("24 trials: 13 measured, 3 same set-up as another, 3 out of memory")


def test_trials_cut_short_for_one_rival_are_one_line_and_a_single_one_keeps_its_figures(study: Study) -> None:
    reasons = [
        "worse than trial 0 beyond noise: 800 tokens/s",
        "worse than trial 0 beyond noise: 700 tokens/s",
        "worse than trial 9 beyond noise: 600 tokens/s",
    ]
    results = [
        ended(n, BASELINE, CutShort(reason=reason, measures={})) for n, reason in enumerate(reasons, start=1)
    ]

    assert refusal_lines(find(results, study)) == [
        "trials 1, 2: cut short, worse than trial 0 beyond noise",
        "trial 3: cut short, worse than trial 9 beyond noise: 600 tokens/s",
    ]


def test_the_same_reason_is_told_once(study: Study) -> None:
    outcome = OutOfMemory(
        where="device", phase=Phase.BUILD, requested_bytes=None, held_bytes=None, evidence="out of memory"
    )
    results = [ended(number, BASELINE, outcome) for number in range(9)]

    assert refusal_lines(find(results, study)) == [
        "trials 0, 1, 2, 3, 4, 5 and 3 more: device out of memory in build"
    ]


def test_nothing_feasible_says_so(study: Study) -> None:
    result = measured(0, BASELINE, constraints={"memory_budget": 5.0}, feasible=False)

    text = printed((result,), study)

    assert "No trial was measured that meets every demand." in text
    assert "misses peak memory" in text


def test_no_made_up_figure_is_printed() -> None:
    text = printed(trials_of_every_kind(64), study_of(64))

    assert "nan" not in text.lower()
    assert "inf " not in text.lower()


@pytest.mark.parametrize("n_trials", [0, 1])
def test_small_studies_print(n_trials: int) -> None:
    text = printed(trials_of_every_kind(n_trials), study_of(n_trials))

    assert f"{n_trials} trial" in text


def test_a_markdown_cell_cannot_end_its_column() -> None:
    table = markdown_table(["a"], [["x|y"]])

    assert table == "| a |\n| --- |\n| x\\|y |"


def unsure(number: int, speed: float, **facts: object) -> TrialResult:
    """Return a trial whose throughput is known to a tenth."""
    measures = {"tokens_per_second": speed, "peak_memory_bytes": 1_000.0}
    outcome = Measured(
        measures=measures,
        intervals={"tokens_per_second": (0.9 * speed, 1.1 * speed)},
        remarks=("memory was still growing",),
    )
    defaults = {"outcome": outcome, "objectives": measures, "measures": measures, "constraints": {}}
    return measured(number, BASELINE, **{**defaults, **facts})


def test_a_figure_is_printed_with_its_interval_and_a_remark_is_marked(study: Study) -> None:
    text = printed((unsure(4, 100.0),), study)

    assert "100 tokens/s \N{PLUS-MINUS SIGN}10 %" in text
    assert "4*" in text
    assert "* trial 4: memory was still growing" in text


def test_ties_are_printed_on_the_front_and_off_it(study: Study) -> None:
    same = unsure(1, 100.0)
    text = printed((unsure(0, 100.0), same, unsure(2, 95.0)), study)

    assert "tied with" in text
    assert "Might as well be on it: 2 (tied with 0 and 1)" in text


def test_the_number_of_runs_is_printed_where_there_are_several(study: Study) -> None:
    result = unsure(0, 100.0, repeats=(Measured(measures={"tokens_per_second": 101.0}),))

    assert "Medians over several runs: 0 (2)" in belief_lines(find([result], study))


def test_a_quick_study_says_that_its_figures_are_not_for_quoting(study: Study) -> None:
    standard = dataclasses.replace(study, context={**study.context, "measure": "standard"})

    assert QUICK in printed((unsure(0, 100.0),), study)
    assert QUICK not in printed((unsure(0, 100.0),), standard)


def test_what_trains_the_same_has_a_table_of_its_own_before_that_of_everything(study: Study) -> None:
    text = printed((unsure(0, 100.0), unsure(1, 300.0, changes=("data",))), study)
    same, _, everything = text.partition("Pareto front of example, whatever set-ups change: 1 trial")

    assert "among set-ups that train exactly what the baseline trains: 1 trial" in same
    assert "100 tokens/s" in same
    assert "300 tokens/s" in everything
