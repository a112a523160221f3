"""Measures every cell of a space with real trials, and writes the table that `replay.py` searches.

    taskset -c 0 python benchmarks/replay/measure.py sft       sft.csv: an hour or less on one core
    python benchmarks/replay/measure.py sft --read outputs/replay-sft       of a study that has run already

One trial a legal cell, as `hydra.sweeper.sampler=grid` runs them, on the tiny model and half of the examples
of `measure=quick`: what matters here is that techniques act on each other as they do in training, noise
included.  Cells that turned out to have one set-up in force were measured once; `set_up` is the number of
that trial.  What the file was made with stands in its first lines.
"""

from __future__ import annotations

import argparse
import csv
import io
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
REPOSITORY = FOLDER.parents[1]
sys.path.insert(0, str(FOLDER.parent))

from _table import OBJECTIVES, SECONDS, SET_UP

from memsweep.record.study import read_study
from memsweep.record.trial import TrialResult

SPACES: Mapping[str, Mapping[str, str]] = {
    "sft": {
        "packing": "baseline,bfd",
        "padding_free": "baseline,enabled",
        "truncation": "baseline,none",
        "adapter": "baseline,lora,dora",
        "checkpointing": "baseline,disabled,every_n_layers",
        "optimizer": "baseline,sgd",
        "micro_batch": "baseline,size",
        "attention": "baseline,eager",
    },
    "reward": {
        "truncation": "baseline,max_length",
        "adapter": "baseline,lora,dora,ia3",
        "checkpointing": "baseline,disabled,every_n_layers",
        "optimizer": "baseline,sgd",
        "micro_batch": "baseline,size",
        "attention": "baseline,eager",
        "pad_to_multiple_of": "baseline,multiple",
    },
}
WORK = (
    "model=tiny",
    "measure=quick",
    "measure.probe_examples=4",
    "tracking=none",
    "hydra.sweeper.sampler=grid",
    "hydra.sweeper.n_trials=10000",
    "hydra.sweeper.storage=null",
)


def main() -> int:
    """Run the study of a space, unless it has run, and write its table."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("space", choices=[*SPACES])
    command.add_argument("--read", type=Path, help="folder of a study that has run")
    command.add_argument("overrides", nargs="*", help="of every trial, such as launch.threads=1")
    asked = command.parse_args()
    study = asked.read
    if study is None:
        name = f"replay-{asked.space}"
        space = [f"technique/{technique}={options}" for technique, options in SPACES[asked.space].items()]
        named = [f"trainer={asked.space}", f"hydra.sweeper.study_name={name}"]
        typed = [*named, *WORK, *space, *asked.overrides]
        ended = subprocess.run([sys.executable, "train.py", "-m", *typed], cwd=REPOSITORY, check=False)
        if ended.returncode:
            return ended.returncode
        study = REPOSITORY / "outputs" / name
    written = FOLDER / f"{asked.space}.csv"
    written.write_text(text_of(study, [*SPACES[asked.space]]), encoding="utf-8")
    print(written)
    return 0


def text_of(folder: Path, techniques: Sequence[str]) -> str:
    """Return the table of a study as CSV, with where it is from in lines that begin with #.

    Raises:
        ValueError: If a trial has not been measured.
    """
    study, results = read_study(folder)
    lost = [result for result in results if not result.objectives]
    if lost:
        first = lost[0]
        raise ValueError(f"{len(lost)} trials have no figures, such as {first.label}: {first.outcome.text}")
    file = io.StringIO()
    for line in _from_where(results, study.created, study.fixed):
        file.write(f"# {line}\n")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*techniques, *OBJECTIVES, SECONDS, SET_UP])
    by_number = {result.number: result for result in results}
    for result in results:
        number = result.number if result.reused_from is None else result.reused_from
        figures = [f"{by_number[number].medians[name]:.6g}" for name in OBJECTIVES]
        seconds = f"{by_number[number].seconds['total']:.2f}"
        writer.writerow([*(result.choice[name] for name in techniques), *figures, seconds, number])
    return file.getvalue()


def _from_where(results: Sequence[TrialResult], created: str, fixed: Sequence[str]) -> list[str]:
    first = results[0]
    return [
        f"Every legal cell measured once by benchmarks/replay/measure.py, from {created}",
        f"each trial: {' '.join(fixed)}",
        f"versions: {', '.join(f'{name} {version}' for name, version in first.versions.items())}",
        *(f"{name}: {text}" for name, text in first.conditions.items()),
    ]


if __name__ == "__main__":
    sys.exit(main())
