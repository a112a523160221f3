"""Real trainers before their first step: nothing is said of them, until something in them is changed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from begun import begun
from memsweep.readback.allocator import allocator_differences
from memsweep.readback.in_force import differences
from memsweep.readback.model_facts import adapted, base_linears
from memsweep.readback.optimizer import innermost
from memsweep.technique.settings import Settings
from memsweep.trainers.build import Built
from tiny import DATA

FLAG, KEYWORDS = (f"activation_checkpointing{end}|gradient_checkpointing{end}" for end in ("", "_kwargs"))
LORA = {"type": "lora", "r": 4, "lora_alpha": 8}
NF4 = {
    "load_in_4bit": True,
    "bnb_4bit_quant_type": "nf4",
    "bnb_4bit_use_double_quant": True,
    "bnb_4bit_compute_dtype": "bfloat16",
}
BF16 = {"bf16": True, "fp16": False}


@dataclass(frozen=True)
class Case:
    """A trainer and the settings that it was built from."""

    built: Built
    settings: Settings

    @property
    def trainer(self) -> Any:
        return self.built.trainer

    @property
    def model(self) -> Any:
        return self.built.trainer.model

    @property
    def said(self) -> tuple[str, ...]:
        """What is said of it."""
        return differences(self.built, self.settings)

    def asking(self, **fields: Any) -> Case:
        """Return the same trainer, asked for more."""
        return replace(self, built=replace(self.built, asked={**self.built.asked, **fields}))

    def with_settings(self, **seams: Mapping[str, Any]) -> Case:
        """Return the same trainer, asked for other settings of the other seams."""
        return replace(self, settings=replace(self.settings, **seams))


def case(factory: pytest.TempPathFactory, trainer: str = "sft", /, **seams: Mapping[str, Any]) -> Case:
    # accelerate keeps the precision once a process: a trainer with another one would change what these read,
    # and the baseline's depends on the machine.
    seams["trainer"] = {**BF16, **seams.get("trainer", {})}
    return Case(begun(factory, trainer, **seams), Settings(**seams))


@pytest.fixture(scope="module")
def padded(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Rows padded to a multiple, micro-batches, mixed precision."""
    return case(
        tmp_path_factory,
        trainer={"pad_to_multiple_of": 64, "max_length": 512, "per_device_train_batch_size": 2, **BF16},
        model={"dtype": "float32", "attn_implementation": "sdpa"},
    )


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Packed rows, one layer of two recomputed, an optimizer of 8 bits."""
    return case(
        tmp_path_factory,
        trainer={
            "packing": True,
            "packing_strategy": "bfd",
            "max_length": 512,
            "optim": "adamw_8bit",
            FLAG: True,
            KEYWORDS: {"every_n_layers": 2},
        },
    )


@pytest.fixture(scope="module")
def quantized(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Four-bit weights with an adapter at every linear layer."""
    return case(
        tmp_path_factory,
        trainer=BF16,
        model={"quantization": NF4},
        adapter={**LORA, "target_modules": "all-linear"},
    )


