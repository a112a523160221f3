from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from memsweep.config.schema import TrialConfig

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
SCRIPTS = sorted(
    str(file.relative_to(BENCHMARKS)) for file in BENCHMARKS.rglob("*.py") if not file.name.startswith("_")
)

Load = Callable[[str], ModuleType]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Imports a module of benchmarks/ as a script there does."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_says_what_it_proves(script: str) -> None:
    ended = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), "--help"], capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stderr
    assert "python benchmarks/" in ended.stdout


def test_the_page_names_every_file() -> None:
    page = (BENCHMARKS / "README.md").read_text(encoding="utf-8")

    missing = [file.name for file in BENCHMARKS.rglob("*.py") if file.name not in page]

    assert missing == []


def test_every_proof_is_run_by_all(load: Load) -> None:
    elsewhere = {"all.py", "gpu/measure.py", "replay/measure.py", "replay/replay.py"}  # other make targets

    assert {f"{name}.py" for name in load("all").SCRIPTS} == set(SCRIPTS) - elsewhere


# What is shared.


def test_a_bar_that_does_not_hold_is_the_exit_code(load: Load, capsys: pytest.CaptureFixture[str]) -> None:
    bars = load("_common").Bars()
    bars.check("one", held=True, figure="1 of 1")
    assert bars.exit_code == 0
    bars.check("two", held=False, figure="3 %")

    assert bars.exit_code == 1
    assert capsys.readouterr().out.splitlines() == ["HOLDS  one: 1 of 1", "FAILS  two: 3 %"]


def test_an_interval_is_students(load: Load) -> None:
    known = load("_common").interval([9.0, 10.0, 11.0])

    # t of 2 degrees of freedom is 4.303; the standard error of these is 1 / sqrt(3).
    assert known.mean == 10.0
    assert known.high == pytest.approx(10 + 4.303 / 3**0.5)
    assert known.low == pytest.approx(10 - 4.303 / 3**0.5)


def test_one_value_has_no_interval(load: Load) -> None:
    with pytest.raises(ValueError, match="at least 2 values, got 1"):
        load("_common").interval([1.0])


