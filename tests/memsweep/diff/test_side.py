from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memsweep.diff.repository import Project
from memsweep.diff.side import File, Tree, Trial, sides
from memsweep.errors import ConfigError
from memsweep.record.folder import TrialFolder

MakeTrial = Callable[..., TrialFolder]


def choosing(option: str) -> dict[str, Any]:
    return {"seed": 0, "technique": {"adapter": {"option": option}}}


def test_refs_and_the_working_tree_are_trees(checkout: Path) -> None:
    project = Project(checkout)

    old, new = sides("v1", ".", project)

    assert old == Tree(label=f"v1 ({project.commit('v1')[:10]})", commit=project.commit("v1"))  # type: ignore
    assert new == Tree(label="working tree")


def test_all_that_is_wrong_is_told_at_once_with_what_is_allowed(checkout: Path) -> None:
    with pytest.raises(ConfigError) as error:
        sides("mian", "nowhere/at/all", Project(checkout))

    assert str(error.value).splitlines()[:2] == [
        "'mian' is no commit, file or trial; did you mean main?",
        "'nowhere/at/all' is no commit, file or trial",
    ]
    assert str(error.value).splitlines()[2].startswith("a side is a git ref (main, HEAD~1, v1.0), . for")


def test_a_trials_folder_is_a_trial_by_its_path_or_below_outputs(
    make_trial: MakeTrial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_trial(0, choosing("baseline"))
    make_trial(1, choosing("lora"))
    monkeypatch.chdir(tmp_path)

    found = sides("outputs/study/trials/0", "study/trials/1", None)

    assert [side.folder.path.name for side in found if isinstance(side, Trial)] == ["0", "1"]


def test_a_study_is_no_side_and_its_trials_are_named(make_trial: MakeTrial) -> None:
    study = make_trial(0, choosing("baseline")).path.parents[1]
    (study / "study.json").write_text("{}")

    with pytest.raises(ConfigError, match=r"is a study, not a trial: name one of its trials, .*/trials/0"):
        sides(str(study), ".", None)


def test_a_trials_baseline_is_that_of_its_study(make_trial: MakeTrial) -> None:
    make_trial(3, choosing("baseline"))
    trial = make_trial(7, choosing("lora"))

    _, baseline = sides(str(trial.path), "baseline", None)

    assert isinstance(baseline, Trial)
    assert baseline.folder.path.name == "3"


def test_a_trial_of_a_study_without_one_is_compared_with_a_composed_baseline(
    make_trial: MakeTrial, checkout: Path
) -> None:
    trial = make_trial(7, choosing("lora"))

    _, baseline = sides(str(trial.path), "baseline", Project(checkout))

    assert baseline == Tree(label="baseline of the working tree", is_baseline=True)


def test_a_tree_s_baseline_is_the_same_tree(checkout: Path) -> None:
    baseline, tree = sides("baseline", "v1", Project(checkout))

    assert isinstance(baseline, Tree)
    assert isinstance(tree, Tree)
    assert (baseline.commit, baseline.is_baseline, tree.is_baseline) == (tree.commit, True, False)


def test_a_preset_is_compared_with_itself_at_a_ref(checkout: Path) -> None:
    old, new = sides("v1", str(checkout / "conf" / "experiment" / "small.yaml"), Project(checkout))

    assert isinstance(old, Tree)
    assert isinstance(new, Tree)
    assert (old.preset, new.preset) == ("experiment=small", "experiment=small")


def test_another_file_is_taken_as_it_is(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("seed: 0\n")

    old, _ = sides(str(tmp_path / "other.yaml"), ".", Project(checkout))

    assert isinstance(old, File)


def test_both_sides_cannot_be_baselines(checkout: Path) -> None:
    with pytest.raises(ConfigError, match="name another side"):
        sides("baseline", "baseline", Project(checkout))


def test_a_folder_without_a_trial_says_so(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(ConfigError, match=r"empty is a folder without a trial's config\.yaml"):
        sides(str(tmp_path / "empty"), ".", Project(checkout))
