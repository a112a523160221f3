from __future__ import annotations

import ast
from typing import Any

import pytest
from peft import IA3Config, LoraConfig

from memsweep.export.examples import Examples
from memsweep.export.scores import Scores
from memsweep.export.train_script import Script
from memsweep.export.weights import Weights
from memsweep.trainers.build import recipe_of

EXAMPLES = Examples(
    path="json", data_files="data/train.jsonl", split="train", columns=["prompt", "completion"]
)


def script(trainer: str = "sft", revision: str | None = None, **facts: Any) -> str:
    weights = Weights(
        name="model",
        revision=revision,
        is_random=False,
        source=None,
        tokenizer_class="AutoTokenizer",
        loads_alike=True,
    )
    found = Script(title="A title.", recipe=recipe_of(trainer), weights=weights, examples=EXAMPLES, **facts)
    return found.text()


def imported(text: str) -> set[str]:
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return {f"{node.module}.{alias.name}" for node in nodes for alias in node.names}


@pytest.mark.parametrize("trainer", ["sft", "online_dpo", "reward"])
def test_a_script_is_python_that_imports_what_it_uses_and_nothing_of_ours(trainer: str) -> None:
    text = script(trainer)

    names = {name.rpartition(".")[2] for name in imported(text)}
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    assert names <= used
    assert "memsweep" not in text


def test_experimental_trainers_are_imported_from_where_they_are() -> None:
    assert "trl.experimental.online_dpo.OnlineDPOTrainer" in imported(script("online_dpo"))
    assert "trl.SFTTrainer" in imported(script("sft"))


def test_an_adapter_is_written_as_it_was_asked_for() -> None:
    settings = {"type": "lora", "r": 4, "init_lora_weights": "pissa"}
    text = script(adapter=LoraConfig(), adapter_settings=settings)

    assert "peft_config=LoraConfig(r=4, init_lora_weights='pissa', task_type='CAUSAL_LM')," in text
    assert "task_type='SEQ_CLS'" in script("reward", adapter=IA3Config(), adapter_settings={"type": "ia3"})


def test_quantization_goes_where_the_trainer_takes_it() -> None:
    settings = {"load_in_8bit": True}

    assert "quantization_config=BitsAndBytesConfig(load_in_8bit=True)," in script(quantization=settings)
    late = script("online_dpo", quantization=settings)
    assert "quantization_config=BitsAndBytesConfig" not in late
    assert '"quantization_config": quantization}' in late


def test_a_revision_is_of_the_tokenizer_too() -> None:
    assert "AutoTokenizer.from_pretrained(MODEL, revision='v1')" in script(revision="v1")


def test_rewards_come_from_their_module_or_are_a_models_place() -> None:
    assert "reward_funcs=reward," in script("online_dpo", scores=Scores(module="...", model=None))
    assert "reward_funcs='judge'," in script("online_dpo", scores=Scores(module=None, model="judge"))
