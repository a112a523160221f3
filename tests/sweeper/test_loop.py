"""The loop, against a launcher that runs nothing."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_launcher import Outcome
from hydra.errors import ConfigCompositionException

from memsweep.config.store import register
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import (
    CutShort,
    Incompatible,
    Measured,
    NotInForce,
    OutOfMemory,
    Phase,
    Reused,
    TimedOut,
    to_mapping,
)
from memsweep.record.trial import TrialRecord

Run = Callable[..., Outcome]

PLAIN = {"x": 0, "y": 0}
TWO = {"objectives": {"speed": "maximize", "size": "minimize"}}
OUT_OF_MEMORY = OutOfMemory(
    where="device", phase=Phase.BUILD, requested_bytes=2**30, held_bytes=None, evidence="a test"
)


def measure(number: int, values: Mapping[str, Any]) -> dict[str, float]:
    x, y = float(values.get("x", 0)), float(values.get("y", 0))
    return {"speed": 10 * x - y * y, "size": x * x + 1}


def set_up(values: Mapping[str, Any]) -> dict[str, float]:
    """Figures that follow from the options, equal for equal settings."""
    weight = {"lora": 2, "ia3": 3, "nf4": 5, "bfd": 7, "again": 7}
    total = sum(weight.get(str(value), 0) for value in values.values())
    return {"speed": 100.0 + total, "size": 50.0 + total}


def test_the_first_trial_is_the_baseline(run_sweep: Run, technique_app: Path) -> None:
    outcome = run_sweep([], lambda _, values: set_up(values), n_trials=3)

    assert set(outcome.results[0].choice.values()) == {"baseline"}
    assert outcome.results[0].number == 0


def test_the_baseline_is_run_though_the_space_does_not_hold_it(run_sweep: Run, technique_app: Path) -> None:
    outcome = run_sweep(["technique/adapter=lora,ia3"], lambda _, values: set_up(values))

    assert outcome.results[0].choice["adapter"] == "baseline"
    assert {result.choice["adapter"] for result in outcome.results[1:]} == {"lora", "ia3"}


def test_other_keys_are_at_their_first_value_in_the_first_trial(run_sweep: Run) -> None:
    outcome = run_sweep(["x=3,2,1", "y=range(5,7)"], measure, config=PLAIN, n_trials=2, **TWO)

    assert outcome.overrides[0] == ["x=3", "y=5"]


def test_no_combination_is_launched_twice(run_sweep: Run) -> None:
    outcome = run_sweep(["x=range(0,4)", "y=range(0,3)"], measure, config=PLAIN, n_trials=40, **TWO)

    assert len({tuple(overrides) for overrides in outcome.overrides}) == len(outcome.overrides) == 12
    assert outcome.study.ended == "space exhausted (12 of 12)"


@pytest.mark.parametrize(
    "sampler", ["auto", "structured", "tpe", "nsgaii", "nsgaiii", "gp", "qmc", "random", "grid"]
)
def test_every_sampler_finds_every_combination_of_a_small_space(run_sweep: Run, sampler: str) -> None:
    outcome = run_sweep(["x=a,b,c", "y=1,2"], lambda *_: 1.0, config=PLAIN, sampler=sampler)

    assert len({tuple(overrides) for overrides in outcome.overrides}) == 6


def test_the_study_ends_after_n_trials(run_sweep: Run) -> None:
    outcome = run_sweep(["x=range(0,9)", "y=range(0,9)"], measure, config=PLAIN, n_trials=5, **TWO)

    assert len(outcome.overrides) == 5
    assert outcome.study.ended == "5 trials"
    assert outcome.exit_code == 0


def test_grid_goes_through_the_space_in_its_order(run_sweep: Run) -> None:
    outcome = run_sweep(["x=1,2", "y=range(0,3)"], measure, config=PLAIN, sampler="grid", **TWO)
    expected = [[f"x={x}", f"y={y}"] for x in (1, 2) for y in (0, 1, 2)]

    assert outcome.overrides == expected


def test_what_breaks_rules_is_never_launched(run_sweep: Run, technique_app: Path) -> None:
    outcome = run_sweep([], lambda _, values: set_up(values), n_trials=40)

    assert not any(
        "technique/adapter=baseline" in overrides and "technique/quantization=nf4" in overrides
        for overrides in outcome.overrides
    )
    assert outcome.study.ended == "space exhausted (15 of 15)"


def test_what_asks_for_the_same_is_measured_once_and_visible(run_sweep: Run, technique_app: Path) -> None:
    outcome = run_sweep([], lambda _, values: set_up(values), n_trials=40)
    reused = [result for result in outcome.results if result.reused_from is not None]
    by_number = {result.number: result for result in outcome.results}

    assert len(outcome.overrides) == 10
    assert len(reused) == 5
    assert all(isinstance(result.outcome, Reused) for result in reused)
    assert all(result.objectives == by_number[result.reused_from or 0].objectives for result in reused)
    assert all(outcome.folder.trial(result.number).outcome.exists() for result in reused)


def test_a_set_up_that_ran_out_of_memory_is_not_tried_under_another_name(
    run_sweep: Run, technique_app: Path
) -> None:
    def task(_: int, values: Mapping[str, Any]) -> Any:
        return to_mapping(OUT_OF_MEMORY) if values["technique/packing"] != "baseline" else set_up(values)

    outcome = run_sweep(["technique/packing=baseline,bfd,again"], task)

    assert len(outcome.overrides) == 2
    assert [result.outcome.type for result in outcome.results][1:] == ["out_of_memory"] * 2
    assert outcome.results[2].reused_from == outcome.results[1].number


def test_parameters_of_an_option_are_asked_only_with_it(run_sweep: Run, technique_app: Path) -> None:
    arguments = ["technique/adapter=baseline,lora,ia3", "technique.adapter.r=choice(8,16)"]
    outcome = run_sweep(arguments, lambda _, values: set_up(values))
    given = [overrides for overrides in outcome.overrides if any("adapter.r" in text for text in overrides)]

    assert sorted(given) == [["technique/adapter=lora", f"technique.adapter.r={r}"] for r in ("16", "8")]
    assert len(outcome.overrides) == 4


def test_a_fixed_parameter_goes_only_to_trials_whose_option_has_it(
    run_sweep: Run, technique_app: Path
) -> None:
    arguments = ["technique/adapter=baseline,lora,ia3", "++technique.adapter.r=4"]
    outcome = run_sweep(arguments, lambda _, values: set_up(values))

    assert sorted(outcome.overrides) == [
        ["technique/adapter=baseline"],
        ["technique/adapter=ia3"],
        ["technique/adapter=lora", "++technique.adapter.r=4"],
    ]


def test_declared_ranges_are_searched_when_asked_for(run_sweep: Run, technique_app: Path) -> None:
    outcome = run_sweep(
        ["technique/adapter=baseline,lora"], lambda _, values: set_up(values), option_parameters="searched"
    )
    ranks = {overrides[-1] for overrides in outcome.overrides if len(overrides) == 2}

    assert ranks == {"technique.adapter.r=8", "technique.adapter.r=16"}


def test_declared_ranges_of_an_option_that_is_fixed_are_searched_too(
    run_sweep: Run, technique_app: Path
) -> None:
    outcome = run_sweep(
        ["technique/adapter=lora", "technique/packing=baseline,bfd"],
        lambda _, values: set_up(values),
        option_parameters="searched",
    )

    assert len(outcome.overrides) == 4
    assert {overrides[-1] for overrides in outcome.overrides} == {
        "technique.adapter.r=8",
        "technique.adapter.r=16",
    }


def test_options_with_other_ranges_have_parameters_of_their_own(run_sweep: Run, technique_app: Path) -> None:
    file = technique_app / "technique" / "adapter" / "ia3.yaml"
    text = file.read_text().replace("type: ia3", "type: ia3\n    r: ${r}")
    file.write_text(text + "parameters: {r: {default: 1, search: [1, 2], help: a test}}\n")
    register(technique_app)
    outcome = run_sweep(
        ["technique/adapter=baseline,lora,ia3"],
        lambda _, values: set_up(values),
        option_parameters="searched",
    )

    assert sorted(outcome.study.parameters) == [
        "technique.adapter.r of ia3",
        "technique.adapter.r of lora",
        "technique/adapter",
    ]
    assert sorted(tuple(o[1:]) for o in outcome.overrides if o[0] == "technique/adapter=ia3") == [
        ("technique.adapter.r=1",),
        ("technique.adapter.r=2",),
    ]


def test_fixed_overrides_reach_every_trial_as_typed(run_sweep: Run) -> None:
    fixed = ["++z.a=[1,'b,c']", "~y", "+w='q=1'"]
    outcome = run_sweep(["x=1,2,3", *fixed], lambda *_: 1.0, config=PLAIN)

    assert all(overrides[1:] == fixed for overrides in outcome.overrides)
    assert outcome.study.fixed == tuple(fixed)


def test_running_out_of_memory_does_not_fail_the_study(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        return to_mapping(OUT_OF_MEMORY) if values["x"] > 1 else measure(number, values)

    outcome = run_sweep(["x=range(0,4)"], task, config=PLAIN, max_failure_rate=0.0, **TWO)

    assert outcome.exit_code == 0
    assert [result.outcome.type for result in outcome.results].count("out_of_memory") == 2
    assert not any(result.objectives for result in outcome.results if result.outcome.type != "measured")


def test_an_error_of_memory_in_any_app_is_out_of_memory(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> float:
        if values["x"] == 2:
            raise MemoryError("no more")
        return 1.0

    outcome = run_sweep(["x=1,2"], task, config=PLAIN)

    assert outcome.results[1].outcome.type == "out_of_memory"


def test_a_crash_is_one_trials_and_the_study_goes_on(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        if values["x"] == 1:
            raise ValueError("no such luck")
        return measure(number, values)

    outcome = run_sweep(["x=range(0,4)"], task, config=PLAIN, **TWO)
    crashed = [result for result in outcome.results if result.outcome.type == "crashed"]

    assert outcome.exit_code == 0
    assert len(outcome.results) == 4
    assert [result.outcome.text for result in crashed] == ["crashed in start: ValueError: no such luck"]


@pytest.mark.parametrize(
    "returned, expected",
    [
        (None, "crashed"),
        ((1.0, 2.0, 3.0), "crashed"),
        ({"speed": 1.0}, "crashed"),
        ("text", "crashed"),
        ({"speed": float("nan"), "size": 1.0}, "non_finite"),
        ({"speed": float("inf"), "size": 1.0}, "non_finite"),
        ({"speed": 1.0, "size": 2.0, "other": float("nan")}, "measured"),
        (to_mapping(Measured(measures={"speed": 1.0, "size": 2.0, "loss": float("inf")})), "measured"),
        (to_mapping(TimedOut(limit_seconds=3.0, phase=Phase.MEASURE)), "timed_out"),
        (to_mapping(NotInForce(differences=("a",))), "not_in_force"),
        (to_mapping(Measured(measures={"speed": 1.0, "size": 2.0})), "measured"),
        (to_mapping(Measured(measures={"speed": 1.0})), "crashed"),
    ],
)
def test_whatever_an_app_returns_is_one_trials_outcome(run_sweep: Run, returned: Any, expected: str) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        return returned if values["x"] == 1 else measure(number, values)

    outcome = run_sweep(["x=0,1"], task, config=PLAIN, **TWO)

    assert [result.outcome.type for result in outcome.results] == ["measured", expected]
    assert outcome.exit_code == 0


def test_single_numbers_and_sequences_are_objectives_without_names(run_sweep: Run) -> None:
    outcome = run_sweep(["x=1,2"], lambda _, v: (v["x"], 2), config=PLAIN, direction="[minimize,maximize]")

    assert list(outcome.study.objectives.items()) == [("value_0", "minimize"), ("value_1", "maximize")]
    assert outcome.results[0].objectives == {"value_0": 1.0, "value_1": 2.0}


def test_a_study_with_nothing_feasible_ends_with_one_and_the_smallest_miss(run_sweep: Run) -> None:
    constraints = {"budget": {"measure": "size", "at_most": 0.5}}
    outcome = run_sweep(["x=1,2,3"], measure, config=PLAIN, constraints=constraints, **TWO)

    assert outcome.exit_code == 1
    assert "no trial meets budget; the nearest misses it by 1.5" in outcome.stderr
    assert outcome.results[0].constraints == {"budget": 1.5}


def test_a_constraint_may_be_about_what_the_baseline_measured(run_sweep: Run) -> None:
    constraints = {"fast": {"measure": "speed", "at_least": "baseline"}}
    outcome = run_sweep(["x=2,1,3"], measure, config=PLAIN, constraints=constraints, **TWO)
    feasible = {result.parameters["x"]: result.feasible for result in outcome.results}

    assert feasible == {"2": True, "1": False, "3": True}
    assert outcome.study.constraints["fast"].bound == 20.0


def test_where_the_baseline_fails_the_best_seen_is_the_bound(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        return to_mapping(OUT_OF_MEMORY) if values["x"] == 2 else measure(number, values)

    constraints = {"fast": {"measure": "speed", "at_least": "baseline"}}
    outcome = run_sweep(["x=2,1,3"], task, config=PLAIN, constraints=constraints, **TWO)
    feasible = {result.parameters["x"]: result.feasible for result in outcome.results}

    assert feasible == {"2": False, "1": False, "3": True}


def test_a_constraint_without_a_bound_is_none(run_sweep: Run) -> None:
    constraints = {"budget": {"measure": "size", "at_most": None}}
    outcome = run_sweep(["x=1,2"], measure, config=PLAIN, constraints=constraints, **TWO)

    assert outcome.study.constraints == {}


def test_too_many_crashes_end_the_study(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> float:
        raise ValueError("never")

    outcome = run_sweep(["x=range(0,30)"], task, config=PLAIN, n_trials=20, max_failure_rate=0.1)

    assert len(outcome.overrides) == 3
    assert outcome.exit_code == 1


def test_ctrl_c_leaves_results_and_exit_code_130(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number == 2:
            raise KeyboardInterrupt
        return measure(number, values)

    outcome = run_sweep(["x=range(0,9)"], task, config=PLAIN, **TWO)

    assert outcome.exit_code == 130
    assert [result.outcome.type for result in outcome.results] == ["measured", "measured", "interrupted"]
    assert outcome.study.ended == "interrupted"
    assert outcome.folder.report.exists()


def test_an_app_that_ends_the_interpreter_ends_its_trial_only(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number == 1:
            raise SystemExit(3)
        return measure(number, values)

    outcome = run_sweep(["x=range(0,3)"], task, config=PLAIN, **TWO)

    assert [result.outcome.type for result in outcome.results] == ["measured", "crashed", "measured"]
    assert "sys.exit(3)" in outcome.results[1].outcome.text


def test_every_file_is_there_after_every_trial(run_sweep: Run) -> None:
    seen: list[tuple[int, int, bool]] = []

    def task(number: int, values: Mapping[str, Any]) -> Any:
        folder = Path("study")
        lines = (folder / "results.jsonl").read_text().splitlines()
        solutions = yaml.safe_load((folder / "optimization_results.yaml").read_text())["solutions"]
        files = ("front.csv", "study.json", "multirun.yaml")
        seen.append((len(lines), len(solutions), all((folder / name).exists() for name in files)))
        return {"speed": float(values["x"]), "size": float(values["x"])}

    run_sweep(["x=range(0,4)"], task, config=PLAIN, **TWO)

    assert seen == [(0, 0, True), (1, 1, True), (2, 2, True), (3, 3, True)]


def test_results_say_what_was_asked_and_measured(run_sweep: Run) -> None:
    outcome = run_sweep(["x=1,2", "y=3"], measure, config=PLAIN, **TWO)
    first = json.loads(outcome.folder.results.read_text().splitlines()[0])

    assert first["parameters"] == {"x": "1"}
    assert first["overrides"] == ["x=1", "y=3"]
    assert first["objectives"] == {"speed": 1.0, "size": 2.0}
    assert first["outcome"]["type"] == "measured"
    assert first["feasible"]
    assert first["seconds"]["total"] >= 0


def test_optimization_results_hold_what_the_official_plugin_writes_and_more(run_sweep: Run) -> None:
    outcome = run_sweep(["x=2,1"], measure, config=PLAIN, **TWO)
    data = yaml.safe_load(outcome.folder.optimization_results.read_text())

    assert data["name"] == "pareto"
    assert [solution["params"] for solution in data["solutions"]] == [{"x": 2}, {"x": 1}]
    assert data["solutions"][0]["values"] == [20.0, 5.0]
    assert data["solutions"][0]["overrides"] == ["x=2"]
    assert data["solutions"][0]["job_num"] == 0
    assert data["solutions"][0]["output_dir"].endswith("study/trials/0")
    assert data["solutions"][0]["return_value"] == {"speed": 20.0, "size": 5.0}


def test_one_objective_has_best_params_and_best_value(run_sweep: Run) -> None:
    outcome = run_sweep(["x=3,1,2"], lambda _, values: values["x"], config=PLAIN)
    data = yaml.safe_load(outcome.folder.optimization_results.read_text())

    assert data["best_params"] == {"x": 1}
    assert data["best_value"] == 1.0


def test_the_front_is_a_table_that_other_programs_read(run_sweep: Run) -> None:
    outcome = run_sweep(["x=range(1,4)"], measure, config=PLAIN, **TWO)
    with outcome.folder.front.open() as file:
        rows = list(csv.DictReader(file))

    assert [(row["x"], row["speed"]) for row in rows] == [("3", "30.0"), ("2", "20.0"), ("1", "10.0")]


def test_a_study_is_not_added_to_another(run_sweep: Run) -> None:
    run_sweep(["x=1,2"], measure, config=PLAIN, **TWO)
    outcome = run_sweep(["x=3,4"], measure, config=PLAIN, **TWO)

    assert outcome.exit_code == 2
    assert "x is searched over 3, 4; that does not hold all of 1, 2" in outcome.stderr
    assert "hydra.sweeper.study_name=" in outcome.stderr
    assert outcome.overrides == []


def test_trials_that_a_killed_controller_left_are_not_written_over(run_sweep: Run, tmp_path: Path) -> None:
    TrialRecord(outcome=OUT_OF_MEMORY).write(TrialFolder(tmp_path / "study" / "trials" / "0"))
    outcome = run_sweep(["x=1,2"], measure, config=PLAIN, **TWO)

    assert outcome.exit_code == 2
    assert "already holds 1 trial(s)" in outcome.stderr


def test_a_folder_without_trials_is_used(run_sweep: Run, tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "results.jsonl").write_text("")
    outcome = run_sweep(["x=1,2"], measure, config=PLAIN, **TWO)

    assert outcome.exit_code == 0


def test_a_dry_run_counts_and_runs_nothing(run_sweep: Run, technique_app: Path) -> None:
    outcome = run_sweep([], lambda *_: 1.0, dry_run=True)

    assert "18 combinations, 15 of them legal" in outcome.stdout
    assert "3 refused: quantization=nf4 needs adapter=ia3 or lora: it is frozen (a test)" in outcome.stdout
    assert "about 2 min 30 s for 15 trials, at 10 s each: a guess" in outcome.stdout
    assert not outcome.folder.path.exists()


def test_a_dry_run_of_a_large_space_says_what_no_combination_would_save(
    run_sweep: Run, technique_app: Path
) -> None:
    arguments = ["technique/quantization=baseline,nf4", "+x=int(interval(0,90000))"]
    outcome = run_sweep(arguments, lambda *_: 1.0, dry_run=True)

    assert "unboundedly many combinations: more than 50,000" in outcome.stdout
    assert "quantization=nf4 needs adapter=ia3 or lora" in outcome.stdout


def test_the_command_line_replaces_the_default_space(run_sweep: Run, technique_app: Path) -> None:
    outcome = run_sweep(["technique/packing=baseline,bfd"], lambda _, values: set_up(values))

    assert sorted(outcome.study.parameters) == ["technique/packing"]


def test_a_space_that_is_typed_is_searched_with_the_command_line(run_sweep: Run, technique_app: Path) -> None:
    arguments = ["space=some", "technique/packing=baseline,bfd"]
    outcome = run_sweep(arguments, lambda _, values: set_up(values), n_trials=3)

    assert outcome.study.parameters["technique/packing"] == {"values": ["baseline", "bfd"]}
    assert "technique/adapter" in outcome.study.parameters


@pytest.mark.parametrize(
    "argument, settings, message",
    [
        ("db=mysql,orcale", {}, "db has no option 'orcale'; it has mysql, postgres"),
        ("z=1,2", {}, "z is not a setting"),
        ("x=1,2", {"n_trials": 0}, "n_trials must be at least 1, got 0"),
        ("x=1,2", {"sampler": "bayes"}, "sampler must be one of auto, structured, tpe"),
        ("x=1,1", {}, "names one value twice"),
    ],
)
def test_a_bad_request_says_what_is_on_offer_and_runs_nothing(
    run_sweep: Run, argument: str, settings: dict[str, Any], message: str
) -> None:
    config = {"defaults": [{"db": "mysql"}], "x": 0}
    groups = {"db/mysql": {"cost": 1}, "db/postgres": {"cost": 2}}
    outcome = run_sweep([argument], lambda *_: 1.0, config=config, groups=groups, **settings)

    assert outcome.exit_code == 2
    assert message in outcome.stderr
    assert outcome.overrides == []
    assert not outcome.folder.path.exists()


def test_a_typo_in_an_option_lists_the_options(run_sweep: Run, technique_app: Path) -> None:
    outcome = run_sweep(["technique/adapter=baseline,lroa"], lambda *_: 1.0)

    assert outcome.exit_code == 2
    assert "has no option 'lroa' (did you mean lora?); it has baseline, ia3, lora" in outcome.stderr


def test_a_parameter_that_no_option_has_is_refused(run_sweep: Run, technique_app: Path) -> None:
    outcome = run_sweep(["technique/adapter=baseline,ia3", "technique.adapter.r=8,16"], lambda *_: 1.0)

    assert outcome.exit_code == 2
    assert "has no parameter 'r'" in outcome.stderr


def test_glob_names_every_option(run_sweep: Run, technique_app: Path) -> None:
    outcome = run_sweep(["technique/adapter=glob(*,exclude=ia3)"], lambda _, values: set_up(values))

    assert {result.choice["adapter"] for result in outcome.results} == {"baseline", "lora"}


def test_config_groups_of_any_app_are_searched(run_sweep: Run) -> None:
    config = {"defaults": [{"db": "mysql"}], "x": 0}
    groups = {"db/mysql": {"cost": 1}, "db/postgres": {"cost": 2}}
    outcome = run_sweep(["db=glob(*)", "x=1,2"], lambda *_: 1.0, config=config, groups=groups)

    assert len(outcome.overrides) == 4


def test_the_same_seed_gives_the_same_study(run_sweep: Run, tmp_path: Path) -> None:
    arguments = ["x=range(0,9)", "y=interval(0,1)"]
    first = run_sweep(arguments, measure, config=PLAIN, n_trials=15, **TWO)
    (tmp_path / "study").rename(tmp_path / "earlier")
    second = run_sweep(arguments, measure, config=PLAIN, n_trials=15, **TWO)

    assert first.overrides == second.overrides


def test_n_jobs_are_handed_over_at_once_and_stay_numbered(run_sweep: Run) -> None:
    outcome = run_sweep(["x=range(0,5)"], measure, config=PLAIN, n_jobs=2, n_trials=5, **TWO)

    assert [number for number, _ in outcome.launcher.launched] == [0, 1, 2, 3, 4]
    assert [result.number for result in outcome.results] == [0, 1, 2, 3, 4]


def test_a_config_that_cannot_be_composed_is_refused_before_the_second_trial(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> float:
        raise ConfigCompositionException("Key 'z' is not in struct")

    outcome = run_sweep(["x=1,2,3"], task, config=PLAIN)

    assert outcome.exit_code == 2
    assert "Key 'z' is not in struct" in outcome.stderr
    assert len(outcome.overrides) == 1


def test_a_first_trial_that_is_refused_is_not_in_the_way_of_the_same_command(run_sweep: Run) -> None:
    def refuse(number: int, values: Mapping[str, Any]) -> Any:
        outcome = Incompatible(violations=("the data have no such column",))
        TrialRecord(outcome=outcome).write(TrialFolder(Path("study/trials") / str(number)))
        return to_mapping(outcome)

    refused = run_sweep(["x=1,2"], refuse, config=PLAIN, **TWO)
    outcome = run_sweep(["x=1,2"], measure, config=PLAIN, **TWO)

    assert (refused.exit_code, "the data have no such column" in refused.stderr) == (2, True)
    assert outcome.exit_code == 0
    assert len(outcome.overrides) == 2


def test_a_study_of_which_nothing_can_run_is_refused_with_the_rules(
    run_sweep: Run, technique_app: Path
) -> None:
    outcome = run_sweep(
        ["technique/quantization=nf4", "technique/packing=baseline,bfd"],
        lambda *_: {"speed": 1.0, "size": 1.0},
    )

    assert outcome.exit_code == 2
    assert "no combination that is asked for can run" in outcome.stderr
    assert "quantization=nf4 needs adapter" in outcome.stderr
    assert not outcome.folder.path.exists()


def test_a_later_config_that_cannot_be_composed_is_one_incompatible_trial(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        if values["x"] == 2:
            raise ConfigCompositionException("Key 'z' is not in struct")
        return measure(number, values)

    outcome = run_sweep(["x=range(1,4)"], task, config=PLAIN, **TWO)
    refused = [result for result in outcome.results if isinstance(result.outcome, Incompatible)]

    assert len(refused) == 1
    assert outcome.exit_code == 0


def test_effective_set_ups_are_told_to_a_launcher_that_asks(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        folder = TrialFolder(Path("study/trials") / str(number))
        outcome = Measured(measures=measure(number, values))
        if number == 2:
            outcome = Reused(trial=1, measures={})  # type: ignore[assignment]
        TrialRecord(outcome=outcome, effective_hash=f"hash {min(number, 1)}").write(folder)
        return to_mapping(outcome)

    outcome = run_sweep(["x=range(0,3)"], task, config=PLAIN, **TWO)

    assert outcome.results[2].reused_from == 1
    assert outcome.results[2].objectives == outcome.results[1].objectives
    assert outcome.results[1].effective_hash == outcome.results[2].effective_hash == "hash 1"


def test_the_first_crash_ends_the_study_where_that_was_asked_for(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        if number == 2:
            raise ValueError("never")
        return measure(number, values)

    outcome = run_sweep(["x=range(0,9)"], task, config=PLAIN, fail_fast=True, **TWO)

    assert len(outcome.overrides) == 3
    assert (outcome.study.ended or "").startswith("fail_fast: trial 2 crashed")
    assert outcome.exit_code == 1


def test_a_front_at_rest_ends_the_study_well(run_sweep: Run) -> None:
    outcome = run_sweep(
        ["x=range(0,50)"], lambda *_: {"speed": 1.0, "size": 1.0}, config=PLAIN, stagnation=5, **TWO
    )

    assert len(outcome.overrides) == 6
    assert outcome.study.ended == "stagnation: 5 trials in a row have grown the front by 0.00%"
    assert outcome.exit_code == 0


def test_a_study_out_of_time_ends_well_with_what_it_has(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        time.sleep(0.1)
        return measure(number, values)

    outcome = run_sweep(["x=range(0,50)"], task, config=PLAIN, n_trials=50, max_seconds=0.6, **TWO)

    assert 0 < len(outcome.overrides) < 6
    assert (outcome.study.ended or "").startswith("max_seconds: ")
    assert outcome.exit_code == 0


def test_device_time_is_that_of_every_run(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> Any:
        time.sleep(0.1)
        return measure(number, values)

    limit = '"0.6s"'
    outcome = run_sweep(
        ["x=range(0,50)"], task, config=PLAIN, n_trials=50, repeats=2, max_device_hours=limit, **TWO
    )

    assert 0 < len(outcome.launcher.launched) < 6
    assert (outcome.study.ended or "").startswith("max_device_hours: ")


def test_time_is_kept_for_measuring_the_front_again(run_sweep: Run) -> None:
    def task(number: int, values: Mapping[str, Any]) -> float:
        time.sleep(0.1)
        return float(values["x"])

    outcome = run_sweep(["x=range(0,50)"], task, config=PLAIN, n_trials=50, front_repeats=2, max_seconds=1.0)

    assert (outcome.study.ended or "").startswith("max_seconds: ")
    assert sum(len(result.repeats) for result in outcome.results if result.on_front) >= 1


def test_a_trial_cut_short_counts_and_is_shown_with_its_reason(run_sweep: Run) -> None:
    short = CutShort(reason="worse than trial 0 beyond noise", measures={"speed": -5.0, "size": 9.0})

    def task(number: int, values: Mapping[str, Any]) -> Any:
        return to_mapping(short) if number == 1 else measure(number, values)

    outcome = run_sweep(["x=range(0,9)"], task, config=PLAIN, n_trials=3, **TWO)
    row = outcome.results[1]

    assert len(outcome.overrides) == 3
    assert not row.on_front
    assert not row.objectives
    assert row.measures == {"speed": -5.0, "size": 9.0}
    assert "cut short, worse than trial 0 beyond noise" in outcome.stdout
    assert "1 cut short" in outcome.stdout
    assert outcome.exit_code == 0


def test_a_trial_cut_short_says_by_how_much_it_misses_a_demand(run_sweep: Run) -> None:
    short = CutShort(reason="a test", measures={"size": 9.0})
    outcome = run_sweep(
        ["x=1,2,3"],
        lambda *_: to_mapping(short),
        config=PLAIN,
        constraints={"small": {"measure": "size", "at_most": 4}},
        **TWO,
    )

    assert {result.constraints["small"] for result in outcome.results} == {5.0}
    assert not any(result.feasible for result in outcome.results)
    assert "no trial meets small; the nearest misses it by 5" in outcome.stderr
    assert outcome.exit_code == 1


def test_a_dry_run_says_what_would_end_the_study(run_sweep: Run, technique_app: Path) -> None:
    rules = {"n_trials": 9, "max_seconds": "30m", "stagnation": 4, "max_failures": 1, "fail_fast": False}
    outcome = run_sweep([], lambda *_: 1.0, dry_run=True, **rules)

    assert (
        "ends after 9 trials, 30 min 0 s, 4 trials in a row that do not grow the front by 0.10% or "
        "more than 1 failure" in outcome.stdout
    )
    assert "trials that cannot come onto the front are cut short" in outcome.stdout


def ladder_measure(_: int, given: Mapping[str, Any]) -> dict[str, float]:
    """Speed and size of what a trial of `technique_app` chooses."""
    adapter, packing = given["technique/adapter"], given["technique/packing"]
    speed = {"baseline": 1.0, "lora": 2.0, "ia3": 1.5}[adapter] * (1.0 if packing == "baseline" else 3.0)
    four_bit = given["technique/quantization"] == "nf4"
    return {"speed": speed * (0.9 if four_bit else 1.0), "size": 1.0 if four_bit else 4.0}


def chosen_by(outcome: Outcome) -> list[dict[str, str]]:
    """Return what each trial chose that is no baseline, in the order they ran."""
    return [
        {technique: option for technique, option in result.choice.items() if option != "baseline"}
        for result in outcome.results
        if result.reused_from is None
    ]


def test_the_ladder_has_the_last_trials_and_explains_the_best(run_sweep: Run, technique_app: Path) -> None:
    outcome = run_sweep([], ladder_measure, n_trials=9, ladder_share=0.5, seed=3)
    tried = chosen_by(outcome)
    best = max(outcome.results, key=lambda result: result.objectives["speed"] / result.objectives["size"])
    top = {name: option for name, option in best.choice.items() if option != "baseline"}

    assert len(tried) == 9
    assert top["quantization"] == "nf4"
    assert {"adapter": top["adapter"]} in tried
    # The two options of packing ask for the same: whichever came first is the rung.
    assert {"adapter": top["adapter"]} in [
        {name: option for name, option in one.items() if name != "packing"}
        for one in tried
        if "packing" in one
    ]


def test_a_study_may_begin_with_the_options_alone(run_sweep: Run, technique_app: Path) -> None:
    tried = chosen_by(run_sweep([], ladder_measure, n_trials=6, ladder="first"))

    assert tried[:4] == [{}, {"adapter": "ia3"}, {"adapter": "lora"}, {"packing": "again"}]