@pytest.fixture(scope="module")
def preferences(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Preferences with the reference's log-probabilities computed ahead."""
    return case(tmp_path_factory, "dpo", trainer={"precompute_ref_log_probs": True})


@pytest.fixture(scope="module")
def generating(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A trainer that generates."""
    return case(tmp_path_factory, "grpo", trainer={"pad_to_multiple_of": 8})


@pytest.mark.parametrize("name", ["padded", "packed", "quantized", "preferences", "generating"])
def test_nothing_is_said_of_what_is_in_force(name: str, request: pytest.FixtureRequest) -> None:
    assert request.getfixturevalue(name).said == ()


RICH: Mapping[str, Mapping[str, Any]] = {
    "sft": {"trainer": {"padding_free": True, "max_length": None, "optim": "adafactor", **BF16}},
    "dpo": {"trainer": {"sync_ref_model": True, "max_length": 256, "pad_to_multiple_of": 8, FLAG: False}},
    "reward": {
        "trainer": {**BF16, "optim": "sgd", KEYWORDS: {"use_reentrant": False}},
        "model": {"quantization": {"load_in_8bit": True}},
        "adapter": LORA,
    },
    "kto": {
        "trainer": {"precompute_ref_log_probs": True, "per_device_train_batch_size": 2},
        "adapter": {**LORA, "use_dora": True},
    },
    "grpo": {"trainer": BF16, "model": {"dtype": "bfloat16"}, "adapter": {"type": "vera", "r": 8}},
    "rloo": {"trainer": {"optim": "adamw_8bit"}, "model": {"attn_implementation": "eager"}},
    "online_dpo": {"trainer": {"max_length": 256}, "adapter": {**LORA, "use_rslora": True}},
}


@pytest.mark.parametrize("trainer", DATA)
def test_nothing_is_said_of_many_things_that_are_in_force_in_each_trainer(
    trainer: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert case(tmp_path_factory, trainer, **RICH[trainer]).said == ()


@pytest.fixture
def change() -> Iterator[pytest.MonkeyPatch]:
    """Changes that are undone after the test, for the trainers are shared."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def optimizer_of(case: Case) -> Any:
    return innermost(case.trainer.optimizer)


def layers_of(case: Case) -> list[Any]:
    return [module for module in case.model.modules() if type(module).__name__ == "Qwen2DecoderLayer"]


def says(case: Case, sentence: str) -> bool:
    """Tell whether one thing is said, and this is its beginning and its end."""
    begin, _, end = sentence.partition("...")
    (one,) = case.said
    assert one.startswith(begin), one
    assert one.endswith(end), one
    return True


def test_an_argument_that_a_trainer_took_back(padded: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(padded.trainer.args, "max_length", 1024)

    assert says(padded, "max_length=512 was asked for; the arguments of SFTTrainer have 1024")


def test_a_flag_that_a_trainer_took_back(padded: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(padded.trainer.args, "padding_free", True)

    assert says(padded.asking(padding_free=True), "padding_free=True was asked for; the trainer has False")


def test_a_multiple_that_the_collator_does_not_pad_to(padded: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(padded.trainer.data_collator, "pad_to_multiple_of", None)

    assert says(padded, "pad_to_multiple_of=64 was asked for; the collator has None")


def test_a_multiple_that_a_generating_trainer_does_not_pad_to(
    generating: Case, change: pytest.MonkeyPatch
) -> None:
    change.setattr(generating.trainer, "pad_to_multiple_of", None)

    assert says(generating, "pad_to_multiple_of=8 was asked for; the trainer has None")


def test_rows_longer_than_asked_for(padded: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(padded.trainer.args, "max_length", 100)

    assert says(padded.asking(max_length=100), "max_length=100 was asked for; a row has 512 tokens")


def test_a_collator_that_cuts_elsewhere(preferences: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(preferences.trainer.data_collator, "max_length", None)

    assert says(preferences.asking(max_length=1024), "max_length=1024 was asked for; the collator has None")


def test_rows_that_are_not_packed(packed: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(
        packed.trainer, "train_dataset", packed.trainer.train_dataset.remove_columns("seq_lengths")
    )

    assert says(packed, "packing=True was asked for; the rows have no seq_lengths")


def test_packed_rows_that_are_padded(packed: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(packed.trainer.data_collator, "padding_free", False)

    assert says(packed, "packing=True was asked for; the collator pads its rows")


def test_rows_that_are_packed_another_way(packed: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(packed.trainer.args, "packing_strategy", "wrapped")

    assert says(packed.asking(packing_strategy="wrapped"), "packing=True was asked for; packing_strategy=")


def test_rows_of_one_stream_that_are_not_full(padded: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(padded.trainer.args, "packing", True)
    change.setattr(padded.trainer.args, "packing_strategy", "wrapped")

    assert says(padded.asking(packing=True), "packing=True was asked for; 3 rows are not full")


def test_rows_that_are_packed_unasked(packed: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(packed.trainer.args, "packing", False)

    assert says(
        packed.asking(packing=False), "packing=False was asked for; its rows hold several examples each"
    )


def test_evaluation_rows_that_are_not_packed(packed: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(packed.trainer.args, "eval_packing", True)
    change.setattr(packed.trainer, "eval_dataset", packed.trainer.train_dataset.remove_columns("seq_lengths"))

    assert says(
        packed.asking(eval_packing=True), "eval_packing=True was asked for; the evaluation's rows are not"
    )


def test_another_batch(padded: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(padded.trainer, "_train_batch_size", 4)

    assert says(padded, "per_device_train_batch_size=2 was asked for; the trainer takes 4 at once")


def test_a_loader_of_another_batch(padded: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(padded.trainer.callback_handler.train_dataloader.batch_sampler, "batch_size", 3)

    assert says(padded, "per_device_train_batch_size=2 was asked for; the loader takes 3 in all, and not 2")


def test_another_optimizer(padded: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(padded.trainer, "optimizer", torch.optim.SGD(padded.model.parameters()))

    assert says(
        padded, "optim=adamw_torch_fused was asked for, torch.optim.adamw.AdamW; ...torch.optim.sgd.SGD"
    )


@pytest.mark.parametrize("name", ["adafactor", "sgd", "adamw_8bit"])
def test_an_optimizer_that_was_not_made(name: str, padded: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(padded.trainer.args, "optim", name)

    assert says(padded.asking(optim=name), f"optim={name} was asked for, ...is torch.optim.adamw.AdamW")


def test_an_optimizer_that_is_not_fused(padded: Case, change: pytest.MonkeyPatch) -> None:
    change.setitem(optimizer_of(padded).param_groups[1], "fused", None)

    assert says(padded, "optim=adamw_torch_fused was asked for with fused=True; the optimizer has fused=None")


def test_an_optimizer_of_more_bits(packed: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(optimizer_of(packed).args, "optim_bits", 32)

    assert says(packed, "optim=adamw_8bit was asked for with optim_bits=8; the optimizer has optim_bits=32")


def test_an_optimizer_of_few_bits_that_finds_no_tensor_large_enough(
    packed: Case, change: pytest.MonkeyPatch
) -> None:
    change.setattr(optimizer_of(packed).args, "min_8bit_size", 100_000)

    assert says(packed, "optim=adamw_8bit was asked for; all state is kept in 32 bits: ...64,000")


def test_a_paged_optimizer_that_pages_nothing(packed: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(packed.trainer.args, "optim", "paged_adamw_8bit")
    change.setattr(optimizer_of(packed), "is_paged", True)

    assert says(
        packed.asking(optim="paged_adamw_8bit"), "optim=paged_adamw_8bit was asked for; no state is paged"
    )


def test_mixed_precision_that_accelerate_has_not(padded: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(padded.trainer.accelerator.state, "_mixed_precision", "no")

    assert says(padded, "mixed precision bf16 was asked for; the model computes in no")


def test_mixed_precision_that_the_model_was_not_wrapped_in(padded: Case, change: pytest.MonkeyPatch) -> None:
    change.delattr(padded.model, "_original_forward")

    assert says(padded, "mixed precision bf16 was asked for; the model computes in no")


def test_a_model_that_is_not_compiled(padded: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(padded.trainer.args, "torch_compile", True)

    assert says(
        padded.asking(torch_compile=True), "torch_compile=True was asked for; the model is not compiled"
    )


def test_a_model_that_is_compiled_unasked(padded: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(padded.trainer, "model_wrapped", torch.compile(padded.model))

    assert says(padded, "torch_compile=False was asked for; the model is compiled")


def test_log_probabilities_that_are_not_ahead(preferences: Case, change: pytest.MonkeyPatch) -> None:
    columns = ["ref_chosen_logps", "ref_rejected_logps"]
    change.setattr(
        preferences.trainer, "train_dataset", preferences.trainer.train_dataset.remove_columns(columns)
    )

    assert says(preferences, "precompute_ref_log_probs=True was asked for; the rows have no log-prob")


def test_a_reference_that_is_held_all_the_same(preferences: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(preferences.trainer, "ref_model", preferences.model)

    assert says(preferences, "precompute_ref_log_probs=True was asked for; a reference model is held")


# Fields whose effect is not there, though arguments and trainer keep them.
WITHOUT_EFFECT = [
    ("preferences", {"sync_ref_model": True}, "no callback copies weights to the reference"),
    ("preferences", {"activation_offloading": True}, "activations stay on the device"),
    ("preferences", {"torch_empty_cache_steps": 1}, "torch keeps no cache of a cpu's memory"),
    ("preferences", {"ref_model_sync_steps": 512}, "the trial has 4 steps"),
    ("preferences", {"fsdp": ["full_shard"]}, "accelerate has NO"),
    ("preferences", {"deepspeed": {"zero_optimization": {}}}, "accelerate has NO"),
    ("generating", {"use_vllm": True}, "no vLLM is there"),
    ("generating", {"vllm_enable_sleep_mode": True}, "no vLLM generates"),
    ("generating", {"ds3_gather_for_generation": False}, "weights are not sharded by ZeRO-3, so ...gather"),
]


@pytest.mark.parametrize(
    ("name", "asked", "found"), WITHOUT_EFFECT, ids=[next(iter(a)) for _, a, _ in WITHOUT_EFFECT]
)
def test_a_field_without_its_effect(
    name: str, asked: dict[str, Any], found: str, request: pytest.FixtureRequest, change: pytest.MonkeyPatch
) -> None:
    shared: Case = request.getfixturevalue(name)
    ((field, value),) = asked.items()
    change.setattr(shared.trainer.args, field, value)
    change.setattr(shared.trainer, field, value, raising=False)

    assert says(shared.asking(**asked), f"{field}={value} was asked for; {found}")


def test_nothing_is_said_of_a_choice_that_is_left_to_the_library(padded: Case) -> None:
    assert padded.asking(bf16=None, pad_to_multiple_of="auto", packing_strategy="bfd").said == ()


def test_a_layer_that_does_not_recompute(padded: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(layers_of(padded)[1], "gradient_checkpointing", False)

    assert says(padded, "checkpointing of every layer was asked for; of 2 layers these recompute: 0")


def test_layers_that_recompute_more_than_asked_for(packed: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(layers_of(packed)[1], "gradient_checkpointing", True)

    assert says(packed, "checkpointing of one layer of 2 was asked for; of 2 layers these recompute: 0, 1")


def test_a_model_that_does_not_recompute(padded: Case, change: pytest.MonkeyPatch) -> None:
    for module in padded.model.modules():
        if hasattr(module, "gradient_checkpointing"):
            change.setattr(module, "gradient_checkpointing", False)

    assert says(padded, "checkpointing=True was asked for; no module of the model recomputes")


@pytest.mark.parametrize(
    ("asked", "found"),
    [({"use_reentrant": True}, "False"), ({"offload": True}, "False"), ({"selective": True}, "False")],
)
def test_another_way_to_recompute(
    asked: dict[str, Any], found: str, padded: Case, change: pytest.MonkeyPatch
) -> None:
    ((name, value),) = asked.items()
    keywords = KEYWORDS.split("|")
    change.setattr(padded.trainer.args, keywords[-1], asked)
    change.setattr(padded.trainer.args, keywords[0], asked, raising=False)

    assert says(
        padded.asking(**{keywords[-1]: asked}),
        f"checkpointing with {name}={value} was asked for; the function of ...{{'use_reentrant': {found}}}",
    )


def test_a_layer_that_recomputes_another_way(padded: Case, change: pytest.MonkeyPatch) -> None:
    way = functools.partial(checkpoint, use_reentrant=True)
    change.setattr(layers_of(padded)[1], "_gradient_checkpointing_func", way)

    assert says(
        padded.asking(**{KEYWORDS.split("|")[-1]: {"use_reentrant": False}}),
        "checkpointing with use_reentrant=False was asked for; the function of ...True}",
    )


def test_another_attention(padded: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(padded.model.config, "_attn_implementation", "eager")

    assert says(padded, "attn_implementation=sdpa was asked for; the model has eager")


def test_a_weight_of_another_type(padded: Case, change: pytest.MonkeyPatch) -> None:
    weight = padded.model.model.norm.weight
    change.setattr(weight, "data", weight.data.to(torch.bfloat16))

    assert says(padded, "dtype=float32 was asked for; the model's weights are 1 of bfloat16, 25 of float32")


def test_a_keyword_of_the_model_that_it_has_not(padded: Case) -> None:
    asking = padded.with_settings(model={**padded.settings.model, "use_kernels": True})

    assert says(asking, "use_kernels=True was asked for; the model has False")


def test_a_keyword_of_the_model_among_the_trainers_arguments(padded: Case) -> None:
    asking = padded.with_settings(model={}).asking(model_init_kwargs={"torch_dtype": "bfloat16"})

    assert says(asking, "dtype=bfloat16 was asked for; the model's weights are 26 of float32")


def test_weights_that_are_not_quantized(padded: Case) -> None:
    asking = padded.with_settings(model={"quantization": {"load_in_8bit": True}})

    assert says(asking, "quantization=...; no module of the model is quantized")


QUANTIZED = [
    (
        {"load_in_8bit": True, "load_in_4bit": False},
        "the weight of model.layers.0.mlp.down_proj is Params4bit",
    ),
    ({"bnb_4bit_quant_type": "fp4"}, "bnb_4bit_quant_type=nf4"),
    ({"bnb_4bit_use_double_quant": False}, "bnb_4bit_use_double_quant=True"),
    ({"bnb_4bit_compute_dtype": "float32"}, "bnb_4bit_compute_dtype=bfloat16"),
]


@pytest.mark.parametrize(("asked", "found"), QUANTIZED, ids=[next(iter(asked)) for asked, _ in QUANTIZED])
def test_weights_that_are_quantized_another_way(asked: dict[str, Any], found: str, quantized: Case) -> None:
    asking = quantized.with_settings(model={"quantization": {**NF4, **asked}})

    assert says(asking, f"quantization=...{found}")


def test_one_weight_that_is_quantized_another_way(quantized: Case, change: pytest.MonkeyPatch) -> None:
    layer = base_linears(quantized.model)["model.layers.1.mlp.up_proj"]
    change.setattr(layer.weight, "quant_type", "fp4")

    assert says(quantized, "quantization=...; model.layers.1.mlp.up_proj has bnb_4bit_quant_type=fp4")


def test_a_layer_that_is_not_quantized(quantized: Case, change: pytest.MonkeyPatch) -> None:
    layer = adapted(quantized.model)["model.layers.1.mlp.up_proj"]
    change.setitem(layer._modules, "base_layer", torch.nn.Linear(64, 128, bias=False).requires_grad_(False))

    assert says(quantized, "quantization=...; 1 linear layers are not quantized: model.layers.1.mlp.up_proj")


def test_no_adapter_where_one_was_asked_for(padded: Case) -> None:
    assert says(padded.with_settings(adapter=LORA), "adapter lora was asked for; the model has none")


def test_an_adapter_where_none_was_asked_for(quantized: Case) -> None:
    assert says(quantized.with_settings(adapter={}), "no adapter was asked for; the model has lora")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"type": "ia3"}, "adapter ia3 was asked for; the model has lora"),
        ({"r": 8}, "adapter lora with r=8 was asked for; it has 4"),
        ({"lora_alpha": 16}, "adapter lora with lora_alpha=16 was asked for; it has 8"),
        (
            {"target_modules": ["q_proj"]},
            "adapter lora with target_modules=['q_proj'] was asked for; it has ",
        ),
    ],
    ids=["type", "rank", "alpha", "targets"],
)
def test_another_adapter(asked: dict[str, Any], found: str, quantized: Case) -> None:
    assert says(quantized.with_settings(adapter={**quantized.settings.adapter, **asked}), found)


def in_one_module(field: str, value: Any) -> Callable[[Case, pytest.MonkeyPatch], None]:
    def tamper(case: Case, change: pytest.MonkeyPatch) -> None:
        holder = getattr(adapted(case.model)["model.layers.0.mlp.up_proj"], field)
        change.setitem(holder, "default", value)

    return tamper


def switched_off(case: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(adapted(case.model)["model.layers.0.mlp.up_proj"], "_disable_adapters", True)


def taken_out(case: Case, change: pytest.MonkeyPatch) -> None:
    layers = case.model.get_base_model().model.layers
    change.setitem(layers[0].mlp._modules, "up_proj", layers[0].mlp.up_proj.base_layer)


def base_trained(case: Case, change: pytest.MonkeyPatch) -> None:
    change.setattr(case.model.get_base_model().model.norm.weight, "requires_grad", True)


def frozen(case: Case, change: pytest.MonkeyPatch) -> None:
    for parameter in case.model.parameters():
        if parameter.requires_grad:
            change.setattr(parameter, "requires_grad", False)


@pytest.mark.parametrize(
    ("tamper", "found"),
    [
        (in_one_module("r", 2), " with r=4 was asked for; model.layers.0.mlp.up_proj has 2"),
        (
            in_one_module("scaling", 1.0),
            " with scaling=2.0 was asked for; model.layers.0.mlp.up_proj has 1.0",
        ),
        (in_one_module("use_dora", True), " with use_dora=False was asked for; ...has True"),
        (
            switched_off,
            " was asked for; it is switched off or merged in 1 modules, as in model.layers.0.mlp.up_proj",
        ),
        (taken_out, " of all linear layers was asked for; 1 have none"),
        (
            base_trained,
            " was asked for; 1 parameters beside it are trained, as base_model.model.model.norm.weight",
        ),
        (frozen, " was asked for; nothing of it is trained"),
    ],
    ids=["rank", "scale", "variant", "off", "out", "base", "frozen"],
)
def test_an_adapter_that_is_not_in_the_modules_as_asked(
    tamper: Callable[[Case, pytest.MonkeyPatch], None],
    found: str,
    quantized: Case,
    change: pytest.MonkeyPatch,
) -> None:
    tamper(quantized, change)

    assert says(quantized, f"adapter lora{found}")


PISSA = {**LORA, "init_lora_weights": "pissa"}
PROMPT = {"type": "prompt_tuning", "num_virtual_tokens": 4}


def test_a_prompt_before_a_row_of_several_examples(tmp_path_factory: pytest.TempPathFactory) -> None:
    flattened = case(tmp_path_factory, trainer={"padding_free": True, "max_length": None}, adapter=PROMPT)

    assert says(
        flattened, "padding_free=True was asked for; the adapter drops the position ids that keep ...apart"
    )


def test_a_prompt_that_hides_where_rows_end(tmp_path_factory: pytest.TempPathFactory) -> None:
    scored = case(tmp_path_factory, "reward", adapter=PROMPT)

    assert says(
        scored, "adapter prompt_tuning was asked for; it hides token ids, so the scores of padded rows ..."
    )


def test_a_reference_that_is_not_what_training_starts_from(tmp_path_factory: pytest.TempPathFactory) -> None:
    decomposed = case(tmp_path_factory, "dpo", adapter=PISSA)

    assert says(
        decomposed, "the reference is the model without its adapter; that is not the model that training ..."
    )


def test_no_reference_is_missed_where_there_is_none(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert case(tmp_path_factory, "grpo", adapter=PISSA).said == ()


def test_processes_that_were_not_started(padded: Case) -> None:
    launch = {"processes": 2, "distributed_type": "FSDP", "fsdp_config": {"fsdp_version": 2}}

    assert padded.with_settings(launch=launch).said == (
        "2 processes were asked for; accelerate has 1",
        "FSDP was asked for; accelerate has NO",
    )


def test_a_variable_that_is_not_there(padded: Case) -> None:
    asking = padded.with_settings(environment={"MEMSWEEP_EXAMPLE": "1"})

    assert says(asking, "MEMSWEEP_EXAMPLE=1 was asked for; the environment has None")


def test_an_allocators_variable_says_nothing_of_a_cpu(padded: Case, change: pytest.MonkeyPatch) -> None:
    change.setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    asking = padded.with_settings(environment={"PYTORCH_ALLOC_CONF": "expandable_segments:True"})

    assert says(
        asking, "PYTORCH_ALLOC_CONF=expandable_segments:True was asked for; it says nothing about ...cpu"
    )


@pytest.mark.parametrize(
    ("environment", "settings", "found"),
    [
        ({"PYTORCH_ALLOC_CONF": "a:1"}, "a:1", ()),
        ({"PYTORCH_ALLOC_CONF": "a:1"}, "", ("torch's allocator has nothing",)),
        ({"PYTORCH_ALLOC_CONF": "a:1"}, None, ()),
        (
            {"PYTORCH_ALLOC_CONF": "a:1", "PYTORCH_CUDA_ALLOC_CONF": "b:2"},
            "b:2",
            ("PYTORCH_CUDA_ALLOC_CONF=b:2 goes before it",),
        ),
    ],
    ids=["in force", "read before", "not told", "the older name"],
)
def test_an_allocators_variable_is_compared_with_what_torch_has(
    environment: dict[str, str], settings: str | None, found: tuple[str, ...], change: pytest.MonkeyPatch
) -> None:
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        change.delenv(name, raising=False)
    for name, value in environment.items():
        change.setenv(name, value)
    change.setattr("memsweep.readback.allocator.allocator_settings", lambda: settings)

    said = tuple(allocator_differences({"PYTORCH_ALLOC_CONF": "a:1"}, "cuda"))

    assert said == tuple(f"PYTORCH_ALLOC_CONF=a:1 was asked for; {one}" for one in found)
