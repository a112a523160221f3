"""What happens in a trial: data, model, trainer, warm-up, measurement, outcome.

Runs in this process and returns whatever happened as an outcome; it exits nothing and raises nothing but what
ends the process anyway.  Importing this imports torch, transformers, TRL and PEFT: what a warm template pays
once.  It starts no thread and touches no device.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import datasets
import torch
import transformers

from memsweep.config.schema import TrialConfig
from memsweep.machine import Device, device, machine_facts, machine_name, n_cores
from memsweep.measure.bracket import Bracket
from memsweep.measure.device import DeviceMemory
from memsweep.measure.driver import device_facts
from memsweep.measure.live import LiveTensors, held_tensor_bytes
from memsweep.measure.memory import HostMemory
from memsweep.measure.meter import Meter
from memsweep.measure.resident import keep_in_memory
from memsweep.measure.schedule import Schedule
from memsweep.measure.sign_of_life import SignOfLife
from memsweep.measure.steady import SteadyState
from memsweep.measure.surroundings import Surroundings, device_uuid
from memsweep.measure.throughput import Throughput, throughput
from memsweep.measure.training_log import TrainingLog
from memsweep.ranks.plan import plan_of
from memsweep.readback.effective import checkpointed, effective, effective_hash
from memsweep.readback.in_force import differences
from memsweep.readback.model_facts import recompute_alike
from memsweep.readback.trainer_facts import zero_stage
from memsweep.readback.trainer_in_force import gathering_differences
from memsweep.record.folder import TrialFolder, write_json
from memsweep.record.outcome import NotInForce, Outcome, Phase, Reused
from memsweep.record.rivals import Rivals
from memsweep.record.trial import TrialRecord
from memsweep.technique.catalogue import Catalogue
from memsweep.technique.settings import Settings, merge
from memsweep.trainers.build import Built, build, recipe_of
from memsweep.trainers.recipe import TrialRequest
from memsweep.trial.contest import Contest
from memsweep.trial.data import Preparation, data_condition, preparation, schedule_of, trial_request
from memsweep.trial.findings import cut_short, decided, measured
from memsweep.trial.life import VERSIONS, Ended, Life, lived, recorded
from memsweep.trial.process import lease
from memsweep.trial.ranked import run_in_ranks
from memsweep.trial.rooms import move_in
from memsweep.trial.team import team


def run_trial(
    config: TrialConfig,
    catalogue: Catalogue,
    folder: TrialFolder,
    known: Mapping[str, int] | None = None,
    rivals: Rivals | None = None,
) -> TrialRecord:
    """Run the trial in this process, and write what came of it to its folder.

    Args:
        config: What it is asked to do.
        catalogue: The techniques there are.
        folder: Where effective.json and outcome.json are written.
        known: Effective hash to the number of the trial that measured it: it is not measured again.
        rivals: What it is cut short for being worse than; None measures it to its end.

    Returns:
        What outcome.json holds.
    """
    move_in()

    def run(life: Life) -> Outcome:
        settings = merge(config.technique, config.trainer.name, catalogue)
        return _measure(config, settings, life, known or {}, rivals)

    try:
        plan = plan_of(merge(config.technique, config.trainer.name, catalogue).launch)
        if plan is not None:
            return run_in_ranks(plan, config, folder, lambda place: lived(place, run))
    except Exception as problem:  # its text is the outcome's, as of what goes wrong later
        return recorded(folder, partial(_raise, problem))
    return recorded(folder, run)


def run_with_settings(
    config: TrialConfig,
    settings: Settings,
    folder: TrialFolder,
    known: Mapping[str, int] | None = None,
    rivals: Rivals | None = None,
) -> TrialRecord:
    """Run the trial with settings that come from no catalogue; otherwise like `run_trial`."""
    return recorded(folder, lambda life: _measure(config, settings, life, known or {}, rivals))


def _raise(problem: Exception, _: Life) -> Outcome:
    raise problem


def _measure(
    config: TrialConfig, settings: Settings, life: Life, known: Mapping[str, int], rivals: Rivals | None
) -> Outcome:
    where, reason = device(config.launch.device)
    transformers.utils.logging.disable_progress_bar()
    datasets.disable_progress_bars()
    life.facts.update(device=str(where), device_reason=reason)

    life.enter(Phase.DATA)
    recipe_of(config.trainer.name)
    request, examples = trial_request(config, settings, where, life.folder.path)
    life.conditions.update(data=data_condition(config, examples))

    # Not earlier: it starts a thread, and what the cache lacks is made in a fork while there is only one.
    torch.set_num_threads(config.launch.threads or max(1, n_cores() // team().size))
    life.facts["threads"] = torch.get_num_threads()
    life.enter(Phase.BUILD)
    _note_machine(where, life)
    budget = config.budget.memory_bytes
    memory = life.memory = HostMemory(budget) if where is Device.CPU else DeviceMemory(budget)
    with memory:
        built = build(request)
        schedule = schedule_of(built, config)
        rows = preparation(built, request, examples, schedule)
        life.facts.update({**rows.facts, "memory": memory.facts()})
        contest = Contest(rivals, decided(built, rows), life.conditions, VERSIONS)
        bracket, steady = _train(built, request, schedule, rows, life, known, contest)
    if not bracket.is_complete:
        raise RuntimeError(f"training ended before its throughput was known, by step {schedule.last_edge}")
    if schedule.evaluates and bracket.evaluation_loss is None:
        raise RuntimeError("the trainer evaluated nothing after its first step")
    rates, disturbed = _rates(steady, schedule, rows), _disturbances(life, steady)
    return measured(rates, bracket, rows, memory, built, life.live, (steady.remark, *disturbed))


def _rates(steady: SteadyState, schedule: Schedule, rows: Preparation) -> Throughput:
    return throughput(steady, schedule, rows.n_examples, rows.prepared, is_packed=rows.is_packed)


def _disturbances(life: Life, steady: SteadyState) -> tuple[str, ...]:
    """Take note of the timed passes, and return what a reader must know of what went on beside them."""
    life.facts["windows"] = [
        {"seconds": round(window.seconds, 6), "tokens": window.tokens} for window in steady.windows
    ]
    assert life.surroundings is not None
    disturbances = life.surroundings.end()
    life.facts["surroundings"] = disturbances.facts
    return disturbances.remarks


def _note_machine(where: Device, life: Life) -> None:
    """Take note of what the trial computes on.  On CUDA this takes the device, so it follows all forks."""
    devices = []
    if where is Device.CUDA:
        life.uuid = device_uuid()
        devices = [found for found in device_facts() if life.uuid in found.get("uuid", "")]
    life.facts["machine"] = machine_facts(devices)
    share = lease()
    n_taken = 1 if share is None else share.n_taken
    life.conditions["machine"] = machine_name(devices, n_slots_taken=n_taken)
    if share is not None:
        life.facts["lease"], life.conditions["share"] = share.facts(), share.condition


def _train(
    built: Built,
    request: TrialRequest,
    schedule: Schedule,
    rows: Preparation,
    life: Life,
    known: Mapping[str, int],
    contest: Contest,
) -> tuple[Bracket, SteadyState]:
    trainer, measure = built.trainer, request.config.measure
    memory = life.memory
    assert memory is not None
    if request.device is Device.CPU:
        for model in (trainer.model, getattr(trainer, "ref_model", None)):
            if model is not None:
                keep_in_memory(model)
    before: dict[str, Any] = {}
    peaks: dict[str, float] = {}

    def ready() -> Meter:
        before.update(checkpointed(trainer.model))
        _check_in_force(built, request, life, known)
        life.enter(Phase.WARM_UP)
        return Meter(trainer, generates=built.recipe.completion_field is not None)

    def settling() -> AbstractContextManager[object]:
        peaks.update(team().largest(memory.measures()))
        lost = contest.lost_by_memory(peaks)
        if lost is not None:
            raise Ended(cut_short(lost, None, peaks, built, rows))
        # DeepSpeed's own buffers are in no module and no optimizer that would show them.
        if request.device is not Device.CPU or zero_stage(trainer) is not None:
            return nullcontext()
        models = (trainer.model, getattr(trainer, "ref_model", None))
        life.live = LiveTensors(held_tensor_bytes(models, trainer.optimizer))
        return life.live

    def measuring() -> None:
        now = checkpointed(trainer.model)
        if not recompute_alike(before, now):
            changed = f"checkpointing was {before}, and is {now} after the first steps"
            raise Ended(NotInForce(differences=(changed,)))
        generated = bracket.done().generated
        otherwise = tuple(gathering_differences(built, generated.calls, generated.whole_calls))
        if otherwise:
            raise Ended(NotInForce(differences=otherwise))
        life.enter(Phase.MEASURE)
        life.surroundings = Surroundings.begin(torch.get_num_threads(), life.uuid, team().size)

    def timed() -> None:
        if not steady.is_warm:
            return
        if life.live is not None:
            peaks["peak_live_tensor_bytes"] = life.live.peak_bytes
        rates = _rates(steady, schedule, rows)
        lost = contest.lost_by_pace(peaks, rates, len(steady.measured), steady.n_left, measure.precision)
        if lost is not None:
            disturbed = _disturbances(life, steady)
            raise Ended(cut_short(lost, rates, {**peaks, **memory.measures()}, built, rows, disturbed))

    steady = SteadyState(measure.precision, measure.min_passes, measure.max_passes, measure.max_seconds)
    bracket = Bracket(schedule, steady, memory, ready, settling, measuring, timed, agreed=team().together)
    trainer.args.max_steps = schedule.last_edge
    trainer.add_callback(TrainingLog(life.folder.log))
    trainer.add_callback(bracket)
    if team().size > 1:
        trainer.add_callback(SignOfLife(team().go_on))
    try:
        trainer.train()
    finally:
        bracket.close()
    return bracket, steady


def _check_in_force(built: Built, request: TrialRequest, life: Life, known: Mapping[str, int]) -> None:
    """Write effective.json; end the trial when it is not what was asked for, or known already."""
    facts = effective(built, request.config)
    life.hash = effective_hash(facts)
    write_json(life.folder.effective, {"effective_hash": life.hash, **facts})
    missing = differences(built, request.settings)
    if missing:
        raise Ended(NotInForce(differences=missing))
    if life.hash in known and team().rank == 0:
        raise Ended(Reused(trial=known[life.hash], measures={}))
