"""What does the instrument itself cost: time of a step, and memory?

    python benchmarks/instrument_overhead.py               SFT with the small model, GRPO with the tiny one
    python benchmarks/instrument_overhead.py --rounds 4 --only grpo

One trainer in one process trains the same pass again and again, with the instrument and without.  With it:
the meter's hooks are on the model, memory is looked at after each step, and at the pass's edge the counts,
what is held and the loss are read.  Without it: hooks off, and a callback that only takes the time at the
edge.  A round is three passes in random order, one with and two without; its ratio is the one over the mean
of the two, and the two without over each other are the noise of this machine.  Memory is compared before, in
passes with the allocator that memory is measured with.  Bars: the upper end of the ratio's 95 % interval is
at most 1.02, unless the noise reaches as far as it does: then the machine cannot tell, and the noise is the
figure; the peaks differ by at most 1 % or 1 MiB.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from _common import Bars, Progress, bench, composed, interval, parser
from _passes import at_step_ends, trainer_for_passes

from memsweep.config.schema import TrialConfig
from memsweep.units import MIB, bytes_text

MOST_RATIO, MOST_SHARE, MOST_BYTES = 1.02, 0.01, MIB
WITH, WITHOUT, AGAIN = "with", "without", "without again"
MEMORY_PASSES = 12  # alternating; the first two are warm-up

SET_UPS: Mapping[str, tuple[str, ...]] = {
    "sft, small model": (
        *("model=small", "trainer.batch=2", "measure.probe_examples=8", "tracking=none"),
        *("technique/truncation=max_length", "technique.truncation.max_length=256"),
    ),
    "grpo, tiny model": (
        *("trainer=grpo", "model=tiny", "trainer.batch=4", "measure.probe_examples=16", "tracking=none"),
        *("technique/generations=count", "technique.generations.n=2", "trainer.completion_tokens=8"),
    ),
}


@dataclass(frozen=True, slots=True)
class Found:
    """What the passes of one set-up took.

    Attributes:
        seconds: Kind of pass to the seconds of each round.
        peaks: Kind of pass to peaks of anonymous memory over the start, in bytes.
        steps_per_pass: Steps of a pass.
    """

    seconds: Mapping[str, Sequence[float]]
    peaks: Mapping[str, Sequence[int]]
    steps_per_pass: int


def planned(n_rounds: int, seed: int = 0) -> list[str]:
    """Return the kinds of all timed passes: each round has each kind once, in random order."""
    chance = random.Random(seed)
    return [kind for _ in range(n_rounds) for kind in chance.sample([WITH, WITHOUT, AGAIN], 3)]


def ratios(seconds: Mapping[str, Sequence[float]]) -> tuple[list[float], list[float]]:
    """Return, round by round, with over the mean of both without, and the one without over the other."""
    rounds = list(zip(seconds[WITH], seconds[WITHOUT], seconds[AGAIN], strict=True))
    return [w / ((one + two) / 2) for w, one, two in rounds], [one / two for _, one, two in rounds]


class Edges:
    """Runs the passes: switches the instrument on and off, and takes times and peaks.

    Args:
        trainer: About to train.
        memory: The instrument's memory.
        steps_per_pass: Steps of a pass.
        plan: Kinds of the timed passes.
        generates: Whether the trainer generates.
    """

    def __init__(
        self, trainer: Any, memory: Any, steps_per_pass: int, plan: Sequence[str], *, generates: bool
    ) -> None:
        first = [WITHOUT, WITH] * (MEMORY_PASSES // 2)
        # The allocator changes its ways between, so one pass of each kind is not timed there.
        self._plan = [*first, WITHOUT, WITH, *plan]
        self._n_memory, self._n_untimed = len(first), len(first) + 2
        self._trainer, self._memory, self._steps = trainer, memory, steps_per_pass
        self._generates = generates
        self._meter: Any = None
        self._began = 0.0
        self.seconds: dict[str, list[float]] = {WITH: [], WITHOUT: [], AGAIN: []}
        self.peaks: dict[str, list[int]] = {WITH: [], WITHOUT: []}

    @property
    def n_passes(self) -> int:
        """All of them."""
        return len(self._plan)

    def begin(self, number: int, control: Any = None) -> None:
        """Begin a pass."""
        from memsweep.measure.meter import Meter
        from memsweep.measure.resident import reset_peak

        if self._plan[number] == WITH:
            self._meter = Meter(self._trainer, generates=self._generates)
            if control is not None:
                control.should_log = True  # as at an edge: the loss is looked at, in the pass that follows
        if number < self._n_memory:
            reset_peak()
        self._began = time.perf_counter()

    def step_ended(self, step: int, control: Any) -> None:
        """Do what the instrument does after a step, if it is on; end the pass where it ends."""
        if self._meter is not None:
            self._memory.check()
        if step % self._steps:
            return
        if self._meter is not None:
            self._memory.wait()
            self._meter.now()
            self._memory.in_use_bytes()
        seconds = time.perf_counter() - self._began
        self._note(step // self._steps - 1, seconds)
        if self._meter is not None:
            self._meter.close()
            self._meter = None
        if step // self._steps == self._n_memory:
            self._memory.settle()
        if step // self._steps < self.n_passes:
            self.begin(step // self._steps, control)

    def _note(self, number: int, seconds: float) -> None:
        from memsweep.measure.resident import resident

        kind = self._plan[number]
        if 2 <= number < self._n_memory:
            self.peaks[kind].append(resident().peak_anonymous_bytes - self._memory.start.anonymous_bytes)
        elif number >= self._n_untimed:
            self.seconds[kind].append(seconds)


def passes(config: TrialConfig, folder: Path, *, n_rounds: int) -> Found:
    """Train in this process, which must have been made for it."""
    from memsweep.measure.memory import HostMemory

    memory = HostMemory()
    n_passes = MEMORY_PASSES + 2 + 3 * n_rounds
    trainer, steps = trainer_for_passes(config, folder, n_passes)
    generates = config.trainer.completion_tokens is not None
    edges = Edges(trainer, memory, steps, planned(n_rounds), generates=generates)
    at_step_ends(trainer, edges.step_ended, lambda: edges.begin(0))
    trainer.train()
    return Found(edges.seconds, edges.peaks, steps)


def main() -> int:
    """Run the set-ups and print ratio, noise and memory of each."""
    command = parser(__doc__)
    command.add_argument("--rounds", type=int, default=60, help="of three passes each, at least 2")
    command.add_argument("--only", default="", help="set-ups whose name has this word")
    asked = command.parse_args()
    bars, progress = Bars(), Progress()
    with bench() as here:
        for name, overrides in SET_UPS.items():
            if asked.only not in name:
                continue
            progress.say(name)
            found = here.child(composed(*overrides), partial(passes, n_rounds=asked.rounds))
            judge(name, found, bars)
    print(f"{progress.seconds:.0f} s")
    return bars.exit_code


def judge(name: str, found: Found, bars: Bars) -> None:
    """Print what a set-up's passes say, and whether the bars hold."""
    with_it, without = ratios(found.seconds)
    known, noise = interval(with_it), interval(without)
    seconds = statistics.median(found.seconds[WITHOUT])
    figure = f"{known.mean:.4f} [{known.low:.4f}, {known.high:.4f}], at most {MOST_RATIO}"
    floor = max(abs(noise.low - 1), abs(noise.high - 1))
    reason = f"passes without it differ among themselves by up to {floor:.1%}"
    bars.check(
        f"{name}: time with / without",
        held=known.high <= MOST_RATIO,
        figure=figure,
        noise=reason if known.high <= 1 + floor else "",
    )
    print(f"       noise, without / without: {noise.mean:.4f} [{noise.low:.4f}, {noise.high:.4f}]")
    print(f"       {len(with_it)} rounds; a pass of {found.steps_per_pass} steps takes {seconds:.3f} s")
    one, other = (statistics.median(found.peaks[kind]) for kind in (WITH, WITHOUT))
    difference = one - other
    held = abs(difference) <= max(MOST_BYTES, MOST_SHARE * other)
    figure = f"{bytes_text(difference)} of {bytes_text(other)}, at most 1 % or 1 MiB"
    bars.check(f"{name}: peak memory with - without", held=held, figure=figure)


if __name__ == "__main__":
    sys.exit(main())
