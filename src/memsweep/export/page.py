"""README.md and requirements.txt of an exported folder: what it is, what was measured, how to train."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from memsweep.export.chosen import Chosen
from memsweep.export.examples import OWN_FILE, Examples
from memsweep.export.shell import TIGHT_LINE, has_loose_allocator
from memsweep.export.weights import OWN_FOLDER, Weights
from memsweep.findings.gains import baseline_gains, times_text
from memsweep.findings.peak import peak_text
from memsweep.findings.words import caution, changes_text, name_text, reason_text, remarks_text, runs_text
from memsweep.units import measure_text

_OURS = ("memsweep", "python")  # versions that are no requirement

_RECORDED = ("accelerate", "bitsandbytes", "datasets", "deepspeed", "peft", "torch", "transformers", "trl")
_VERSION = re.compile(r"[0-9][\w.!]*(\+[\w.]+)?")  # Source: PEP 440, as far as it is in use

_ALSO_SHOWN = ("tokens_per_second", "peak_memory_bytes", "samples_per_second", "trained_parameters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What README.md is made from.

    Attributes:
        chosen: The trial.
        weights: Its model.
        examples: Its data.
        reasons: Why there is a script; empty where TRL's own command does.
        command: What trains.
        differences: Field of the trainer's arguments that is not as in the trial, to what it is.
        withheld: Names of settings that hold a secret and were not written down.
        files: Name to what it is.
        has_scores: Whether completions are scored by rewards.py.
    """

    chosen: Chosen
    weights: Weights
    examples: Examples
    reasons: Sequence[str]
    command: str
    differences: Mapping[str, str]
    withheld: Sequence[str]
    files: Mapping[str, str]
    has_scores: bool

    def text(self) -> str:
        """Return README.md."""
        chosen, result = self.chosen, self.chosen.result
        trainer = chosen.config.trainer.name
        parts = [
            f"# {chosen.title}: {trainer}, as measured",
            f"The set-up of trial {result.number} of the study `{chosen.findings.study.name}`, ready to "
            "train with.  Nothing here needs memsweep.",
            self._how(),
            "## Train",
            "```sh\npip install -r requirements.txt\nsh run.sh                    # all the data, one epoch\n"
            "sh run.sh --max_steps 20     # a short one\n```",
            "Any field of the trainer's arguments can follow, and overrides what config.yaml says: "
            "`sh run.sh --learning_rate 1e-5 --output_dir elsewhere`.  The trained model is written to "
            "`output/`.",
            "## Measured",
            self._figures(),
            *self._beliefs(),
            "## Change for a training of your own",
            self._changes(),
            "## What is not as in the trial",
            "What decides speed and memory is; these are not:",
            "\n".join(f"- `{name}`: {text}" for name, text in self.differences.items()),
            "## Files",
            "\n".join(f"- `{name}`: {text}" for name, text in self.files.items()),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _how(self) -> str:
        if not self.reasons:
            return f"It trains with TRL's own command: `{self.command}`."
        why = "; ".join(self.reasons)
        return f"It trains with a script, because TRL's own command cannot say this: {why}."

    def _figures(self) -> str:
        chosen, result = self.chosen, self.chosen.result
        findings, names = chosen.findings, dict.fromkeys((*chosen.findings.objectives, *_ALSO_SHOWN))
        compared = baseline_gains(findings, result)
        rows = ["| measure | this set-up | against the baseline |", "| --- | --- | --- |"]
        for name in names:
            if name in result.objectives:
                gain = compared.get(name)
                times = "the baseline" if findings.is_baseline(result) else times_text(gain) if gain else ""
                rows.append(f"| {name_text(name)} | {findings.figure(result, name)} | {times} |")
            elif name in result.medians:
                rows.append(f"| {name_text(name)} | {measure_text(name, result.medians[name])} | |")
        return "\n".join(rows)

    def _beliefs(self) -> list[str]:
        chosen, result = self.chosen, self.chosen.result
        said = [
            f"On: {chosen.record.conditions.get('machine', 'a machine that was not recorded')}.  "
            f"Data: {chosen.record.conditions.get('data', 'not recorded')}.",
            "\N{PLUS-MINUS SIGN} is half of the 95 % interval"
            + (f"; {runs_text(result)}" if runs_text(result) else "")
            + ".  Another machine, other versions, a longer training on other lengths: other figures.",
            peak_text({"device": chosen.effective["launch"]["device"], **chosen.record.facts}),
            self._allocator(),
            f"{changes_text(result.changes)}." if not chosen.findings.is_baseline(result) else "",
            ""
            if result.feasible
            else f"**Not on offer in its study**: {reason_text(result, chosen.findings.study)}.",
            f"Before you believe the figures: {remarks_text(result)}." if result.remarks else "",
            f"{caution(chosen.findings.study)}." if caution(chosen.findings.study) else "",
        ]
        return [text for text in said if text]

    def _allocator(self) -> str:
        """Return that peak and speed were measured with two settings of the allocator; empty otherwise."""
        if not has_loose_allocator(self.chosen):
            return ""
        return (
            "The peak was measured while the C library gave freed blocks back at once, and the speed while "
            "it kept them.  environment.sh keeps them: as fast as measured, and **the peak can be higher "
            "than the figure above**.  For the least memory instead, slower, end environment.sh with "
            f"`{TIGHT_LINE}`."
        )

    def _changes(self) -> str:
        model = "`MODEL` in train.py" if self.reasons else "`model_name_or_path` in config.yaml"
        data = "`load_dataset(...)` in train.py" if self.reasons else "`datasets` in config.yaml"
        lines = []
        if self.weights.is_random:
            lines.append(
                f"- **The model**: the weights in `{OWN_FOLDER}/` are random, only the geometry of a model "
                f"was measured.  Put your own, a folder or a repository's name, into {model}."
            )
        else:
            lines.append(f"- The model: {model} is `{self.weights.name}`.")
        what = self.examples.remark or f"{data} is what the study was given."
        lines.append(f"- The data: {what}  Yours go into {data}; their lengths decide speed and memory.")
        lines.append(
            "- The batch: micro-batch times accumulation is what the study compared; change both together "
            "to keep it."
        )
        if self.has_scores:
            lines.append("- The reward: rewards.py.")
        lines.append("- Learning rate, schedule, epochs: config.yaml; they decide neither speed nor memory.")
        lines.append(
            "- Checkpoints, logging, tracking: `save_steps`, `logging_steps`, `report_to` in config.yaml."
        )
        if self.chosen.on_cpu:
            lines.append(
                "- The device: it was measured on a CPU.  For another, remove `use_cpu` and "
                "`dataloader_pin_memory` from config.yaml, and `use_cpu` from accelerate.yaml; the figures "
                "then say nothing."
            )
        if self.withheld:
            names = ", ".join(f"`{name}`" for name in self.withheld)
            lines.append(f"- Secrets were not written down; set them yourself: {names}.")
        return "\n".join(lines)


def requirements(chosen: Chosen) -> str:
    """Return requirements.txt: the versions that the trial ran with, and what its techniques need besides."""
    versions = {name: text for name, text in chosen.record.versions.items() if _is_recorded(name, text)}
    pins = {name: text.partition("+")[0] for name, text in versions.items() if name not in _OURS}
    needs = [
        need
        for technique, option in chosen.config.technique.items()
        for need in chosen.catalogue.option(technique, option.option).needs.packages
        if not any(need.startswith(name) for name in pins)
    ]
    python = versions.get("python", "unknown")
    builds = [
        f"{name} {version}"
        for name, version in sorted(versions.items())
        if "+" in version and name not in _OURS
    ]
    return "\n".join(
        [
            f"# What the trial ran with, in Python {python}.",
            *(f"# Measured was {build}; which build is installed is the index's choice." for build in builds),
            *(f"{name}=={version}" for name, version in sorted(pins.items())),
            *sorted(set(needs)),
            "",
        ]
    )


def _is_recorded(name: str, version: str) -> bool:
    """Tell whether a trial records such a version: what else a study's file says is not to be installed."""
    return name in (*_OURS, *_RECORDED) and _VERSION.fullmatch(version) is not None


def file_list(written: Container[str], weights: Weights, examples: Examples) -> dict[str, str]:
    """Return name to what it is, of the files beside README.md.

    Args:
        written: Names of those that have a text of ours.
        weights: The model.
        examples: The data.
    """
    has_script = "train.py" in written
    found = {
        "run.sh": "the one command, in the trial's environment",
        "config.yaml": "the trainer's arguments" + ("" if has_script else ", the model and the data"),
        "train.py": "the script" if has_script else "",
        "rewards.py": "how completions are scored" if "rewards.py" in written else "",
        "environment.sh": "variables: threads, allocator",
        "accelerate.yaml": "how many processes",
        "deepspeed.json": "how they share the work" if "deepspeed.json" in written else "",
        "requirements.txt": "the versions that were measured",
        f"{OWN_FOLDER}/": "" if weights.source is None else "the model and its tokenizer",
        OWN_FILE: "" if examples.rows is None else f"{len(examples.rows):,} examples",
    }
    return {name: text for name, text in found.items() if text}
