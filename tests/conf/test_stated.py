"""What conf/technique says that nothing else contradicts, stated a second time.

A rule that is dropped and a bound that moves break nothing here: what these tables say is changed twice, or
not at all.  Options that neither they nor `PROMISED` name may be added freely.  README states the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest
from test_techniques import PROMISED, options_of

from memsweep.technique.catalogue import Catalogue
from memsweep.technique.option import BASELINE, Option
from memsweep.technique.rule import Condition

Table = tuple[tuple[str, str], ...]
"""What is said, and of which options: `technique=one|another`."""

RULES: Table = (
    ("excludes quantization=int8, device=cpu", "adapter=dora"),
    (
        "excludes quantization chosen, precision=bf16_weights, trainer=grpo, online_dpo or rloo; or "
        "quantization chosen, precision=baseline, bf16=native, trainer=online_dpo",
        "adapter=ia3",
    ),
    (
        "requires quantization=baseline, precision=bf16_mixed or fp32; or quantization=baseline, "
        "precision=baseline, trainer=dpo, grpo, kto, reward, rloo or sft; or trainer=online_dpo, "
        "precision=bf16_mixed or fp32; or trainer=online_dpo, precision=baseline, bf16=emulated; or "
        "trainer.arguments.learning_rate at least 0.004",
        "adapter=ln_tuning",
    ),
    ("excludes quantization=fp4, nf4 or nf4_double", "adapter=loha|lokr"),
    ("requires trainer.arguments.beta at most 0 in rloo", "adapter=olora|pissa"),
    ("excludes trainer.arguments.beta above 0 in grpo", "adapter=olora|pissa"),
    ("excludes quantization chosen", "adapter=pissa"),
    ("requires checkpointing=disabled", "adapter=prefix_tuning"),
    ("excludes trainer=grpo or rloo with transformers>=5.18", "adapter=p_tuning|prompt_tuning"),
    ("excludes trainer=grpo, online_dpo or rloo with transformers>=5.18", "adapter=prefix_tuning"),
    ("excludes trainer=reward with transformers>=5.18", "adapter=prefix_tuning"),
    (
        "excludes precision=bf16_mixed; or precision=baseline, bf16=native in grpo, rloo with "
        "transformers<5.18",
        "generation_cache=static",
    ),
    (
        "excludes quantization chosen, trainer=grpo or rloo; or quantization chosen, precision=fp32, "
        "trainer=dpo, kto or sft; or quantization chosen, precision=baseline, bf16=emulated, "
        "trainer=dpo, kto or sft",
        "adapter=vera",
    ),
    (
        "excludes precision=fp32",
        "attention=flash_attention_2|flash_attention_3|flash_attention_4|kernels_flash_attn2",
    ),
    ("excludes adapter chosen with transformers>=5.18", "checkpointing=selective"),
    ("requires sharding=zero3", "ds3_gather=disabled"),
    ("requires vllm=baseline", "ds3_gather=disabled"),
    ("requires precision=fp32; or bf16=emulated, precision=baseline in kto", "sharding=fsdp2"),
    ("excludes quantization=fp4, nf4 or nf4_double", "sharding=fsdp2"),
    ("excludes quantization=int8", "sharding=fsdp2"),
    ("excludes optimizer=adamw_8bit or paged_adamw_8bit", "sharding=fsdp2"),
    ("excludes optimizer=adafactor", "sharding=fsdp2"),
    ("excludes precision=bf16_weights, adapter=baseline", "sharding=fsdp2"),
    (
        "excludes adapter=prefix_tuning or vera, precision=bf16_mixed or bf16_weights; or "
        "adapter=prefix_tuning or vera, precision=baseline, bf16=native",
        "sharding=fsdp2",
    ),
    ("excludes precision=bf16_mixed", "sharding=zero2|zero3"),
    ("excludes adapter=ln_tuning or loha", "sharding=zero3"),
    ("excludes compile chosen", "sharding=zero3"),
    (
        "excludes reference=precomputed, precision=bf16_mixed or bf16_weights; or "
        "reference=precomputed, precision=baseline, bf16=native",
        "sharding=zero2|zero3",
    ),
    ("requires measure.evaluation_examples at least 1", "evaluation_packing=disabled|enabled"),
    ("requires packing chosen", "evaluation_packing=enabled"),
    ("requires checkpointing=disabled in online_dpo", "generation_cache=offloaded|quantized|static"),
    ("excludes vllm chosen", "generation_cache=offloaded|quantized|static"),
    ("requires generations.n to divide batch (8)", "generations=count"),
    ("requires micro_batch.size to divide batch (8)", "micro_batch=size"),
    ("requires micro_batch.size at least 2 in kto", "micro_batch=size"),
    ("excludes truncation=none", "packing=bfd|bfd_split|wrapped"),
    (
        "excludes adapter=p_tuning, prefix_tuning or prompt_tuning",
        "packing=bfd|bfd_split|wrapped padding_free=enabled",
    ),
    ("requires packing=bfd or bfd_split; or packing=baseline, truncation=none", "padding_free=enabled"),
    ("requires adapter chosen", "quantization=fp4|int8|nf4|nf4_double reference=shared_base"),
    ("excludes vllm=colocate or colocate_sleep", "quantization=int8"),
    (
        "requires precision=bf16_mixed or bf16_weights; or bf16=native, precision=baseline in reward",
        "quantization=fp4|int8|nf4|nf4_double",
    ),
    ("requires trainer.arguments.beta above 0 in grpo", "reference=shared_base|sync"),
    ("excludes trainer.arguments.beta at most 0 in rloo", "reference=shared_base|sync"),
    ("excludes adapter chosen", "reference=sync"),
)

CHANGES: Table = (
    (
        "trained_parameters",
        "adapter=dora|ia3|ln_tuning|loha|lokr|lora|lora_all_linear|oft|olora|p_tuning|pissa|prefix_tuning|"
        "prompt_tuning|rslora|vera",
    ),
    ("data", "completion_length=tokens truncation=max_length|none"),
    (
        "numerics",
        "generation_cache=quantized optimizer=adafactor|adamw_8bit|paged_adamw_8bit|sgd "
        "precision=bf16_mixed|bf16_weights|fp32 quantization=fp4|int8|nf4|nf4_double reference=sync "
        "sharding=fsdp2|zero2|zero3 vllm=colocate|colocate_sleep|server",
    ),
    ("batch", "generations=count packing=bfd"),
    ("batch data", "packing=bfd_split|wrapped"),
)

PARAMETERS: Table = (
    ("r 16 in 1..", "adapter=dora|lora|lora_all_linear|olora|pissa|rslora"),
    ("alpha 32 in 1..", "adapter=dora|lora|lora_all_linear|olora|pissa|rslora"),
    ("r 8 in 1..", "adapter=loha|lokr"),
    ("alpha 16 in 1..", "adapter=loha|lokr"),
    ("block_size 32 in 2..", "adapter=oft"),
    ("virtual_tokens 8 in 1..", "adapter=p_tuning|prefix_tuning|prompt_tuning"),
    ("hidden 128 in 1..", "adapter=p_tuning"),
    ("r 256 in 1..", "adapter=vera"),
    ("share 0.8 in 0.05..0.99", "allocator=gc_threshold"),
    ("megabytes 128 in 21..", "allocator=max_split"),
    ("n 2 in 2..", "checkpointing=every_n_layers"),
    ("tokens 32 in 1..", "completion_length=tokens"),
    ("n 1 in 1..", "empty_cache=every_n_steps"),
    ("n 4 in 2..", "generations=count"),
    ("size 2 in 1..", "micro_batch=size"),
    ("multiple 64 in 1..", "pad_to_multiple_of=multiple"),
    ("compute_dtype bfloat16 in ..", "quantization=fp4|nf4|nf4_double"),
    ("steps 1 in 1..", "reference=sync"),
    ("mixup 0.6 in 0..1", "reference=sync"),
    ("processes 2 in 2..", "sharding=ddp|fsdp2|zero2|zero3"),
    ("max_length 512 in 16..", "truncation=max_length"),
    ("memory_share 0.3 in 0.05..0.95", "vllm=colocate|colocate_sleep"),
)


def rules_of(option: Option, catalogue: Catalogue) -> Iterator[str]:
    def text(condition: Condition) -> str:
        technique = catalogue.techniques.get(condition.key)
        if technique is not None and set(condition.allowed) == set(technique.options) - {BASELINE}:
            return f"{condition.key} chosen"
        return condition.text({"batch": 8})

    for rule in option.rules:
        told = "; or ".join(", ".join(text(condition) for condition in part.values()) for part in rule.any_of)
        where = f" in {', '.join(rule.trainers)}" if rule.trainers else ""
        which = "".join(f" with {package}{bounds}" for package, bounds in rule.versions.items())
        yield f"{rule.kind.value} {told}{where}{which}"


def changes_of(option: Option, _: Catalogue) -> Iterator[str]:
    if option.changes != ("nothing",):
        yield " ".join(option.changes)


def parameters_of(option: Option, _: Catalogue) -> Iterator[str]:
    def end(bound: float | None) -> str:
        return "" if bound is None else f"{bound:g}"

    for parameter in option.parameters.values():
        yield f"{parameter.name} {parameter.default} in {end(parameter.minimum)}..{end(parameter.maximum)}"


STATED: Mapping[str, tuple[Callable[[Option, Catalogue], Iterator[str]], Table]] = {
    "rules": (rules_of, RULES),
    "changes": (changes_of, CHANGES),
    "parameters": (parameters_of, PARAMETERS),
}


def labels(options: str) -> list[str]:
    parts = (part.partition("=") for part in options.split())
    return [f"{technique}={name}" for technique, _, names in parts for name in names.split("|")]


KNOWN = {f"{technique}={name}" for technique, names in PROMISED.items() for name in names.split()}
KNOWN |= {label for _, table in STATED.values() for _, options in table for label in labels(options)}


@pytest.mark.parametrize("what", STATED)
def test_what_an_option_says_is_what_is_stated_here(what: str, catalogue: Catalogue) -> None:
    told, table = STATED[what]
    stated = [(label, statement) for statement, options in table for label in labels(options)]
    found = [(o.label, said) for o in options_of(catalogue) for said in told(o, catalogue)]

    assert sorted(pair for pair in found if pair[0] in KNOWN) == sorted(stated)
