"""A GGUF file of a tiny llama, written here in under a second: the same layout as a real one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from memsweep.model.tokenizer import CHAT_TEMPLATE, END, PAD, tokenizer_folder

BLOCKS = gguf.GGMLQuantizationType.Q8_0
N_TOKENS, N_LAYERS, WIDTH, HEADS, KEYS = 1000, 2, 64, 4, 2
LLAMA = LlamaConfig(
    vocab_size=N_TOKENS,
    hidden_size=WIDTH,
    intermediate_size=128,
    num_hidden_layers=N_LAYERS,
    num_attention_heads=HEADS,
    num_key_value_heads=KEYS,
    max_position_embeddings=512,
    tie_word_embeddings=True,
)

# Ours to llama.cpp's.  Source: gguf==0.19.0 tensor_mapping.py
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "model.layers": "blk",
}


def write_gguf(
    file: Path, *, architecture: str = "llama", template: str | None = CHAT_TEMPLATE, without: str = "nothing"
) -> dict[str, torch.Tensor]:
    """Write a model with random weights in blocks of 8 bits; return the weights that the blocks stand for.

    Args:
        file: Where to.
        architecture: What the file says that it is.
        template: Of conversations; None for a file without.
        without: Tensors with this in their name are left out.
    """
    writer = gguf.GGUFWriter(file, architecture)
    writer.add_context_length(LLAMA.max_position_embeddings)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(N_LAYERS)
    writer.add_feed_forward_length(LLAMA.intermediate_size)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEYS)
    writer.add_layer_norm_rms_eps(LLAMA.rms_norm_eps)
    writer.add_rope_freq_base(10_000.0)
    _add_tokenizer(writer, template)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        state = LlamaForCausalLM(LLAMA).state_dict()
    expected = {}
    for name, tensor in state.items():
        if name == "lm_head.weight":  # tied
            continue
        expected[name] = _add_tensor(writer, name, tensor.numpy(), without)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return expected


def _add_tensor(writer: Any, name: str, weights: np.ndarray, without: str) -> torch.Tensor:
    stored = name
    for ours, theirs in NAMES.items():
        stored = stored.replace(ours, theirs)
    n_heads = {"attn_q": HEADS, "attn_k": KEYS}.get(stored.split(".")[-2])
    if n_heads is not None:
        weights = _interleaved(weights, n_heads)
    is_matrix = weights.ndim == 2
    data = gguf.quantize(weights, BLOCKS) if is_matrix else weights
    if without not in stored:
        writer.add_tensor(stored, data, raw_dtype=BLOCKS if is_matrix else None)
    back = gguf.dequantize(data, BLOCKS) if is_matrix else weights
    return torch.from_numpy(back if n_heads is None else _halved(back, n_heads))


def _interleaved(weights: np.ndarray, n_heads: int) -> np.ndarray:
    """Return a projection's rows in llama.cpp's order: the pairs that rotate together stand together."""
    rows, columns = weights.shape
    return weights.reshape(n_heads, 2, rows // n_heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _halved(weights: np.ndarray, n_heads: int) -> np.ndarray:
    """Undo `_interleaved`."""
    rows, columns = weights.shape
    return weights.reshape(n_heads, rows // n_heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _add_tokenizer(writer: Any, template: str | None) -> None:
    description = json.loads((tokenizer_folder(N_TOKENS) / "tokenizer.json").read_text(encoding="utf-8"))
    special = {token["content"] for token in description["added_tokens"]}
    numbers = description["model"]["vocab"]
    tokens = sorted(numbers, key=numbers.__getitem__)
    kinds = [gguf.TokenType.CONTROL if token in special else gguf.TokenType.NORMAL for token in tokens]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(pair) for pair in description["model"]["merges"]])
    writer.add_eos_token_id(numbers[END])
    writer.add_pad_token_id(numbers[PAD])
    if template is not None:
        writer.add_chat_template(template)
