"""Is the peak memory of a trial on a CPU what it needed?

    python benchmarks/memory_truth.py
    python benchmarks/memory_truth.py --only LoRA        the set-ups whose name has the word

Known quantities: a trial in which a callback holds 256 MiB more reads 256 MiB more (3 %); after a process of
2 GiB the next child of the same template, which takes 10 MiB, reads 10 MiB (3 %); five identical trials, each
in a process of its own, agree (2 %).

An independent account, for ten set-ups: the peak that a trial reports against

    the most bytes of tensors alive at once, by PyTorch's record of its allocator, in another process that
      trains the same steps (the record itself takes memory)
  + what the C library has handed out beside tensors, by its own account (mallinfo2), in a third process:
      the kernels that oneDNN keeps for each shape it has met, mostly
  + what is left: Python's objects, code and buffers of libraries, pages not filled.  It is measured once, as
      the peak less the two above of a trial of the same data and trainer with a model of next to nothing, and
      it is the same for every set-up.

The vocabulary is 32,768, because TRL's fused head takes a buffer of so many columns whatever the vocabulary,
and a record of allocations cannot know which of it is never touched.  Bar: 5 % for each set-up.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from _common import Bars, Bench, Progress, bench, catalogue, composed, measures_of, parser, spread

from memsweep.config.schema import TrialConfig
from memsweep.record.folder import TrialFolder
from memsweep.units import GIB, MIB, bytes_text

HELD_BYTES, LARGE_BYTES, SMALL_BYTES = 256 * MIB, 2 * GIB, 10 * MIB
KNOWN_SHARE, ALIKE_SHARE, ACCOUNT_SHARE = 0.03, 0.02, 0.05
N_ALIKE = 5

COMMON = (
    *("tracking=none", "trainer.batch=4", "measure=quick", "measure.worst_step=true"),
    *("model.geometry.vocab_size=32768",),
)
SHORT = ("technique/truncation=max_length", "technique.truncation.max_length=256")
EMPTY = (
    *("model=small", "model.geometry.num_hidden_layers=1", "model.geometry.hidden_size=8"),
    *("model.geometry.intermediate_size=8", "model.geometry.num_attention_heads=1"),
    *("model.geometry.num_key_value_heads=1", "technique/micro_batch=size", "technique.micro_batch.size=1"),
)
"""A model of next to nothing: what its trial takes beside tensors is what every trial takes."""

SET_UPS: Mapping[str, tuple[str, ...]] = {
    "baseline": SHORT,
    "all activations kept": (*SHORT, "technique/checkpointing=disabled"),
    "LoRA": (*SHORT, "technique/adapter=lora"),
    "SGD": (*SHORT, "technique/optimizer=sgd"),
    "8-bit AdamW": (*SHORT, "technique/optimizer=adamw_8bit"),
    "packed bfd": (*SHORT, "technique/packing=bfd"),
    "one by one": (*SHORT, "technique/micro_batch=size", "technique.micro_batch.size=1"),
    "bfloat16 weights": (*SHORT, "technique/precision=bf16_weights"),
    "eager attention": (*SHORT, "technique/attention=eager"),
    "padding-free": ("technique/truncation=none", "technique/padding_free=enabled"),
}


def main() -> int:
    """Run all proofs and print each."""
    command = parser(__doc__)
    command.add_argument("--only", default="", help="set-ups whose name has this word, no known quantities")
    asked = command.parse_args()
    bars, progress = Bars(), Progress()
    with bench() as here:
        if not asked.only:
            progress.say("known quantities")
            known_quantities(here, bars)
            progress.say(f"{N_ALIKE} identical trials")
            identical(here, bars)
        progress.say("an account of each set-up")
        account(here, {name: words for name, words in SET_UPS.items() if asked.only in name}, bars, progress)
    print(f"{progress.seconds:.0f} s")
    return bars.exit_code


def known_quantities(here: Bench, bars: Bars) -> None:
    """Hold memory whose size is known, and read it."""
    config = composed("model=small", *COMMON, *SHORT)
    trials = [here.child(config, partial(peak_with, n_bytes=n_bytes)) for n_bytes in (0, HELD_BYTES) * 2]
    more = (trials[1] + trials[3] - trials[0] - trials[2]) / 2
    _check(bars, "256 MiB more, held in a trial", more, HELD_BYTES, KNOWN_SHARE)
    here.child(config, partial(peak_of_block, n_bytes=LARGE_BYTES))
    after = here.child(config, partial(peak_of_block, n_bytes=SMALL_BYTES))
    _check(bars, "10 MiB, after a process of 2 GiB", after, SMALL_BYTES, KNOWN_SHARE)


def identical(here: Bench, bars: Bars) -> None:
    """Run the same trial again and again."""
    config = composed("model=small", *COMMON, *SHORT)
    peaks = [measures_of(here.trial(config), "identical")["peak_memory_bytes"] for _ in range(N_ALIKE)]
    share = spread(peaks)
    between = f"{share:.2%} between {bytes_text(min(peaks))} and {bytes_text(max(peaks))}"
    figure = f"{between}, at most {ALIKE_SHARE:.0%}"
    bars.check(f"{N_ALIKE} identical trials agree", held=share <= ALIKE_SHARE, figure=figure)


def account(here: Bench, set_ups: Mapping[str, tuple[str, ...]], bars: Bars, progress: Progress) -> None:
    """Compare each set-up's peak with what is known to make it up."""
    reported, alive, heap = _three(here, composed(*EMPTY, *COMMON, *SHORT), "next to nothing")
    rest = reported - alive - heap
    print(f"next to nothing: {bytes_text(reported)} reported, {bytes_text(alive)} of tensors, ", end="")
    print(f"{bytes_text(heap)} handed out beside them; so {bytes_text(rest)} are left, for every set-up\n")
    head = f"{'set-up':22s} {'reported':>11s} {'tensors':>11s} {'beside':>11s} {'account':>11s}"
    print(f"{head}  reported / account")
    shares = {}
    for name, overrides in set_ups.items():
        progress.say(name)
        reported, alive, heap = _three(here, composed("model=small", *COMMON, *overrides), name)
        known = alive + heap + rest
        shares[name] = reported / known - 1
        cells = (bytes_text(number) for number in (reported, alive, heap, known))
        print(f"{name:22s} {' '.join(f'{cell:>11s}' for cell in cells)}  {1 + shares[name]:.3f}", flush=True)
    print()
    worst = max(shares, key=lambda name: abs(shares[name]))
    figure = f"worst {worst}: {shares[worst]:+.1%}, at most {ACCOUNT_SHARE:.0%}"
    held = all(abs(share) <= ACCOUNT_SHARE for share in shares.values())
    bars.check(f"peaks of {len(shares)} set-ups agree with the account", held=held, figure=figure)


