"""What happens in a trial: data, model, trainer, warm-up, measurement, outcome.

Runs in this process and returns whatever happened as an outcome; it exits nothing and raises nothing but what
ends the process anyway.  Importing this imports torch, transformers, TRL and PEFT: what a warm template pays
once.  It starts no thread and touches no device.
"""

from __future__ import annotations

import math
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import datasets
import torch
import transformers

from memsweep import __version__
from memsweep.config.schema import TrialConfig
from memsweep.data.probe import Probe, probe
from memsweep.errors import ConfigError
from memsweep.machine import Device, device, n_cores, package_versions
from memsweep.measure.bracket import Bracket, Plan
from memsweep.measure.memory import DeviceMemory, HostMemory, Memory, keep_in_memory
from memsweep.measure.throughput import kept_tokens, throughput
from memsweep.measure.tokens import TokenCounter
from memsweep.model.folder import model_place, require_template
from memsweep.readback.effective import checkpointed, effective, effective_hash, trained_parameters
from memsweep.readback.in_force import differences
from memsweep.readback.model_facts import recompute_alike
from memsweep.record.folder import TrialFolder, write_json
from memsweep.record.outcome import Measured, NonFinite, NotInForce, Outcome, Phase, Reused
from memsweep.record.trial import TrialRecord
from memsweep.technique.catalogue import Catalogue
from memsweep.technique.settings import Settings, merge
from memsweep.trainers.arguments import ACCUMULATION, MICRO, precision_reason, prompt_room
from memsweep.trainers.build import Built, build, recipe_of
from memsweep.trainers.recipe import TrialRequest
from memsweep.trial.failure import outcome_of
from memsweep.trial.process import in_trial_process, phases, report_phase

# Those whose version can change a result.
PACKAGES = ("accelerate", "bitsandbytes", "datasets", "peft", "torch", "transformers", "trl")
VERSIONS = {"memsweep": __version__, "python": sys.version.split()[0], **package_versions(PACKAGES)}


