from __future__ import annotations

from dataclasses import replace
from typing import Any

from memsweep.export.examples import Examples
from memsweep.export.page import Page, requirements
from memsweep.export.weights import Weights
from memsweep.record.outcome import Measured

EXAMPLES = Examples(path="json", data_files="data/train.jsonl", split="train", columns=None)


def page(chosen: Any, **facts: Any) -> str:
    weights = Weights(
        name="model",
        revision=None,
        is_random=facts.pop("is_random", True),
        source=None,
        tokenizer_class="AutoTokenizer",
        loads_alike=True,
    )
    defaults: dict[str, Any] = {
        "chosen": chosen,
        "weights": weights,
        "examples": EXAMPLES,
        "reasons": (),
        "command": "trl sft --config config.yaml",
        "differences": {"output_dir": "where the model goes"},
        "withheld": (),
        "files": {"run.sh": "the one command"},
        "has_scores": False,
    }
    return Page(**defaults | facts).text()


def test_the_figures_stand_with_their_intervals_against_the_baseline(choose: Any) -> None:
    text = page(choose(options={"adapter": "lora"}))

    assert "# adapter=lora r=16 alpha=32: sft, as measured" in text
    assert (
        "| peak memory | 413.0 MiB \N{PLUS-MINUS SIGN}1 % | 1.00 times (0.99 to 1.01, so perhaps no "
        "difference) |" in text
    )
    assert "a processor, 2 cores" in text
    assert "Quick figures show large differences" in text


def test_the_one_command_and_its_short_form_come_before_everything_else(choose: Any) -> None:
    text = page(choose())

    assert text.index("sh run.sh --max_steps 20") < text.index("## Measured")
    assert "It trains with TRL's own command: `trl sft --config config.yaml`." in text


def test_why_there_is_a_script_is_said(choose: Any) -> None:
    text = page(choose(), reasons=("it has no `trl online_dpo`",))

    assert "because TRL's own command cannot say this: it has no `trl online_dpo`." in text
    assert "`MODEL` in train.py" in text


def test_random_weights_are_said_to_be_random(choose: Any) -> None:
    assert "are random, only the geometry" in page(choose())
    assert "are random" not in page(choose(), is_random=False)


def test_a_trial_that_misses_a_demand_says_so(choose: Any) -> None:
    text = page(choose(feasible=False, constraints={"memory_budget": 1 << 20}))

    assert "**Not on offer in its study**: misses peak memory at most 520.0 MiB by 1.0 MiB." in text


def test_remarks_about_the_figures_and_secrets_are_not_left_out(choose: Any) -> None:
    outcome = Measured(measures={}, remarks=("the machine was busy",))
    text = page(choose(outcome=outcome), withheld=("HF_TOKEN",))

    assert "Before you believe the figures: the machine was busy." in text
    assert "set them yourself: `HF_TOKEN`." in text


def test_versions_are_pinned_without_the_build_and_with_what_techniques_need(choose: Any) -> None:
    chosen = choose(options={"optimizer": "adamw_8bit"})
    lines = requirements(chosen).splitlines()

    assert lines == [
        "# What the trial ran with, in Python 3.11.2.",
        "# Measured was torch 2.13.0+cpu; which build is installed is the index's choice.",
        "torch==2.13.0",
        "transformers==5.24.0",
        "trl==1.16.0",
        "bitsandbytes>=0.46.1",
    ]
    versions = {**chosen.record.versions, "bitsandbytes": "0.50.2"}
    pinned = replace(chosen, record=replace(chosen.record, versions=versions))
    assert "bitsandbytes==0.50.2" in requirements(pinned)
    assert ">=" not in requirements(pinned)


def test_a_peak_of_another_allocator_setting_is_said_with_the_line_that_chooses_it(choose: Any) -> None:
    chosen = choose()
    text = page(chosen)

    assert "the peak can be higher than the figure above" in " ".join(text.split())
    assert "`export MALLOC_MMAP_THRESHOLD_=65536 MALLOC_TRIM_THRESHOLD_=65536`" in text
    untouched = replace(chosen, record=replace(chosen.record, facts={"memory": {"allocator": "untouched"}}))
    assert "MALLOC" not in page(untouched)


def test_what_peak_memory_is_is_said(choose: Any) -> None:
    chosen = choose()
    facts = {"memory": {"start_anonymous_bytes": 5 << 20}}

    assert "held 5.0 MiB by then" in page(replace(chosen, record=replace(chosen.record, facts=facts)))
