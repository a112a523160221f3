"""Trials of two processes on a CPU, as `launch=cpu_simulated` runs them: real trainers, real sharding."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memsweep.config.schema import TrialConfig
from memsweep.measure.sign_of_life import SignOfLife
from memsweep.ranks.simulated import REMARK
from memsweep.record.folder import TrialFolder, read_json
from memsweep.record.outcome import Crashed, Measured, NotInForce, OutOfMemory, TimedOut
from memsweep.record.trial import TrialRecord
from memsweep.technique.catalogue import Catalogue, conf_folder, read_catalogue
from memsweep.technique.settings import merge
from memsweep.trial import kernel
from memsweep.trial.ending import record_of
from memsweep.trial.environment import trial_environment
from memsweep.trial.isolate import ProcessPool, ProcessRequest, pickled
from memsweep.trial.launch import preload_of, run_here
from memsweep.trial.team import team
from memsweep.trial.verdict import SUM
from tiny import share_cache, tiny_config

pytestmark = pytest.mark.slow

CATALOGUE = read_catalogue(conf_folder())
PATIENCE_SECONDS = 6.0  # more than a busy machine keeps all processes of a trial waiting
SHARED = Path("/dev/shm")
REQUIRED = os.environ.get("MEMSWEEP_TEST_DEEPSPEED") == "required"
needs_deepspeed = pytest.mark.skipif(
    importlib.util.find_spec("deepspeed") is None and not REQUIRED,
    reason="deepspeed is not installed: pip install 'memsweep[deepspeed]'",
)

Run = Callable[..., tuple[TrialRecord, TrialFolder]]


def config_of(trainer: str, options: Mapping[str, str]) -> TrialConfig:
    config = tiny_config(trainer)
    launch = replace(config.launch, simulates_devices=True, stall_seconds=PATIENCE_SECONDS)
    return replace(config, technique=CATALOGUE.choose(options), launch=launch)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs a tiny trial with some options as a study would, and what `fault` makes of it."""
    with pytest.MonkeyPatch.context() as patch, ProcessPool(max_templates=2) as pool:
        share_cache(tmp_path_factory, patch)

        def run_one(
            trainer: str, options: Mapping[str, str], fault: str | None = None
        ) -> tuple[TrialRecord, TrialFolder]:
            config = config_of(trainer, options)
            folder = TrialFolder(tmp_path_factory.mktemp("trial"))
            settings = merge(config.technique, trainer, CATALOGUE)
            request = ProcessRequest(
                function=pickled(partial(live, fault, config, CATALOGUE, folder)),
                environment=trial_environment(config, settings, os.environ),
                folder=folder.path,
                timeout_seconds=120.0,
                preload=preload_of(config, settings),
            )
            return record_of(pool.run(request), folder, 120.0), folder

        yield run_one


def live(fault: str | None, config: TrialConfig, catalogue: Catalogue, folder: TrialFolder) -> None:
    """In the trial's process: let something happen to one of those that it starts."""
    from memsweep.trainers import arguments
    from memsweep.trial import ranked

    if fault == "not simulated":  # accelerate does what it does on a CPU
        ranked.simulates = arguments.simulates = lambda *_, **__: False  # type: ignore[attr-defined]
    elif fault == "not launched":  # each process is for itself
        ranked.launch_variables = lambda *_: {}  # type: ignore[attr-defined]
        ranked.rank_variables = lambda _: {}  # type: ignore[attr-defined]
    elif fault == "made whole":  # whatever was asked
        import trl.trainer.grpo_trainer as trl_trainer

        unwrapped = trl_trainer.unwrap_model_for_generation

        def whole(*given: Any, **named: Any) -> Any:
            return unwrapped(*given, **{**named, "gather_deepspeed3_params": True})

        trl_trainer.unwrap_model_for_generation = whole
    elif fault == "no interface":
        os.environ["GLOO_SOCKET_IFNAME"] = "none0"
        (folder.path / "fault").touch()
    elif fault is not None:
        goes_on = SignOfLife.on_step_end

        def on_step_end(callback: Any, args: Any, state: Any, control: Any, **facts: Any) -> None:
            happen(fault, folder.path, state.global_step)
            goes_on(callback, args, state, control, **facts)

        SignOfLife.on_step_end = on_step_end  # type: ignore[method-assign]
    run_here(config, catalogue, folder)


