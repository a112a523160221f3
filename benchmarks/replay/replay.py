"""How many trials does each sampler need to find a front that is known?

    python benchmarks/replay/replay.py             every table: what `make bench-replay` runs
    python benchmarks/replay/replay.py --samplers auto tpe --tables family --seeds 4

Tables of which every cell was measured (`sft.csv`, `reward.csv`, made by `measure.py`), and a family of large
ones that is arithmetic (`_family.py`), are searched as a sweep would search them, and every answer is looked
up.  A sampler has found a front when its trials have 95 % of the hypervolume of the whole table.  Cells above
a memory limit run out of memory, as on a device that is too small.  Medians are over seeds.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two replays run at once

import numpy as np
import optuna
from _common import FAILED, HELD
from _family import PriorOfFamily, table
from _replayed import OFFICIAL, asker_of, replayed, result_of, study_of
from _table import Table, read

from memsweep.search.tell import told, worst_values

AUTO, RANDOM = "auto", "random"
STOCK = ("tpe", "nsgaii", "nsgaiii", "qmc", "gp")
WITH_PRIOR = "auto with a prior"
FAMILY, MEASURED = "family", ("sft", "reward")
TOO_LARGE = (1 / 3, 1 / 2)
SHARES = (0.90, 0.95, 0.99)
EARLY = 20
"""Trials after which hardly one should run out of memory."""

ASKED_AT = (100, 1_000, 10_000)


@dataclass(frozen=True, slots=True)
class Run:
    """One replay.

    Attributes:
        group: Tables that are summed up together.
        sampler: Its name.
        to_share: Trials until each of `SHARES` was reached; infinite where it was not.
        n_trials: Trials run.
        n_too_large, n_early_too_large: Trials that ran out of memory, and those of the first `EARLY`.
        n_illegal, n_again: Trials that were illegal, or had been run before.
        seconds: Median of an ask.
        table_seconds: What the trials to 95 % would have taken; infinite where it was not reached.
    """

    group: str
    sampler: str
    to_share: tuple[float, ...]
    n_trials: int
    n_too_large: int
    n_early_too_large: int
    n_illegal: int
    n_again: int
    seconds: float
    table_seconds: float


def tables(group: str, seed: int) -> Iterable[Table]:
    """Yield the tables of a group for a seed."""
    if group == FAMILY:
        yield table(seed)
    else:
        yield from (read(FOLDER / f"{group}.csv").with_limit(share) for share in TOO_LARGE)


def run(task: tuple[str, str, int, int]) -> list[Run]:
    """Replay one sampler with one seed on the tables of a group."""
    group, sampler, seed, n_trials = task
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return [_run(group, one, sampler, seed, n_trials) for one in tables(group, seed)]


def _run(group: str, one: Table, sampler: str, seed: int, n_trials: int) -> Run:
    prior = PriorOfFamily(one, seed) if sampler == WITH_PRIOR else None
    name = AUTO if prior else sampler
    found = replayed(one, {"name": name}, seed, min(n_trials, len(one.cells)), prior)
    shares = one.hypervolumes(found.tried)
    reached = [np.flatnonzero(shares >= share) for share in SHARES]
    to_share = tuple(float(rows[0]) + 1 if len(rows) else float("inf") for rows in reached)
    legal = [row for row in found.tried if row >= 0]
    is_too_large = [row >= 0 and not one.fits[row] for row in found.tried]
    n_to = to_share[1]
    return Run(
        group=group if group == FAMILY else one.name,
        sampler=sampler,
        to_share=to_share,
        n_trials=len(found.tried),
        n_too_large=sum(is_too_large),
        n_early_too_large=sum(is_too_large[:EARLY]),
        n_illegal=len(found.tried) - len(legal),
        n_again=len(legal) - len(set(legal)),
        seconds=float(np.median(found.seconds)),
        table_seconds=float("inf")
        if n_to == float("inf")
        else float(one.seconds[[row for row in found.tried[: int(n_to)] if row >= 0]].sum()),
    )


def seconds_an_ask(sampler: str, n_told: int) -> float:
    """Return the median seconds of an ask after `n_told` trials of the family's first table."""
    one = table(0)
    asker, study = asker_of(one, {"name": sampler}, 0), study_of(one)
    results = []
    for number, row in enumerate(np.random.default_rng(0).permutation(len(one.cells))[:n_told]):
        labels = {f"technique/{key}": label for key, label in zip(one.levels, one.cells[row], strict=True)}
        result = result_of(one, int(row), number)
        results.append(result)
        worst = worst_values(study, results[:200])
        asker.tell(asker.of_cell(asker.space.cell(labels)), told(result, study, worst))
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        asker.propose(worst_values(study, results))
        taken.append(time.perf_counter() - began)
    return median(taken)


