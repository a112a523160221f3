"""Effects and interactions, on figures that are known to be products, and on those that are not."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from memsweep.findings.effects import MOST_LEVELS, effects
from memsweep.findings.find import find
from memsweep.record.outcome import Crashed, Phase
from memsweep.record.study import Direction, Study
from memsweep.record.trial import TrialResult
from synthetic import MEMORY, OPTIONS, SPEED, ended, measured, study_of, trials_of_every_kind


def every_combination(
    noise: float = 0.0, extra: dict[tuple[str, str], float] | None = None
) -> list[TrialResult]:
    """Return every combination, its throughput off by `noise`, and multiplied where two options meet."""
    rng = np.random.default_rng(0)
    results = []
    for number, options in enumerate(itertools.product(*OPTIONS.values())):
        result = measured(number, dict(zip(OPTIONS, options, strict=True)))
        speed = result.objectives["tokens_per_second"] * math.exp(noise * rng.standard_normal())
        for pair, factor in (extra or {}).items():
            speed *= factor if set(pair) <= set(options) else 1.0
        results.append(
            dataclasses.replace(result, objectives={**result.objectives, "tokens_per_second": speed})
        )
    return results


def test_factors_that_made_the_figures_are_found(study: Study) -> None:
    found = effects(find(every_combination(), study))

    assert found is not None
    by_option = {effect.choice.partition("=")[2]: effect for effect in found.effects}
    assert {option: effect.gains["tokens_per_second"].ratio for option, effect in by_option.items()} == (
        pytest.approx(SPEED, rel=1e-4)
    )
    assert {option: effect.gains["peak_memory_bytes"].ratio for option, effect in by_option.items()} == (
        pytest.approx(MEMORY, rel=1e-4)
    )
    assert by_option["lora"].against == "adapter=baseline"
    assert by_option["lora"].n_trials == 16
    assert found.interactions == ()


def test_intervals_hold_the_truth_about_as_often_as_they_say(study: Study) -> None:
    rng = np.random.default_rng(1)
    n_held, n_all = 0, 0
    for _ in range(40):
        results = [
            dataclasses.replace(
                result,
                objectives={
                    name: value * math.exp(0.05 * rng.standard_normal())
                    for name, value in result.objectives.items()
                },
            )
            for result in every_combination()
        ]
        found = effects(find(results, study))
        assert found is not None
        for effect in found.effects:
            low, high = effect.gains["tokens_per_second"].interval or (0.0, 0.0)
            n_held += low <= SPEED[effect.choice.partition("=")[2]] <= high
            n_all += 1

    assert 0.9 <= n_held / n_all <= 0.99


def test_a_pair_that_interacts_is_found_with_its_factor(study: Study) -> None:
    results = every_combination(noise=0.01, extra={("lora", "bfd"): 0.7})

    found = effects(find(results, study))

    assert found is not None
    (first, *_) = found.interactions
    assert set(first.choices) == {"adapter=lora", "packing=bfd"}
    gain = first.gains["tokens_per_second"]
    assert gain.interval is not None
    assert gain.interval[0] <= 0.7 <= gain.interval[1]
    assert gain.ratio == pytest.approx(0.7, rel=0.02)
    assert first.n_trials == 8
    assert found.n_pairs == 10


def test_an_interaction_widens_the_intervals_of_effects(study: Study) -> None:
    plain = effects(find(every_combination(noise=0.01), study))
    twisted = effects(find(every_combination(noise=0.01, extra={("lora", "bfd"): 0.5}), study))

    assert plain is not None
    assert twisted is not None
    assert twisted.spreads["tokens_per_second"] > 2 * (plain.spreads["tokens_per_second"] - 1) + 1


def test_choices_that_always_come_together_cannot_be_told_apart(study: Study) -> None:
    one = {"adapter": "baseline", "packing": "baseline", "truncation": "baseline"}
    both = {"adapter": "lora", "packing": "bfd", "truncation": "baseline"}
    results = [measured(0, one), measured(1, both), measured(2, {**one, "truncation": "max_length"})]

    found = effects(find(results, study))

    assert found is not None
    told = {effect.choice: bool(effect.gains) for effect in found.effects}
    assert told == {"adapter=lora": False, "packing=bfd": False, "truncation=max_length": True}


def test_as_many_choices_as_trials_leave_no_interval(study: Study) -> None:
    one = {"adapter": "baseline", "packing": "baseline"}
    results = [
        measured(0, one),
        measured(1, {**one, "adapter": "lora"}),
        measured(2, {**one, "packing": "bfd"}),
    ]

    found = effects(find(results, study))

    assert found is not None
    assert [effect.gains["tokens_per_second"].interval for effect in found.effects] == [None, None]
    assert found.spreads == {}
    assert found.n_pairs == 0


def test_trials_without_figures_of_their_own_say_nothing(study: Study) -> None:
    results = trials_of_every_kind(32)
    found = effects(find(results, study))

    assert found is not None
    assert found.n_trials == sum(bool(r.objectives) and r.reused_from is None for r in results)


def test_what_cannot_be_compared_says_nothing(study: Study) -> None:
    results = every_combination()
    results[5] = dataclasses.replace(
        results[5],
        unlike=("another machine",),
        objectives={"tokens_per_second": 1.0, "peak_memory_bytes": 1.0},
    )
    found = effects(find(results, study))

    assert found is not None
    assert found.n_trials == len(results) - 1
    assert found.spreads["tokens_per_second"] < 1.001


@pytest.mark.parametrize("n_trials", [0, 1, 2])
def test_too_few_trials_have_no_effects(n_trials: int, study: Study) -> None:
    assert effects(find(every_combination()[:n_trials], study)) is None


def test_trials_that_chose_the_same_have_no_effects(study: Study) -> None:
    assert effects(find([measured(n, {"adapter": "baseline"}) for n in range(5)], study)) is None


def test_an_interval_that_was_searched_is_left_out() -> None:
    study = study_of(40, objectives={"loss": Direction.MINIMIZE}, constraints={}, reference={})
    results = [
        measured(
            n,
            {},
            parameters={"lr": str(0.1 + n), "kind": "xy"[n % 2]},
            objectives={"loss": 1.0 + n % 2},
            measures={},
            constraints={},
            feasible=True,
        )
        for n in range(MOST_LEVELS + 3)
    ]
    found = effects(find(results, study))

    assert found is not None
    assert found.left_out == ("lr",)
    assert [effect.choice for effect in found.effects] == ["kind=y"]
    assert found.effects[0].gains["loss"].ratio == pytest.approx(2.0)


def test_an_objective_that_is_not_above_zero_has_no_factor(study: Study) -> None:
    results = every_combination()
    results[3] = dataclasses.replace(
        results[3], objectives={**results[3].objectives, "tokens_per_second": 0.0}
    )
    found = effects(find(results, study))

    assert found is not None
    assert set(found.effects[0].gains) == {"peak_memory_bytes"}


def test_a_trial_that_ended_without_figures_is_no_level(study: Study) -> None:
    crashed = ended(99, dict.fromkeys(OPTIONS, "baseline"), Crashed(reason="a test", phase=Phase.BUILD))
    results = [
        *every_combination(),
        dataclasses.replace(crashed, choice={**crashed.choice, "adapter": "dora"}),
    ]
    found = effects(find(results, study))

    assert found is not None
    assert "adapter=dora" not in [effect.choice for effect in found.effects]
