"""conf/technique: every option is documented, can be chosen, and sets what exists."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from memsweep.technique.catalogue import Catalogue
from memsweep.technique.compatibility import Circumstances, violations
from memsweep.technique.option import BASELINE, Option
from memsweep.technique.rule import ARGUMENT, Condition, RuleKind
from memsweep.technique.settings import merge, requested_hash

Machine = Callable[[str], Circumstances]

# The names that documents and issues use; a folder may be added, none may be renamed in passing.
PROMISED = {
    "truncation": "max_length",
    "packing": "bfd bfd_split wrapped",
    "padding_free": "enabled",
    "adapter": "lora lora_all_linear dora rslora pissa olora vera ia3 prompt_tuning p_tuning prefix_tuning "
    "loha lokr oft ln_tuning",
    "quantization": "nf4 fp4 nf4_double int8",
    "activation_offloading": "enabled",
    "pad_to_multiple_of": "multiple",
    "allocator": "expandable_segments max_split gc_threshold",
    "ds3_gather": "disabled",
    "vllm": "server colocate colocate_sleep",
    "checkpointing": "full disabled every_n_layers offloaded selective",
    "attention": "eager sdpa flex flash_attention_2 flash_attention_3 flash_attention_4 kernels_flash_attn2",
    "optimizer": "adamw_torch_fused adamw_8bit paged_adamw_8bit adafactor sgd",
    "precision": "fp32 bf16_mixed bf16_weights",
    "micro_batch": "size",
    "compile": "enabled",
    "kernels": "enabled",
    "reference": "precomputed shared_base sync",
    "evaluation_packing": "enabled disabled",
    "completion_length": "tokens",
    "generation_cache": "static offloaded quantized",
    "empty_cache": "every_n_steps",
    "sharding": "ddp fsdp2 zero2 zero3",
}


def options_of(catalogue: Catalogue) -> list[Option]:
    return [option for technique in catalogue.techniques.values() for option in technique.options.values()]


def legal_choice(option: Option, catalogue: Catalogue, machine: Machine) -> tuple[str, dict[str, str]] | None:
    """Return a trainer and the options, beside baselines, with which `option` may run."""
    for trainer in catalogue.trainers:
        for options in completions({option.technique: option.name}, catalogue):
            choice = catalogue.choose(options)
            if not violations(choice, machine(trainer), catalogue):
                return trainer, options
    return None


def completions(options: dict[str, str], catalogue: Catalogue, depth: int = 2) -> Iterator[dict[str, str]]:
    """Yield `options`, and `options` with what their rules ask for, and what that asks for."""
    yield options
    if not depth:
        return
    for technique, name in options.items():
        for rule in catalogue.option(technique, name).rules:
            if rule.kind is not RuleKind.REQUIRES:
                continue
            for part in rule.any_of:
                asked = {key: c.allowed for key, c in part.items() if key in catalogue.techniques}
                for values in itertools.product(*asked.values()):
                    wider = {**options, **dict(zip(asked, values, strict=True))}
                    if wider != options:
                        yield from completions(wider, catalogue, depth - 1)


def test_every_promised_technique_and_option_is_there(catalogue: Catalogue) -> None:
    missing = [
        f"{technique}={option}"
        for technique, options in PROMISED.items()
        for option in (BASELINE, *options.split())
        if technique not in catalogue.techniques or option not in catalogue.techniques[technique].options
    ]

    assert missing == []


def test_every_source_can_be_looked_up(catalogue: Catalogue) -> None:
    known = re.compile(r"arXiv:\d{4}\.\d{4,5}|\w+==\d|^conf/|^seen with \w+==")
    sources = [(option.label, option.source) for option in options_of(catalogue)]
    sources += [(option.label, rule.source) for option in options_of(catalogue) for rule in option.rules]
    sources += [(option.label, option.support.source) for option in options_of(catalogue) if option.support]

    assert [pair for pair in sources if not known.search(pair[1])] == []


def test_prose_reads_as_sentences(catalogue: Catalogue) -> None:
    for option in options_of(catalogue):
        assert option.summary[0].isupper() or option.summary[0].isdigit() or option.name == BASELINE, (
            option.label
        )
        assert option.summary.endswith("."), option.label
        assert not option.costs.endswith("."), option.label
        assert all(not rule.because.endswith(".") for rule in option.rules), option.label


def test_baselines_set_nothing_and_break_nothing(catalogue: Catalogue) -> None:
    for trainer in catalogue.trainers:
        here = Circumstances(trainer=trainer, device="cpu")

        assert violations(catalogue.baseline_choice(), here, catalogue) == ()
        settings = merge(catalogue.baseline_choice(), trainer, catalogue)
        assert settings.model == settings.trainer == settings.adapter == settings.environment == {}


def test_every_option_can_be_chosen_somewhere(catalogue: Catalogue, ideal: Machine) -> None:
    stuck = [
        option.label for option in options_of(catalogue) if legal_choice(option, catalogue, ideal) is None
    ]

    assert stuck == []


def test_every_option_can_be_chosen_in_each_trainer_that_it_names(
    catalogue: Catalogue, ideal: Machine
) -> None:
    def machines(trainer: str) -> Iterator[Circumstances]:
        newest = ideal(trainer)
        yield newest
        yield replace(newest, versions={**newest.versions, "transformers": "5.17.0"})

    stuck = []
    for option in options_of(catalogue):
        for trainer in option.support.allowed if option.support else catalogue.trainers:
            legal = (
                not violations(catalogue.choose(options), machine, catalogue)
                for options in completions({option.technique: option.name}, catalogue)
                for machine in machines(trainer)
            )
            if not any(legal):
                stuck.append(f"{option.label} trainer={trainer}")

    assert stuck == []


def test_every_rule_can_be_broken(catalogue: Catalogue) -> None:
    """A rule that nothing breaks is a mistake in its condition."""
    for option in options_of(catalogue):
        for rule in option.rules:
            assert rule.any_of, option.label
            for part in rule.any_of:
                assert all(can_fail(condition, catalogue) for condition in part.values()), option.label


def can_fail(condition: Condition, catalogue: Catalogue) -> bool:
    if condition.key in catalogue.techniques:
        return set(condition.allowed) < set(catalogue.techniques[condition.key].options)
    return True


def test_no_two_techniques_set_the_same_key(catalogue: Catalogue) -> None:
    """Refused with two owners at run time; here it would be a rule that is missing."""
    for one, other in itertools.combinations(options_of(catalogue), 2):
        if one.technique == other.technique:
            continue
        choice = catalogue.choose({one.technique: one.name, other.technique: other.name})
        for trainer in catalogue.trainers:
            merge(choice, trainer, catalogue)


def test_a_declared_equality_has_the_same_hash(catalogue: Catalogue) -> None:
    def hash_of(trainer: str, options: dict[str, str], parameters: dict[str, object] | None = None) -> str:
        return requested_hash(merge(catalogue.choose(options, parameters), trainer, catalogue), {})

    assert hash_of("sft", {"checkpointing": "full"}) == hash_of("sft", {})
    adapted = {"adapter": "lora"}
    assert hash_of("dpo", {**adapted, "reference": "shared_base"}) == hash_of("dpo", adapted)
    assert hash_of("sft", {"optimizer": "adamw_torch_fused"}) == hash_of("sft", {})
    packed = {"packing": "bfd"}
    assert hash_of("sft", {**packed, "padding_free": "enabled"}) == hash_of("sft", packed)
    apart = {"evaluation_packing": "disabled"}
    assert hash_of("sft", apart) == hash_of("sft", {})
    assert hash_of("sft", {**apart, **packed}) != hash_of("sft", packed)
    assert hash_of("sft", {"evaluation_packing": "enabled", **packed}) == hash_of("sft", packed)
    length = {"technique.truncation.max_length": 1024}
    assert hash_of("sft", {"truncation": "max_length"}, length) == hash_of("sft", {})
    assert hash_of("online_dpo", {"truncation": "max_length"}, length) != hash_of("online_dpo", {})


@pytest.mark.parametrize(
    ("trainer", "options", "part"),
    [
        (
            "sft",
            {"padding_free": "enabled"},
            "needs packing=bfd or bfd_split, or packing=baseline and truncation=none",
        ),
        ("dpo", {"padding_free": "enabled", "truncation": "none"}, "DPO accepts it, warns and ignores it"),
        ("dpo", {"packing": "bfd"}, "needs trainer=sft, got trainer=dpo"),
        ("sft", {"packing": "bfd", "truncation": "none"}, "does not go with truncation=none"),
        ("sft", {"packing": "wrapped", "adapter": "prompt_tuning"}, "does not go with adapter=prompt_tuning"),
        ("sft", {"quantization": "nf4"}, "needs adapter="),
        ("reward", {"quantization": "int8", "adapter": "lora"}, "needs precision=bf16_mixed or bf16_weights"),
        ("sft", {"checkpointing": "selective", "adapter": "lora"}, "does not go with adapter=lora"),
        ("dpo", {"checkpointing": "every_n_layers"}, "needs trainer=reward or sft"),
        ("sft", {"checkpointing": "offloaded"}, "needs device=cuda"),
        ("sft", {"activation_offloading": "enabled"}, "needs device=cuda"),
        ("sft", {"attention": "flex"}, "needs device=cuda"),
        ("sft", {"optimizer": "paged_adamw_8bit"}, "needs device=cuda"),
        ("grpo", {"vllm": "colocate_sleep"}, "needs the package vllm"),
        ("grpo", {"ds3_gather": "disabled"}, "needs sharding=zero3"),
        ("sft", {"sharding": "fsdp2"}, "launch=cpu_simulated"),
        ("kto", {"activation_offloading": "enabled"}, "needs device=cuda"),
        ("grpo", {"truncation": "max_length"}, "trainer.completion_tokens"),
        ("online_dpo", {"pad_to_multiple_of": "multiple"}, "has no such field"),
        ("dpo", {"adapter": "pissa"}, "the reference would be another model"),
        ("sft", {"adapter": "pissa", "quantization": "nf4"}, "does not go with quantization=nf4"),
        (
            "kto",
            {"adapter": "dora", "quantization": "int8"},
            "does not go with quantization=int8, device=cpu",
        ),
        (
            "sft",
            {"adapter": "vera", "quantization": "fp4"},
            "quantization=fp4, precision=baseline, bf16=emulated",
        ),
        ("rloo", {"adapter": "vera", "quantization": "nf4"}, "quantization=nf4, trainer=rloo"),
        (
            "online_dpo",
            {"adapter": "ia3", "quantization": "nf4", "precision": "bf16_weights"},
            "trainer=online_dpo",
        ),
        (
            "reward",
            {"adapter": "prompt_tuning"},
            "needs trainer=dpo, grpo, kto, rloo or sft, got trainer=reward",
        ),
        ("grpo", {"adapter": "p_tuning"}, "training would be on completions of another model"),
        ("rloo", {"adapter": "prefix_tuning"}, "generation ignores the prefix"),
        ("sft", {"adapter": "prefix_tuning"}, "needs checkpointing=disabled, got checkpointing=baseline"),
        ("sft", {"packing": "bfd", "adapter": "p_tuning"}, "does not go with adapter=p_tuning"),
        ("sft", {"adapter": "loha", "quantization": "fp4"}, "does not go with quantization=fp4"),
        ("dpo", {"adapter": "lokr", "quantization": "nf4_double"}, "stored in one column"),
        ("kto", {"adapter": "ln_tuning", "quantization": "int8"}, "nothing would be trained"),
        ("online_dpo", {"adapter": "ln_tuning", "precision": "bf16_weights"}, "nothing would be trained"),
        ("sft", {"reference": "shared_base", "adapter": "lora"}, "SFT and reward have no reference"),
        ("dpo", {"reference": "shared_base"}, "needs adapter=dora"),
        ("dpo", {"reference": "sync", "adapter": "lora"}, "does not go with adapter=lora"),
        ("online_dpo", {"reference": "sync"}, "have no sync_ref_model"),
        (
            "sft",
            {"evaluation_packing": "disabled"},
            "needs measure.evaluation_examples at least 1, got measure.evaluation_examples=0",
        ),
        ("sft", {"evaluation_packing": "enabled"}, "needs packing=bfd, bfd_split or wrapped"),
        ("dpo", {"evaluation_packing": "disabled"}, "have no eval_packing"),
        ("sft", {"completion_length": "tokens"}, "the others generate nothing"),
        ("kto", {"generation_cache": "static"}, "the others generate nothing"),
        ("online_dpo", {"generation_cache": "static"}, "needs checkpointing=disabled"),
        ("grpo", {"generation_cache": "offloaded"}, "needs device=cuda"),
        ("rloo", {"generation_cache": "quantized"}, "needs the package optimum-quanto"),
        ("grpo", {"generation_cache": "static", "vllm": "server"}, "vLLM has a cache of its own"),
    ],
)
def test_what_was_measured_is_refused_on_a_cpu(
    catalogue: Catalogue, trainer: str, options: dict[str, str], part: str
) -> None:
    versions = {"bitsandbytes": "0.50.2", "transformers": "5.24.0"}
    numbers = {"batch": 8, "measure.evaluation_examples": 0}
    here = Circumstances(trainer=trainer, device="cpu", versions=versions, numbers=numbers, arguments={})

    found = violations(catalogue.choose(options), here, catalogue)

    assert any(part in sentence for sentence in found), found


@pytest.mark.parametrize(
    ("trainer", "options", "beta", "is_legal"),
    [
        ("grpo", {"reference": "sync"}, None, False),
        ("grpo", {"reference": "sync"}, 0.0, False),
        ("grpo", {"reference": "sync"}, 0.04, True),
        ("rloo", {"reference": "sync"}, None, True),
        ("rloo", {"reference": "sync"}, 0, False),
        ("grpo", {"reference": "shared_base", "adapter": "lora"}, None, False),
        ("grpo", {"reference": "shared_base", "adapter": "lora"}, 0.04, True),
        ("rloo", {"reference": "shared_base", "adapter": "lora"}, 0.0, False),
        ("dpo", {"reference": "shared_base", "adapter": "lora"}, None, True),
        ("grpo", {"adapter": "pissa"}, None, True),
        ("grpo", {"adapter": "pissa"}, 0.04, False),
        ("rloo", {"adapter": "olora"}, None, False),
        ("rloo", {"adapter": "olora"}, 0.0, True),
    ],
)
def test_whether_there_is_a_reference_depends_on_the_trainers_own_beta(
    catalogue: Catalogue, trainer: str, options: dict[str, str], beta: float | None, is_legal: bool
) -> None:
    arguments = {} if beta is None else {"beta": beta}
    here = Circumstances(trainer=trainer, device="cpu", arguments=arguments)

    assert (violations(catalogue.choose(options), here, catalogue) == ()) is is_legal


def test_packing_of_evaluation_needs_examples_to_evaluate_on(catalogue: Catalogue) -> None:
    choice = catalogue.choose({"evaluation_packing": "disabled", "packing": "bfd"})

    def broken(n_examples: int) -> int:
        here = Circumstances(
            trainer="sft", device="cpu", numbers={"measure.evaluation_examples": n_examples}, arguments={}
        )
        return len(violations(choice, here, catalogue))

    assert [broken(n_examples) for n_examples in (0, 4)] == [1, 0]


def test_norms_can_be_trained_in_bfloat16_with_steps_that_it_can_hold(catalogue: Catalogue) -> None:
    choice = catalogue.choose({"adapter": "ln_tuning", "precision": "bf16_weights"})

    def broken(rate: float) -> int:
        here = Circumstances(trainer="sft", device="cpu", arguments={"learning_rate": rate})
        return len(violations(choice, here, catalogue))

    assert [broken(rate) for rate in (2e-5, 0.01)] == [1, 0]


def test_selective_checkpointing_with_an_adapter_is_allowed_on_older_transformers(
    catalogue: Catalogue,
) -> None:
    choice = catalogue.choose({"checkpointing": "selective", "adapter": "lora"})
    here = Circumstances(trainer="sft", device="cpu", versions={"transformers": "5.17.0"})

    assert violations(choice, here, catalogue) == ()


def test_a_micro_batch_divides_the_batch_and_kto_wants_two(catalogue: Catalogue) -> None:
    def broken(trainer: str, size: int) -> int:
        choice = catalogue.choose({"micro_batch": "size"}, {"technique.micro_batch.size": size})
        return len(
            violations(choice, Circumstances(trainer=trainer, device="cpu", numbers={"batch": 8}), catalogue)
        )

    assert [broken("sft", size) for size in (1, 2, 3, 4)] == [0, 0, 1, 0]
    assert [broken("kto", size) for size in (1, 2, 3, 4)] == [1, 0, 1, 0]


@pytest.mark.slow
def test_every_rule_about_an_argument_is_about_a_field_of_each_trainer_that_it_is_for(
    catalogue: Catalogue,
) -> None:
    from memsweep.trainers.build import RECIPES
    from memsweep.trainers.fields import field_names

    unknown = []
    for option in options_of(catalogue):
        allowed = option.support.allowed if option.support else catalogue.trainers
        for rule in option.rules:
            for part in rule.any_of:
                named = part["trainer"].allowed if "trainer" in part else rule.trainers or allowed
                unknown += [
                    (option.label, trainer, key)
                    for trainer in named
                    if trainer in allowed and trainer in (rule.trainers or allowed)
                    for key in part
                    if key.startswith(ARGUMENT)
                    and key.removeprefix(ARGUMENT) not in field_names(RECIPES[trainer].config_class)
                ]

    assert unknown == []


@pytest.mark.slow
def test_every_keyword_of_the_model_is_one_that_loading_knows(catalogue: Catalogue) -> None:
    """`from_pretrained` takes any keyword: what it does not know goes to the model, which may ignore it."""
    import inspect

    from transformers import PreTrainedModel

    text = inspect.getsource(PreTrainedModel.from_pretrained)
    named = {*inspect.signature(PreTrainedModel.from_pretrained).parameters}
    named |= set(re.findall(r"kwargs\.(?:pop|get)\(\s*\"(\w+)\"", text))
    assert {"dtype", "attn_implementation"} <= named

    unknown = []
    for option in options_of(catalogue):
        for settings in (option.settings, *option.settings_by_trainer.values()):
            keys = set(settings.get("model") or {}) - {"quantization"}
            unknown += [(option.label, key) for key in sorted(keys - named)]

    assert unknown == []


@pytest.mark.slow
def test_every_setting_is_a_field_of_what_it_configures(catalogue: Catalogue) -> None:
    from peft import PEFT_TYPE_TO_CONFIG_MAPPING
    from transformers import BitsAndBytesConfig

    from memsweep.trainers.build import RECIPES
    from memsweep.trainers.fields import field_names

    adapters = {
        str(kind.value).lower(): field_names(config) for kind, config in PEFT_TYPE_TO_CONFIG_MAPPING.items()
    }
    unknown = []
    for option in options_of(catalogue):
        choice = catalogue.choose({option.technique: option.name})
        for trainer in option.support.allowed if option.support else catalogue.trainers:
            settings = merge(choice, trainer, catalogue)
            fields = field_names(RECIPES[trainer].config_class)
            unknown += [
                (option.label, trainer, k) for k in settings.trainer if not set(k.split("|")) & set(fields)
            ]
            adapter = dict(settings.adapter)
            if adapter:
                known = adapters[adapter.pop("type")]
                unknown += [(option.label, trainer, key) for key in adapter if key not in known]
            quantization = settings.model.get("quantization", {})
            unknown += [
                (option.label, trainer, k) for k in quantization if not hasattr(BitsAndBytesConfig(), k)
            ]

    assert unknown == []
