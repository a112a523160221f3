from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Trainer

from memsweep.config.schema import DatasetConfig, DatasetSource, TrialConfig
from memsweep.data.probe import probe
from memsweep.machine import machine_name
from memsweep.model.folder import model_place
from memsweep.record.comparable import differences
from memsweep.record.folder import TrialFolder, read_json
from memsweep.record.outcome import (
    Crashed,
    Incompatible,
    Measured,
    NonFinite,
    NotInForce,
    OutOfMemory,
    Phase,
    Reused,
)
from memsweep.record.trial import TrialRecord
from memsweep.technique.settings import Settings
from memsweep.trial import process
from memsweep.trial.lease import Lease
from memsweep.trial.run import run_with_settings
from memsweep.units import MIB
from tiny import COMPLETION_TOKENS, DATA, share_cache, tiny_config

pytestmark = pytest.mark.slow

NO_CHECKPOINTING = {"activation_checkpointing|gradient_checkpointing": False}
TrainingStep = Trainer.training_step
LORA = {"type": "lora", "r": 4, "lora_alpha": 8}


@pytest.fixture(autouse=True)
def _shared_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    share_cache(tmp_path_factory, monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> TrialFolder:
    """The folder of the trial."""
    return TrialFolder(tmp_path / "trial")


def measured(config: TrialConfig, folder: TrialFolder, **settings: Mapping[str, Any]) -> Mapping[str, float]:
    """Run the trial and return its measures."""
    record = run_with_settings(config, Settings(**settings), folder)
    assert isinstance(record.outcome, Measured), record.outcome
    return record.outcome.measures


def lengths(config: TrialConfig, *columns: str, at_most: int | None = None) -> int:
    """Count tokens without a trainer: those of each prompt with each of `columns`.

    A row whose prompt alone is too long is left out, as TRL does.
    """
    tokenizer = model_place(config.model).tokenizer
    rows = probe(config.dataset, config.trainer.data, config.measure.probe_examples, config.seed).rows
    total = 0
    for row in rows:
        for column in columns:
            prompt, whole = (
                tokenizer.apply_chat_template(talk, add_generation_prompt=asks, return_dict=True)["input_ids"]
                for talk, asks in ((row["prompt"], True), (row["prompt"] + row[column], False))
            )
            if at_most is None or len(prompt) < at_most:
                total += len(whole[:at_most])
    return total


@pytest.mark.parametrize("trainer", DATA)
def test_every_trainer_is_measured(trainer: str, folder: TrialFolder) -> None:
    record = run_with_settings(tiny_config(trainer), Settings(), folder)

    assert isinstance(record.outcome, Measured), record.outcome
    measures = record.outcome.measures
    assert measures["tokens_per_second"] > 0
    assert measures["peak_memory_bytes"] > 0
    assert measures["kept_tokens"] <= measures["source_tokens"]
    assert measures["trained_tokens"] <= measures["slots_per_pass"]
    assert TrialRecord.read(folder) == record
    assert read_json(folder.effective)["effective_hash"] == record.effective_hash


@pytest.mark.parametrize(
    "trainer_settings",
    [
        {},
        {"per_device_train_batch_size": 1},
        {"pad_to_multiple_of": 128},
        {"packing": True, "packing_strategy": "bfd_split"},
    ],
    ids=["padded", "micro-batches", "multiples", "packed"],
)
def test_sft_trains_on_every_token_of_its_data(
    trainer_settings: Mapping[str, Any], folder: TrialFolder
) -> None:
    config = tiny_config(batch=1 if "packing" in trainer_settings else 4)  # or rows would fill up a batch

    found = measured(config, folder, trainer={"max_length": 2048, **trainer_settings})

    expected = lengths(config, "completion")
    assert found["trained_tokens"] == found["kept_tokens"] == found["source_tokens"] == expected


def test_padding_free_trains_on_every_token_and_counts_no_padding(folder: TrialFolder) -> None:
    config = tiny_config()
    free = {"padding_free": True, "max_length": None}

    found = measured(config, folder, trainer={**free, "pad_to_multiple_of": 128})

    assert found["trained_tokens"] == lengths(config, "completion")
    assert 0 < found["padding_share"] < 0.1


def test_truncation_keeps_fewer_tokens_and_says_so(folder: TrialFolder) -> None:
    config = tiny_config(batch=1)

    found = measured(config, folder, trainer={"max_length": 128})

    assert found["trained_tokens"] == found["kept_tokens"] == lengths(config, "completion", at_most=128)
    assert found["source_tokens"] == lengths(config, "completion")


def test_dpo_trains_on_both_answers(folder: TrialFolder) -> None:
    config = tiny_config("dpo")

    found = measured(config, folder)

    assert found["trained_tokens"] == lengths(config, "chosen", "rejected", at_most=1024)


def test_kto_does_not_count_the_answers_that_it_only_compares_with(folder: TrialFolder) -> None:
    config = tiny_config("kto")

    found = measured(config, folder)

    assert found["trained_tokens"] == lengths(config, "completion", at_most=1024)


@pytest.mark.parametrize(("trainer", "completions"), [("grpo", 2), ("rloo", 2), ("online_dpo", 2)])
def test_generated_tokens_count_with_their_prompts(
    trainer: str, completions: int, folder: TrialFolder
) -> None:
    config = tiny_config(trainer)

    found = measured(config, folder)

    budget = config.measure.probe_examples * completions * 8
    assert found["trained_tokens"] == found["source_tokens"] * completions + budget


def test_a_packed_batch_has_no_padding(folder: TrialFolder) -> None:
    found = measured(tiny_config(), folder, trainer={"packing": True, "packing_strategy": "bfd"})

    assert found["padding_share"] == 0


def test_rows_that_do_not_fill_a_batch_are_filled_up_by_the_first_ones(folder: TrialFolder) -> None:
    config = tiny_config(batch=4, examples=6)

    record = run_with_settings(config, Settings(), folder)

    assert isinstance(record.outcome, Measured)
    found = record.outcome.measures
    assert (record.facts["rows"], record.facts["rows_per_pass"], record.facts["steps_per_pass"]) == (6, 8, 2)
    assert found["trained_tokens"] > found["kept_tokens"] == lengths(config, "completion", at_most=1024)
    assert found["samples_per_second"] == pytest.approx(4 * found["steps_per_second"])


def test_the_longest_examples_decide_the_peak_and_no_rate(folder: TrialFolder) -> None:
    """The probe's one example is short; the longest of the data is not."""
    config = tiny_config(batch=1, examples=1)

    found = measured(config, folder, trainer={"max_length": None})

    longest = probe(config.dataset, config.trainer.data, 1, config.seed, n_longest=1).longest[0]
    tokenizer = model_place(config.model).tokenizer
    n_longest = len(
        tokenizer.apply_chat_template(longest["prompt"] + longest["completion"], return_dict=True)[
            "input_ids"
        ]
    )
    assert found["trained_tokens"] == found["kept_tokens"] < n_longest / 4
    assert found["peak_memory_bytes"] == found["worst_step_peak_bytes"] > found["steady_peak_bytes"] + 8 * MIB


def test_memory_that_grows_from_step_to_step_is_said_to_grow(
    folder: TrialFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaked: list[torch.Tensor] = []

    def leaking(self: Any, *given: Any, **named: Any) -> Any:
        leaked.append(torch.ones(8 * MIB // 4))
        return TrainingStep(self, *given, **named)

    monkeypatch.setattr(Trainer, "training_step", leaking)

    outcome = run_with_settings(tiny_config(passes=4), Settings(), folder).outcome

    assert isinstance(outcome, Measured)
    assert outcome.measures["growth_bytes_per_pass"] == pytest.approx(8 * MIB, rel=0.2)
    assert outcome.remarks[-1].startswith("memory grows by ")
    n_leaked = 8 * MIB * (len(leaked) - 1)  # the settling step's is in no peak and between no edges
    assert outcome.measures["peak_memory_bytes"] > n_leaked


def test_a_training_that_does_not_leak_is_not_said_to(folder: TrialFolder) -> None:
    outcome = run_with_settings(tiny_config(passes=4), Settings(), folder).outcome

    assert isinstance(outcome, Measured)
    assert not [remark for remark in outcome.remarks if "memory grows" in remark]


def test_the_supervised_tokens_are_those_of_the_answers(folder: TrialFolder) -> None:
    config = tiny_config()

    found = measured(config, folder, trainer={"max_length": None, "completion_only_loss": True})

    tokenizer = model_place(config.model).tokenizer
    rows = probe(config.dataset, config.trainer.data, config.measure.probe_examples, config.seed).rows
    prompts = [
        len(
            tokenizer.apply_chat_template(r["prompt"], add_generation_prompt=True, return_dict=True)[
                "input_ids"
            ]
        )
        for r in rows
    ]
    answers = found["kept_tokens"] - sum(prompts)
    share = found["supervised_tokens_per_second"] / found["tokens_per_second"]
    assert share == pytest.approx(answers / found["kept_tokens"])


@pytest.mark.parametrize(("trainer", "completions"), [("grpo", 8), ("rloo", 8), ("online_dpo", 8)])
def test_what_is_generated_is_counted_and_its_time_is_a_part(
    trainer: str, completions: int, folder: TrialFolder
) -> None:
    config = tiny_config(trainer)

    found = measured(config, folder)

    generated = found["generated_tokens_per_second"] * found["measured_seconds"] / found["n_measured_passes"]
    assert generated == pytest.approx(completions * COMPLETION_TOKENS)
    assert 0 < found["generation_share"] < 1


def test_completions_that_are_trained_on_twice_are_counted_twice_and_generated_once(
    folder: TrialFolder,
) -> None:
    once = measured(tiny_config("grpo"), folder)
    twice = measured(tiny_config("grpo", arguments={"num_iterations": 2}), folder)

    assert twice["trained_tokens"] == 2 * once["trained_tokens"]
    assert (
        twice["n_measured_steps"] / twice["n_measured_passes"]
        == 2 * once["n_measured_steps"] / once["n_measured_passes"]
    )
    ratio = twice["generated_tokens_per_second"] / twice["tokens_per_second"]
    assert ratio == pytest.approx(once["generated_tokens_per_second"] / once["tokens_per_second"] / 2)


def test_what_tensors_held_stands_beside_what_was_resident(folder: TrialFolder) -> None:
    found = measured(tiny_config(), folder)

    assert (
        found["peak_live_tensor_bytes"] > 4 * 4 * found["trained_parameters"]
    )  # weights, gradients, two moments


def test_padding_is_wasted_and_shown(folder: TrialFolder) -> None:
    padded = measured(tiny_config(), folder, trainer={"max_length": 2048})
    free = measured(tiny_config(), folder, trainer={"max_length": None, "padding_free": True})

    assert padded["trained_tokens"] == free["trained_tokens"]
    assert padded["padding_share"] > 0.3
    assert free["padding_share"] == 0
    assert padded["slots_per_second"] > padded["tokens_per_second"]


def test_the_conditions_name_machine_and_data(folder: TrialFolder) -> None:
    one = run_with_settings(tiny_config(), Settings(), folder).conditions
    other = run_with_settings(tiny_config(examples=8), Settings(), folder).conditions

    assert one["machine"] == other["machine"] == machine_name()
    assert one["data"] != other["data"]
    assert one["data"].startswith("4 of ")


def test_a_trial_with_a_part_of_the_machine_says_so_and_one_alone_does_not(
    folder: TrialFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = run_with_settings(tiny_config(), Settings(), folder)
    monkeypatch.setattr(process, "_lease", Lease(n_slots=2, cores=(1,)))
    beside = run_with_settings(tiny_config(), Settings(), folder)

    assert beside.conditions["share"] == "one of 2 slots"
    assert beside.facts["lease"] == {"n_slots": 2, "cores": [1], "devices": []}
    assert differences(beside.conditions, alone.conditions, "trial 0") == (
        "other share than trial 0: one of 2 slots, not none recorded",
    )


def test_a_smaller_micro_batch_does_the_same_work(folder: TrialFolder) -> None:
    whole = measured(tiny_config(), folder)
    quarter = measured(tiny_config(), folder, trainer={"per_device_train_batch_size": 1})

    assert quarter["trained_tokens"] == whole["trained_tokens"]
    assert quarter["n_measured_steps"] == whole["n_measured_steps"]


def test_an_adapter_trains_only_itself(folder: TrialFolder) -> None:
    found = measured(tiny_config(), folder, adapter=LORA)

    # q and v of two layers: r x (in + out) each; v has half the heads.
    assert found["trained_parameters"] == 2 * 4 * ((64 + 64) + (64 + 32))


def test_precision_is_that_of_the_weights(folder: TrialFolder) -> None:
    measured(tiny_config(), folder, model={"dtype": "bfloat16"})

    assert list(read_json(folder.effective)["model"]["dtypes"]) == ["torch.bfloat16"]


def test_no_trainer_takes_bfloat16_weights_from_the_file_where_the_processor_has_none(
    folder: TrialFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memsweep.trainers.arguments.has_native_bf16", lambda: (False, "of a test"))

    measured(tiny_config("online_dpo"), folder)

    assert list(read_json(folder.effective)["model"]["dtypes"]) == ["torch.float32"]


def test_the_ways_to_hold_weights_in_few_bits_are_different_set_ups(folder: TrialFolder) -> None:
    ways = (
        {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
        {"load_in_4bit": True, "bnb_4bit_quant_type": "fp4"},
        {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True},
        {"load_in_8bit": True},
    )

    hashes = set()
    for way in ways:
        settings = Settings(model={"quantization": way}, adapter=LORA)
        hashes.add(run_with_settings(tiny_config(), settings, folder).effective_hash)

    assert len(hashes) == len(ways)


def test_checkpointing_that_a_trainer_turns_on_itself_is_in_force(folder: TrialFolder) -> None:
    settings = {"model": {"quantization": {"load_in_8bit": True}}, "adapter": LORA}

    assert measured(tiny_config("online_dpo"), folder, **settings)["tokens_per_second"] > 0


def test_the_precision_and_its_reason_are_recorded(folder: TrialFolder) -> None:
    facts = run_with_settings(tiny_config(), Settings(), folder).facts

    assert "when nothing is asked: " in facts["precision"]


def test_packing_strategies_are_one_set_up_when_nothing_overflows(folder: TrialFolder) -> None:
    hashes = _packing_hashes(folder, max_length=2048)

    assert hashes["bfd"] == hashes["bfd_split"] != hashes["wrapped"]


def test_packing_strategies_differ_when_something_overflows(folder: TrialFolder) -> None:
    hashes = _packing_hashes(folder, max_length=128)

    assert len(set(hashes.values())) == 3


def test_a_setting_that_changes_nothing_changes_no_hash(folder: TrialFolder) -> None:
    asked = Settings(
        model={"attn_implementation": "sdpa", "dtype": "float32"},
        trainer={"max_length": 8192, "per_device_train_batch_size": 4},
    )

    hashes = {
        run_with_settings(tiny_config(), s, folder).effective_hash
        for s in (Settings(trainer={"max_length": None}), asked)
    }

    assert len(hashes) == 1


@pytest.mark.parametrize(
    "settings",
    [
        Settings(trainer={"optim": "sgd"}),
        Settings(trainer=NO_CHECKPOINTING),
        Settings(model={"attn_implementation": "eager"}),
        Settings(adapter=LORA),
    ],
    ids=["optimizer", "checkpointing", "attention", "adapter"],
)
def test_a_setting_that_changes_something_changes_the_hash(settings: Settings, folder: TrialFolder) -> None:
    one = run_with_settings(tiny_config(), Settings(), folder, known={}).effective_hash
    other = run_with_settings(tiny_config(), settings, folder).effective_hash

    assert one != other


def test_a_known_set_up_is_not_measured_again(folder: TrialFolder) -> None:
    first = run_with_settings(tiny_config(), Settings(), folder)
    assert first.effective_hash is not None

    again = run_with_settings(tiny_config(), Settings(), folder, known={first.effective_hash: 7})

    assert isinstance(again.outcome, Reused)
    assert again.outcome.trial == 7


def test_more_memory_than_the_budget_is_out_of_memory_with_what_was_held(folder: TrialFolder) -> None:
    outcome = run_with_settings(tiny_config(budget_bytes=16 * MIB), Settings(), folder).outcome

    assert isinstance(outcome, OutOfMemory)
    assert outcome.phase is Phase.WARM_UP
    assert outcome.held_bytes is not None
    assert outcome.held_bytes > 16 * MIB


def test_a_loss_that_is_no_number_is_an_outcome_of_its_own(folder: TrialFolder) -> None:
    outcome = run_with_settings(tiny_config(arguments={"learning_rate": 1e30}), Settings(), folder).outcome

    assert isinstance(outcome, NonFinite)
    assert outcome.step == 2


def test_what_trl_ignores_is_not_in_force(folder: TrialFolder) -> None:
    outcome = run_with_settings(tiny_config("dpo"), Settings(trainer={"padding_free": True}), folder).outcome

    assert outcome == NotInForce(differences=("padding_free=True was asked for; the trainer has False",))


def test_what_cannot_be_meant_is_incompatible_and_says_why(folder: TrialFolder) -> None:
    outcome = run_with_settings(tiny_config(), Settings(trainer={"nonesuch": 1}), folder).outcome

    assert isinstance(outcome, Incompatible)
    assert outcome.violations[0].startswith("SFTConfig has no field nonesuch")


@pytest.mark.parametrize(
    ("trainer", "more"),
    [
        ("sft", {}),
        ("sft", {"packing": True, "packing_strategy": "bfd"}),
        ("dpo", {}),
        ("dpo", {"precompute_ref_log_probs": True}),
        ("reward", {}),
        ("kto", {}),
        ("kto", {"precompute_ref_log_probs": True}),
    ],
)
def test_a_length_that_no_example_fits_in_is_incompatible(
    trainer: str, more: Mapping[str, Any], folder: TrialFolder
) -> None:
    settings = Settings(trainer={"max_length": 16, **more})

    record = run_with_settings(tiny_config(trainer), settings, folder)

    assert isinstance(record.outcome, Incompatible)
    assert "keeps none of the 4 examples" in record.outcome.violations[0]
    to_type = "type technique/truncation=max_length technique.truncation.max_length=32"
    assert record.outcome.violations[0].endswith(to_type)
    assert not folder.effective.exists()  # no step was begun


def test_a_length_that_leaves_no_prompt_beside_the_completion_is_incompatible(folder: TrialFolder) -> None:
    config = tiny_config("online_dpo")

    refused = run_with_settings(config, Settings(trainer={"max_length": 8}), folder).outcome
    cut = run_with_settings(config, Settings(trainer={"max_length": 16}), folder).outcome

    assert isinstance(refused, Incompatible)
    assert "technique.truncation.max_length=16" in refused.violations[0]
    assert isinstance(cut, Measured)
    assert cut.measures["kept_tokens"] == 4 * 8
    assert cut.measures["source_tokens"] > cut.measures["kept_tokens"]


@pytest.mark.parametrize("trainer", [name for name in DATA if name != "online_dpo"])
def test_evaluation_is_no_part_of_the_training_and_the_timing(trainer: str, folder: TrialFolder) -> None:
    without = run_with_settings(tiny_config(trainer), Settings(), folder)
    having = run_with_settings(tiny_config(trainer, evaluation=6), Settings(), folder)

    assert isinstance(without.outcome, Measured)
    assert isinstance(having.outcome, Measured)
    assert 4 <= having.facts["evaluation_rows"] <= 6  # a reward model is not shown what is too long
    assert "evaluation_rows" not in without.facts
    for name in ("trained_tokens", "slots_per_pass", "n_measured_steps"):
        assert having.outcome.measures[name] == without.outcome.measures[name]


def test_a_trainer_that_cannot_evaluate_says_so(folder: TrialFolder) -> None:
    outcome = run_with_settings(tiny_config("online_dpo", evaluation=2), Settings(), folder).outcome

    assert isinstance(outcome, Incompatible)
    assert outcome.violations == ("OnlineDPOTrainer cannot evaluate; type measure.evaluation_examples=0",)


def test_evaluation_follows_packing_unless_told_otherwise(folder: TrialFolder) -> None:
    packed = {"packing": True, "packing_strategy": "bfd"}
    config = tiny_config("sft", evaluation=6)

    def rows(**more: Any) -> tuple[int, int]:
        record = run_with_settings(config, Settings(trainer={**packed, **more}), folder)
        assert isinstance(record.outcome, Measured), record.outcome
        return record.facts["rows"], record.facts["evaluation_rows"]

    following, apart = rows(), rows(eval_packing=False)

    assert following[1] < 6
    assert apart == (following[0], 6)


def test_the_memory_of_the_evaluation_counts(folder: TrialFolder) -> None:
    """Evaluated at once, 16 examples need more than the one that is trained on at a time."""
    few = tiny_config("sft", batch=1, examples=1)
    many = tiny_config(
        "sft", batch=1, examples=1, evaluation=16, arguments={"per_device_eval_batch_size": 16}
    )

    peaks = [measured(config, folder)["peak_memory_bytes"] for config in (few, many)]

    assert peaks[1] > peaks[0] + 16 * MIB


@pytest.mark.parametrize("trainer", ["grpo", "rloo", "online_dpo"])
def test_completions_are_as_long_as_the_technique_says(trainer: str, folder: TrialFolder) -> None:
    field = "max_new_tokens" if trainer == "online_dpo" else "max_completion_length"
    config = tiny_config(trainer)

    short, long = (measured(config, folder, trainer={field: tokens})["trained_tokens"] for tokens in (4, 12))

    n_completions = 2 * 4 if trainer == "online_dpo" else 4 * 2
    assert long - short == 8 * n_completions


def test_what_trl_refuses_is_a_crash_with_its_reason_and_its_traceback_in_the_log(
    folder: TrialFolder,
) -> None:
    outcome = run_with_settings(tiny_config(), Settings(trainer={"padding_free": True}), folder).outcome

    assert isinstance(outcome, Crashed)
    assert outcome.phase is Phase.BUILD
    assert outcome.reason.startswith("ValueError: When `padding_free=True` without packing")
    assert "Traceback" in folder.stderr.read_text()


def test_ones_own_data_are_trained_on(folder: TrialFolder, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(json.dumps({"text": f"{n} and {n}"}) for n in range(8)))
    config = tiny_config(dataset=DatasetConfig(name="mine", source=DatasetSource.JSONL, path=str(path)))

    found = measured(config, folder)

    end_of_text = config.measure.probe_examples  # TRL ends each text with one
    assert found["trained_tokens"] == found["source_tokens"] + end_of_text


def test_data_without_the_columns_are_refused_in_words(folder: TrialFolder, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"question": "why?"}))
    config = tiny_config(dataset=DatasetConfig(name="mine", source=DatasetSource.JSONL, path=str(path)))

    outcome = run_with_settings(config, Settings(), folder).outcome

    assert isinstance(outcome, Incompatible)
    assert "has the columns question; trainer=sft needs prompt and completion" in outcome.violations[0]


def _packing_hashes(folder: TrialFolder, max_length: int) -> dict[str, str | None]:
    config = tiny_config()
    return {
        strategy: run_with_settings(
            config,
            Settings(trainer={"packing": True, "packing_strategy": strategy, "max_length": max_length}),
            folder,
        ).effective_hash
        for strategy in ("bfd", "bfd_split", "wrapped")
    }
