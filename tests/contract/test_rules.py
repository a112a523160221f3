"""Every rule between options: a choice that breaks it alone is refused, and the libraries agree."""

from __future__ import annotations

import pytest
from harms import harm
from rules import Breach, breaches, can_be_tried
from walk import Fate, Walk

from memsweep.technique.catalogue import conf_folder, read_catalogue

CATALOGUE = read_catalogue(conf_folder())
BREACHES = breaches(CATALOGUE)


@pytest.mark.parametrize("breach", [pytest.param(breach, id=breach.name) for breach in BREACHES])
def test_a_broken_rule_is_one_that_the_libraries_need(breach: Breach, walk: Walk) -> None:
    result = walk.probe(breach.trainer, breach.option.technique, breach.choice)

    if result.fate in (Fate.SILENT, Fate.WORKS):
        shown = harm(breach.option.label, breach.trainer)
        assert shown is not None, f"out of date, two steps went well: {breach.rule.because}"
        assert shown(walk, breach.trainer, breach.choice), f"shows nowhere: {breach.rule.because}"


def test_every_rule_is_broken_alone_by_some_choice_that_this_machine_can_try() -> None:
    tried = {(breach.option.label, breach.rule.because) for breach in BREACHES}
    untried = [
        (option.label, rule.because)
        for technique in CATALOGUE.techniques.values()
        for option in technique.options.values()
        for rule in option.rules
        if can_be_tried(option, rule) and (option.label, rule.because) not in tried
    ]

    # vLLM is not here, so it cannot be chosen beside.
    assert untried == [
        ("ds3_gather=disabled", "weights must be gathered to be sent to vLLM"),
        ("generation_cache=static", "vLLM has a cache of its own, and the setting is ignored"),
        (
            "quantization=int8",
            "weights that vLLM gets from the trainer cannot be quantized to 8 bits on the way",
        ),
    ]
