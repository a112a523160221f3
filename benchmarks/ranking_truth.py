"""Does tokens per second order set-ups as the time to train the same data does?

    python benchmarks/ranking_truth.py                 six pairs, two seeds
    python benchmarks/ranking_truth.py --seeds 1 --pairs 2

Both members of a pair train the same tokens of the same embedded examples, once padded, once not or less, so
the one that trains more examples a second is the faster one.  That truth comes from plain TRL training with a
plain clock, pass after pass over the batches that a trial has, both members there at once and training in
turn, a pass each, so that a machine that wanders does so for both.  Our figure comes from a trial of each;
the usual metric is what transformers itself counts in the plain training, with padding
(`include_num_input_tokens_seen`), per second.  A pair of which not the same one is the faster in every round
is a tie and proves nothing (eight rounds: a sign test, below 1 %).  The bar: our metric orders every other
pair as the truth does, and most are not ties.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from _common import Bars, Bench, Progress, bench, composed, measures_of, parser
from _passes import Passes, timed_passes
from _pauses import Pauses, in_turn

from memsweep.config.schema import TrialConfig

MODEL = ("model=small", "model.geometry.num_hidden_layers=2", "tracking=none")
"""A third of the default model: large enough for padding to cost time, small enough for two dozen runs."""

MEASURE = (
    "measure.probe_examples=16",
    "measure.precision=0.03",
    "measure.min_passes=3",
    "measure.max_passes=8",
)
N_WARM_UP, N_ROUNDS = 1, 8

FLAT, WHOLE = "technique/padding_free=enabled", "technique/truncation=none"


def _cut(tokens: int) -> tuple[str, ...]:
    return ("technique/truncation=max_length", f"technique.truncation.max_length={tokens}")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two set-ups that train the same tokens.

    Attributes:
        name: What the table calls it.
        both: What is typed for both.
        other: What is typed for the second beside; the first is padded.
    """

    name: str
    both: tuple[str, ...]
    other: tuple[str, ...]


PAIRS = (
    Pair("padded, padding-free, batch 4, whole", ("trainer.batch=4", WHOLE), (FLAT,)),
    Pair("padded, bfd, batch 4, to 256", ("trainer.batch=4", *_cut(256)), ("technique/packing=bfd",)),
    Pair("padded, padding-free, batch 2, whole", ("trainer.batch=2", WHOLE), (FLAT,)),
    Pair("padded, padding-free, batch 8, whole", ("trainer.batch=8", WHOLE), (FLAT,)),
    Pair("padded, bfd, batch 2, to 512", ("trainer.batch=2", *_cut(512)), ("technique/packing=bfd",)),
    Pair("padded, two by two, batch 8, to 1024", ("trainer.batch=8", *_cut(1024)),
         ("technique/micro_batch=size", "technique.micro_batch.size=2")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ratios:
    """What the second member of a pair makes of the first: 2 is twice as fast.

    Attributes:
        truth: Examples per second, by a plain clock.
        ours: Our tokens per second.
        usual: Slots per second, as the library counts them.
        rounds: The truth of each round alone.
    """

    truth: float
    ours: float
    usual: float
    rounds: Sequence[float]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a pair showed.

    Attributes:
        is_tie: The truth tells no difference.
        ours_agrees: Our metric orders it as the truth does.
        usual_agrees: The usual one does.
    """

    is_tie: bool
    ours_agrees: bool
    usual_agrees: bool


def verdict(pair: Ratios) -> Verdict:
    """Return how the metrics order two set-ups of the same tokens, beside how the truth does."""
    truth = math.log(pair.truth)
    return Verdict(
        is_tie=not all(math.log(one) * truth > 0 for one in pair.rounds),
        ours_agrees=truth * math.log(pair.ours) > 0,
        usual_agrees=truth * math.log(pair.usual) > 0,
    )


def main() -> int:
    """Run the pairs and print what each metric said of them."""
    command = parser(__doc__)
    command.add_argument("--seeds", type=int, default=2, help="orders of the examples")
    command.add_argument("--pairs", type=int, default=len(PAIRS), help="how many of the pairs")
    asked = command.parse_args()
    bars, progress = Bars(), Progress()
    found: list[Verdict] = []
    same_tokens = True
    print(f"{'pair':40s} seed   truth    ours   usual      its rounds   (second over first)")
    with bench() as here:
        for pair in PAIRS[: asked.pairs]:
            for seed in range(asked.seeds):
                progress.say(f"{pair.name}, seed {seed}")
                ratios, is_same = _ratios(here, pair, seed)
                same_tokens &= is_same
                said = verdict(ratios)
                found.append(said)
                remark = "tie" if said.is_tie else "" if said.usual_agrees else "the usual metric is wrong"
                cells = f"{ratios.truth:7.3f} {ratios.ours:7.3f} {ratios.usual:7.3f}"
                cells += f"   {min(ratios.rounds):5.2f} to {max(ratios.rounds):5.2f}"
                print(f"{pair.name:40s} {seed:4d} {cells}   {remark}", flush=True)
    print()
    ordered = [said for said in found if not said.is_tie]
    right = sum(said.ours_agrees for said in ordered)
    wrong = sum(not said.usual_agrees for said in ordered)
    bars.check(
        "both members of each pair train the same tokens", held=same_tokens, figure=f"{len(found)} pairs"
    )
    bars.check(
        "our metric orders each pair as the truth does",
        held=2 * len(ordered) > len(found) and right == len(ordered),
        figure=f"{right} of {len(ordered)}, {len(found) - len(ordered)} ties",
    )
    print(f"The usual metric orders {wrong} of {len(ordered)} the other way.")
    print(f"{progress.seconds:.0f} s")
    return bars.exit_code


def _ratios(here: Bench, pair: Pair, seed: int) -> tuple[Ratios, bool]:
    """Run trials and plain training of both; return what they say, and whether the tokens are the same."""
    configs = [
        composed(*MODEL, *MEASURE, *pair.both, f"seed={seed}"),
        composed(*MODEL, *MEASURE, *pair.both, *pair.other, f"seed={seed}"),
    ]
    order = (0, 1) if seed % 2 == 0 else (1, 0)
    trials = {place: measures_of(here.trial(configs[place]), pair.name) for place in order}
    first, second = _plain(here, configs, here.folder / "pauses" / f"{pair.name} {seed}")
    rounds = [
        (one / first.examples) / (other / second.examples)
        for one, other in zip(first.seconds[N_WARM_UP:], second.seconds[N_WARM_UP:], strict=True)
    ]
    ratios = Ratios(
        truth=_rate(second, second.examples) / _rate(first, first.examples),
        ours=trials[1]["tokens_per_second"] / trials[0]["tokens_per_second"],
        usual=_rate(second, second.slots[-1]) / _rate(first, first.slots[-1]),
        rounds=rounds,
    )
    return ratios, trials[0]["kept_tokens"] == trials[1]["kept_tokens"]


def _rate(passes: Passes, amount: float) -> float:
    """Return so much a pass, per second."""
    return amount / statistics.fmean(passes.seconds[N_WARM_UP:])


def _plain(here: Bench, configs: Sequence[TrialConfig], folder: Path) -> Sequence[Passes]:
    """Train plainly, a pass of each in turn."""

    def child(config: TrialConfig, pauses: Pauses) -> Passes:
        trained: Passes = here.child(config, partial(timed_passes, pauses=pauses))
        return trained

    return in_turn([partial(child, config) for config in configs], folder, n_pauses=N_WARM_UP + N_ROUNDS)


if __name__ == "__main__":
    sys.exit(main())
