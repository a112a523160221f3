"""What each option must be seen to do in two real steps, beside working at all.

One function an option, for every trainer that it works in: it gets what was seen with the option, and what
was seen without it and all else equal.  `changes` of the catalogue is held to the same two sightings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seen import BATCH, N_EXAMPLES, N_LAYERS, N_OTHERS, N_STEPS, Seen

from tiny import COMPLETION_TOKENS, GEOMETRY


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Two sightings of one trainer.

    Attributes:
        seen: With the option.
        base: Without it, all else equal.
        trainer: The trainer's name.
        parameters: The option's parameters.
        run: Shows what is seen with other options of the same technique, all else equal.
    """

    seen: Seen
    base: Seen
    trainer: str
    parameters: Mapping[str, Any]
    run: Callable[[str], Seen]


HIDDEN = GEOMETRY["hidden_size"]
NARROW = HIDDEN // 2  # keys and values have half the heads
WIDE = GEOMETRY["intermediate_size"]
ATTENTION = {"q_proj": (HIDDEN, HIDDEN), "v_proj": (HIDDEN, NARROW)}
LINEAR = {
    **ATTENTION,
    "k_proj": (HIDDEN, NARROW),
    "o_proj": (HIDDEN, HIDDEN),
    "gate_proj": (HIDDEN, WIDE),
    "up_proj": (HIDDEN, WIDE),
    "down_proj": (WIDE, HIDDEN),
}
HEAD = {"reward": HIDDEN}  # the score head of a reward model is trained whole


def low_rank(sight: Sight, layers: Mapping[str, tuple[int, int]] = ATTENTION, extra: int = 0) -> None:
    per_layer = sum(sight.parameters["r"] * (wide + high) for wide, high in layers.values()) + extra
    assert sight.seen.n_trained == N_LAYERS * per_layer + HEAD.get(sight.trainer, 0)
    only_the_adapter_moves(sight)


def only_the_adapter_moves(sight: Sight) -> None:
    base = {name for name in sight.seen.moved if "base_layer" in name or "lora" not in name.lower()}
    adapted = [name for name in sight.seen.moved if name not in base]
    assert adapted
    assert all("score" in name for name in base), base


def few_parameters(sight: Sight) -> None:
    seen, base = sight.seen, sight.base
    assert 0 < seen.n_trained < 0.2 * base.n_trained
    assert 0 < len(seen.moved) < len(seen.weights) / 2
    # Two moments of four bytes for what is trained, and none for the rest.
    assert seen.all_state_bytes <= 8 * seen.n_trained


def lora(sight: Sight) -> None:
    low_rank(sight)
    few_parameters(sight)


def lora_all_linear(sight: Sight) -> None:
    low_rank(sight, LINEAR)


def dora(sight: Sight) -> None:
    low_rank(sight, extra=HIDDEN + NARROW)  # one magnitude a column of each weight


def rslora(sight: Sight) -> None:
    low_rank(sight)
    # The first gradient is that of the zero half alone, and that is proportional to the scale.
    plain = sight.run("lora").gradient_norm
    if sight.trainer != "reward":
        assert math.isclose(sight.seen.gradient_norm / plain, math.sqrt(sight.parameters["r"]), rel_tol=1e-3)


def decomposed(sight: Sight) -> None:
    low_rank(sight)
    # It starts as the model that it was, with both halves filled: the first gradient is another one.
    assert math.isclose(sight.seen.first_loss, sight.base.first_loss, rel_tol=1e-3, abs_tol=1e-5)
    assert not math.isclose(sight.seen.gradient_norm, sight.run("lora").gradient_norm, rel_tol=1e-2)
    assert sight.run("pissa").gradient_norm != sight.run("olora").gradient_norm


def virtual_tokens(sight: Sight) -> None:
    n_trained = sight.parameters["virtual_tokens"] * HIDDEN
    assert sight.seen.n_trained == n_trained
    assert len(sight.seen.moved) == 1


def four_bit(sight: Sight) -> None:
    held = [entry for entry in sight.seen.weights.values() if entry[0] == "Params4bit"]
    assert len(held) == N_LAYERS * len(LINEAR)
    elements = N_LAYERS * sum(wide * high for wide, high in LINEAR.values())
    assert sum(n for _, _, n, _ in held) == elements // 2  # two in a byte
    assert not any(name for name in sight.seen.moved if sight.seen.weights[name][0] == "Params4bit")
    scales = sum(n_bytes for _, _, _, n_bytes in held) - elements // 2
    blocks = elements // 64
    codebooks = len(held) * 16 * 4
    assert scales == 4 * blocks + codebooks


