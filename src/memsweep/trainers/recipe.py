"""What does a module of this package say about its trainer, and what is it told about a trial?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from memsweep.config.schema import TrialConfig
from memsweep.machine import Device
from memsweep.technique.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRequest:
    """All that a trainer is built from.

    Attributes:
        config: What the trial is asked to do.
        settings: What its techniques set.
        device: What it computes on.
        model: A folder or a repository's name.
        revision: Of the repository; None means its default.
        tokenizer: Of the model.
        data: The source examples, in the order of training.
        folder: Where the trainer may write.
        evaluation: The examples to evaluate on; None when nothing is evaluated.
        longest: The longest examples there are, for a step that a long training meets some day; None: the
            longest of `data` take their place.
    """

    config: TrialConfig
    settings: Settings
    device: Device
    model: str
    revision: str | None
    tokenizer: PreTrainedTokenizerBase
    data: Dataset
    folder: Path
    evaluation: Dataset | None = None
    longest: Dataset | None = None


def nothing(_: TrialRequest) -> dict[str, Any]:
    """Return no keywords: for trainers that need none of their own."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One TRL trainer.

    Attributes:
        config_class: Its arguments.
        trainer_class: The trainer.
        task_type: What PEFT calls what the model is for.
        keywords: Keywords of the trainer's constructor, beside those that all trainers get.
        arguments: Fields of `config_class` that the trainer needs; the configuration may set others.
        completion_field: Field that bounds a generated completion; None when nothing is generated.
        generations_field: Field with the completions per prompt; None when that is fixed or there are none.
            Where there is one, TRL counts a batch in completions, and so does `trainer.batch`.
        quantization_keyword: Whether the constructor takes `quantization_config`; else it goes with the
            model's own keywords.
        evaluates: Whether the trainer can evaluate.
        makes_room: Whether the trainer cuts prompts in the training pass, so that prompt and completion
            together are not longer than its `max_length`.
        prepared_fields: Fields whose whole effect is in the prepared rows and the collator, so that two
            values with the same rows are the same set-up.
    """

    config_class: Any
    trainer_class: Any
    task_type: str = "CAUSAL_LM"
    keywords: Callable[[TrialRequest], dict[str, Any]] = nothing
    arguments: Mapping[str, Any] = field(default_factory=dict)
    completion_field: str | None = None
    generations_field: str | None = None
    quantization_keyword: bool = True
    evaluates: bool = True
    makes_room: bool = False
    prepared_fields: frozenset[str] = frozenset()
