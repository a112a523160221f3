"""The set-ups in which a short trial is held against a long one, and how far apart they are."""

from __future__ import annotations

import statistics
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence

from _common import Progress, parser

COMMON = ("model=small", "model.geometry.num_hidden_layers=2", "model.geometry.hidden_size=128",
          "model.geometry.intermediate_size=344", "trainer.batch=4", "tracking=none",
          "measure.probe_examples=32")  # fmt: skip
"""A smaller model and shorter passes than by default, so that seven long trainings end within minutes."""

CUT = ("technique/truncation=max_length", "technique.truncation.max_length=256")
SET_UPS: Mapping[str, tuple[str, ...]] = {
    "baseline": CUT,
    "all activations kept": (*CUT, "technique/checkpointing=disabled"),
    "packed bfd": (*CUT, "technique/packing=bfd"),
    "padding-free, whole": ("technique/padding_free=enabled", "technique/truncation=none"),
    "LoRA": (*CUT, "technique/adapter=lora"),
    "two by two": (*CUT, "technique/micro_batch=size", "technique.micro_batch.size=2"),
    "dpo": (*CUT, "trainer=dpo"),
}


def command(doc: str | None) -> ArgumentParser:
    """Return the command line of a script that runs them: which, and overrides."""
    made = parser(doc)
    made.add_argument("--only", default="", help="set-ups whose name has this word")
    made.add_argument("overrides", nargs="*", help="of every run, for a look that proves nothing")
    return made


def asked_for(asked: Namespace, progress: Progress) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the name and the overrides of each set-up that was asked for, as it begins."""
    for name, overrides in SET_UPS.items():
        if asked.only in name:
            progress.say(name)
            yield name, [*COMMON, *overrides, *asked.overrides]


def median_and_worst(differences: Mapping[str, float]) -> tuple[float, float, str]:
    """Return the median and the largest of what set-ups differ by, and whose that is."""
    sizes = {name: abs(one) for name, one in differences.items()}
    worst = max(sizes, key=sizes.__getitem__)
    return statistics.median(sizes.values()), sizes[worst], worst
