"""Trials side by side, against a launcher that runs nothing: no trial waits for others than it must."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fake_launcher import FakeSlots, Outcome
from hydra.errors import ConfigCompositionException

from hydra_plugins.pareto_sweeper import _launches
from hydra_plugins.pareto_sweeper._slots import Slots, in_slots
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import Crashed, Measured, Phase, to_mapping
from memsweep.record.trial import TrialRecord

Run = Callable[..., Outcome]

PLAIN = {"x": 0, "y": 0}
TWO = {"objectives": {"speed": "maximize", "size": "minimize"}}
BUSY = to_mapping(Crashed(reason="CUDA device busy", phase=Phase.BUILD, may_pass=True))


def never(*_: Any) -> Any:
    raise AssertionError("this launcher's task was not set")


@pytest.fixture
def two() -> FakeSlots:
    return FakeSlots(never, slots=2)


def front(values: Mapping[str, Any]) -> dict[str, float]:
    """Figures with which every x is on the front."""
    return {"speed": 10.0 * values["x"], "size": float(values["x"])}


def test_a_slot_is_filled_again_while_another_is_still_busy(run_sweep: Run, two: FakeSlots) -> None:
    others = threading.Semaphore(0)

    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number == 0:
            for _ in range(4):
                assert others.acquire(timeout=20), "the others wait for this one"
        else:
            others.release()
        return front(values)

    outcome = run_sweep(["x=range(0,5)"], task, config=PLAIN, launcher=two, **TWO)

    assert [result.outcome.type for result in outcome.results] == ["measured"] * 5
    # The last of the others may be taken in after it: both end at once.
    assert 0 in [result.number for result in outcome.results[-2:]]


def test_ten_and_four_ones_take_ten_in_two_slots(run_sweep: Run, two: FakeSlots) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        two.sleep(3.0 if number == 0 else 0.3)
        return front(values)

    began: list[float] = []
    ended: list[float] = []

    def timed(number: int, values: Mapping[str, Any]) -> Any:
        began.append(time.monotonic())
        try:
            return task(number, values)
        finally:
            ended.append(time.monotonic())

    run_sweep(["x=range(0,5)"], timed, config=PLAIN, launcher=two, **TWO)

    assert max(ended) - min(began) < 3.3  # 3.6 with a barrier after each two


def test_no_more_run_at_once_than_there_are_slots(run_sweep: Run) -> None:
    three = FakeSlots(never, slots=3)

    def task(_: int, values: Mapping[str, Any]) -> Any:
        three.sleep(0.02)
        return front(values)

    outcome = run_sweep(["x=range(0,12)"], task, config=PLAIN, launcher=three, n_trials=10, **TWO)

    assert three.most == 3
    assert len(outcome.overrides) == 10
    assert sorted(result.number for result in outcome.results) == list(range(10))
    assert outcome.study.ended == "10 trials"


def test_numbers_and_folders_are_those_of_the_order_in_which_trials_began(
    run_sweep: Run, two: FakeSlots
) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        two.sleep(0.05 if number % 2 else 0.01)
        return front(values)

    outcome = run_sweep(["x=range(0,6)"], task, config=PLAIN, launcher=two, **TWO)
    asked = {number: tuple(overrides) for number, overrides in outcome.launcher.launched}

    assert {result.number: result.overrides for result in outcome.results} == asked
    assert all(outcome.folder.trial(number).outcome.exists() for number in range(6))
    assert {result.seconds["compose"] for result in outcome.results} == {0.5}


def test_what_asks_for_the_same_is_never_under_way_twice(run_sweep: Run, technique_app: Path) -> None:
    four = FakeSlots(never, slots=4)

    def task(_: int, values: Mapping[str, Any]) -> Any:
        four.sleep(0.05)
        return {"speed": 1.0, "size": 1.0}

    outcome = run_sweep([], task, n_trials=40, launcher=four)
    reused = [result for result in outcome.results if result.reused_from is not None]
    hashes = {result.number: result.requested_hash for result in outcome.results}

    assert len(outcome.overrides) == 10
    assert len(reused) == 5
    assert four.most == 4
    assert not any(hashes[one] == hashes[other] for one, other in four.together)
    assert outcome.study.ended == "space exhausted (15 of 15)"


def test_of_two_under_way_with_one_set_up_the_later_is_the_earliers(run_sweep: Run, two: FakeSlots) -> None:
    """Trials 1 and 2 turn out to have the same settings in force, when both have begun."""
    both = threading.Barrier(2, timeout=20)

    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number in (1, 2):
            both.wait()
            two.sleep(0.1 * number)
        outcome = Measured(measures={"speed": 10.0 + number, "size": 1.0})
        record = TrialRecord(outcome=outcome, effective_hash="one" if number in (1, 2) else str(number))
        record.write(TrialFolder(Path("study/trials") / str(number)))
        return to_mapping(outcome)

    outcome = run_sweep(["x=range(0,9)"], task, config=PLAIN, launcher=two, n_trials=4, **TWO)
    by_number = {result.number: result for result in outcome.results}
    kept = TrialRecord.read(outcome.folder.trial(2))

    assert by_number[1].reused_from is None
    assert by_number[2].reused_from == 1
    assert by_number[2].objectives == by_number[1].objectives
    assert kept.outcome.type == "reused"
    assert kept.facts["own_measures"] == {"speed": 12.0, "size": 1.0}
    assert outcome.study.ended == "4 trials"
    assert len(outcome.overrides) == 5  # the one that measured nothing new does not count


def test_ctrl_c_ends_and_records_all_that_run(run_sweep: Run, two: FakeSlots) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number == 2:
            os.kill(os.getpid(), signal.SIGINT)
        if number > 0:
            two.sleep(20)
        return front(values)

    began = time.monotonic()
    outcome = run_sweep(["x=range(0,9)"], task, config=PLAIN, launcher=two, **TWO)

    assert outcome.exit_code == 130
    assert [(result.number, result.outcome.type) for result in outcome.results] == [
        (0, "measured"),
        (1, "interrupted"),
        (2, "interrupted"),
    ]
    assert TrialRecord.read(outcome.folder.trial(2)).outcome.type == "interrupted"
    assert outcome.study.ended == "interrupted"
    assert two.running == []
    assert time.monotonic() - began < 10


def test_ctrl_c_loses_nothing_that_ends_meanwhile(run_sweep: Run, two: FakeSlots) -> None:
    """Trial 1 ends with figures although it was told to end: it was faster."""

    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number == 1:
            os.kill(os.getpid(), signal.SIGINT)
            two.interrupted.wait(20)
        elif number > 1:
            two.sleep(20)
        return front(values)

    outcome = run_sweep(["x=range(0,9)"], task, config=PLAIN, launcher=two, **TWO)
    ends = {result.number: result.outcome.type for result in outcome.results}

    assert outcome.exit_code == 130
    assert ends[0] == ends[1] == "measured"
    assert set(list(ends.values())[2:]) <= {"interrupted"}


def test_a_trial_that_is_tried_again_holds_up_no_other(
    run_sweep: Run, two: FakeSlots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_launches, "PAUSES_SECONDS", (0.5, 0.5))
    tries: list[int] = []

    def task(number: int, values: Mapping[str, Any]) -> Any:
        tries.append(number)
        return BUSY if number == 1 and tries.count(1) < 3 else front(values)

    outcome = run_sweep(["x=range(0,6)"], task, config=PLAIN, launcher=two, **TWO)

    assert [result.number for result in outcome.results] == [0, 2, 3, 4, 5, 1]
    assert {result.outcome.type for result in outcome.results} == {"measured"}
    assert tries.count(1) == 3


def test_ctrl_c_in_a_pause_between_tries_does_not_wait_for_it(
    run_sweep: Run, two: FakeSlots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_launches, "PAUSES_SECONDS", (60.0,))

    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number == 2:
            two.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)
            two.sleep(20)
        return BUSY if number == 1 else front(values)

    began = time.monotonic()
    outcome = run_sweep(["x=range(0,6)"], task, config=PLAIN, launcher=two, **TWO)
    ends = {result.number: result.outcome.type for result in outcome.results}

    assert outcome.exit_code == 130
    assert ends == {0: "measured", 1: "interrupted", 2: "interrupted"}
    assert time.monotonic() - began < 20


def test_repeats_run_side_by_side_but_never_two_of_one_trial(run_sweep: Run, two: FakeSlots) -> None:
    def task(_: int, values: Mapping[str, Any]) -> Any:
        two.sleep(0.03)
        return front(values)

    outcome = run_sweep(["x=range(0,5)"], task, config=PLAIN, launcher=two, repeats=3, front_repeats=2, **TWO)
    places = [text for _, overrides in outcome.launcher.launched for text in overrides if "subdir" in text]

    assert Counter(number for number, _ in outcome.launcher.launched) == dict.fromkeys(range(5), 5)
    assert len(set(places)) == len(places) == 20
    assert all(len(result.repeats) == 4 for result in outcome.results)
    assert not any(one == other for one, other in two.together)
    assert two.most == 2
    for number in range(5):
        for k in range(1, 5):
            folder = TrialFolder(outcome.folder.trial(number).path / "repeats" / str(k))
            assert TrialRecord.read(folder).outcome.type == "measured"


def test_ctrl_c_in_repeats_is_recorded_at_each(run_sweep: Run, two: FakeSlots) -> None:
    n_repeats = []

    def task(_: int, values: Mapping[str, Any]) -> Any:
        if "hydra.sweep.subdir" in values:
            n_repeats.append(1)
            if len(n_repeats) == 2:
                os.kill(os.getpid(), signal.SIGINT)
            two.sleep(20)
        return front(values)

    outcome = run_sweep(["x=range(0,3)"], task, config=PLAIN, launcher=two, front_repeats=1, **TWO)

    assert outcome.exit_code == 130
    assert sorted(len(result.repeats) for result in outcome.results) == [0, 1, 1]
    assert {repeat.type for result in outcome.results for repeat in result.repeats} == {"interrupted"}


def test_what_is_wrong_with_the_first_config_ends_the_study_and_all_that_run(
    run_sweep: Run, two: FakeSlots
) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number == 0:
            raise ConfigCompositionException("Key 'z' is not in struct")
        two.sleep(20)
        return front(values)

    began = time.monotonic()
    outcome = run_sweep(["x=range(0,5)"], task, config=PLAIN, launcher=two, **TWO)

    assert outcome.exit_code == 2
    assert "Key 'z' is not in struct" in outcome.stderr
    assert two.running == []
    assert time.monotonic() - began < 10


def test_what_is_wrong_with_another_is_its_own_though_nothing_has_ended_yet(
    run_sweep: Run, two: FakeSlots
) -> None:
    refused = threading.Event()

    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number == 1:
            refused.set()
            raise ConfigCompositionException("Key 'z' is not in struct")
        assert refused.wait(20)
        two.sleep(0.1)
        return front(values)

    outcome = run_sweep(["x=range(0,4)"], task, config=PLAIN, launcher=two, **TWO)

    assert outcome.exit_code == 0
    assert outcome.results[0].outcome.type == "incompatible"


def test_each_trial_knows_what_was_measured_when_it_began(run_sweep: Run, two: FakeSlots) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        two.sleep(0.1 if number == 0 else 0.4)
        outcome = Measured(measures=front(values))
        record = TrialRecord(outcome=outcome, effective_hash=f"hash {number}")
        record.write(TrialFolder(Path("study/trials") / str(number)))
        return to_mapping(outcome)

    run_sweep(["x=range(0,3)"], task, config=PLAIN, launcher=two, **TWO)

    assert two.knew == [{}, {}, {"hash 0": 0}]


def test_batches_are_refused_where_there_are_slots(run_sweep: Run, two: FakeSlots) -> None:
    outcome = run_sweep(["x=1,2"], lambda *_: 1.0, config=PLAIN, launcher=two, n_jobs=2)

    assert outcome.exit_code == 2
    assert (
        "hydra.sweeper.n_jobs=2 is for launchers that run what they are given as one batch" in outcome.stderr
    )
    assert "hydra.launcher.slots=2" in outcome.stderr
    assert outcome.overrides == []


class TestSlots:
    def test_answers_come_in_the_order_in_which_calls_end(self) -> None:
        slots: Slots[str] = Slots()
        slots.start(0, lambda: time.sleep(0.3) or "late")
        slots.start(1, lambda: "early")

        assert [slots.wait(), slots.wait()] == [(1, "early"), (0, "late")]
        assert slots.n_running == 0

    def test_what_a_call_raises_is_raised_where_it_is_waited_for(self) -> None:
        slots: Slots[str] = Slots()

        def wrong() -> str:
            raise ValueError("no")

        slots.start(0, wrong)

        with pytest.raises(ValueError, match="no"):
            slots.wait()
        assert slots.n_running == 0

    def test_joined_slots_have_forgotten_everything(self) -> None:
        slots: Slots[str] = Slots()
        slots.start(0, lambda: "never asked for")
        slots.join()
        slots.start(1, lambda: "asked for")

        assert slots.wait() == (1, "asked for")

    @pytest.mark.parametrize("n_slots", [1, 2, 5])
    def test_a_list_of_calls_keeps_its_order(self, n_slots: int) -> None:
        found = in_slots(n_slots, range(3, 6), lambda n: time.sleep(0.2 / n) or n * n, lambda: None)

        assert found == [9, 16, 25]

    def test_one_call_that_fails_ends_the_others(self) -> None:
        told = threading.Event()

        def call(number: int) -> bool:
            if number == 0:
                raise ValueError("no")
            return told.wait(20)

        with pytest.raises(ValueError, match="no"):
            in_slots(3, range(3), call, told.set)
        assert told.is_set()
