from __future__ import annotations

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from memsweep.dashboard.parameters import distributions, drawn, short_names
from synthetic import measured, study_of


def test_labels_are_categories_and_intervals_are_numbers() -> None:
    study = study_of(
        1,
        parameters={
            "technique/packing": {"values": ["baseline", "bfd"]},
            "lr": {"low": 0.001, "high": 0.1, "log": True},
            "rank": {"low": 4, "high": 64, "log": False},
        },
    )

    assert distributions(study, []) == {
        "technique/packing": CategoricalDistribution(("baseline", "bfd")),
        "lr": FloatDistribution(0.001, 0.1, log=True),
        "rank": IntDistribution(4, 64),
    }


def test_a_label_that_was_queued_beside_the_space_is_one_more_category() -> None:
    study = study_of(1, parameters={"technique/packing": {"values": ["baseline", "bfd"]}})
    queued = measured(0, {}, parameters={"technique/packing": "wrapped", "other": "1"})

    known = distributions(study, [queued])

    assert known["technique/packing"] == CategoricalDistribution(("baseline", "bfd", "wrapped"))
    assert drawn(queued, known) == {"technique/packing": "wrapped", "other": "1"}


def test_what_an_interval_cannot_hold_is_left_out() -> None:
    study = study_of(1, parameters={"rank": {"low": 4, "high": 64, "log": False}})
    for label in ("128", "auto"):
        outside = measured(0, {}, parameters={"rank": label})

        assert drawn(outside, distributions(study, [outside])) == {}


def test_names_are_short_where_they_stay_different() -> None:
    assert short_names(["technique/packing", "technique/lr", "lr"]) == {
        "technique/packing": "packing",
        "technique/lr": "technique/lr",
        "lr": "lr",
    }