def four_bit_double(sight: Sight) -> None:
    nf4 = sight.run("nf4")
    packed = [entry for entry in sight.seen.weights.values() if entry[0] == "Params4bit"]
    # A scale takes one byte, not four; what its own scale costs shows on larger weights only.
    elements = N_LAYERS * sum(wide * high for wide, high in LINEAR.values())
    own = len(packed) * (16 * 4 + 256 * 4 + 4 + 4)
    assert sum(n_bytes for _, _, _, n_bytes in packed) <= elements // 2 + elements // 64 + own
    assert sight.seen.first_loss != nf4.first_loss or sight.seen.gradient_norm != nf4.gradient_norm


def four_bit_float(sight: Sight) -> None:
    four_bit(sight)
    assert sight.seen.gradient_norm != sight.run("nf4").gradient_norm


def eight_bit(sight: Sight) -> None:
    held = [entry for entry in sight.seen.weights.values() if entry[0] == "Int8Params"]
    elements = N_LAYERS * sum(wide * high for wide, high in LINEAR.values())
    assert {kind for _, kind, _, _ in held} == {"torch.int8"}
    assert sum(n for _, _, n, _ in held) == elements


def layers_computed(*times: int) -> Callable[[Sight], None]:
    """Each layer, in order, computes so many times a step; a pattern of fewer repeats."""

    def check(sight: Sight) -> None:
        n_passes = len(sight.seen.batches)
        expected = {place: n_passes * times[place % len(times)] for place in range(N_LAYERS)}
        assert dict(sight.seen.layer_calls) == expected

    return check


def no_fused_attention(sight: Sight) -> None:
    assert sight.seen.sdpa_calls == 0 < sight.base.sdpa_calls


def fused_attention(sight: Sight) -> None:
    assert sight.seen.sdpa_calls > 0


def state_in_eight_bits(sight: Sight) -> None:
    assert sight.seen.optimizer.rpartition(".")[2].startswith("AdamW")
    assert sight.seen.state_bytes["torch.uint8"] > 0
    assert sight.seen.all_state_bytes < 0.75 * sight.base.all_state_bytes


def state_in_rows_and_columns(sight: Sight) -> None:
    assert 0 < sight.seen.all_state_bytes < 0.05 * sight.base.all_state_bytes


def no_state(sight: Sight) -> None:
    assert sight.seen.all_state_bytes == 0 < sight.base.all_state_bytes


def two_moments(sight: Sight) -> None:
    assert sight.seen.all_state_bytes == 8 * sight.seen.n_trained


def weights_in(kind: str) -> Callable[[Sight], None]:
    """All weights have this type, and so do two moments of each."""

    def check(sight: Sight) -> None:
        assert {entry[1] for entry in sight.seen.weights.values()} == {kind}
        n_bytes = 2 if kind == "torch.bfloat16" else 4
        assert sight.seen.all_state_bytes == 2 * n_bytes * sight.seen.n_trained

    return check


def mixed_precision(sight: Sight) -> None:
    weights_in("torch.float32")(sight)
    # bfloat16 has three significant digits: another number, near by.
    assert sight.seen.gradient_norm != sight.base.gradient_norm
    assert math.isclose(sight.seen.first_loss, sight.base.first_loss, rel_tol=0.05, abs_tol=0.05)


def micro_batches(sight: Sight) -> None:
    seen, base = sight.seen, sight.base
    assert len(seen.batches) == len(base.batches) * BATCH // sight.parameters["size"]
    assert max(b.rows for b in seen.batches) < max(b.rows for b in base.batches)
    assert seen.tokens == base.tokens


def compiled(sight: Sight) -> None:
    assert sight.seen.compiled_graphs > 0 == sight.base.compiled_graphs


def documents_in_a_row(sight: Sight) -> None:
    assert sight.seen.padding == 0 < sight.base.padding
    assert all(batch.rows == 1 for batch in sight.seen.batches)
    assert all(batch.documents is not None and batch.documents > 1 for batch in sight.seen.batches)


def packed(sight: Sight) -> None:
    documents_in_a_row(sight)
    assert sight.seen.rows < sight.base.rows == N_EXAMPLES


def packed_without_borders(sight: Sight) -> None:
    assert sight.seen.rows < sight.base.rows
    # No position starts anew: an example sees those before it.
    assert all(batch.documents in (None, batch.rows) for batch in sight.seen.batches)


def unpadded(sight: Sight) -> None:
    documents_in_a_row(sight)
    assert [b.documents for b in sight.seen.batches] == [BATCH] * N_STEPS
    assert sight.seen.tokens == sight.base.tokens