class _Ended(Exception):
    """The trial ends here, with an outcome that is no failure of the program."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        super().__init__(outcome.text)


@dataclass
class _Life:
    """What is known of a trial while it runs, so that a failure finds it too."""

    folder: TrialFolder
    phase: Phase = Phase.START
    memory: Memory | None = None
    hash: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def enter(self, phase: Phase) -> None:
        self.phase = phase
        report_phase(phase)

    def record(self, outcome: Outcome) -> TrialRecord:
        self.enter(Phase.END)
        return TrialRecord(
            outcome=outcome,
            seconds=phases() if in_trial_process() else {},
            versions=VERSIONS,
            effective_hash=self.hash,
            facts=self.facts,
        )


def run_trial(
    config: TrialConfig, catalogue: Catalogue, folder: TrialFolder, known: Mapping[str, int] | None = None
) -> TrialRecord:
    """Run the trial in this process, and write what came of it to its folder.

    Args:
        config: What it is asked to do.
        catalogue: The techniques there are.
        folder: Where effective.json and outcome.json are written.
        known: Effective hash to the number of the trial that measured it: it is not measured again.

    Returns:
        What outcome.json holds.
    """
    return _recorded(
        folder,
        lambda life: _measure(
            config, merge(config.technique, config.trainer.name, catalogue), life, dict(known or {})
        ),
    )


def run_with_settings(
    config: TrialConfig, settings: Settings, folder: TrialFolder, known: Mapping[str, int] | None = None
) -> TrialRecord:
    """Run the trial with settings that come from no catalogue; otherwise like `run_trial`."""
    return _recorded(folder, lambda life: _measure(config, settings, life, dict(known or {})))


def _recorded(folder: TrialFolder, run: Callable[[_Life], Outcome]) -> TrialRecord:
    life = _Life(folder)
    try:
        outcome = run(life)
    except _Ended as end:
        outcome = end.outcome
    except Exception as error:
        if not isinstance(error, ConfigError):
            _write_traceback(folder)
        outcome = outcome_of(error, life.phase, life.memory.held_bytes() if life.memory else None)
        error.__traceback__ = None  # its frames hold the model
    record = life.record(outcome)
    record.write(folder)
    return record


def _measure(config: TrialConfig, settings: Settings, life: _Life, known: dict[str, int]) -> Outcome:
    where, reason = device(config.launch.device)
    transformers.utils.logging.disable_progress_bar()
    datasets.disable_progress_bars()
    life.facts.update(device=str(where), device_reason=reason)

    life.enter(Phase.DATA)
    recipe_of(config.trainer.name)
    measure = config.measure
    examples = probe(
        config.dataset, config.trainer.data, measure.probe_examples, config.seed, measure.evaluation_examples
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
        data=datasets.Dataset.from_list(list(examples.rows)),
        folder=life.folder.path,
        evaluation=datasets.Dataset.from_list(list(examples.evaluation)) if examples.evaluation else None,
    )

    # Not earlier: it starts a thread, and what the cache lacks is made in a fork while there is only one.
    torch.set_num_threads(config.launch.threads or n_cores())
    life.facts["threads"] = torch.get_num_threads()
    life.enter(Phase.BUILD)
    budget = config.budget.memory_bytes
    memory = life.memory = HostMemory(budget) if where is Device.CPU else DeviceMemory(budget)
    with memory:
        built = build(request)
        plan = _plan(built, config)
        life.facts.update(_facts(built, request, examples, plan, memory))
        bracket = _train(built, request, plan, life, known)
    if not bracket.is_complete:
        raise RuntimeError(f"training ended before step {plan.last_edge}")
    if plan.evaluates and bracket.evaluation_loss is None:
        raise RuntimeError("the trainer evaluated nothing after its first step")
    measures = {
        **throughput(bracket, plan, len(examples.rows)),
        **memory.measures(),
        "trained_parameters": trained_parameters(built.trainer.model),
        "kept_tokens": life.facts["kept_tokens"],
        "source_tokens": life.facts["source_tokens"],
    }
    infinite = [name for name, value in measures.items() if not math.isfinite(value)]
    if infinite:
        return NonFinite(what=f"{infinite[0]} is {measures[infinite[0]]}", step=plan.last_edge)
    return Measured(measures=measures)


def _plan(built: Built, config: TrialConfig) -> Plan:
    """Return the steps of the trial."""
    trainer, measure = built.trainer, config.measure
    batches = len(trainer.get_train_dataloader())
    steps = math.ceil(batches / trainer.args.gradient_accumulation_steps)
    return Plan(
        steps, measure.warm_up_passes, measure.measured_passes, evaluates=measure.evaluation_examples > 0
    )


def _train(built: Built, request: TrialRequest, plan: Plan, life: _Life, known: dict[str, int]) -> Bracket:
    trainer = built.trainer
    assert life.memory is not None
    if request.device is Device.CPU:
        for model in (trainer.model, getattr(trainer, "ref_model", None)):
            if model is not None:
                keep_in_memory(model)
    before: dict[str, Any] = {}

    def ready() -> TokenCounter:
        before.update(checkpointed(trainer.model))
        _check_in_force(built, request, life, known)
        life.enter(Phase.WARM_UP)
        # A compiled model is called in place of the one it was made from, whose hooks would be compiled too.
        is_compiled = isinstance(trainer.model_wrapped, torch._dynamo.OptimizedModule)
        return TokenCounter(trainer.model_wrapped if is_compiled else trainer.model)

    def measuring() -> None:
        now = checkpointed(trainer.model)
        if not recompute_alike(before, now):
            changed = f"checkpointing was {before}, and is {now} after the first steps"
            raise _Ended(NotInForce(differences=(changed,)))
        life.enter(Phase.MEASURE)

    bracket = Bracket(plan, life.memory, ready, measuring)
    trainer.args.max_steps = plan.last_edge
    trainer.add_callback(bracket)
    trainer.train()
    return bracket


def _check_in_force(built: Built, request: TrialRequest, life: _Life, known: dict[str, int]) -> None:
    """Write effective.json; end the trial when it is not what was asked for, or known already."""
    facts = effective(built, request.config)
    life.hash = effective_hash(facts)
    write_json(life.folder.effective, {"effective_hash": life.hash, **facts})
    missing = differences(built, request.settings)
    if missing:
        raise _Ended(NotInForce(differences=missing))
    if life.hash in known:
        raise _Ended(Reused(trial=known[life.hash], measures={}))


def _facts(
    built: Built, request: TrialRequest, examples: Probe, plan: Plan, memory: Memory
) -> dict[str, Any]:
    """Return what is worth keeping beside the measures."""
    trainer = built.trainer
    lengths = _source_lengths(request, examples)
    # What is generated does not exist yet; there, the prompts are what may be lost.
    generates = built.recipe.completion_field is not None
    room = prompt_room(built.recipe, trainer.args)
    kept = sum(n if room is None else min(n, room) for n in lengths) if generates else kept_tokens(trainer)
    evaluated = {"evaluation_rows": len(trainer.eval_dataset)} if plan.evaluates else {}
    return {
        "precision": precision_reason(request, trainer.args),
        "examples": len(examples.rows),
        "examples_available": examples.n_available,
        "rows": len(trainer.train_dataset),
        **evaluated,
        "micro_batch": getattr(trainer.args, MICRO),
        "accumulation": getattr(trainer.args, ACCUMULATION),
        "steps_per_pass": plan.steps_per_pass,
        "examples_per_step": len(examples.rows) / plan.steps_per_pass,
        "source_tokens": sum(lengths),
        "kept_tokens": kept,
        "trained_parameters": trained_parameters(trainer.model),
        "memory": memory.facts(),
    }


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


def _write_traceback(folder: TrialFolder) -> None:
    if in_trial_process():
        traceback.print_exc()  # its stderr is the trial's log
    else:
        folder.path.mkdir(parents=True, exist_ok=True)
        with folder.stderr.open("a", encoding="utf-8") as log:
            traceback.print_exc(file=log)
