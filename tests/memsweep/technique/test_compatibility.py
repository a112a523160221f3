from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsweep.errors import UnknownOption
from memsweep.machine import Device
from memsweep.technique.catalogue import Catalogue, read_catalogue
from memsweep.technique.choice import ChosenOption
from memsweep.technique.compatibility import (
    Circumstances,
    changes,
    circumstances_here,
    rulebook,
    violations,
)
from memsweep.technique.settings import merge

CONF = Path(__file__).resolve().parents[3] / "conf"
REAL = read_catalogue(CONF)
WITH_BITSANDBYTES = {"bitsandbytes": "0.49.0"}
SFT = Circumstances(trainer="sft", device="cpu", versions=WITH_BITSANDBYTES)


def test_a_broken_rule_says_what_it_needs_what_it_got_why_and_where_from(catalogue: Catalogue) -> None:
    found = violations(catalogue.choose({"quantization": "nf4"}), SFT, catalogue)

    assert found == (
        "quantization=nf4 needs adapter=lora or prompt, got adapter=baseline: "
        "4-bit base weights receive no gradient (arXiv:2305.14314 section 3)",
    )


def test_a_choice_that_keeps_all_rules_breaks_none(catalogue: Catalogue) -> None:
    choice = catalogue.choose({"quantization": "nf4", "adapter": "lora"})

    assert violations(choice, SFT, catalogue) == ()


def test_all_broken_rules_are_said_at_once(catalogue: Catalogue) -> None:
    here = Circumstances(trainer="grpo", device="cpu")

    found = violations(catalogue.choose({"quantization": "nf4"}), here, catalogue)

    assert [sentence.partition(", ")[0] for sentence in found] == [
        "quantization=nf4 needs trainer=dpo or sft",
        "quantization=nf4 needs the package bitsandbytes>=0.40",
        "quantization=nf4 needs adapter=lora or prompt",
    ]


def test_a_package_that_is_too_old_is_named_with_its_version(catalogue: Catalogue) -> None:
    here = Circumstances(trainer="sft", device="cpu", versions={"bitsandbytes": "0.39.0"})

    (found,) = violations(catalogue.choose({"quantization": "nf4", "adapter": "lora"}), here, catalogue)

    assert found == "quantization=nf4 needs the package bitsandbytes>=0.40, got bitsandbytes 0.39.0"


def test_a_rule_for_some_trainers_holds_for_those_only(catalogue: Catalogue) -> None:
    choice = catalogue.choose({"quantization": "nf4", "adapter": "lora"})
    dpo = Circumstances(trainer="dpo", device="cpu", versions=WITH_BITSANDBYTES)

    assert violations(choice, SFT, catalogue) == ()
    (found,) = violations(choice, dpo, catalogue)
    assert found.startswith("quantization=nf4 needs length.tokens at least 128, got length=baseline")
    long = catalogue.choose({"quantization": "nf4", "adapter": "lora", "length": "limit"})
    assert violations(long, dpo, catalogue) == ()


def test_a_rule_for_some_versions_and_devices_holds_for_those_only(catalogue: Catalogue) -> None:
    choice = catalogue.choose({"quantization": "nf4", "adapter": "prompt"})

    def broken(device: str, version: str) -> tuple[str, ...]:
        here = Circumstances(trainer="sft", device=device, versions={"bitsandbytes": version})
        return violations(choice, here, catalogue)

    assert broken("cpu", "0.49.0") == (
        "quantization=nf4 does not go with adapter=prompt, device=cpu: it was slow (trl==1.16.0)",
    )
    assert broken("cpu", "0.50.0") == ()
    assert broken("cuda", "0.49.0") == ()


def test_values_are_checked_where_they_come_from_elsewhere_than_choose(catalogue: Catalogue) -> None:
    choice = catalogue.baseline_choice()
    choice["adapter"] = ChosenOption(option="lora", parameters={"r": 0, "alpha": 1})

    assert violations(choice, SFT, catalogue) == (
        "adapter=lora has no parameter alpha; it has r",
        "adapter=lora: technique.adapter.r must be at least 1, got 0",
    )


