from __future__ import annotations

import re

from memsweep.findings.find import find
from memsweep.record.outcome import Crashed, Phase
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.report.cards import answer_cards
from memsweep.report.sheet import Sheet
from synthetic import ended, measured

BASELINE = {"adapter": "baseline", "packing": "baseline"}


def cards_of(results: tuple[TrialResult, ...], study: Study) -> str:
    return answer_cards(Sheet.of(find(results, study)))


def titles(text: str) -> list[tuple[str, bool]]:
    """Return the titles of cards, and whether each is shown unasked."""
    found = re.findall(r'<div class="answer"([^>]*)><h3>(.*?)</h3>', text)
    return [(title, "hidden" not in attributes) for attributes, title in found]


def test_every_answer_has_its_command(results: tuple[TrialResult, ...], study: Study) -> None:
    text = cards_of(results, study)

    assert text.count('<div class="answer"') == text.count("<code>python train.py")


def test_answers_that_change_something_are_hidden_at_first(study: Study) -> None:
    text = cards_of((measured(0, BASELINE), measured(1, {**BASELINE, "packing": "bfd"})), study)

    shown = dict(titles(text))
    assert shown["What the baseline costs"]
    assert not all(shown.values())
    assert "1.18 times its throughput" in text


def test_a_baseline_that_was_not_measured_says_why(study: Study) -> None:
    crashed = ended(0, BASELINE, Crashed(reason="no <room>", phase=Phase.BUILD))

    text = cards_of((crashed, measured(1, {**BASELINE, "packing": "bfd"})), study)

    assert "crashed in build: no &lt;room&gt;" in text


def test_where_only_what_changes_more_is_on_offer_that_is_said(study: Study) -> None:
    infeasible = measured(0, BASELINE, feasible=False, constraints={"memory_budget": 1024.0**2})
    text = cards_of((infeasible, measured(1, {**BASELINE, "packing": "bfd"})), study)

    assert ("Nothing is on offer", False) in titles(text)
    assert "Set-ups that change more do: pick them above." in text
    assert "misses peak memory at most 520.0 MiB by 1.0 MiB" in text
