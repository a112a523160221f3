from __future__ import annotations

from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM

from memsweep.measure.utilization import model_flops_per_token, peak_flops_per_second

LENGTH, N_ROWS = 64, 2

GEOMETRY: dict[str, dict[str, Any]] = {
    "qwen2": {"hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 8, "num_key_value_heads": 2},
    "llama": {"hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 8, "head_dim": 32},
    "gpt2": {"n_embd": 64, "n_layer": 8, "n_head": 4, "n_positions": 128},
}


def model_of(kind: str, tied: bool = True, **more: Any) -> Any:
    common = {"vocab_size": 512, "num_attention_heads": 4, "tie_word_embeddings": tied}
    tokens = {"pad_token_id": 0, "bos_token_id": None, "eos_token_id": 0}
    config = AutoConfig.for_model(kind, **{**common, **tokens, **GEOMETRY[kind], **more})
    return AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32)


def counted_flops_per_token(model: Any) -> float:
    ids = torch.randint(1, 512, (N_ROWS, LENGTH))
    with FlopCounterMode(display=False) as counter:
        model(input_ids=ids, labels=ids).loss.backward()
    return float(counter.get_total_flops() / (N_ROWS * LENGTH))


@pytest.mark.parametrize("kind", GEOMETRY)
@pytest.mark.parametrize("tied", [True, False])
def test_full_training_needs_what_a_counter_of_operations_counts(kind: str, tied: bool) -> None:
    model = model_of(kind, tied)

    assert model_flops_per_token(model, LENGTH) == pytest.approx(counted_flops_per_token(model), rel=0.01)


@pytest.mark.parametrize("kind", GEOMETRY)
def test_frozen_weights_need_no_gradient_of_their_own(kind: str) -> None:
    model = get_peft_model(
        model_of(kind), LoraConfig(r=4, target_modules="all-linear", fan_in_fan_out=kind == "gpt2")
    )
    found = model_flops_per_token(model, LENGTH)

    # The first layer's input needs no gradient: the counter misses a part of one of eight layers.
    assert found == pytest.approx(counted_flops_per_token(model), rel=0.04)
    assert found < 0.85 * model_flops_per_token(model_of(kind), LENGTH)


def test_the_head_counts_and_the_lookup_does_not() -> None:
    model = model_of("qwen2")
    without_length = model_flops_per_token(model, 0)
    layers = sum(p.numel() for name, p in model.named_parameters() if "proj.weight" in name)

    assert without_length == 6 * (layers + 512 * 64)


def test_attention_grows_with_the_length_up_to_its_window() -> None:
    model = model_of("llama")
    base = model_flops_per_token(model, 0)

    assert model_flops_per_token(model, 100) - base == 12 * 8 * (4 * 32) * 100
    model.config.sliding_window, model.config.layer_types = 10, ["sliding_attention", "full_attention"] * 4
    assert model_flops_per_token(model, 100) - base == 12 * 4 * (4 * 32) * (100 + 10)


def test_the_original_of_a_module_that_is_trained_whole_is_not_called() -> None:
    plain = get_peft_model(model_of("qwen2", tied=False), LoraConfig(r=4))
    whole = get_peft_model(model_of("qwen2", tied=False), LoraConfig(r=4, modules_to_save=["lm_head"]))
    trained_head = model_flops_per_token(whole, LENGTH) - model_flops_per_token(plain, LENGTH)

    assert trained_head == 2 * 512 * 64


def test_packed_weights_count_by_what_they_map() -> None:
    class Packed(nn.Linear):
        def __init__(self) -> None:
            super().__init__(64, 32, bias=False)
            packed = torch.zeros(64 * 32 // 2, 1, dtype=torch.uint8)
            self.weight = nn.Parameter(packed, requires_grad=False)

    assert model_flops_per_token(nn.Sequential(Packed()), 10) == 4 * 64 * 32


def test_a_token_is_sent_to_some_experts_only() -> None:
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "moe_intermediate_size": 32, "head_dim": 16}
    common = {"vocab_size": 512, "num_attention_heads": 4, "num_key_value_heads": 4, "pad_token_id": 0}

    def flops(used: int) -> float:
        config = AutoConfig.for_model(
            "qwen3_moe", **sizes, **common, num_experts=8, num_experts_per_tok=used, decoder_sparse_step=1
        )
        return model_flops_per_token(AutoModelForCausalLM.from_config(config), 0)

    assert flops(3) - flops(2) == 2 * 6 * (3 * 64 * 32)  # two layers, three matrices an expert


@pytest.mark.parametrize(
    ("name", "tera"),
    [
        ("NVIDIA A100-SXM4-80GB", 312),
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA H100 NVL", 835),
        ("NVIDIA H200", 989),
        ("NVIDIA L4", 121),
        ("NVIDIA L40S", 362),
        ("NVIDIA A10G", 70),
        ("NVIDIA A10", 125),
        ("NVIDIA GeForce RTX 4090", 165.2),
        ("NVIDIA GH200 480GB", 990),
    ],
)
def test_peaks_are_found_by_the_devices_name(name: str, tera: float) -> None:
    found = peak_flops_per_second(name, torch.bfloat16)

    assert found is not None
    assert found[0] == pytest.approx(tera * 1e12)
    assert "NVIDIA" in found[1]


@pytest.mark.parametrize(
    "name",
    ["NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA GeForce GTX 1080", ""],
)
def test_a_device_that_is_not_on_the_list_has_no_peak(name: str) -> None:
    assert peak_flops_per_second(name, torch.bfloat16) is None


def test_a_peak_is_that_of_the_type_that_is_multiplied() -> None:
    assert peak_flops_per_second("Tesla T4", torch.float16) == (65e12, "NVIDIA T4 datasheet")
    assert peak_flops_per_second("Tesla T4", torch.bfloat16) is None
    assert peak_flops_per_second("NVIDIA H200", torch.float32) is None
