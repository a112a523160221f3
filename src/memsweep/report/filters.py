"""The bar at the top of the page: which set-ups are compared, and the data that page.js picks them by."""

from __future__ import annotations

from html import escape
from typing import Any

from memsweep.findings.parallel import options as offered
from memsweep.findings.setup import set_up
from memsweep.findings.views import change_words
from memsweep.findings.words import CHANGES, outcome_text
from memsweep.report.sheet import Sheet


def filter_bar(sheet: Sheet) -> str:
    """Return what is compared in words, a button that compares all, and the filters; empty without trials."""
    if not sheet.findings.results:
        return ""
    words, first = change_words(sheet.findings), sheet.shown[sheet.first]
    boxes = "".join(
        f'<label><input type="checkbox" name="accept" value="{index}"'
        f"{' checked' if word in first.accepted else ''}>{escape(_words(word))}</label>"
        for index, word in enumerate(words)
    )
    accepted = f"<fieldset><legend>A set-up may change</legend>{boxes}</fieldset>" if words else ""
    keys = offered(sheet.findings, sheet.findings.results)
    selects = "".join(
        _select(f"key-{index}", key.rsplit(".", 1)[-1], options)
        for index, (key, options) in enumerate(keys.items())
    )
    outcomes = _select("outcome", "outcome", _outcomes(sheet))
    everything = '<button type="button" id="compare-all">Compare all</button>' if words else ""
    return (
        '<form id="filters"><p id="compared" aria-live="polite"></p>'
        f"{everything}<details><summary>Filter</summary>{accepted}"
        f'<div class="selects">{selects}{outcomes}</div>'
        '<button type="reset">As at first</button></details></form>'
    )


def filter_data(sheet: Sheet) -> dict[str, Any]:
    """Return what page.js must know of the trials and the views.

    Returns:
        `words`: what set-ups change; `views`: of each the indices of accepted words, its front and ties;
        `keys`: every key that is searched, with its options; `outcomes`; `trials`: number, indices of what
        it changes, index of its outcome, index of its option a key (-1: it has none), objectives or null.
    """
    findings = sheet.findings
    words, outcomes = change_words(findings), _outcomes(sheet)
    keys = offered(findings, findings.results)
    trials = []
    for result in findings.results:
        chosen = set_up(result)
        trials.append(
            [
                result.number,
                [words.index(word) for word in result.changes],
                outcomes.index(outcome_text(result)),
                [options.index(chosen[key]) if key in chosen else -1 for key, options in keys.items()],
                [result.objectives.get(name) for name in findings.objectives],
            ]
        )
    views = [
        {
            "accepted": [words.index(word) for word in view.accepted],
            "front": [result.number for result in view.front],
            "tied": {str(trial): list(others) for trial, others in {**view.tied, **view.contenders}.items()},
        }
        for view in sheet.shown
    ]
    return {
        "words": [_words(word) for word in words],
        "first": sheet.first,
        "views": views,
        "outcomes": outcomes,
        "trials": trials,
        "n_keys": len(keys),
    }


def _words(change: str) -> str:
    return CHANGES.get(change, change.replace("_", " "))


def _outcomes(sheet: Sheet) -> list[str]:
    return sorted({outcome_text(result) for result in sheet.findings.results})


def _select(name: str, title: str, options: list[str]) -> str:
    if len(options) < 2:
        return ""
    texts = enumerate(map(escape, options))
    items = "".join(f'<option value="{index}">{text}</option>' for index, text in texts)
    anything = '<option value="">any</option>'
    return f'<label>{escape(title)}<select name="{name}">{anything}{items}</select></label>'
