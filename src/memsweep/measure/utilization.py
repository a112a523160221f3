"""Which share of the device's arithmetic did training use?

Model FLOPs utilization: the arithmetic that the model needs for the tokens that were trained on, over what
the device could have done in that time.  Recomputation is excluded, so that a set-up which recomputes does
not look busier; padding is excluded too, as only real tokens are counted.

    a matrix of N weights    2 N forward, 2 N for the gradient of its input, 2 N for its own gradient, that
                             only where it is trained: 6 N a token when trained, 4 N when frozen
    attention                products of queries with keys and of scores with values, forward, and twice that
                             backward: 6 x heads x (query size + value size) x length a token, which is
                             12 x layers x heads x head size x length.  A causal mask is counted in full, as
                             is the custom, though fused kernels do half of it

Lookups of embeddings are no arithmetic; the head is, tied or not.  Norms, activations and the optimizer are
left out, and so are passes without gradients: a reference model, generation, evaluation.

Source: arXiv:2204.02311 (PaLM) appendix B; arXiv:2104.04473 (Megatron-LM) section 3 and appendix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch
from transformers.pytorch_utils import Conv1D

_TERA = 1e12

# Dense peaks of the tensor cores, in teraFLOP/s: 16-bit factors, 32-bit sums, no sparsity, boost clock.  The
# first pattern that a device's name has decides.  Vendors print most of these doubled, "with sparsity".
# Each device's data sheet by NVIDIA is the source, unless another is named.
_PEAKS: tuple[tuple[str, float, bool, str], ...] = (
    # pattern, teraFLOP/s, has bfloat16, source
    (r"GH200", 990, True, "NVIDIA GH200 datasheet"),
    (r"B200", 2250, True, "NVIDIA HGX B200 datasheet"),
    (r"H200 NVL", 835, True, "NVIDIA H200 datasheet, NVL"),
    (r"H200", 989, True, "NVIDIA H200 datasheet, SXM"),
    (r"H100 NVL", 835, True, "NVIDIA H100 datasheet, NVL"),
    (r"H100 PCIe|H100.*HBM2e", 756, True, "NVIDIA H100 datasheet, PCIe"),
    (r"H100", 989, True, "NVIDIA H100 datasheet, SXM"),
    (r"A100", 312, True, "NVIDIA A100 datasheet"),
    (r"A30", 165, True, "NVIDIA A30 datasheet"),
    (r"A10G", 70, True, "NVIDIA A10G datasheet"),
    (r"A10", 125, True, "NVIDIA A10 datasheet"),
    (r"A40", 149.7, True, "NVIDIA A40 datasheet"),
    (r"RTX A6000", 154.8, True, "NVIDIA RTX A6000 datasheet"),
    (r"RTX 6000 Ada", 364.2, True, "NVIDIA RTX 6000 Ada Generation datasheet"),
    (r"L40S", 362, True, "NVIDIA L40S datasheet"),
    (r"L40", 181, True, "NVIDIA L40 datasheet"),
    (r"L4", 121, True, "NVIDIA L4 datasheet"),
    (r"T4", 65, False, "NVIDIA T4 datasheet"),
    (r"V100.*SXM", 125, False, "NVIDIA V100 datasheet, SXM2"),
    (r"V100.*PCIE", 112, False, "NVIDIA V100 datasheet, PCIe"),
    (r"RTX 5090", 209.5, True, "NVIDIA RTX Blackwell GPU architecture whitepaper, appendix A"),
    (r"RTX 4090", 165.2, True, "NVIDIA Ada GPU architecture whitepaper, appendix A"),
    (r"RTX 4080", 97.5, True, "NVIDIA Ada GPU architecture whitepaper, appendix A"),
    (r"RTX 3090", 71, True, "NVIDIA Ampere GA102 GPU architecture whitepaper, appendix A"),
)
_OTHER_THAN_THEIR_NAME = re.compile(r"\b(MIG|Laptop|Max-Q|Ti|SUPER|D)\b")
"""Parts of a name that say it is a slice of a device, or a sibling with another number of cores."""

_FORWARD, _INPUT_GRADIENT, _WEIGHT_GRADIENT = 2, 2, 2
_WITHOUT_LENGTH = ("linear_attention", "conv", "moe")
"""Types of layers whose work does not grow with the length.

