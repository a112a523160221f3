"""What a sampler learns from finished trials."""

from __future__ import annotations

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState, create_trial

from memsweep.search.structured.history import KNOWN, SECONDS, History, HistoryReader

X = CategoricalDistribution(("a", "b"))


def history(*trials: optuna.trial.FrozenTrial) -> History:
    study = optuna.create_study(directions=["maximize", "minimize"])
    study.add_trials(trials)
    return HistoryReader(study.directions).read(study.get_trials(), current=-1)


def trial(values: list[float], **facts: object) -> optuna.trial.FrozenTrial:
    constraints = facts.pop("constraints", None)
    return create_trial(
        values=values, params={"x": "a"}, distributions={"x": X}, user_attrs=facts, constraints=constraints
    )  # type: ignore[arg-type]


def test_what_is_maximized_is_negated_and_positive_measures_are_taken_as_logarithms() -> None:
    found = history(trial([100.0, 8.0]), trial([200.0, 4.0]))

    assert found.losses == pytest.approx(np.log([[1 / 100, 8], [1 / 200, 4]]))
    assert found.is_feasible.all()


def test_an_objective_that_is_not_positive_is_taken_in_units_of_its_spread() -> None:
    found = history(trial([100.0, -8.0]), trial([200.0, 4.0]))

    assert found.losses[:, 1] == pytest.approx([-8 / 12, 4 / 12])


def test_running_out_of_memory_is_a_bound_on_memory_and_says_nothing_of_speed() -> None:
    told = [None, {"at_best": 16.0}]
    found = history(trial([1.0, 1.0], **{KNOWN: told}, constraints={"ended": 1.0}), trial([100.0, 8.0]))

    assert np.isnan(found.losses[0, 0])
    assert found.losses[0, 1] == pytest.approx(np.log(16))
    assert found.is_bound[0].tolist() == [False, True]
    assert found.is_feasible.tolist() == [False, True]


def test_untold_the_values_of_a_trial_that_breaks_a_constraint_are_not_believed() -> None:
    found = history(trial([1.0, 1.0], constraints={"c": 0.5}), trial([100.0, 8.0], constraints={"c": -1.0}))

    assert np.isnan(found.losses[0]).all()
    assert found.violations[:, 0] == pytest.approx([0.5, -1.0])


def test_a_trial_that_is_told_of_in_full_counts_though_it_breaks_a_constraint() -> None:
    told = [{"is": 50.0}, {"is": 8.0}]
    found = history(trial([50.0, 8.0], **{KNOWN: told}, constraints={"c": 0.5}))

    assert found.losses[0] == pytest.approx(np.log([1 / 50, 8]))
    assert not found.is_feasible[0]


def test_what_failed_is_no_history_and_what_runs_has_no_figures() -> None:
    study = optuna.create_study(directions=["maximize", "minimize"])
    failed, running, current = study.ask({"x": X}), study.ask({"x": X}), study.ask({"x": X})
    study.tell(failed, state=TrialState.FAIL)
    found = HistoryReader(study.directions).read(study.get_trials(), current.number)

    assert found.number.tolist() == [running.number]
    assert found.is_running.all()
    assert np.isnan(found.losses).all()


def test_seconds_are_taken_where_they_were_told() -> None:
    found = history(trial([1.0, 1.0], **{SECONDS: 3.5}), trial([1.0, 1.0]))

    assert found.seconds[0] == 3.5
    assert np.isnan(found.seconds[1])


def test_a_trial_that_was_under_way_is_read_again_once_it_has_ended() -> None:
    study = optuna.create_study(directions=["maximize", "minimize"])
    trial = study.ask({"x": X})
    reader = HistoryReader(study.directions)
    before = reader.read(study.get_trials(), current=-1)
    study.tell(trial, [100.0, 8.0])
    after = reader.read(study.get_trials(), current=-1)

    assert before.is_running.tolist() == [True]
    assert after.is_running.tolist() == [False]
    assert after.losses == pytest.approx(np.log([[1 / 100, 8]]))