def test_an_option_that_does_not_exist_is_not_legal_by_oversight(catalogue: Catalogue) -> None:
    with pytest.raises(UnknownOption, match="it has baseline, lora, prompt"):
        violations({"adapter": ChosenOption(option="dora")}, SFT, catalogue)


def test_changes_are_those_of_all_chosen_options(catalogue: Catalogue) -> None:
    assert changes(catalogue.baseline_choice(), catalogue) == ()
    choice = catalogue.choose({"adapter": "lora", "length": "limit"})
    assert changes(choice, catalogue) == ("batch", "data", "trained_parameters")


def test_needs_of_the_machine_are_sentences() -> None:
    def broken(options: dict[str, str], **facts: object) -> tuple[str, ...]:
        here = Circumstances(trainer="sft", device="cuda", **facts)  # type: ignore[arg-type]
        return violations(REAL.choose(options), here, REAL)

    old_card = broken(
        {"attention": "flash_attention_4"}, versions={"flash-attn-4": "4.0"}, compute_capability=8.0
    )
    assert old_card == ("attention=flash_attention_4 needs compute capability 9.0 or more, got 8.0",)
    (offline,) = broken({"kernels": "enabled"}, versions={"kernels": "0.18.2"}, network=False)
    assert "needs the network" in offline
    (single,) = broken({"sharding": "ddp"})
    assert "launch=cpu_simulated lets processes on a CPU stand in" in single
    assert broken({"sharding": "ddp"}, several_devices=True) == ()


def test_circumstances_are_those_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    numbers = {"batch": 8, "measure.evaluation_examples": None}
    here = circumstances_here("dpo", Device.CPU, REAL, numbers, {"beta": 0.1})

    assert (here.trainer, here.device, here.network) == ("dpo", "cpu", False)
    assert here.numbers == {"batch": 8}
    assert here.arguments == {"beta": 0.1}
    assert "transformers" in here.versions


def test_equal_circumstances_share_one_rulebook(catalogue: Catalogue) -> None:
    again = Circumstances(trainer="sft", device="cpu", versions=dict(WITH_BITSANDBYTES))

    assert rulebook(catalogue, SFT) is rulebook(catalogue, again)
    assert rulebook(catalogue, SFT) is not rulebook(catalogue, Circumstances(trainer="sft", device="cpu"))


WITH_ARGUMENTS = """
summary: Syncs.
saves: nothing
costs: nothing
source: trl==1.16.0
changes: nothing
requires:
  - trainer.arguments.beta: {above: 0}
    because: without it there is no reference
    source: trl==1.16.0
excludes:
  - trainer.arguments.loss_type: [sigmoid]
    adapter: lora
    because: it was slow
    source: trl==1.16.0
  - measure.evaluation_examples: {at_least: 1}
    because: nothing is evaluated
    source: trl==1.16.0
"""


def test_a_rule_can_be_about_the_arguments_and_numbers_of_the_configuration(
    conf: Path, write: Callable[[str, str], None]
) -> None:
    write("adapter/synced", WITH_ARGUMENTS.replace("adapter: lora", "length: limit"))
    catalogue = read_catalogue(conf)
    choice = catalogue.choose({"adapter": "synced", "length": "limit"})

    def broken(**facts: Any) -> list[str]:
        here = Circumstances(trainer="sft", device="cpu", **facts)
        return [sentence.partition(":")[0] for sentence in violations(choice, here, catalogue)]

    needs = "adapter=synced needs trainer.arguments.beta above 0, got trainer.arguments.beta"
    assert broken() == []
    assert broken(arguments={}) == [f"{needs} not set"]
    assert broken(arguments={"beta": 0.0}) == [f"{needs}=0.0"]
    assert broken(arguments={"beta": 0.1}, numbers={"measure.evaluation_examples": 0}) == []
    assert broken(arguments={"beta": 1, "loss_type": "sigmoid"}) == [
        "adapter=synced does not go with trainer.arguments.loss_type=sigmoid, length=limit"
    ]
    assert broken(numbers={"measure.evaluation_examples": 2}) == [
        "adapter=synced does not go with measure.evaluation_examples=2"
    ]


