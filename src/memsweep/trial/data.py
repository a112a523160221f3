"""What does a trial train on: its examples, what is built from them, their order, and what is kept?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets

from memsweep.config.schema import TrialConfig
from memsweep.data.probe import Probe, fingerprint, probe
from memsweep.machine import Device
from memsweep.measure.prepared import Prepared, prepared
from memsweep.measure.schedule import Schedule
from memsweep.model.folder import model_place, require_template
from memsweep.readback.effective import trained_parameters
from memsweep.technique.settings import Settings
from memsweep.technique.work import ACCUMULATION, MICRO
from memsweep.trainers.arguments import precision_reason, prompt_room
from memsweep.trainers.build import Built
from memsweep.trainers.order import block_of, packs
from memsweep.trainers.recipe import TrialRequest


def trial_request(
    config: TrialConfig, settings: Settings, where: Device, folder: Path
) -> tuple[TrialRequest, Probe]:
    """Return what the trainer is built from, and the examples in it.

    Raises:
        ConfigError: If there is no such model, or the data are not what the trainer needs.
    """
    measure = config.measure
    examples = probe(
        config.dataset,
        config.trainer.data,
        measure.probe_examples,
        config.seed,
        measure.evaluation_examples,
        config.trainer.batch if measure.worst_step else 0,
        config.trainer.batch,
    )
    place = model_place(config.model)
    require_template(config, place, examples.rows)
    request = TrialRequest(
        config=config,
        settings=settings,
        device=where,
        model=place.name,
        revision=place.revision,
        tokenizer=place.tokenizer,
        data=_dataset(examples.rows),
        folder=folder,
        evaluation=_dataset(examples.evaluation) if examples.evaluation else None,
        longest=_dataset(examples.longest) if examples.longest else None,
    )
    return request, examples


def data_condition(config: TrialConfig, examples: Probe) -> str:
    """Return what must be alike of two trials' data for their figures to be compared."""
    digest = fingerprint(examples.rows)
    return f"{len(examples.rows)} of {examples.n_available} examples of {config.dataset.name} ({digest})"


def schedule_of(built: Built, config: TrialConfig) -> Schedule:
    """Return the steps of the trial, and let the trainer take its rows in their order."""
    block = block_of(built.trainer.args, built.recipe)
    schedule = Schedule(
        block=block,
        rows=built.rows,
        longest=_filled(built.longest, block.n_rows) if config.measure.worst_step else [],
        max_passes=config.measure.max_passes,
        evaluates=config.measure.evaluation_examples > 0,
    )
    built.trainer.row_order = schedule.order()
    return schedule


@dataclass(frozen=True, slots=True)
class Preparation:
    """What preparation made of the examples.

    Attributes:
        n_examples: Source examples of a pass.
        prepared: What the rows of a pass hold; for online trainers what is left of the prompts.
        source_tokens: Tokens of the source examples, nothing left out.
        is_packed: A row may hold several examples.
        facts: What is worth keeping beside the measures.
    """

    n_examples: int
    prepared: Prepared
    source_tokens: int
    is_packed: bool
    facts: dict[str, Any]


def preparation(built: Built, request: TrialRequest, examples: Probe, schedule: Schedule) -> Preparation:
    """Return what preparation made of the examples, without training."""
    trainer, n_examples = built.trainer, len(examples.rows)
    lengths = _source_lengths(request, examples)
    if built.recipe.completion_field is None:
        rows = prepared(trainer, built.rows)
    else:  # what is generated does not exist yet; there, the prompts are what may be lost
        room = prompt_room(built.recipe, trainer.args)
        prompts = [n if room is None else min(n, room) for n in lengths]
        whole = [n + getattr(trainer.args, built.recipe.completion_field) for n in prompts]
        rows = Prepared(sum(prompts), mean_length=sum(n * n for n in whole) / sum(whole))
    facts = {
        "precision": precision_reason(request, trainer.args),
        "examples": n_examples,
        "examples_available": examples.n_available,
        "rows": len(built.rows),
        "micro_batch": getattr(trainer.args, MICRO),
        "accumulation": getattr(trainer.args, ACCUMULATION),
        "steps_per_pass": schedule.steps_per_pass,
        "rows_per_pass": schedule.rows_per_pass,
        "examples_per_step": n_examples * schedule.block.n_rows / schedule.block.n_steps / len(built.rows),
        "source_tokens": sum(lengths),
        "kept_tokens": rows.tokens,
        "trained_parameters": trained_parameters(trainer.model),
    }
    if schedule.evaluates:
        facts["evaluation_rows"] = len(trainer.eval_dataset)
    return Preparation(n_examples, rows, sum(lengths), packs(trainer.args), facts)


def _filled(rows: Sequence[int], n_rows: int) -> list[int]:
    """Return the first `n_rows` of `rows`, from the first on again where there are fewer."""
    return [rows[place % len(rows)] for place in range(n_rows)]


def _dataset(rows: Any) -> datasets.Dataset:
    return datasets.Dataset.from_list(list(rows))


def _source_lengths(request: TrialRequest, examples: Probe) -> list[int]:
    """Return the tokens of each text of the source examples, as the tokenizer has them, nothing left out."""
    tokenizer = request.tokenizer
    lengths = []
    for row in examples.rows:
        prompt = row.get("prompt")
        for column in examples.form:
            value = row[column]
            if (column == "prompt" and len(examples.form) > 1) or isinstance(value, bool):
                continue
            if isinstance(value, str):
                text = f"{prompt}{value}" if prompt is not None and column != "prompt" else value
                lengths.append(len(tokenizer(text)["input_ids"]))
            else:
                messages = [*prompt, *value] if prompt is not None and column != "prompt" else value
                ids = tokenizer.apply_chat_template(
                    messages, add_generation_prompt=column == "prompt", return_dict=True
                )["input_ids"]
                lengths.append(len(ids))
    return lengths
