"""Does tokens per second order set-ups as the time to train the same data does?

    python benchmarks/ranking_truth.py                 six pairs, two seeds
    python benchmarks/ranking_truth.py --seeds 1 --pairs 2

Both members of a pair train the same tokens of the same embedded examples, once padded, once not or less, so
the one that trains more examples a second is the faster one.  That truth comes from plain TRL training with a
plain clock; our figure from a trial; the usual metric is what transformers itself counts in the plain
training, with padding (`include_num_input_tokens_seen`), per second.  The four runs of a pair alternate.  A
pair whose truth tells no difference, by the spread of its passes, is a tie and proves nothing.  The bar: our
metric orders every other pair as the truth does, and most are not ties.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from _common import Bars, Bench, Progress, bench, composed, interval, measures_of, parser
from _plain import plain_training

MODEL = ("model=small", "model.geometry.num_hidden_layers=2", "tracking=none")
"""A third of the default model: large enough for padding to cost time, small enough for two dozen runs."""

MEASURE = (
    "measure.probe_examples=16",
    "measure.precision=0.03",
    "measure.min_passes=3",
    "measure.max_passes=8",
)
EXAMPLES, COPIES = 16, 7  # the first is warm-up

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
class Speeds:
    """Three figures of one set-up.

    Attributes:
        truth: Examples per second, by a plain clock.
        ours: Our tokens per second.
        usual: Slots per second, as the library counts them.
        kept: Tokens of the examples that are trained on.
        spread: Half of the truth's 95 % interval, as a share of it.
    """

    truth: float
    ours: float
    usual: float
    kept: float
    spread: float = 0.0


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


def verdict(one: Speeds, other: Speeds) -> Verdict:
    """Return how the metrics order two set-ups of the same tokens, beside how the truth does."""
    truth = math.log(other.truth / one.truth)
    return Verdict(
        is_tie=abs(truth) <= math.hypot(one.spread, other.spread),
        ours_agrees=truth * math.log(other.ours / one.ours) > 0,
        usual_agrees=truth * math.log(other.usual / one.usual) > 0,
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
    print(f"{'pair':40s} seed   truth    ours   usual   (second over first)")
    with bench() as here:
        for pair in PAIRS[: asked.pairs]:
            for seed in range(asked.seeds):
                progress.say(f"{pair.name}, seed {seed}")
                one, other = _speeds(here, pair, seed)
                same_tokens &= one.kept == other.kept
                said = verdict(one, other)
                found.append(said)
                ratios = [getattr(other, name) / getattr(one, name) for name in ("truth", "ours", "usual")]
                remark = "tie" if said.is_tie else "" if said.usual_agrees else "the usual metric is wrong"
                cells = " ".join(f"{ratio:7.3f}" for ratio in ratios)
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


def _speeds(here: Bench, pair: Pair, seed: int) -> Sequence[Speeds]:
    """Run trial and plain training of both members in turn, which comes first by the seed."""
    configs = [
        composed(*MODEL, *MEASURE, *pair.both, f"seed={seed}"),
        composed(*MODEL, *MEASURE, *pair.both, *pair.other, f"seed={seed}"),
    ]
    order = [0, 1] if seed % 2 == 0 else [1, 0]
    train = partial(plain_training, n_examples=EXAMPLES, seed=seed, n_copies=COPIES)
    trials = {place: measures_of(here.trial(configs[place]), pair.name) for place in order}
    plain = {place: here.child(replace(configs[place]), train) for place in order}
    return [
        Speeds(
            truth=plain[place].samples / plain[place].seconds,
            ours=trials[place]["tokens_per_second"],
            usual=plain[place].slots / plain[place].seconds,
            kept=trials[place]["kept_tokens"],
            spread=_spread(plain[place].pass_seconds),
        )
        for place in (0, 1)
    ]


def _spread(seconds: Sequence[float]) -> float:
    """Return half of the 95 % interval of a mean, as a share of it."""
    known = interval(seconds)
    return (known.high - known.mean) / known.mean


if __name__ == "__main__":
    sys.exit(main())