def happen(fault: str, folder: Path, step: int) -> None:
    (folder / f"pid-{team().rank}").write_text(str(os.getpid()))
    victim = 0 if fault == "first killed" else 1
    if team().rank != victim or step != 2:
        return
    (folder / "fault").touch()
    if fault in ("killed", "first killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "parent killed":
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(1000)
    elif fault == "template killed":
        stat = Path(f"/proc/{os.getppid()}/stat").read_text()
        os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
        time.sleep(1000)
    elif fault == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif fault == "spinning":
        while True:
            pass
    elif fault == "out of memory":
        used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (used + (64 << 20),) * 2)
        bytearray(1 << 30)
    else:
        raise ValueError("of its own")


def measures_of(record: TrialRecord) -> Mapping[str, float]:
    assert isinstance(record.outcome, Measured), record.outcome.text
    return record.outcome.measures


def losses_of(folder: TrialFolder) -> list[float]:
    return [json.loads(line)["loss"] for line in folder.log.read_text().splitlines()]


def launches_of(folder: TrialFolder) -> list[dict[str, Any]]:
    return [read_json(folder.rank(number).effective)["launch"] for number in (0, 1)]


@pytest.fixture(scope="module")
def averaged(run: Run) -> tuple[TrialRecord, TrialFolder]:
    return run("sft", {"sharding": "ddp", "precision": "fp32"})


def test_a_trial_of_two_processes_has_one_outcome(averaged: tuple[TrialRecord, TrialFolder]) -> None:
    record, folder = averaged
    measures = measures_of(record)
    ranks = record.facts["processes"]["ranks"]
    peaks = [rank["peak_memory_bytes"] for rank in ranks]

    assert measures["peak_memory_bytes"] == max(peaks)
    assert measures[SUM] == sum(peaks)
    assert measures["trained_tokens"] == measures["kept_tokens"]
    assert REMARK in record.outcome.remarks
    assert [launch["processes"] for launch in launches_of(folder)] == [2, 2]
    assert [launch["weights_share"] for launch in launches_of(folder)] == [1.0, 1.0]
    assert {rank["effective_hash"] for rank in ranks} == {record.effective_hash}
    assert read_json(folder.outcome)["outcome"]["type"] == "measured"


def test_weights_in_parts_train_like_whole_ones(run: Run, averaged: tuple[TrialRecord, TrialFolder]) -> None:
    _, whole = averaged
    record, parts = run("sft", {"sharding": "fsdp2", "precision": "fp32"})
    n_steps = min(len(losses_of(whole)), len(losses_of(parts)))

    assert isinstance(record.outcome, Measured), record.outcome.text
    assert n_steps >= 4
    assert losses_of(parts)[:n_steps] == pytest.approx(losses_of(whole)[:n_steps], abs=1e-4)
    for launch in launches_of(parts):
        assert (launch["distributed"], launch["fsdp_version"]) == ("FSDP", 2)
        assert (launch["weights_share"], launch["optimizer_share"]) == (0.5, 0.5)
        assert launch["simulated_devices"]
    assert (
        read_json(parts.effective)["model"]["parameters"] == read_json(whole.effective)["model"]["parameters"]
    )


@needs_deepspeed
@pytest.mark.parametrize("trainer", ["grpo", "rloo", "online_dpo"])
def test_weights_are_made_whole_once_a_generation_unless_that_is_switched_off(trainer: str, run: Run) -> None:
    sharded = {"sharding": "zero3", "precision": "fp32"}
    gathered, whole = run(trainer, sharded)
    bare, parts = run(trainer, {**sharded, "ds3_gather": "disabled"})
    n_steps = min(len(losses_of(whole)), len(losses_of(parts)))

    n_generations = measures_of(gathered)["n_generations"]
    assert n_generations >= 2
    assert measures_of(gathered)["n_parameter_gathers"] == n_generations
    assert measures_of(bare)["n_generations"] >= 2
    assert measures_of(bare)["n_parameter_gathers"] == 0
    assert losses_of(parts)[:n_steps] == pytest.approx(losses_of(whole)[:n_steps], abs=1e-4)
    for launch in launches_of(parts):
        assert (launch["distributed"], launch["zero_stage"]) == ("DEEPSPEED", 3)
        assert launch["weights_share"] < 0.6
    assert parts.deepspeed.exists()


