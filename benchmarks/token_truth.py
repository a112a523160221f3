"""Are our token counts exact, for every trainer and every way to put examples into batches?

    python benchmarks/token_truth.py               all cases
    python benchmarks/token_truth.py --only dpo    those whose name has the word

Each case is a real trial of the tiny model.  What it counted (tokens and slots of a pass through the model,
tokens kept by preparation, tokens that the loss is about) stands beside what must come out by the tokenizer
and the lengths of the data alone (_lengths.py; the cases are in _token_cases.py).  Cases named `plain` train
with TRL itself, with nothing of ours but the counter, and a last batch that is short.  The bar: every number
is equal.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import _lengths as lengths
from _common import (
    Bars,
    Progress,
    catalogue,
    composed,
    enter_trial_environment,
    forget_accelerator,
    measures_of,
    parser,
)
from _token_cases import BATCH, CASES, EXAMPLES, LIMIT, WRITTEN, Case, Source, cut, cut_rows

from memsweep.record.folder import TrialFolder

QUICK = (
    *("model=tiny", f"trainer.batch={BATCH}", f"measure.probe_examples={EXAMPLES}", "tracking=none"),
    *("measure.min_passes=2", "measure.max_passes=2", "measure.precision=0.5", "launch.threads=1"),
)


def main() -> int:
    """Run the cases and print the table."""
    command = parser(__doc__)
    command.add_argument("--only", default="", help="cases whose name has this word")
    asked = command.parse_args()
    enter_trial_environment(composed(*QUICK))
    bars, progress = Bars(), Progress()
    table = []
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(CASES):
            if asked.only in case.name:
                progress.say(case.name)
                table.append((case.name, *counted(case, Path(folder, str(number)))))
        for name, run in PLAIN.items():
            if asked.only in name:
                progress.say(name)
                table.append((name, *run(Path(folder, "plain"))))
    print(f"{'case':36s} {'count':8s} {'ours':>9s} {'must be':>9s}")
    wrong = 0
    for name, ours, expected in table:
        for what, found in ours.items():
            is_exact = found == expected[what]
            wrong += not is_exact
            print(
                f"{name:36s} {what:8s} {found!s:>9s} {expected[what]!s:>9s}{'' if is_exact else '  differs'}"
            )
    total = sum(len(ours) for _, ours, _ in table)
    print()
    bars.check(
        "every count is exact",
        held=not wrong and total > 0,
        figure=f"{total - wrong} of {total}, {len(table)} cases",
    )
    print(f"{progress.seconds:.0f} s")
    return bars.exit_code


Counts = dict[str, "int | float | None"]


def counted(case: Case, folder: Path) -> tuple[Counts, Counts]:
    """Run a case's trial; return what it counted and what it must."""
    from memsweep.data.probe import probe
    from memsweep.model.folder import model_folder, model_place
    from memsweep.trial.run import run_trial

    overrides = [*QUICK, *case.overrides]
    folder.mkdir(parents=True)
    if case.data is not None:
        overrides += ["dataset=jsonl", f"dataset.path={_written(case.data, folder)}"]
    if case.pads_with_end:
        made = model_folder(composed(*QUICK).model.geometry)
        overrides += ["model=path", f"model.path={_padding_with_end(made, folder)}"]
    config = composed(*overrides)
    examples = probe(config.dataset, config.trainer.data, EXAMPLES, config.seed, batch=config.trainer.batch)
    expected = case.expects(Source(examples.rows, model_place(config.model).tokenizer))
    forget_accelerator()
    with _quiet():
        record = run_trial(config, catalogue(), TrialFolder(folder / "trial"))
    measures = measures_of(record, case.name)
    ours: Counts = {
        "tokens": _whole(measures["trained_tokens"]),
        "slots": _whole(measures["slots_per_pass"]),
        "kept": _whole(measures["kept_tokens"]),
    }
    if expected.learned is not None:
        share = measures.get("supervised_tokens_per_second", 0.0) / measures["tokens_per_second"]
        ours["learned"] = _whole(share * measures["kept_tokens"])
    return ours, {name: getattr(expected, name) for name in ours}


def _whole(number: float) -> int | float:
    """Return a count that went through a division as the whole number that it is, if it is one."""
    return round(number) if abs(number - round(number)) < 1e-3 else number


def _written(rows: Sequence[Mapping[str, Any]], folder: Path) -> Path:
    import json

    file = folder / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return file


def _padding_with_end(made: Path, folder: Path) -> Path:
    """Return a copy of a model whose tokenizer pads with the token that ends a text."""
    import shutil

    from transformers import PreTrainedTokenizerFast

    target = folder / "model"
    shutil.copytree(made, target)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(target)
    tokenizer.pad_token = tokenizer.eos_token
    tokenizer.save_pretrained(target)
    return target


def _plain(packing: str | None) -> Callable[[Path], tuple[Counts, Counts]]:
    """Return a case that trains one epoch with TRL itself, our counter attached."""

    def run(folder: Path) -> tuple[Counts, Counts]:
        from datasets import Dataset
        from transformers import PreTrainedTokenizerFast
        from trl import SFTConfig, SFTTrainer

        from memsweep.measure.meter import Meter
        from memsweep.model.folder import model_folder

        made = model_folder(composed(*QUICK).model.geometry)
        tokenizer = PreTrainedTokenizerFast.from_pretrained(made)
        forget_accelerator()
        arguments = SFTConfig(
            output_dir=str(folder), num_train_epochs=1, per_device_train_batch_size=2, report_to="none",
            gradient_accumulation_steps=2, use_cpu=True, bf16=False, save_strategy="no", disable_tqdm=True,
            dataloader_pin_memory=False, logging_strategy="no", max_length=LIMIT, packing=packing is not None,
            **({"packing_strategy": packing} if packing else {"pad_to_multiple_of": 8}),
        )  # fmt: skip
        rows = WRITTEN[:9]
        with _quiet():
            trainer = SFTTrainer(
                model=str(made),
                args=arguments,
                train_dataset=Dataset.from_list(rows),
                processing_class=tokenizer,
            )
            meter = Meter(trainer, generates=False)
            trainer.train()
        found = meter.now().counted
        sequences = Source(rows, tokenizer).answers()
        if packing:
            parts = [cut(one, LIMIT) for one in sequences]
            # TRL draws the order of the rows; they are flat, so that any order has as many slots.
            expected = lengths.batches(lengths.best_fit(parts, LIMIT), 2, is_flat=True)
        else:
            order = [index for batch in _drawn(trainer) for index in batch]
            kept = cut_rows(sequences, LIMIT)
            expected = lengths.batches([kept[index] for index in order], 2, 8)
        ours: Counts = {"tokens": found.tokens, "slots": found.slots}
        return ours, {"tokens": expected.tokens, "slots": expected.slots}

    return run


def _drawn(trainer: Any) -> Iterator[Sequence[int]]:
    """Yield the rows of each batch of the first epoch: TRL draws them from its seed alone."""
    from transformers import set_seed

    set_seed(trainer.args.seed)
    yield from trainer.get_train_dataloader().batch_sampler


PLAIN: Mapping[str, Callable[[Path], tuple[Counts, Counts]]] = {
    "plain sft, a short last batch": _plain(None),
    "plain sft packed, a short last batch": _plain("bfd"),
}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep what libraries print and warn of out of the table."""
    import datasets
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    datasets.disable_progress_bars()
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    with warnings.catch_warnings(), open(os.devnull, "w") as nothing:  # noqa: PTH123
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(nothing):
            yield


if __name__ == "__main__":
    sys.exit(main())