def test_all_goes_on_after_a_failure_and_tells_of_it(
    load: Load, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.py").write_text("raise SystemExit(1)\n", encoding="utf-8")
    (tmp_path / "good.py").write_text("print('a figure')\n", encoding="utf-8")

    code = load("all").run(["bad", "good"], tmp_path)

    told = capfd.readouterr().out
    assert code == 1
    assert "a figure" in told
    assert "FAILS  bad" in told
    assert "HOLDS  good" in told


def test_all_holds_when_each_does(load: Load, tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("", encoding="utf-8")

    assert load("all").run(["good"], tmp_path) == 0


# Lengths.


def test_a_part_of_a_sequence_learns_what_is_behind_the_prompt_but_never_its_first_token(load: Load) -> None:
    lengths = load("_lengths")

    assert lengths.part(10, 4, 0, 10) == lengths.Length(10, 6)
    assert lengths.part(10, 0, 0, 10) == lengths.Length(10, 9)
    assert lengths.part(10, 4, 0, 6) == lengths.Length(6, 2)
    assert lengths.part(10, 4, 0, 3) == lengths.Length(3, 0)
    assert lengths.part(10, 4, 6, 12) == lengths.Length(4, 3)


def test_a_pass_fills_its_last_batch_with_its_first_rows(load: Load) -> None:
    lengths = load("_lengths")
    rows = [[lengths.Length(n, n - 1)] for n in (5, 3, 4)]

    found = lengths.a_pass(rows, batch=2)

    # (5, 3) and (4, 5): padded to 5 each.
    assert found == lengths.Expected(tokens=17, slots=20, kept=12, learned=9)


def test_rows_that_lie_flat_have_no_padding_but_to_a_multiple(load: Load) -> None:
    lengths = load("_lengths")
    rows = [[lengths.Length(5, 4), lengths.Length(2, 1)], [lengths.Length(4, 3)]]

    assert lengths.batches(rows, 2, is_flat=True).slots == 11
    assert lengths.batches(rows, 2, 8, is_flat=True).slots == 16
    assert lengths.batches(rows, 2).slots == 15


def test_a_short_last_batch_is_padded_to_its_own_longest(load: Load) -> None:
    lengths = load("_lengths")
    rows = [[lengths.Length(n, 0)] for n in (9, 1, 2)]

    assert lengths.batches(rows, 2) == lengths.Expected(tokens=12, slots=9 * 2 + 2)


def test_best_fit_puts_a_sequence_into_the_fullest_row_that_has_room(load: Load) -> None:
    lengths = load("_lengths")
    sequences = [lengths.Length(n, n - 1) for n in (3, 7, 6, 4, 2)]

    rows = lengths.best_fit(sequences, limit=10)

    assert [[length.tokens for length in row] for row in rows] == [[7, 3], [6, 4], [2]]


def test_a_long_sequence_is_split_and_each_part_begins_unlearned(load: Load) -> None:
    lengths = load("_lengths")

    assert lengths.fragments(10, 2, 4) == [lengths.Length(4, 2), lengths.Length(4, 3), lengths.Length(2, 1)]


def test_a_stream_is_cut_wherever_a_row_ends(load: Load) -> None:
    lengths = load("_lengths")

    rows = lengths.wrapped([(4, 1), (4, 2)], limit=5)

    # learned: . x x x . | . x x, and the first of each row is not.
    assert rows == [[lengths.Length(5, 3)], [lengths.Length(3, 2)]]


def test_completions_count_once_for_each_generation(load: Load) -> None:
    lengths = load("_lengths")

    found = lengths.groups([10, 6, 8], generations=2, together=2, completion=4)

    assert found.tokens == 2 * (10 + 6 + 8 + 3 * 4)
    assert found.slots == 2 * 2 * 14 + 2 * 12


# Tokens.


class Words:
    """A tokenizer with a token for each word, and one that ends a text."""

    eos_token = " end"

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [len(word) for word in text.split()]}

    def apply_chat_template(
        self, messages: list[dict[str, str]], *, add_generation_prompt: bool, **_: Any
    ) -> str:
        said = " ".join(f"{message['role']} {message['content']}" for message in messages)
        return said + (" assistant" if add_generation_prompt else "")


def test_a_source_counts_prompt_and_answer_by_the_tokenizer_alone(load: Load) -> None:
    source = load("token_truth").Source([{"prompt": "one two", "completion": " three"}], Words())

    assert source.answers() == [(4, 2)]


def test_a_conversation_is_not_ended_twice(load: Load) -> None:
    asked = [{"role": "user", "content": "one two"}]
    row = {"prompt": asked, "completion": [{"role": "assistant", "content": "three four"}]}

    assert load("token_truth").Source([row], Words()).answers() == [(6, 4)]


def test_a_preference_whose_prompt_fills_the_limit_is_left_out(load: Load) -> None:
    rows = [
        {"prompt": "a b c", "chosen": " d e", "rejected": " f"},
        {"prompt": "a", "chosen": " b", "rejected": " c"},
    ]
    source = load("token_truth").Source(rows, Words())

    sides = source.pairs(limit=3)

    assert [[side.tokens for side in row] for row in sides] == [[3, 3]]


def test_every_case_has_a_name_of_its_own(load: Load) -> None:
    truth = load("token_truth")
    names = [*(case.name for case in truth.CASES), *truth.PLAIN]

    assert len(set(names)) == len(names)


# Ranking.


def test_a_metric_agrees_when_it_says_that_the_faster_is_faster(load: Load) -> None:
    ranking = load("ranking_truth")

    said = ranking.verdict(ranking.Ratios(truth=1.5, ours=1.4, usual=0.75, rounds=[1.4, 1.6]))

    assert said == ranking.Verdict(is_tie=False, ours_agrees=True, usual_agrees=False)


@pytest.mark.parametrize("rounds", [[1.2, 1.1, 0.9], [0.9, 0.9, 0.9]])
def test_a_pair_of_which_not_the_same_is_faster_in_every_round_is_a_tie(
    load: Load, rounds: list[float]
) -> None:
    ranking = load("ranking_truth")

    assert ranking.verdict(ranking.Ratios(truth=1.06, ours=1.0, usual=1.0, rounds=rounds)).is_tie


# Plain training.


def test_a_clock_takes_the_time_of_pauses_out(load: Load) -> None:
    plain = load("_plain")
    now = iter([10.0, 11.0, 11.0, 50.0, 51.0])

    def wait() -> None:
        waits.append("waited")

    waits: list[str] = []
    clock = plain.StepClock(
        pause_after=frozenset({2}), pauses=SimpleNamespace(wait=wait), clock=lambda: next(now)
    )
    for _ in range(3):
        clock.step_ended()

    assert waits == ["waited"]
    assert clock.seconds(first=1) == pytest.approx(2.0)


def test_pauses_are_evenly_apart_and_none_is_at_the_end(load: Load) -> None:
    assert load("_plain").even_steps(n_steps=108, n_first=8, n_pauses=3) == frozenset({33, 58, 83})


def test_nobody_waits_on_a_pipe_once_it_is_over(load: Load, tmp_path: Path) -> None:
    pauses = load("_pauses").Pauses(tmp_path / "pipes", 1)
    pauses.make()

    pauses.end()
    pauses.wait()

    assert pauses.over.exists()


def test_a_training_that_has_stopped_goes_on_when_told_and_when_nobody_listens_any_more(
    load: Load, tmp_path: Path
) -> None:
    pauses = load("_pauses").Pauses(tmp_path / "pipes", 2)
    pauses.make()
    went_on: list[int] = []

    def train() -> None:
        for number in range(3):
            pauses.wait()
            went_on.append(number)

    with ThreadPoolExecutor(max_workers=1) as threads:
        training = threads.submit(train)
        stops = pauses.stops(training)
        next(stops)
        assert went_on == []
        next(stops)
        assert went_on == [0]
        pauses.end()

    assert went_on == [0, 1, 2]


def test_a_training_that_ends_before_its_stop_is_an_error(load: Load, tmp_path: Path) -> None:
    pauses = load("_pauses").Pauses(tmp_path / "pipes", 1)
    pauses.make()

    with ThreadPoolExecutor(max_workers=1) as threads:
        training = threads.submit(lambda: None)
        with pytest.raises(RuntimeError, match="before its stop 1"):
            next(pauses.stops(training))


# Processes of one training.


def test_a_process_is_held_against_its_round_so_that_a_slow_minute_is_nobodys_fault(load: Load) -> None:
    spread = load("allocator_spread")
    passes = [[1.0, 2.0, 1.0], [1.0, 2.0, 1.0], [1.1, 2.2, 1.1]]

    assert spread.over_the_round(passes) == pytest.approx([1.0, 1.0, 1.1])
    assert spread.spread(spread.over_the_round(passes)) == pytest.approx(0.1)
    assert spread.wandered(passes) == pytest.approx(1.0)
    assert spread.middle(passes) == pytest.approx(1.0)


def test_chance_alone_spreads_what_differs_from_round_to_round_and_not_what_does_not(load: Load) -> None:
    spread = load("allocator_spread")
    alike = [[1.0, 2.0, 3.0]] * 3  # the machine wandered, for all alike
    one_is_slow = [[1.0] * 9, [1.0] * 9, [1.2] * 9]

    assert spread.spread_of_chance(alike) == pytest.approx(0.0)
    assert spread.spread_of_chance(one_is_slow) < 0.15 < spread.spread(spread.over_the_round(one_is_slow))


@pytest.mark.parametrize(
    ("found", "chance", "said"), [(0.05, 0.0, "HOLDS"), (0.08, 0.09, "NOISE"), (0.08, 0.07, "FAILS")]
)
def test_a_spread_that_chance_makes_is_no_failure(
    load: Load, capsys: pytest.CaptureFixture[str], found: float, chance: float, said: str
) -> None:
    bars = load("_common").Bars()

    load("allocator_spread").judge(found, chance, bars)

    assert capsys.readouterr().out.startswith(said)
    assert bool(bars.failed) == (said == "FAILS")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"input_ids": [[1, 2, 3], [1]]}, [3, 1]),
        ({"prompt_ids": [[1, 2]], "chosen_ids": [[1, 2, 3]], "rejected_ids": [[1]]}, [4 + 3]),
        ({"chosen_ids": [[1, 2, 3]], "rejected_ids": [[1]]}, [4]),
    ],
)
def test_a_prepared_rows_tokens_come_from_its_lengths(
    load: Load, columns: dict[str, list[list[int]]], expected: list[int]
) -> None:
    from datasets import Dataset

    trainer = SimpleNamespace(train_dataset=Dataset.from_dict(columns), args=SimpleNamespace(max_length=4))

    assert load("_plain").row_tokens(trainer) == expected


