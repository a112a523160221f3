"""A trial of several processes: accelerate's files and variables, the processes, one record of all."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import datasets.fingerprint
import torch

from memsweep.config.schema import TrialConfig
from memsweep.machine import Device, device
from memsweep.ranks.launched import launch_variables, rank_variables, write_files
from memsweep.ranks.meeting import MeetingPoint
from memsweep.ranks.plan import Plan, simulates
from memsweep.ranks.simulated import take_the_cpu_for_an_accelerator
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Phase
from memsweep.record.trial import TrialRecord
from memsweep.trial import kernel
from memsweep.trial.group import Group
from memsweep.trial.process import in_trial_process, phases, report_phase
from memsweep.trial.verdict import verdict


def run_in_ranks(
    plan: Plan, config: TrialConfig, folder: TrialFolder, run: Callable[[TrialFolder], TrialRecord]
) -> TrialRecord:
    """Run a trial in several processes, which this one starts and watches, and write what came of it.

    Args:
        plan: The processes.
        config: What the trial is asked to do.
        folder: Where outcome.json is written.
        run: Called in each process with that one's folder: the trial's own in the first.
    """
    on_cpu = device(config.launch.device)[0] is Device.CPU
    launch = config.launch
    is_simulated = on_cpu and launch.simulates_devices
    takes_cpu_for_accelerator = simulates(plan, simulates_devices=is_simulated)
    write_files(plan, folder, on_cpu=on_cpu and not takes_cpu_for_accelerator)
    variables = launch_variables(plan, folder.accelerate)

    def live(meeting: MeetingPoint, rank: int) -> TrialRecord:
        meeting.leave()
        os.environ.update(variables | meeting.variables() | rank_variables(rank))
        if takes_cpu_for_accelerator:
            take_the_cpu_for_an_accelerator(with_deepspeed=bool(plan.deepspeed_config))
        if not on_cpu:
            torch.cuda.set_device(rank)
        return run(folder.rank(rank))

    # What one writes for all, rows with log-probabilities for one, all find in the folder that there is now.
    datasets.fingerprint.get_temporary_cache_files_directory()
    n_oom_kills = kernel.n_oom_kills()
    group = Group(plan.n_processes, folder, launch.stall_seconds)
    with MeetingPoint() as meeting:
        group.run(partial(live, meeting), meeting.open)
    report_phase(Phase.END)
    record = verdict(
        group.ranks,
        plan,
        folder,
        stands_still=group.stands_still,
        patience_seconds=launch.stall_seconds,
        n_oom_kills=kernel.n_oom_kills() - n_oom_kills,
        is_simulated=is_simulated,
        seconds=phases() if in_trial_process() else {},
    )
    record.write(folder)
    return record
