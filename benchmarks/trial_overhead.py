"""What does a trial cost beside building, training and measuring, warm and cold?

    python benchmarks/trial_overhead.py            5 trials of each kind, interleaved, then a study of 6
    python benchmarks/trial_overhead.py -n 20 --study 24 model=tiny trainer=dpo
    python benchmarks/trial_overhead.py --study 0 --processes 2    trials of two processes beside those of one

Warm: the launcher as it is, each trial forked from a template that has imported everything.  Cold: the same
launcher with start_method=spawn, an interpreter per trial that imports everything.  Both run the same real
trials in turn, so that what else the machine does hits both.  Then a study runs as `python train.py -m`, with
Optuna's storage and W&B (offline) on, and its trial folders tell what each turn of its loop took.

With --processes N, trials of N processes on the CPU, which average their gradients, follow trials of one in
turn: how long is it to the first step, once the template of each is warm?
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from _common import Bars, parser
from hydra import version
from hydra._internal.callbacks import Callbacks
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.core.utils import JobStatus
from hydra.types import HydraContext, RunMode

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

import train  # noqa: E402, from the repository

from memsweep.record.folder import StudyFolder  # noqa: E402
from memsweep.record.trial import TrialRecord  # noqa: E402

MOST_ENDS, MOST_OUTSIDE, LEAST_TIMES, MOST_STARTUPS = 0.3, 0.8, 12, 3
"""The bars: seconds of begin and end, seconds beside the work in a study, how often cold takes warm's,
and how often several processes take to their first step what one takes."""

WORK = ("build", "warm_up", "measure")
NO_PHASES = ("compose", "total", "waited", "devices")
SMALL = ("model=tiny", "measure.probe_examples=4", "trainer.batch=2", "tracking=wandb_offline")


def main() -> int:
    """Run what the command line asks for and print the medians and the bars."""
    command = parser(__doc__)
    command.add_argument("-n", type=int, default=5, help="trials of each kind")
    command.add_argument("--study", type=int, default=6, help="trials of the study; 0 for none")
    command.add_argument(
        "--processes", type=int, default=1, help="of each trial that is held against one of one"
    )
    command.add_argument("overrides", nargs="*", help=f"of each trial, after {' '.join(SMALL)}")
    asked = command.parse_args()
    bars = Bars()
    overrides = [*SMALL, *asked.overrides]
    with tempfile.TemporaryDirectory() as folder:
        kinds = {"warm": "auto", "cold": "spawn"}
        launchers = {name: launcher(Path(folder, name), method) for name, method in kinds.items()}
        taken: dict[str, list[dict[str, float]]] = {name: [] for name in kinds}
        run(launchers["warm"], overrides, 0)  # imports, and makes what later trials find in the cache
        for number in range(1, asked.n + 1):
            for name, one in launchers.items():
                taken[name].append(run(one, overrides, number))
        for one in launchers.values():
            one.close()
        print(f"{asked.n} trials of each kind: {' '.join(overrides)}\n")
        (warm, ends), (cold, _) = (print_kind(name, taken[name]) for name in kinds)
        bars.check(
            "warm, beginning and end", held=ends <= MOST_ENDS, figure=f"{ends:.3f} s, at most {MOST_ENDS}"
        )
        times = cold / warm
        bars.check("cold / warm", held=times >= LEAST_TIMES, figure=f"{times:.1f}, at least {LEAST_TIMES}")
        if asked.study:
            outside = study(asked.study, overrides, Path(folder))
            figure = f"{outside:.3f} s, at most {MOST_OUTSIDE}"
            bars.check(
                "a turn of a study's loop, beside the work", held=outside <= MOST_OUTSIDE, figure=figure
            )
            times = (cold + outside - warm) / outside
            figure = f"{times:.1f}, at least {LEAST_TIMES}"
            bars.check("the same with storage and W&B in both", held=times >= LEAST_TIMES, figure=figure)
        if asked.processes > 1:
            one, several = startups(asked.processes, asked.n, overrides, Path(folder))
            figure = f"{several:.3f} s against {one:.3f} s: {several / one:.2f}, at most {MOST_STARTUPS}"
            bars.check(
                f"to the first step, {asked.processes} processes / 1",
                held=several <= MOST_STARTUPS * one,
                figure=figure,
            )
    return bars.exit_code


def launcher(folder: Path, start_method: str) -> Any:
    """Return an isolated launcher for `train.py`, as Hydra makes it."""
    version.setbase("1.3")
    GlobalHydra.instance().clear()
    hydra = Hydra.create_main_hydra2("train", create_config_search_path(None))
    overrides = [f"hydra.sweep.dir={folder}", f"hydra.launcher.start_method={start_method}"]
    config = hydra.compose_config("config", overrides, RunMode.MULTIRUN, with_log_configuration=False)
    return Plugins.instance().instantiate_launcher(
        hydra_context=HydraContext(config_loader=hydra.config_loader, callbacks=Callbacks(config)),
        task_function=train.main.__wrapped__,
        config=config,
    )


def run(one: Any, overrides: Sequence[str], number: int) -> dict[str, float]:
    """Run one trial and return its seconds by part."""
    began = time.monotonic()
    (job,) = one.launch([list(overrides)], number)
    wall = time.monotonic() - began
    if job.status is not JobStatus.COMPLETED or job.return_value["type"] != "measured":
        sys.exit(f"trial {number} was not measured: {job._return_value}")
    seconds: Mapping[str, float] = one.seconds
    reported = sum(value for name, value in seconds.items() if name not in NO_PHASES)
    end = seconds["total"] - reported + seconds["end"]
    outside = wall - sum(seconds[name] for name in WORK)
    return {
        **seconds,
        "to_building": seconds["start"] + seconds["data"],
        "to_recorded": end,
        "outside": outside,
    }


def startups(n_processes: int, n_trials: int, overrides: Sequence[str], folder: Path) -> tuple[float, float]:
    """Return the median seconds to the first step, of trials of one process and of several, in turn."""
    sharding = ["technique/sharding=ddp", f"technique.sharding.processes={n_processes}"]
    kinds = {"one": [], "several": sharding}
    one = launcher(folder / "processes", "auto")
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    for number in range(n_trials + 1):
        for place, (name, words) in enumerate(kinds.items()):
            seconds = run(one, [*overrides, "launch=cpu_simulated", *words], 2 * number + place)
            if number:  # the first of each waits for its template
                taken[name].append(sum(seconds[part] for part in ("compose", "to_building", "build")))
    one.close()
    print(f"{n_trials} trials of {n_processes} processes and of 1, seconds to the first step")
    for name, found in taken.items():
        print(f"  {name:50s} {statistics.median(found):7.3f}  {min(found):.3f} to {max(found):.3f}")
    return statistics.median(taken["one"]), statistics.median(taken["several"])


def print_kind(name: str, trials: Sequence[Mapping[str, float]]) -> tuple[float, float]:
    """Print the medians of one kind; return that of all outside its work, and of begin and end together."""

    def median(part: str) -> float:
        return statistics.median(trial[part] for trial in trials)

    both = statistics.median(trial["to_building"] + trial["to_recorded"] for trial in trials)
    lines = {
        "composing the config": (median("compose"), ""),
        "fork to building": (
            median("to_building"),
            "process, Hydra's run_job, imports if cold, data from cache",
        ),
        "end to recorded": (median("to_recorded"), "outcome.json on disk, result sent, process gone"),
        "the last two together": (both, "target when warm: at most 0.3"),
        "everything outside building, training, measuring": (median("outside"), "all of launch()"),
        "building, training, measuring": (sum(median(part) for part in WORK), ""),
    }
    print(f"{name}, median seconds")
    for label, (seconds, remark) in lines.items():
        print(f"  {label:50s} {seconds:7.3f}  {remark}".rstrip())
    return median("outside"), both


def study(n_trials: int, overrides: Sequence[str], folder: Path) -> float:
    """Run a study and return the median seconds of a turn of its loop outside the trial's own work."""
    words = [
        f"seed=range({n_trials})",
        f"hydra.sweeper.n_trials={n_trials}",
        "hydra.sweeper.study_name=overhead",
    ]
    command = [sys.executable, str(REPOSITORY / "train.py"), "-m", *overrides, *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the study ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    trials = [StudyFolder(folder / "outputs" / "overhead").trial(number) for number in range(n_trials)]
    turns = []
    for before, trial in itertools.pairwise(trials):
        turn = trial.outcome.stat().st_mtime - before.outcome.stat().st_mtime
        seconds = TrialRecord.read(trial).seconds
        turns.append(turn - sum(seconds[part] for part in WORK))
    outside = statistics.median(turns)
    print(f"study of {n_trials} trials, from one outcome.json to the next, median seconds")
    remark = "asking, composing, forking, data, recording, storage, W&B, progress; target: at most 0.8"
    print(f"  {'everything outside building, training, measuring':50s} {outside:7.3f}  {remark}")
    return outside


if __name__ == "__main__":
    sys.exit(main())