def main() -> int:
    """Replay what is asked for, print the table and the bars."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument(
        "--samplers", nargs="+", default=[AUTO, "tpe", "nsgaii", "nsgaiii", "qmc", RANDOM, OFFICIAL]
    )
    command.add_argument("--tables", nargs="+", default=[FAMILY, *MEASURED])
    command.add_argument("--seeds", type=int, default=20)
    command.add_argument("--trials", type=int, default=120, help="at most, of a replay")
    command.add_argument("--no-ask", action="store_true", help="leave out the seconds of an ask")
    command.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    asked = command.parse_args()
    tasks = [
        (group, sampler, seed, asked.trials)
        for seed, sampler, group in itertools.product(range(asked.seeds), asked.samplers, asked.tables)
        if not (sampler == WITH_PRIOR and group != FAMILY)
    ]
    began = time.monotonic()
    found: list[Run] = []
    with multiprocessing.Pool(asked.processes) as pool:
        for number, runs in enumerate(pool.imap_unordered(run, tasks), start=1):
            found += runs
            print(f"\r{number} of {len(tasks)} replays", end="", file=sys.stderr, flush=True)
    print(f"\r{len(tasks)} replays in {time.monotonic() - began:.0f} s", file=sys.stderr)
    by_group = {group: [r for r in found if r.group == group] for group in sorted({r.group for r in found})}
    for group, runs in by_group.items():
        show(group, runs, asked.samplers)
    asks = {} if asked.no_ask else show_asks([s for s in asked.samplers if s not in (OFFICIAL, WITH_PRIOR)])
    return bars(by_group, asks, asked.trials)


def show(group: str, runs: Sequence[Run], samplers: Sequence[str]) -> None:
    """Print one table."""
    print(f"\n{group}: median trials over {len([r for r in runs if r.sampler == runs[0].sampler])} seeds")
    print(f"{'':48s} out of memory")
    print(
        f"{'sampler':20s} {'90 %':>6s} {'95 %':>6s} {'99 %':>6s} {'hours':>6s}   "
        f"{'in all':>6s} {f'after {EARLY}':>9s} {'illegal':>8s} {'again':>6s} {'s an ask':>9s}"
    )
    for sampler in samplers:
        own = [r for r in runs if r.sampler == sampler]
        if own:
            to = [_number(median(r.to_share[index] for r in own)) for index in range(len(SHARES))]
            hours = median(r.table_seconds for r in own) / 3600
            late = [(r.n_too_large - r.n_early_too_large) / max(r.n_trials - EARLY, 1) for r in own]
            print(
                f"{sampler:20s} {to[0]:>6s} {to[1]:>6s} {to[2]:>6s} {hours:6.2f}   "
                f"{mean(r.n_too_large / r.n_trials for r in own):6.0%} {mean(late):9.1%} "
                f"{mean(r.n_illegal / r.n_trials for r in own):8.0%} {sum(r.n_again for r in own):6d} "
                f"{median(r.seconds for r in own):9.4f}"
            )


def _number(value: float) -> str:
    return "never" if value == float("inf") else f"{value:g}"


def show_asks(samplers: Sequence[str]) -> Mapping[tuple[str, int], float]:
    """Print how long an ask takes after many trials, and return it."""
    found = {}
    print(f"\nseconds an ask, large family, after {', '.join(f'{n:,}' for n in ASKED_AT)} trials")
    for sampler in samplers:
        for n_told in ASKED_AT:
            found[sampler, n_told] = seconds_an_ask(sampler, n_told)
        print(f"{sampler:20s} " + "  ".join(f"{found[sampler, n]:8.4f}" for n in ASKED_AT), flush=True)
    return found


def bars(by_group: Mapping[str, Sequence[Run]], asks: Mapping[tuple[str, int], float], n_trials: int) -> int:
    """Print each bar and whether it holds; return the exit code.

    What was not reached counts as one trial more than were run, which is in favour of the others.
    """
    lines: list[tuple[bool, str]] = []

    def to_95(group: str, sampler: str) -> float | None:
        own = [min(r.to_share[1], n_trials + 1) for r in by_group[group] if r.sampler == sampler]
        return median(own) if own else None

    ratios = []
    for group in by_group:
        ours = to_95(group, AUTO)
        if ours is None:
            continue
        if group == FAMILY:
            lines.append((ours <= 70, f"{group}: {ours:g} trials to 95 %, at most 70"))
        else:
            stock = {s: n for s in STOCK if (n := to_95(group, s)) is not None}
            if stock:
                best = min(stock, key=lambda s: stock[s])
                ratios.append(ours / stock[best])
                lines.append(
                    (ours <= stock[best], f"{group}: {ours:g} trials to 95 %, {best} {stock[best]:g}")
                )
            drawn = to_95(group, RANDOM)
            if drawn is not None:
                lines.append(
                    (ours <= drawn / 3, f"{group}: {ours:g} trials, at most a third of random's {drawn:g}")
                )
        own = [r for r in by_group[group] if r.sampler == AUTO]
        late = mean((r.n_too_large - r.n_early_too_large) / max(r.n_trials - EARLY, 1) for r in own)
        lines.append((late <= 0.10, f"{group}: {late:.1%} out of memory after {EARLY}, at most 10 %"))
        again = sum(r.n_again for r in own)
        lines.append((again == 0, f"{group}: {again} trials run twice"))
    if ratios:
        lines.append(
            (
                median(ratios) <= 0.8,
                f"trials over the best stock sampler's, median {median(ratios):.2f}, at most 0.8",
            )
        )
    if (AUTO, 1_000) in asks:
        lines.append(
            (
                asks[AUTO, 1_000] < 0.1,
                f"{asks[AUTO, 1_000] * 1e3:.0f} ms an ask after 1,000 trials, below 100",
            )
        )
    print()
    for holds, text in lines:
        print(f"{'HOLDS' if holds else 'FAILS'}  {text}")
    return HELD if all(holds for holds, _ in lines) else FAILED


if __name__ == "__main__":
    sys.exit(main())