Source: transformers==5.24.0 configuration_utils.py ALLOWED_ATTN_LAYER_TYPES.
"""


def model_flops_per_token(model: torch.nn.Module, mean_sequence_length: float) -> float:
    """Return the floating-point operations that training on a token needs, forward and backward.

    Args:
        model: As it is trained: adapters in place, what is frozen frozen.
        mean_sequence_length: Tokens of the sequence that a token stands in, as a mean over tokens: the sum of
            the squared lengths over the sum of the lengths.
    """
    weights = 0.0
    for size, is_trained in _matrices(model):
        weights += size * (_FORWARD + _INPUT_GRADIENT + (_WEIGHT_GRADIENT if is_trained else 0))
    return weights + _attention_flops_per_token(_text_config(model), mean_sequence_length)


def peak_flops_per_second(device_name: str, dtype: torch.dtype) -> tuple[float, str] | None:
    """Return what a device can do at most, and who says so; None where it is not on the list.

    Args:
        device_name: As the driver says it: `NVIDIA H100 80GB HBM3`.
        dtype: What is multiplied: 16 bits only, as the peak of 32 bits depends on whether TF32 is allowed.
    """
    if dtype not in (torch.bfloat16, torch.float16) or _OTHER_THAN_THEIR_NAME.search(device_name):
        return None
    for pattern, tera, has_bfloat16, source in _PEAKS:
        if re.search(rf"\b(?:{pattern})\b", device_name, re.IGNORECASE):
            return (tera * _TERA, source) if has_bfloat16 or dtype is torch.float16 else None
    return None


def _matrices(model: torch.nn.Module) -> Iterator[tuple[float, bool]]:
    """Yield the weights that multiply each token, with whether they are trained.

    Quantized layers pack their weights, so sizes come from what a layer says it maps.  Of experts those count
    that a token is sent to.
    """
    share, n_experts = _expert_share(_text_config(model))
    for name, module in model.named_modules():
        # PEFT keeps the frozen original of a module that is trained whole; only the copy is called.
        # Source: peft==0.21.2 utils/other.py ModulesToSaveWrapper.
        if "original_module" in name.split("."):
            continue
        own = module._parameters | module._buffers
        weight = next((own[key] for key in ("weight", "qweight", "W_q") if own.get(key) is not None), None)
        if isinstance(module, Conv1D):
            yield module.weight.numel(), module.weight.requires_grad
        elif weight is not None and hasattr(module, "in_features") and hasattr(module, "out_features"):
            used = share if ".experts." in name else 1.0
            yield module.in_features * module.out_features * used, weight.requires_grad
        elif n_experts:
            # Experts in one tensor: (n_experts, size, size).
            fused = (each for each in module._parameters.values() if each is not None and each.ndim == 3)
            yield from ((e.numel() * share, e.requires_grad) for e in fused if e.shape[0] == n_experts)


def _expert_share(config: Any) -> tuple[float, int]:
    """Return which share of the experts a token is sent to, and how many there are; 1 and 0 without any."""
    names = ("num_local_experts", "num_experts", "n_routed_experts")
    n_experts = next((n for name in names if (n := getattr(config, name, None))), 0)
    used = getattr(config, "num_experts_per_tok", None)
    return (used / n_experts, n_experts) if n_experts and used else (1.0, 0)


def _attention_flops_per_token(config: Any, length: float) -> float:
    heads = getattr(config, "num_attention_heads", None)
    if config is None or not heads:
        return 0.0
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    query_size = getattr(config, "qk_head_dim", None) or size
    value_size = getattr(config, "v_head_dim", None) or size
    window = getattr(config, "sliding_window", None)
    default = "full_attention" if window is None else "sliding_attention"
    kinds = getattr(config, "layer_types", None) or [default] * config.num_hidden_layers
    reach = sum(
        min(length, window or length) if kind == "sliding_attention" else length
        for kind in kinds
        if kind not in _WITHOUT_LENGTH
    )
    passes = 3  # forward, and twice that backward, as of a matrix product that is trained
    return float(passes * 2 * heads * (query_size + value_size) * reach)


def _text_config(model: torch.nn.Module) -> Any:
    """Return the transformers config of a model or of what an adapter wraps, None where it has none."""
    config: Any = getattr(model, "config", None)
    return config.get_text_config() if hasattr(config, "get_text_config") else config