def test_the_training_around_a_pause_is_that_from_the_pause_before_to_the_one_after(load: Load) -> None:
    """Six steps of ten tokens a second each; the fourth is slow."""
    ends = [1.0, 2.0, 3.0, 7.0, 8.0, 9.0]

    around = load("_plain").stretches(ends, [10] * 6, first=1, pause_after=[3, 4])

    assert around == (30 / 6.0, 30 / 6.0)
    assert load("_plain").stretches(ends, [10] * 6, first=1, pause_after=[2, 3]) == (20 / 2.0, 40 / 7.0)


def test_dealt_parts_are_alike_and_lose_nothing(load: Load) -> None:
    rows = [{"text": "a" * k} for k in range(1, 41)]

    dealt = load("_plain").dealt(rows, n_parts=4, seed=0, batch=2)

    sums = [sum(len(row["text"]) for row in dealt[at : at + 10]) for at in range(0, 40, 10)]
    assert sorted(map(str, dealt)) == sorted(map(str, rows))
    assert max(sums) - min(sums) == 30  # three places further in each of ten steps of the sorted rows


# Accuracy, memory, overhead.


def test_accuracy_is_judged_by_the_median_the_worst_and_the_length(
    load: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    accuracy = load("measurement_accuracy")
    bars = load("_common").Bars()
    found = {
        name: accuracy.Compared(
            tokens_per_second=100.0,
            n_windows=35,
            standard=accuracy.Short(short, n_windows=4, n_warm_up=0, is_settled=True, precision=0.03),
            quick=accuracy.Short(short, n_windows=2, n_warm_up=0, is_settled=True, precision=0.1),
            drift=0.0,
            noise=0.05,
        )
        for name, short in {"a": 101.0, "b": 98.0, "c": 107.0}.items()
    }

    accuracy.judge(found, bars)

    assert bars.failed == ["worst difference of a set-up", "the long trials are long"]
    said = capsys.readouterr().out
    assert "2.0% of 3 set-ups" in said
    assert "2 of 3 long figures lie within" in said


@pytest.mark.parametrize(("noise", "n_failed"), [(0.11, 0), (0.09, 2)])
def test_a_difference_is_no_failure_where_stretches_of_the_long_trial_differ_as_much(
    load: Load, noise: float, n_failed: int
) -> None:
    accuracy, bars = load("measurement_accuracy"), load("_common").Bars()
    short = accuracy.Short(90.0, n_windows=4, n_warm_up=0, is_settled=True, precision=0.03)
    one = accuracy.Compared(100.0, n_windows=40, standard=short, quick=short, drift=0.0, noise=noise)

    accuracy.judge({"a": one}, bars)

    assert len(bars.failed) == n_failed


def test_noise_is_how_far_stretches_of_a_long_trial_lie_from_the_whole(load: Load) -> None:
    accuracy = load("measurement_accuracy")
    reading = accuracy.Reading(accuracy.TokenCount(tokens=100, slots=100))
    windows = [accuracy.Window(seconds, reading) for seconds in [1.0, 1.0, 1.25, 1.25] * 5]

    assert accuracy.stretch_noise(windows, 4) == pytest.approx(0.0)
    # Ten stretches at 100 and 80 in turn: s = 10.54, t(9) = 2.262, over the whole's 88.9.
    assert accuracy.stretch_noise(windows, 2) == pytest.approx(2.262 * 10.54 * 1.1**0.5 / 88.89, rel=1e-3)
    assert accuracy.stretch_noise(windows, 11) == float("inf")


def test_a_short_trial_is_what_the_rule_that_ends_measuring_makes_of_the_first_windows(load: Load) -> None:
    accuracy, common = load("measurement_accuracy"), load("_common")
    reading = accuracy.Reading(accuracy.TokenCount(tokens=100, slots=100))
    seconds = [2.0, 1.0, 1.0, 1.0, *[1.25] * 27]
    windows = [accuracy.Window(one, reading) for one in seconds]

    found = accuracy.compare(
        windows, common.composed("measure=standard").measure, common.composed("measure=quick").measure
    )

    assert (found.standard.n_windows, found.standard.n_warm_up) == (4, 1)
    assert found.standard.tokens_per_second == pytest.approx(100.0)
    assert found.tokens_per_second == pytest.approx(3000 / (3 * 1.0 + 27 * 1.25))
    assert found.times_longer == pytest.approx(30 / 3)


def test_a_long_trial_that_is_not_ten_times_as_long_is_run_again_with_all_passes_that_it_can_need(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    accuracy, passes = load("measurement_accuracy"), []

    class Trials:
        def trial(self, config: TrialConfig) -> SimpleNamespace:
            passes.append(config.measure.max_passes)
            seconds = [1.0, 1.0, *[0.9, 1.1] * (config.measure.max_passes // 2 - 1)]
            return SimpleNamespace(facts={"windows": [{"seconds": one, "tokens": 100} for one in seconds]})

    monkeypatch.setattr(accuracy, "bench", lambda: nullcontext(Trials()))
    monkeypatch.setattr(accuracy, "measures_of", lambda record, name: record)
    monkeypatch.setattr(sys, "argv", ["measurement_accuracy.py", "--only", "baseline"])

    accuracy.main()

    assert passes == [100, 200]


def test_what_lies_within_the_noise_is_no_failure(load: Load, capsys: pytest.CaptureFixture[str]) -> None:
    overhead, bars = load("instrument_overhead"), load("_common").Bars()
    noisy = {"with": [1.01, 1.05], "without": [1.0, 1.1], "without again": [1.1, 1.0]}
    peaks = {"with": [100, 100], "without": [100, 100]}

    overhead.judge("noisy", overhead.Found(noisy, peaks, 4), bars)

    assert bars.failed == []
    assert "NOISE  noisy: time with / without" in capsys.readouterr().out


def test_spread_is_the_largest_over_the_smallest(load: Load) -> None:
    assert load("memory_truth").spread([100.0, 102.0, 101.0]) == pytest.approx(0.02)


def test_a_round_has_a_pass_of_each_kind_in_an_order_that_changes(load: Load) -> None:
    overhead = load("instrument_overhead")

    plan = overhead.planned(n_rounds=20)
    rounds = [tuple(plan[first : first + 3]) for first in range(0, 60, 3)]

    assert all(set(kinds) == {overhead.WITH, overhead.WITHOUT, overhead.AGAIN} for kinds in rounds)
    assert len(set(rounds)) > 3


def test_overhead_is_over_the_mean_of_both_passes_without(load: Load) -> None:
    overhead = load("instrument_overhead")
    seconds = {overhead.WITH: [2.2], overhead.WITHOUT: [1.5], overhead.AGAIN: [2.5]}

    with_it, noise = overhead.ratios(seconds)

    assert with_it == [pytest.approx(1.1)]
    assert noise == [pytest.approx(0.6)]


@pytest.mark.parametrize(("ratio", "failed"), [(1.01, 0), (1.05, 1)])
def test_an_instrument_that_costs_more_than_its_bar_fails(load: Load, ratio: float, failed: int) -> None:
    overhead = load("instrument_overhead")
    bars = load("_common").Bars()
    seconds = {overhead.WITH: [ratio, ratio], overhead.WITHOUT: [1.0, 1.0], overhead.AGAIN: [1.0, 1.0]}
    peaks = {overhead.WITH: [1 << 30], overhead.WITHOUT: [1 << 30]}

    overhead.judge("x", overhead.Found(seconds, peaks, 2), bars)

    assert len(bars.failed) == failed


def test_an_instrument_that_takes_memory_fails(load: Load) -> None:
    overhead = load("instrument_overhead")
    bars = load("_common").Bars()
    seconds = {kind: [1.0, 1.0] for kind in (overhead.WITH, overhead.WITHOUT, overhead.AGAIN)}
    peaks = {overhead.WITH: [70 << 20], overhead.WITHOUT: [64 << 20]}

    overhead.judge("x", overhead.Found(seconds, peaks, 2), bars)

    assert bars.failed == ["x: peak memory with - without"]


# Without a GPU.


def test_without_a_device_nothing_is_verified_and_the_exit_code_says_so(
    load: Load, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu = load("gpu.measure")
    monkeypatch.setattr(gpu, "has_device", lambda: False)
    monkeypatch.setattr(sys, "argv", ["measure.py"])

    assert gpu.main() == 2
    assert capsys.readouterr().out == "no CUDA device: nothing verified\n"