def multiples(sight: Sight) -> None:
    multiple = sight.parameters["multiple"]
    widths = {batch.slots // batch.rows for batch in sight.seen.batches}
    assert all(width % multiple == 0 for width in widths)
    assert sight.seen.tokens == sight.base.tokens
    assert sight.seen.padding > sight.base.padding


def shortened(sight: Sight) -> None:
    limit = sight.parameters["max_length"]
    assert sight.seen.tokens < sight.base.tokens
    if sight.trainer != "online_dpo":  # its completions come on top
        assert max(batch.slots // batch.rows for batch in sight.seen.batches) <= limit
    if sight.trainer == "reward":
        assert sight.seen.rows < sight.base.rows


def no_reference(sight: Sight) -> None:
    assert sight.seen.reference_bytes == 0


def precomputed(sight: Sight) -> None:
    assert sight.seen.reference_bytes == 0 < sight.base.reference_bytes
    assert [name for name in sight.seen.columns if name.startswith("ref") and name.endswith("logps")]


def moving_reference(sight: Sight) -> None:
    assert sight.seen.reference_moved
    assert not sight.base.reference_moved


def fewer_prompts(sight: Sight) -> None:
    assert len(sight.seen.prompts) == BATCH
    assert len(set(sight.seen.prompts)) == BATCH // sight.parameters["n"]


def scales_only(sight: Sight) -> None:
    few_parameters(sight)
    assert all("norm" in name or "score" in name for name in sight.seen.moved)


def keys_and_values_of_every_layer(sight: Sight) -> None:
    n_prefix = sight.parameters["virtual_tokens"] * N_LAYERS * 2 * NARROW
    assert sight.seen.n_trained == n_prefix + HEAD.get(sight.trainer, 0)
    assert len([name for name in sight.seen.moved if "score" not in name]) == 1


def lengthened(sight: Sight) -> None:
    assert sight.seen.tokens > sight.base.tokens or sight.seen.rows > sight.base.rows


def completions_of(sight: Sight) -> None:
    n_rows = sum(batch.rows for batch in sight.seen.batches)
    assert sight.base.tokens - sight.seen.tokens == n_rows * (COMPLETION_TOKENS - sight.parameters["tokens"])


def allocated_once(sight: Sight) -> None:
    assert sight.seen.caches == {"StaticCache"}
    assert sight.base.caches == {"DynamicCache"}


def evaluates_alike(sight: Sight) -> None:
    # Packed or not, an example is scored as if alone; in one batch the mean is over the same tokens.
    seen, base = sight.seen.evaluation_loss, sight.base.evaluation_loss
    assert seen is not None
    assert base is not None
    assert math.isclose(seen, base, rel_tol=1e-5)


def evaluation_packed(sight: Sight) -> None:
    assert 0 < sight.seen.evaluation_rows < N_OTHERS
    evaluates_alike(sight)


def evaluation_unpacked(sight: Sight) -> None:
    assert sight.seen.evaluation_rows == N_OTHERS > sight.base.evaluation_rows > 0
    evaluates_alike(sight)


EFFECTS: Mapping[str, Callable[[Sight], None]] = {
    "adapter=lora": lora,
    "adapter=lora_all_linear": lora_all_linear,
    "adapter=dora": dora,
    "adapter=rslora": rslora,
    "adapter=pissa": decomposed,
    "adapter=olora": decomposed,
    "adapter=vera": few_parameters,
    "adapter=ia3": few_parameters,
    "adapter=prompt_tuning": virtual_tokens,
    "quantization=nf4": four_bit,
    "quantization=fp4": four_bit_float,
    "quantization=nf4_double": four_bit_double,
    "quantization=int8": eight_bit,
    "checkpointing=disabled": layers_computed(1),
    "checkpointing=full": layers_computed(2),
    "checkpointing=every_n_layers": layers_computed(2, 1),
    "checkpointing=selective": layers_computed(2),  # that attention is spared: test_kernels.py
    "attention=eager": no_fused_attention,
    "attention=sdpa": fused_attention,
    "optimizer=adamw_8bit": state_in_eight_bits,
    "optimizer=adamw_torch_fused": two_moments,
    "optimizer=adafactor": state_in_rows_and_columns,
    "optimizer=sgd": no_state,
    "precision=fp32": weights_in("torch.float32"),
    "precision=bf16_weights": weights_in("torch.bfloat16"),
    "precision=bf16_mixed": mixed_precision,
    "micro_batch=size": micro_batches,
    "compile=enabled": compiled,
    "packing=bfd": packed,
    "packing=bfd_split": packed,
    "packing=wrapped": packed_without_borders,
    "padding_free=enabled": unpadded,
    "pad_to_multiple_of=multiple": multiples,
    "truncation=max_length": shortened,
    "reference=precomputed": precomputed,
    "reference=sync": moving_reference,
    "reference=shared_base": no_reference,
    "generations=count": fewer_prompts,
    "adapter=ln_tuning": scales_only,
    "adapter=loha": few_parameters,
    "adapter=lokr": few_parameters,
    "adapter=oft": few_parameters,
    "adapter=p_tuning": few_parameters,
    "adapter=prefix_tuning": keys_and_values_of_every_layer,
    "completion_length=tokens": completions_of,
    "evaluation_packing=enabled": evaluation_packed,
    "evaluation_packing=disabled": evaluation_unpacked,
    "generation_cache=static": allocated_once,
    "truncation=none": lengthened,
}
"""Option to what must be seen."""