def _three(here: Bench, config: TrialConfig, name: str) -> tuple[float, float, float]:
    """Return the peak that a trial reports, that of its tensors, and what is handed out beside them."""
    reported = measures_of(here.trial(config), name)["peak_memory_bytes"]
    return reported, here.child(config, peak_of_tensors), here.child(config, most_beside_tensors)


def _check(bars: Bars, name: str, found: float, wanted: float, share: float) -> None:
    away = found / wanted - 1
    figure = f"{bytes_text(found)} for {bytes_text(wanted)}, {away:+.1%}, at most {share:.0%}"
    bars.check(name, held=abs(away) <= share, figure=figure)


def peak_with(config: TrialConfig, folder: Path, *, n_bytes: int) -> float:
    """Return the peak of a trial in which `n_bytes` more are held from the begin of training on."""
    held: list[bytes] = []

    def hold() -> None:
        held.append(b"\1" * n_bytes)  # not zeros, which the kernel would give without memory behind them

    return measures_of(_trial_with(config, folder, begins=hold), "holding")["peak_memory_bytes"]


def peak_of_block(config: TrialConfig, folder: Path, *, n_bytes: int) -> float:
    """Return what is read of a process that holds `n_bytes` and nothing else."""
    from memsweep.measure.memory import HostMemory

    del config, folder
    memory = HostMemory()
    block = b"\1" * n_bytes
    memory.check()
    del block
    return float(memory.peak_bytes)


def peak_of_tensors(config: TrialConfig, folder: Path) -> float:
    """Return the most bytes of tensors alive at once in the steps whose memory a trial reports."""
    from memsweep.measure.live import LiveTensors, held_tensor_bytes

    peaks: list[int] = []

    def follow(trainer: Any) -> Any:
        """Follow the trainer from its first step to the end of what counts for memory."""
        live: list[LiveTensors] = []

        def begins() -> None:
            models = (trainer.model, getattr(trainer, "ref_model", None))
            live.append(LiveTensors(held_tensor_bytes(models, trainer.optimizer)))
            live[0].__enter__()

        def step_ended(step: int, control: Any) -> None:
            live[0].__exit__(None, None, None)  # reads what was recorded; it goes on from there
            peaks.append(live[0].peak_bytes)
            if step == trainer.memory_end:
                control.should_training_stop = True
            else:
                live[0].__enter__()

        return begins, step_ended

    _trial_with(config, folder, follow=follow)
    return float(peaks[-1])


def most_beside_tensors(config: TrialConfig, folder: Path) -> float:
    """Return the most that the C library has handed out beside tensors, at the ends of the same steps.

    Over what it had handed out just before the model was built.
    """
    from memsweep.measure.allocator import in_use_bytes
    from memsweep.measure.live import held_tensor_bytes

    start: list[int] = []
    found: list[int] = []

    def follow(trainer: Any) -> Any:
        def step_ended(step: int, control: Any) -> None:
            models = (trainer.model, getattr(trainer, "ref_model", None))
            tensors = held_tensor_bytes(models, trainer.optimizer)
            found.append((in_use_bytes() or 0) - start[0] - tensors)
            control.should_training_stop = step == trainer.memory_end

        return lambda: None, step_ended

    _trial_with(config, folder, follow=follow, before=lambda: start.append(in_use_bytes() or 0))
    return float(max(0, *found))


def _trial_with(
    config: TrialConfig, folder: Path, *, begins: Any = None, follow: Any = None, before: Any = None
) -> Any:
    """Run a trial in this process with a callback more, which must have been made for it."""
    from _passes import at_step_ends

    from memsweep.trial import run as run_module

    run: Any = run_module  # its functions are replaced, in this process only
    build, schedule = run.build, run.schedule_of

    def built(request: Any) -> Any:
        if before is not None:
            before()
        found = build(request)
        started, ended = (begins, lambda *_: None) if follow is None else follow(found.trainer)
        at_step_ends(found.trainer, ended, started)
        return found

    def scheduled(found: Any, *rest: Any) -> Any:
        steps = schedule(found, *rest)
        found.trainer.memory_end = steps.memory_end
        return steps

    run.build, run.schedule_of = built, scheduled
    return run.run_trial(config, catalogue(), TrialFolder(folder))


if __name__ == "__main__":
    sys.exit(main())