@needs_deepspeed
def test_the_second_stage_shares_the_optimizer_only(
    run: Run, averaged: tuple[TrialRecord, TrialFolder]
) -> None:
    record, parts = run("sft", {"sharding": "zero2", "precision": "fp32"})
    n_steps = min(len(losses_of(parts)), len(losses_of(averaged[1])))

    assert isinstance(record.outcome, Measured), record.outcome.text
    assert losses_of(parts)[:n_steps] == pytest.approx(losses_of(averaged[1])[:n_steps], abs=1e-4)
    for launch in launches_of(parts):
        assert launch["zero_stage"] == 2
        assert launch["weights_share"] == 1.0
        assert launch["optimizer_share"] < 0.6


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        ("killed", Crashed, "rank 1: killed by SIGKILL"),
        ("first killed", Crashed, "rank 0: killed by SIGKILL"),
        ("stopped", TimedOut, "rank 1 did not go on, and the others waited for it"),
        ("spinning", TimedOut, "rank 1 did not go on, and the others waited for it"),
        ("out of memory", OutOfMemory, "host out of memory in "),
        ("raising", Crashed, "rank 1: ValueError: of its own"),
        ("no interface", Crashed, "none0"),
        ("parent killed", Crashed, "killed by SIGKILL"),
        ("template killed", Crashed, "the process that it was forked from was ended"),
    ],
)
def test_what_befalls_one_process_ends_all_with_its_reason(
    fault: str, kind: type, said: str, run: Run
) -> None:
    shared_before = set(SHARED.iterdir())
    record, folder = run("sft", {"sharding": "ddp", "precision": "fp32"}, fault)
    since = folder.outcome.stat().st_mtime - (folder.path / "fault").stat().st_mtime

    assert isinstance(record.outcome, kind), record.outcome.text
    assert said in record.outcome.text
    assert since < 15
    ranks = record.facts.get("processes", {}).get("ranks", [])
    assert [rank for rank in ranks if rank["outcome"] == "measured"] == []
    pids = [int(file.read_text()) for file in folder.path.glob("pid-*")]
    deadline = time.monotonic() + 5  # the kernel may take a moment for so much memory
    while any(map(kernel.is_there, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in pids if kernel.is_there(pid)] == []
    assert [name for name in set(SHARED.iterdir()) - shared_before if "chromium" not in name.name] == []


@pytest.mark.parametrize(
    ("option", "fault", "said"),
    [
        ("fsdp2", "not simulated", "FSDP was asked for; accelerate has MULTI_CPU"),
        ("ddp", "not launched", "2 processes were asked for; accelerate has 1"),
    ],
)
def test_what_accelerate_makes_less_of_without_a_word_is_not_in_force(
    option: str, fault: str, said: str, run: Run
) -> None:
    record, _ = run("sft", {"sharding": option, "precision": "fp32"}, fault)

    assert isinstance(record.outcome, NotInForce), record.outcome.text
    assert said in record.outcome.text


@needs_deepspeed
def test_weights_that_are_made_whole_against_what_was_asked_are_not_in_force(run: Run) -> None:
    record, _ = run(
        "grpo", {"sharding": "zero3", "precision": "fp32", "ds3_gather": "disabled"}, "made whole"
    )

    assert isinstance(record.outcome, NotInForce), record.outcome.text
    assert "ds3_gather_for_generation=False was asked for" in record.outcome.text


def test_two_trials_of_two_processes_do_not_meet(run: Run) -> None:
    with ThreadPoolExecutor() as threads:
        both = [threads.submit(run, "sft", {"sharding": "ddp", "precision": "fp32"}) for _ in range(2)]
        (one, first), (other, second) = (future.result() for future in both)

    assert measures_of(one)["trained_tokens"] == measures_of(other)["trained_tokens"]
    n_steps = min(len(losses_of(first)), len(losses_of(second)))
    assert losses_of(first)[:n_steps] == losses_of(second)[:n_steps]
