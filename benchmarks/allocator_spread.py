"""How much does one training differ from process to process, with glibc's allocator and with a loose one?

    python benchmarks/allocator_spread.py
    python benchmarks/allocator_spread.py --processes 2

Plain training of one set-up, no instrument, each time in a child of its own.  All children are there at once
and train in turn, a pass each in random order while the others wait: a machine whose own speed wanders
within minutes does so for all of them alike.  A process's figure is the mean, over the rounds, of its pass
over the round's median of its kind.  Bar: with the loose allocator, in which a trial's speed is taken, the
slowest process is within 6 % of the fastest.  How far they would seem apart if all were alike is known from
dealing each round's times out to the processes at random (a permutation test, 95 %): a spread beyond the bar
but not beyond that proves nothing.  That of glibc's own is printed, how much faster loose is, and how far the
machine wandered.
"""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Mapping, Sequence
from functools import partial

from _common import Bars, Bench, bench, composed, parser, spread
from _passes import Passes, timed_passes
from _pauses import Pauses, in_turn

from memsweep.config.schema import TrialConfig

SET_UP = (
    *("model=small", "model.geometry.num_hidden_layers=2", "model.geometry.hidden_size=128"),
    *(
        "model.geometry.intermediate_size=344",
        "trainer.batch=4",
        "tracking=none",
        "measure.probe_examples=64",
    ),
    *("technique/truncation=max_length", "technique.truncation.max_length=256"),
    "technique/checkpointing=disabled",
)
OWN, LOOSE = "glibc's own", "loose"
N_ROUNDS, N_WARM_UP = 7, 2
SPREAD_SHARE = 0.06

Rounds = Sequence[Sequence[float]]
"""Seconds of each process's passes, of one kind: a row a process, a column a round."""


def main() -> int:
    """Run the processes and print each."""
    command = parser(__doc__)
    command.add_argument("--processes", type=int, default=5, help="of each kind")
    asked, bars = command.parse_args(), Bars()
    if asked.processes < 2:
        command.error("--processes: a spread needs 2 at least")
    with bench() as here:
        found = timed(here, composed(*SET_UP), asked.processes)
    for kind, passes in found.items():
        shares = " ".join(f"{share:.3f}" for share in over_the_round(passes))
        print(
            f"{kind:12s} {middle(passes):.3f} s a pass; each process over the median of its round: {shares}"
        )
    spreads = {kind: spread(over_the_round(passes)) for kind, passes in found.items()}
    faster = middle(found[OWN]) / middle(found[LOOSE])
    print(f"\nglibc's own: {spreads[OWN]:.1%} between processes; loose is {faster:.2f} times as fast")
    print(f"meanwhile the machine wandered by {wandered(found[LOOSE]):.1%} between rounds")
    judge(spreads[LOOSE], spread_of_chance(found[LOOSE]), bars)
    return bars.exit_code


def judge(spread_loose: float, chance: float, bars: Bars) -> None:
    """Print whether the bar holds."""
    bars.check(
        "loose: processes agree",
        held=spread_loose <= SPREAD_SHARE,
        figure=f"{spread_loose:.1%} between processes, at most {SPREAD_SHARE:.0%}",
        noise=f"chance alone makes it up to {chance:.1%}" if spread_loose <= chance else "",
    )


def timed(here: Bench, config: TrialConfig, n_processes: int) -> Mapping[str, Rounds]:
    """Let so many processes of each kind train in turn, and return their timed passes."""
    kinds = [kind for _ in range(n_processes) for kind in (OWN, LOOSE)]

    def child(kind: str, pauses: Pauses) -> list[float]:
        trained: Passes = here.child(config, partial(timed_passes, pauses=pauses, is_loose=kind == LOOSE))
        return trained.seconds[N_WARM_UP:]

    every = in_turn(
        [partial(child, kind) for kind in kinds], here.folder / "pauses", n_pauses=N_WARM_UP + N_ROUNDS
    )
    return {
        kind: [passes for passes, its in zip(every, kinds, strict=True) if its == kind]
        for kind in (OWN, LOOSE)
    }


def over_the_round(passes: Rounds) -> list[float]:
    """Return each process's pass over the median of that round's, the mean over the rounds."""
    rounds = [statistics.median(one) for one in zip(*passes, strict=True)]
    return [
        statistics.fmean(mine / of_all for mine, of_all in zip(one, rounds, strict=True)) for one in passes
    ]


def middle(passes: Rounds) -> float:
    """Return the median over the rounds of a round's median."""
    return statistics.median(statistics.median(one) for one in zip(*passes, strict=True))


def spread_of_chance(passes: Rounds, n_deals: int = 2_000) -> float:
    """Return the spread that 95 % of random deals of each round's times to the processes stay within."""
    chance = random.Random(0)
    rounds = [list(one) for one in zip(*passes, strict=True)]
    dealt = sorted(
        spread(over_the_round(list(zip(*(chance.sample(one, len(one)) for one in rounds), strict=True))))
        for _ in range(n_deals)
    )
    return dealt[round(0.95 * n_deals) - 1]


def wandered(passes: Rounds) -> float:
    """Return the slowest round's median over the fastest's, less 1."""
    return spread([statistics.median(one) for one in zip(*passes, strict=True)])


if __name__ == "__main__":
    sys.exit(main())