@pytest.mark.parametrize(
    ("condition", "end"),
    [
        ("trainer.arguments.beta: {above: 0}", "b (s); set trainer.arguments.beta above 0"),
        ("trainer.arguments.beta: [0.1]", "b (s); type trainer.arguments.beta=0.1"),
        ("trainer.arguments.beta: [0.1], length: [limit]", "b (s)"),
        (
            "any_of: [{length: [limit]}, {trainer.arguments.beta: [0.1]}]",
            "b (s); type trainer.arguments.beta=0.1",
        ),
    ],
)
def test_a_rule_about_an_argument_ends_with_what_to_type(
    conf: Path, write: Callable[[str, str], None], condition: str, end: str
) -> None:
    prose = WITH_ARGUMENTS.partition("requires")[0]
    write("adapter/synced", f"{prose}requires: [{{{condition}, because: b, source: s}}]\n")
    catalogue = read_catalogue(conf)
    here = Circumstances(trainer="sft", device="cpu", arguments={})

    (sentence,) = violations(catalogue.choose({"adapter": "synced"}), here, catalogue)

    assert sentence.partition(": ")[2] == end


def test_circumstances_differ_by_their_arguments(catalogue: Catalogue) -> None:
    one, other = (Circumstances(trainer="sft", device="cpu", arguments={"beta": b}) for b in (0.1, 0.2))

    assert rulebook(catalogue, one) is not rulebook(catalogue, other)


def test_a_sweep_can_ask_about_every_cell() -> None:
    """16 microseconds a legal cell where it was measured; the bound is loose because machines are busy."""
    here = Circumstances(trainer="sft", device="cpu", versions=WITH_BITSANDBYTES, numbers={"batch": 8})
    choice = REAL.choose(
        {"packing": "bfd", "adapter": "lora", "micro_batch": "size", "optimizer": "adamw_8bit"}
    )
    assert violations(choice, here, REAL) == ()

    started = time.perf_counter()
    for _ in range(1000):
        violations(choice, here, REAL)

    assert (time.perf_counter() - started) / 1000 < 500e-6


options = st.fixed_dictionaries(
    {name: st.sampled_from(sorted(technique.options)) for name, technique in REAL.techniques.items()}
)


@given(options, st.sampled_from(REAL.trainers), st.sampled_from(["cpu", "cuda"]))
def test_any_choice_has_an_answer_that_does_not_depend_on_order(
    chosen: dict[str, str], trainer: str, device: str
) -> None:
    here = Circumstances(
        trainer=trainer, device=device, versions={"bitsandbytes": "0.50.2"}, numbers={"batch": 8}
    )
    choice = REAL.choose(chosen)
    backwards = dict(reversed(choice.items()))

    found = violations(choice, here, REAL)

    assert sorted(found) == sorted(violations(backwards, here, REAL))
    merge(choice, trainer, REAL)


@given(options, st.sampled_from(REAL.trainers))
def test_without_an_option_its_own_rules_cannot_be_broken(chosen: dict[str, str], trainer: str) -> None:
    here = Circumstances(trainer=trainer, device="cpu")
    for technique, option in chosen.items():
        without = REAL.choose({**chosen, technique: "baseline"})
        label = f"{technique}={option} "

        assert option == "baseline" or not any(s.startswith(label) for s in violations(without, here, REAL))


@pytest.mark.parametrize(("device", "bf16"), [("cpu", "emulated"), ("cuda", "native")])
def test_a_device_multiplies_bfloat16_as_its_kind_does_unless_it_is_said(device: str, bf16: str) -> None:
    assert Circumstances(trainer="sft", device=device).bf16 == bf16
    assert Circumstances(trainer="sft", device=device, bf16="other").bf16 == "other"
