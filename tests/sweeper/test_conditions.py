"""`hydra.sweeper.when` and `hydra.sweeper.exclude`, from the config to what is launched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fake_launcher import Outcome

Run = Callable[..., Outcome]

GROUPS = {
    "optimizer/sgd": {"lr": 0.1, "momentum": 0.0},
    "optimizer/adam": {"lr": 0.001},
    "model/small": {"width": 8},
    "model/large": {"width": 64},
}
APP = {"defaults": [{"optimizer": "sgd"}, {"model": "small"}], "batch": 8, "depth": 1, "half": "${batch}"}


def task(number: int, values: Mapping[str, Any]) -> float:
    return float(number)


def sweep(run_sweep: Run, *typed: str, groups: Any = GROUPS, app: Any = APP, **settings: Any) -> Outcome:
    settings = {"sampler": "grid", "n_trials": 100, **settings}
    return run_sweep(list(typed), task, config=app, groups=groups, **settings)


def launched(outcome: Outcome) -> set[frozenset[str]]:
    assert outcome.exit_code == 0, outcome.stderr
    return {frozenset(overrides) for overrides in outcome.overrides}


MOMENTUM = "{optimizer.momentum:{optimizer:sgd}}"


def test_a_parameter_is_given_only_where_its_condition_holds(run_sweep: Run) -> None:
    outcome = sweep(run_sweep, "optimizer=sgd,adam", "optimizer.momentum=0.5,0.9", when=MOMENTUM)

    assert launched(outcome) == {
        frozenset({"optimizer=sgd", "optimizer.momentum=0.5"}),
        frozenset({"optimizer=sgd", "optimizer.momentum=0.9"}),
        frozenset({"optimizer=adam"}),
    }
    assert outcome.study.parameters["optimizer.momentum"]["only_with"] == ["optimizer=sgd"]


def test_a_fixed_override_is_given_only_where_its_condition_holds(run_sweep: Run) -> None:
    outcome = sweep(run_sweep, "optimizer=sgd,adam", "optimizer.momentum=0.9", when=MOMENTUM)

    assert launched(outcome) == {
        frozenset({"optimizer=sgd", "optimizer.momentum=0.9"}),
        frozenset({"optimizer=adam"}),
    }


def test_all_conditions_must_hold_and_chains_end_where_one_does_not(run_sweep: Run) -> None:
    when = "{depth:{optimizer:sgd,model:large},half:{depth:2}}"
    outcome = sweep(run_sweep, "half=1", "optimizer=sgd,adam", "model=small,large", "depth=2,3", when=when)

    assert launched(outcome) == {
        frozenset({"optimizer=sgd", "model=small"}),
        frozenset({"optimizer=adam", "model=small"}),
        frozenset({"optimizer=adam", "model=large"}),
        frozenset({"optimizer=sgd", "model=large", "depth=2", "half=1"}),
        frozenset({"optimizer=sgd", "model=large", "depth=3"}),
    }


def test_values_keep_their_types_in_conditions(run_sweep: Run) -> None:
    outcome = sweep(run_sweep, "batch=1,1.0,true,'1'", "depth=2,3", when="{depth:{batch:1}}")

    assert launched(outcome) == {
        frozenset({"batch=1", "depth=2"}),
        frozenset({"batch=1", "depth=3"}),
        frozenset({"batch=1.0"}),
        frozenset({"batch=True"}),
        frozenset({"batch='1'"}),
    }


@pytest.mark.parametrize(("choice", "n_trials"), [("optimizer=sgd", 4), ("optimizer=adam", 2)])
def test_a_condition_on_what_is_fixed_is_settled_before(run_sweep: Run, choice: str, n_trials: int) -> None:
    outcome = sweep(run_sweep, choice, "depth=1,2", "optimizer.momentum=0.5,0.9", when=MOMENTUM)

    assert len(launched(outcome)) == n_trials


def test_what_can_never_exist_is_left_out_visibly(run_sweep: Run) -> None:
    when = "{optimizer.momentum:{optimizer:sgd},batch:{optimizer.momentum:0.9}}"
    outcome = sweep(
        run_sweep,
        "optimizer=adam",
        "depth=1,2",
        "optimizer.momentum=0.5,0.9",
        "batch=1",
        when=when,
        dry_run=True,
    )

    assert "optimizer.momentum and batch are left out" in outcome.stdout
    assert "2 combinations" in outcome.stdout


@pytest.mark.parametrize(("model", "n_trials"), [("small", 4), ("large", 2)])
def test_a_condition_on_what_nobody_typed_is_held_against_the_composed_config(
    run_sweep: Run, model: str, n_trials: int
) -> None:
    when = f"{{depth:{{model:{model},batch:{{at_least:8}}}}}}"
    outcome = sweep(run_sweep, "depth=1,2", "batch=8,9", when=when)

    assert len(launched(outcome)) == n_trials


def test_a_condition_on_what_a_searched_group_decides_follows_its_options(run_sweep: Run) -> None:
    outcome = sweep(run_sweep, "model=small,large", "depth=2,3", when="{depth:{model.width:{at_least:10}}}")

    assert launched(outcome) == {
        frozenset({"model=small"}),
        frozenset({"model=large", "depth=2"}),
        frozenset({"model=large", "depth=3"}),
    }


def test_an_excluded_combination_is_not_tried(run_sweep: Run) -> None:
    exclude = "[{optimizer:sgd,batch:{at_least:16},because:diverged},{batch:{not:[8,16]},model:large}]"
    outcome = sweep(run_sweep, "optimizer=adam,sgd", "batch=8,16,32", "model=small,large", exclude=exclude)

    assert launched(outcome) == {
        frozenset({f"optimizer={optimizer}", f"batch={batch}", f"model={model}"})
        for optimizer in ("adam", "sgd")
        for batch in (8, 16, 32)
        for model in ("small", "large")
        if not (optimizer == "sgd" and batch >= 16) and not (batch == 32 and model == "large")
    }


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_no_sampler_proposes_what_is_excluded(run_sweep: Run, sampler: str) -> None:
    outcome = sweep(
        run_sweep,
        "batch=range(0,30)",
        "depth=range(0,30)",
        exclude="[{batch:{at_least:3},depth:{at_most:26}}]",
        sampler=sampler,
        n_trials=30,
    )

    values = [dict(pair.split("=") for pair in overrides) for overrides in outcome.overrides]
    assert len(values) == 30
    assert all(int(one["batch"]) < 3 or int(one["depth"]) > 26 for one in values)


def test_intervals_are_excluded_too(run_sweep: Run) -> None:
    outcome = sweep(
        run_sweep,
        "batch=interval(0,1.0)",
        "depth=1,2",
        exclude="[{batch:{at_most:0.5},depth:1}]",
        sampler="random",
        n_trials=20,
    )

    values = [dict(pair.split("=") for pair in overrides) for overrides in outcome.overrides]
    assert len(values) == 20
    assert all(float(one["batch"]) > 0.5 for one in values if one["depth"] == "1")


def test_where_first_values_are_excluded_the_study_begins_beside_them(run_sweep: Run) -> None:
    outcome = sweep(run_sweep, "batch=8,16", "depth=1,2", exclude="[{batch:8,depth:1}]")

    assert len(launched(outcome)) == 3
    assert all(result.outcome.type == "measured" for result in outcome.results)


def test_a_value_of_an_untyped_key_is_what_the_trials_own_options_say(run_sweep: Run) -> None:
    outcome = sweep(
        run_sweep, "model=small,large", "batch=8,16", exclude="[{model.width:{at_least:10},batch:16}]"
    )

    assert frozenset({"model=large", "batch=16"}) not in launched(outcome)
    assert len(launched(outcome)) == 3


def test_a_parameter_that_does_not_exist_is_not_excluded(run_sweep: Run) -> None:
    outcome = sweep(
        run_sweep,
        "optimizer=sgd,adam",
        "optimizer.momentum=0.5,0.9",
        when=MOMENTUM,
        exclude="[{optimizer.momentum:{not:0.9}}]",
    )

    assert launched(outcome) == {
        frozenset({"optimizer=sgd", "optimizer.momentum=0.9"}),
        frozenset({"optimizer=adam"}),
    }


def test_a_dry_run_counts_what_is_excluded_and_says_with_what_a_key_exists(run_sweep: Run) -> None:
    outcome = sweep(
        run_sweep,
        "optimizer=sgd,adam",
        "optimizer.momentum=0.5,0.9",
        when=MOMENTUM,
        exclude="[{optimizer:sgd,optimizer.momentum:0.9,because:diverged}]",
        dry_run=True,
    )

    assert "optimizer.momentum: 0.5, 0.9  (only with optimizer=sgd)" in outcome.stdout
    assert "3 combinations, 2 of them legal" in outcome.stdout
    assert "1 refused: optimizer=sgd with optimizer.momentum=0.9 is excluded: diverged" in outcome.stdout


def test_techniques_are_conditional_and_excluded_like_anything_else(
    run_sweep: Run, technique_app: Path
) -> None:
    outcome = run_sweep(
        ["technique/packing=baseline,bfd", "technique/adapter=baseline,lora", "technique.adapter.r=8,16"],
        lambda *_: {"speed": 1.0, "size": 1.0},
        sampler="grid",
        when="{technique/packing:{technique.adapter.r:16}}",
        exclude="[{technique/adapter:lora,technique.adapter.r:8,because:too small}]",
    )

    assert launched(outcome) == {
        frozenset({"technique/adapter=baseline"}),
        frozenset({"technique/adapter=lora", "technique.adapter.r=16", "technique/packing=baseline"}),
        frozenset({"technique/adapter=lora", "technique.adapter.r=16", "technique/packing=bfd"}),
    }


def test_a_trial_of_a_file_is_judged_by_its_own_values(run_sweep: Run, tmp_path: Path) -> None:
    (tmp_path / "trials.txt").write_text("batch=16 depth=7\nbatch=16 depth=8\n")
    outcome = sweep(
        run_sweep, "batch=8,9", exclude="[{batch:16,depth:7,because:no}]", enqueue=tmp_path / "trials.txt"
    )

    assert [result.outcome.type for result in outcome.results] == [
        "measured",
        "incompatible",
        "measured",
        "measured",
    ]


def test_a_trial_of_a_file_cannot_have_a_key_that_does_not_exist_there(
    run_sweep: Run, tmp_path: Path
) -> None:
    (tmp_path / "trials.txt").write_text("optimizer=adam optimizer.momentum=0.5\n")
    outcome = sweep(
        run_sweep,
        "optimizer=sgd,adam",
        "optimizer.momentum=0.5,0.9",
        when=MOMENTUM,
        enqueue=tmp_path / "trials.txt",
    )

    assert outcome.exit_code == 2
    assert "trial 1: optimizer.momentum exists only with optimizer=sgd" in outcome.stderr


PROBLEMS = [
    ({"when": "{momentun:{optimizer:sgd}}"}, "momentun is neither searched nor in the config"),
    (
        {"when": "{depth:{optimiser:sgd}}"},
        "optimiser is neither searched nor in the config (did you mean optimizer?)",
    ),
    (
        {"when": "{depth:{optimizer:sgdd}}"},
        "optimizer is never sgdd (did you mean sgd?); it is one of adam, sgd",
    ),
    ({"when": "{depth:sgd}"}, "must map keys to what each must be"),
    ({"when": "{depth:{batch:{at_lest:3}}}"}, "a mapping of at_least, at_most and not"),
    ({"when": "{depth:{depth:1}}"}, "goes in a circle: depth exists only with depth"),
    (
        {"when": "{depth:{batch:1},batch:{depth:1}}"},
        "depth exists only with batch, batch exists only with depth",
    ),
    ({"when": "{depth:{half:3}}"}, "the value of half refers to other keys"),
    ({"exclude": "{optimizer:sgd}"}, "exclude must be a list"),
    ({"exclude": "[{because:no}]"}, "entry 1 must map keys"),
    ({"exclude": "[sgd]"}, "entry 1 must map keys"),
    ({"exclude": "[{optimizer:sgd,because:3}]"}, "because must be text, got 3"),
    ({"exclude": "[{optimizer:{not:sgdd}}]"}, "entry 1: optimizer is never sgdd"),
    (
        {"exclude": "[{depht:1}]"},
        "entry 1: depht is neither searched nor in the config (did you mean depth?)",
    ),
]


@pytest.mark.parametrize(("settings", "message"), PROBLEMS)
def test_what_cannot_be_meant_is_answered_with_what_there_is(
    run_sweep: Run, settings: dict[str, str], message: str
) -> None:
    outcome = sweep(run_sweep, "optimizer=sgd,adam", "depth=1,2", "batch=1,2", **settings)

    assert outcome.exit_code == 2
    assert message in outcome.stderr
    assert outcome.overrides == []


def test_all_that_is_wrong_with_both_is_said_at_once(run_sweep: Run) -> None:
    outcome = sweep(
        run_sweep,
        "model=small,lrage",
        "depth=1,2",
        when="{depth:{no:1}}",
        exclude="[{nothing:1},{model:smal}]",
    )

    assert outcome.exit_code == 2
    assert len(outcome.stderr.strip().splitlines()) == 4


def test_a_value_that_a_file_itself_does_not_offer_is_refused_but_not_one_that_was_narrowed_away(
    run_sweep: Run,
) -> None:
    params = '{depth:"1,2",batch:"8,16"}'
    mistyped = sweep(run_sweep, params=params, exclude="[{depth:3}]")
    narrowed = sweep(run_sweep, "depth=1", params=params, exclude="[{depth:2}]")

    assert "depth is never 3; it is one of 1, 2" in mistyped.stderr
    assert launched(narrowed) == {frozenset({"depth=1", "batch=8"}), frozenset({"depth=1", "batch=16"})}


def test_what_the_default_space_says_of_its_keys_does_not_bind_a_command_line_that_names_its_own(
    run_sweep: Run, technique_app: Path
) -> None:
    space = technique_app / "space" / "some.yaml"
    space.write_text(
        space.read_text()
        + "when: {technique/packing: {technique/adapter: lora}}\nexclude: [{technique/packing: bfd}]\n"
    )
    outcome = run_sweep(
        ["technique/packing=baseline,bfd"], lambda *_: {"speed": 1.0, "size": 1.0}, sampler="grid"
    )

    assert launched(outcome) == {
        frozenset({"technique/packing=baseline"}),
        frozenset({"technique/packing=bfd"}),
    }
