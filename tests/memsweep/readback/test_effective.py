"""What is in force as data: stable, complete, and equal exactly when two set-ups are one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from begun import begin, begun, cache_of
from memsweep.config.schema import RewardConfig, TrialConfig
from memsweep.readback.effective import effective, effective_hash
from memsweep.readback.model_facts import recompute_alike
from memsweep.readback.optimizer import innermost
from memsweep.readback.plain import plain
from memsweep.technique.settings import Settings
from memsweep.trainers.build import Built
from tiny import DATA, tiny_config

ROOT = Path(__file__).resolve().parents[3]
LORA = {"type": "lora", "r": 4, "lora_alpha": 8}
BF16 = {"bf16": True, "fp16": False}
NF4 = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}


@pytest.fixture(scope="module")
def padded(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return begun(tmp_path_factory, trainer=BF16)


@pytest.fixture(scope="module")
def quantized(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return begun(tmp_path_factory, model={"quantization": NF4}, adapter=LORA)


@pytest.fixture(scope="module")
def generating(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return begun(tmp_path_factory, "grpo")


def facts_of(built: Built, config: TrialConfig | None = None) -> dict[str, Any]:
    """Return what is in force, as it comes back from its file."""
    read: dict[str, Any] = json.loads(json.dumps(effective(built, config or tiny_config())))
    return read


def hash_of(built: Built, config: TrialConfig | None = None) -> str:
    return effective_hash(effective(built, config or tiny_config()))


@pytest.mark.parametrize("name", ["padded", "quantized", "generating"])
def test_the_facts_hold_no_address_and_no_place(
    name: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = json.dumps(facts_of(request.getfixturevalue(name)))

    assert re.findall(r"0x[0-9a-f]{6,}", text) == []
    assert str(tmp_path_factory.getbasetemp().parent) not in text


@pytest.mark.parametrize("name", ["padded", "quantized", "generating"])
def test_looking_changes_nothing(name: str, request: pytest.FixtureRequest) -> None:
    built = request.getfixturevalue(name)

    assert hash_of(built) == hash_of(built)


def test_the_facts_of_quantized_weights_name_every_way_and_what_was_left_out(quantized: Built) -> None:
    facts = facts_of(quantized)["model"]["quantization"]

    (way,) = facts["ways"]
    assert (way["type"], way["storage"], way["layers"]) == ("nf4", "torch.uint8", 14)
    assert facts["left_out"] == ["lm_head"]


def test_the_facts_of_an_adapter_are_those_of_its_modules(quantized: Built) -> None:
    adapter = facts_of(quantized)["adapter"]

    assert adapter["number_of_modules"] == 4
    assert adapter["per_module"]["r"] == ['{"default": 4}']
    assert adapter["configs"]["default"]["target_modules"] == ["q_proj", "v_proj"]


def test_an_optimizers_state_is_told_before_there_is_any(tmp_path_factory: pytest.TempPathFactory) -> None:
    built = begun(tmp_path_factory, trainer={"optim": "adamw_8bit"})
    planned = facts_of(built)["optimizer"]["states"]
    optimizer = innermost(built.trainer.optimizer)
    for parameter in built.trainer.model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()

    made = {"8 bits": 0, "32 bits": 0}
    for parameter, state in optimizer.state.items():
        made["8 bits" if state["state1"].dtype is torch.uint8 else "32 bits"] += parameter.numel()
    assert planned == made


def first_layer(built: Built) -> Any:
    return built.trainer.model.model.layers[0]


def other_group(built: Built, change: pytest.MonkeyPatch) -> None:
    change.setitem(innermost(built.trainer.optimizer).param_groups[0], "weight_decay", 0.1)


def other_collator(built: Built, change: pytest.MonkeyPatch) -> None:
    change.setattr(built.trainer.data_collator, "pad_to_multiple_of", 8)


def other_layer(built: Built, change: pytest.MonkeyPatch) -> None:
    change.setattr(first_layer(built), "gradient_checkpointing", False)


def other_weight(built: Built, change: pytest.MonkeyPatch) -> None:
    weight = built.trainer.model.model.norm.weight
    change.setattr(weight, "data", weight.data.to(torch.float64))


def frozen_weight(built: Built, change: pytest.MonkeyPatch) -> None:
    change.setattr(built.trainer.model.model.norm.weight, "requires_grad", False)


def other_attention(built: Built, change: pytest.MonkeyPatch) -> None:
    change.setattr(built.trainer.model.config, "_attn_implementation", "eager")


def other_heads(built: Built, change: pytest.MonkeyPatch) -> None:
    change.setattr(built.trainer.model.config, "rms_norm_eps", 1e-5)


def other_rows(built: Built, change: pytest.MonkeyPatch) -> None:
    change.setattr(built.trainer, "train_dataset", built.trainer.train_dataset.select(range(3)))


def compiled(built: Built, change: pytest.MonkeyPatch) -> None:
    change.setattr(built.trainer, "model_wrapped", torch.compile(built.trainer.model))


def other_precision(built: Built, change: pytest.MonkeyPatch) -> None:
    # The state is the process's: what it says now depends on what else was built, and so on the machine.
    state = built.trainer.accelerator.state
    change.setattr(state, "_mixed_precision", "no" if state.mixed_precision == "bf16" else "bf16")


def other_micro_batch(built: Built, change: pytest.MonkeyPatch) -> None:
    change.setattr(built.trainer.args, "per_device_train_batch_size", 1)


def other_variable(built: Built, change: pytest.MonkeyPatch) -> None:
    change.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


@pytest.mark.parametrize(
    "tamper",
    [
        other_group,
        other_collator,
        other_layer,
        other_weight,
        frozen_weight,
        other_attention,
        other_heads,
        other_rows,
        compiled,
        other_precision,
        other_micro_batch,
        other_variable,
    ],
)
def test_what_matters_changes_the_hash(
    tamper: Callable[[Built, pytest.MonkeyPatch], None], padded: Built
) -> None:
    before = hash_of(padded)
    with pytest.MonkeyPatch.context() as change:
        tamper(padded, change)
        after = hash_of(padded)

    assert after != before
    assert hash_of(padded) == before


def in_a_module(field: str, value: Any) -> Callable[[Built], tuple[Any, Any, Any]]:
    def find(built: Built) -> tuple[Any, Any, Any]:
        module = built.trainer.model.get_base_model().model.layers[0].self_attn.q_proj
        return getattr(module, field), "default", value

    return find


@pytest.mark.parametrize(
    "find", [in_a_module("r", 2), in_a_module("scaling", 1.0), in_a_module("use_dora", True)]
)
def test_what_an_adapter_has_in_its_modules_changes_the_hash(
    find: Callable[[Built], tuple[Any, Any, Any]], quantized: Built
) -> None:
    before = hash_of(quantized)
    with pytest.MonkeyPatch.context() as change:
        change.setitem(*find(quantized))
        after = hash_of(quantized)

    assert after != before


@pytest.mark.parametrize("field", ["quant_type", "blocksize"])
def test_how_one_weight_is_held_changes_the_hash(field: str, quantized: Built) -> None:
    before = hash_of(quantized)
    with pytest.MonkeyPatch.context() as change:
        weight = quantized.trainer.model.get_base_model().model.layers[1].mlp.up_proj.weight
        change.setattr(weight, field, "other")
        after = hash_of(quantized)

    assert after != before


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("output_dir", "elsewhere"),
        ("run_name", "other"),
        ("save_steps", 7),
        ("hub_strategy", "end"),
        ("eval_steps", 7),
        ("per_device_eval_batch_size", 1),
    ],
)
def test_what_does_not_matter_changes_no_hash(field: str, value: Any, padded: Built) -> None:
    before = hash_of(padded)
    with pytest.MonkeyPatch.context() as change:
        change.setattr(padded.trainer.args, field, value)
        after = hash_of(padded)

    assert after == before


def test_how_to_evaluate_matters_where_something_is_evaluated(padded: Built) -> None:
    with pytest.MonkeyPatch.context() as change:
        change.setattr(padded.trainer, "eval_dataset", padded.trainer.train_dataset)
        before = hash_of(padded)
        change.setattr(padded.trainer.args, "per_device_eval_batch_size", 1)
        after = hash_of(padded)

    assert after != before


def test_what_is_evaluated_changes_the_hash(padded: Built) -> None:
    rows = padded.trainer.train_dataset
    with pytest.MonkeyPatch.context() as change:
        change.setattr(padded.trainer, "eval_dataset", rows.select(range(2)))
        before = hash_of(padded)
        change.setattr(padded.trainer, "eval_dataset", rows.select(range(1, 3)))
        after = hash_of(padded)

    assert after != before


def test_a_reward_matters_where_something_is_generated(padded: Built, generating: Built) -> None:
    config = tiny_config()
    other = replace(config, reward=RewardConfig(name="distinct_words"))

    assert hash_of(padded, other) == hash_of(padded, config)
    assert hash_of(generating, other) != hash_of(generating, config)


def test_one_set_up_asked_for_in_two_ways_is_one(
    tmp_path_factory: pytest.TempPathFactory, padded: Built
) -> None:
    kwargs = "activation_checkpointing_kwargs|gradient_checkpointing_kwargs"
    flag = "activation_checkpointing|gradient_checkpointing"
    same = begun(
        tmp_path_factory,
        trainer={
            **BF16,
            flag: True,
            kwargs: {"use_reentrant": False},
            "optim": "adamw_torch_fused",
            "max_length": 2048,
        },
        model={"attn_implementation": "sdpa"},
    )

    assert facts_of(same) == facts_of(padded)


class Pair:
    """A class whose objects have no text of their own."""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b", "a"}, ["a", "b"]),
        ((1, 2.5, None), [1, 2.5, None]),
        (torch.bfloat16, "torch.bfloat16"),
        (Pair(), "Pair"),
        (Pair, "Pair"),
        ({1: {"x": frozenset((2, 1))}}, {"1": {"x": [1, 2]}}),
    ],
)
def test_plain_data_have_no_order_and_no_address(value: Any, expected: Any) -> None:
    assert plain(value) == expected


PROGRAM = """
import json, sys
from pathlib import Path
from begun import begin
from memsweep.technique.settings import Settings
from memsweep.readback.effective import effective, effective_hash
from tiny import tiny_config
trainer, seams, folder = sys.argv[1], json.loads(sys.argv[2]), Path(sys.argv[3])
facts = effective(begin(tiny_config(trainer), Settings(**seams), folder), tiny_config(trainer))
print("FACTS", json.dumps({"hash": effective_hash(facts), **facts}))
"""

ALIKE: Mapping[str, Mapping[str, Any]] = {
    "sft": {
        "trainer": {"packing": True, "activation_checkpointing_kwargs|gradient_checkpointing_kwargs": {}}
    },
    "reward": {
        "model": {"quantization": NF4},
        "adapter": LORA,
        "trainer": {"bf16": True, "optim": "adamw_8bit"},
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ALIKE)
def test_identical_trials_in_different_processes_have_the_same_facts(trainer: str, tmp_path: Path) -> None:
    found = []
    for seed in ("1", "2"):
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}",
            "PYTHONHASHSEED": seed,
            "MEMSWEEP_CACHE": str(tmp_path / f"cache-{seed}"),
        }
        arguments = [trainer, json.dumps(ALIKE[trainer]), str(tmp_path / f"trial-{seed}")]
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )
        lines = [line for line in run.stdout.splitlines() if line.startswith("FACTS ")]
        assert lines, run.stderr[-2000:]
        found.append(json.loads(lines[0].removeprefix("FACTS ")))

    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("trainer", DATA)
def test_two_trainers_built_alike_in_one_process_have_the_same_facts(
    trainer: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    config = tiny_config(trainer)
    with cache_of(tmp_path_factory):
        one, other = (begin(config, Settings(), tmp_path_factory.mktemp(trainer)) for _ in range(2))

    assert facts_of(one, config) == facts_of(other, config)


@pytest.mark.parametrize(
    ("keywords", "alike"),
    [
        (['{"use_reentrant": false}'], True),
        (['{"every_n_layers": 2, "use_reentrant": false}'], False),
        ([], True),
    ],
)
def test_only_what_is_recomputed_is_compared_after_the_first_steps(keywords: list[str], alike: bool) -> None:
    before = {"modules": [True, True], "keywords": [], "functions": ["checkpoint"]}

    assert recompute_alike(before, {**before, "keywords": keywords}) is alike
    assert not recompute_alike(before, {**before, "modules": [True, False]})
