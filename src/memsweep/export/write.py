"""One trial into one folder: everything is decided first, then written."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from memsweep.export.chosen import Chosen
from memsweep.export.examples import Examples, examples
from memsweep.export.page import Page, file_list, requirements
from memsweep.export.processes import ENGINE, accelerate_config, engine_config
from memsweep.export.real_run import differences, model_keywords, trainer_arguments
from memsweep.export.real_run import withheld as withheld_fields
from memsweep.export.room import require_room
from memsweep.export.scores import Scores, scores
from memsweep.export.shell import environment_text, run_text
from memsweep.export.shell import withheld as withheld_variables
from memsweep.export.train_script import Script
from memsweep.export.trl_command import (
    adapter_fields,
    data_fields,
    has_command,
    model_fields,
    quantization_fields,
)
from memsweep.export.weights import Weights, weights
from memsweep.record.folder import write_text
from memsweep.trainers.adapter import adapter_config
from memsweep.trainers.build import recipe_of
from memsweep.trainers.recipe import Recipe
from memsweep.visible import visible

PAGE, CONFIG, SCRIPT = "README.md", "config.yaml", "train.py"
ENVIRONMENT, RUN, PROCESSES, PINS, SCORES = (
    *("environment.sh", "run.sh", "accelerate.yaml", "requirements.txt", "rewards.py"),
)
_WRITTEN = (PAGE, CONFIG, SCRIPT, ENVIRONMENT, RUN, PROCESSES, ENGINE, PINS, SCORES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What became of a trial.

    Attributes:
        folder: The folder.
        reasons: Why it holds a script; empty where TRL's own command does.
        files: Name to what it is, of the files beside README.md.
        withheld: Names of settings that hold a secret and were not written down.
        is_random: Whether the weights are random numbers: only a geometry was measured.
    """

    folder: Path
    reasons: tuple[str, ...]
    files: Mapping[str, str]
    withheld: tuple[str, ...]
    is_random: bool


def export_trial(chosen: Chosen, folder: Path, *, is_forced: bool = False) -> Exported:
    """Write a folder that trains with the set-up of a trial.

    Args:
        chosen: The trial.
        folder: The folder, made when missing.
        is_forced: Replace what an earlier export wrote; whatever else is there stays.

    Raises:
        ConfigError: If the folder holds something, or the trial's model or data are not there any more.
    """
    require_room(folder, is_forced=is_forced)
    config, recipe = chosen.config, recipe_of(chosen.config.trainer.name)
    data = examples(config.dataset, config.trainer.data, config.seed, folder)
    with tempfile.TemporaryDirectory() as scratch:
        reads_processor = hasattr(sys.modules[recipe.trainer_class.__module__], "AutoProcessor")
        model = weights(config.model, folder, with_processor=reads_processor, scratch=Path(scratch))
    judged = scores(config.reward, folder) if recipe.completion_field is not None else None
    said, reasons = _command(chosen, recipe, model, data, judged, folder)
    adapter = adapter_config(chosen.settings.adapter, recipe.task_type)
    texts = {
        CONFIG: _config_text(chosen, _script_fields(chosen, recipe, model, folder) if reasons else said),
        ENVIRONMENT: environment_text(chosen),
        PROCESSES: _yaml(accelerate_config(chosen)),
        PINS: requirements(chosen),
    }
    if reasons:
        script = Script(
            title=f"{_title(chosen)}.",
            recipe=recipe,
            weights=model,
            examples=data,
            adapter=adapter,
            adapter_settings=chosen.settings.adapter,
            quantization=chosen.settings.model.get("quantization") or {},
            scores=judged,
        )
        texts[SCRIPT] = script.text()
    if judged is not None and judged.module is not None:
        texts[SCORES] = judged.module
    if engine := engine_config(chosen):
        texts[ENGINE] = json.dumps(engine, indent=2) + "\n"
    command = _launched(chosen, f"trl {config.trainer.name} --config {CONFIG}", has_script=bool(reasons))
    texts[RUN] = run_text(command)
    files = file_list(texts, model, data)
    withheld = (*withheld_variables(chosen), *withheld_fields(chosen, recipe))
    texts[PAGE] = Page(
        chosen=chosen,
        weights=model,
        examples=data,
        reasons=reasons,
        command=command,
        differences=differences(chosen, recipe),
        withheld=withheld,
        files=files,
        has_scores=SCORES in texts,
    ).text()
    _write(folder, texts, model, data)
    return Exported(folder=folder, reasons=reasons, files=files, withheld=withheld, is_random=model.is_random)


def _command(
    chosen: Chosen, recipe: Recipe, model: Weights, data: Examples, judged: Scores | None, folder: Path
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields of TRL's own command, and why it cannot be; with reasons the fields mean nothing."""
    keywords, trainer = model_keywords(chosen, recipe), chosen.config.trainer.name
    quantization = chosen.settings.model.get("quantization")
    adapter, no_adapter = adapter_fields(adapter_config(chosen.settings.adapter, recipe.task_type))
    bits, no_bits = quantization_fields(quantization, keywords.get("dtype"))
    reasons = (
        "" if has_command(trainer) else f"it has no `trl {trainer}`",
        no_adapter,
        no_bits,
        "" if model.loads_alike else "it reads another tokenizer from the model than the trial had",
    )
    reward: dict[str, Any] = {}
    if judged is not None:
        place = {"reward_model_name_or_path": judged.model}
        reward = place if judged.model is not None else {"reward_funcs": ["rewards.reward"]}
    fields = {
        **model_fields(keywords, model.name, model.revision),
        **data_fields(data.path, data.data_files, data.split, data.columns),
        **adapter,
        **bits,
        **reward,
        **trainer_arguments(chosen, recipe, folder),
        "accelerate_config": PROCESSES,
    }
    return fields, tuple(reason for reason in reasons if reason)


def _script_fields(chosen: Chosen, recipe: Recipe, model: Weights, folder: Path) -> dict[str, Any]:
    keywords = dict(model_keywords(chosen, recipe))
    if model.revision is not None:
        keywords["revision"] = model.revision
    loaded = {"model_init_kwargs": keywords} if keywords else {}
    return {**loaded, **trainer_arguments(chosen, recipe, folder)}


def _launched(chosen: Chosen, command: str, *, has_script: bool) -> str:
    if not has_script:
        return command
    alone = chosen.processes == 1
    return f"python {SCRIPT}" if alone else f"accelerate launch --config_file {PROCESSES} {SCRIPT}"


def _config_text(chosen: Chosen, fields: Mapping[str, Any]) -> str:
    return f"# {_title(chosen)}.\n{_yaml(fields)}"


def _title(chosen: Chosen) -> str:
    text = f"{chosen.title}: trial {chosen.result.number} of {chosen.findings.study.name}"
    return visible(" ".join(text.split()))  # it stands in a comment, which a line feed would end


def _yaml(data: Mapping[str, Any]) -> str:
    return str(yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True, width=100))


def _write(folder: Path, texts: Mapping[str, str], model: Weights, data: Examples) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in _WRITTEN:
        if name in texts:
            write_text(folder / name, texts[name])
        else:
            (folder / name).unlink(missing_ok=True)
    model.write(folder)
    data.write(folder)
