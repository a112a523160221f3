"""Whole comparisons of real configurations, each side composed by processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from diff_cases import git

from memsweep.diff import snapshot
from memsweep.diff.compare import Wishes, review
from memsweep.diff.repository import Project
from memsweep.diff.review import Review
from memsweep.diff.side import Trial, sides
from memsweep.errors import ConfigError
from memsweep.record.folder import TrialFolder

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.slow

TYPED = """\
# @package _global_
defaults:
  - override /model: tiny
  - override /space: none
trainer:
  arguments: {learning_rate: 1e-4, weight_decay: 0.5, logging_steps: 1}
launch:
  environment: {FROM_OUTSIDE: "${oc.env:FROM_OUTSIDE,nothing}", HF_TOKEN: first-secret}
hydra: {sweeper: {params: {technique/packing: "baseline,bfd"}}}
"""
TYPED_LATER = """\
# @package _global_
# Written otherwise, by somebody else.
defaults:
  - override /space: none
  - override /model: tiny
hydra:
  sweeper:
    params: {technique/packing: "choice(bfd,baseline)"}
launch:
  environment:
    HF_TOKEN: second-secret
    FROM_OUTSIDE: "${oc.env:ELSEWHERE,nothing}"
trainer:
  arguments:
    logging_steps: "1"
    weight_decay: 5e-1
    learning_rate: 0.0001
"""
BROKEN = "# @package _global_\ndefaults:\n  - override /model: nowhere\n"


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def make_checkout(root: Path, *, with_code: bool = False) -> Path:
    """Make a repository of this project's configuration, and of its code where that is asked for."""
    root.mkdir(parents=True)
    shutil.copytree(ROOT / "conf", root / "conf")
    if with_code:
        for part in ("src", "sweeper"):
            shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    git(root, "init", "-q")
    return root


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "a test")


@dataclass(frozen=True)
class Compared:
    """One comparison of a commit with the working tree after it."""

    root: Path
    cache: Path
    found: Review

    def blocks(self) -> dict[tuple[str, ...], list[dict[str, Any]]]:
        """Return the differences, by the presets that have them."""
        return {tuple(one["presets"]): one["items"] for one in self.found.to_mapping()["differences"]}

    def of(self, name: str) -> list[dict[str, Any]]:
        """Return all differences of one preset."""
        return [item for names, items in self.blocks().items() if name in names for item in items]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compared]:
    """HEAD against a working tree in which one thing of each kind was changed."""
    folder = tmp_path_factory.mktemp("compared")
    root = make_checkout(folder / "checkout")
    conf = root / "conf"
    for name in ("dpo_on_a_gpu", "qlora_7b_on_24gib"):
        (conf / "experiment" / f"{name}.yaml").unlink()
    (conf / "experiment" / "typed.yaml").write_text(TYPED)
    (conf / "experiment" / "broken.yaml").write_text(BROKEN)
    (conf / "experiment" / "gone.yaml").write_text("# @package _global_\nseed: 3\n")
    commit(root)
    edit(conf / "trainer" / "sft.yaml", "batch: 4 ", "batch: 8 ")
    (conf / "experiment" / "typed.yaml").write_text(TYPED_LATER)
    edit(conf / "experiment" / "broken.yaml", "nowhere", "tiny")
    edit(
        conf / "experiment" / "first_look.yaml",
        "/space: none",
        "/space: none\n  - override /technique/optimizer: adamw_8bit",
    )
    edit(
        conf / "technique" / "packing" / "bfd.yaml",
        "excludes:\n",
        "excludes:\n  - adapter: [lora]\n    because: a test says so\n    source: a test\n",
    )
    edit(conf / "technique" / "adapter" / "lora.yaml", "default: 16", "default: 32")
    edit(conf / "technique" / "optimizer" / "sgd.yaml", "optim: sgd", "optim: sgd_of_another_name")
    edit(conf / "budget" / "l4_24gib.yaml", "memory_bytes: ", "memory_bytes: 1")
    (conf / "experiment" / "gone.yaml").unlink()
    (conf / "experiment" / "fresh.yaml").write_text(
        "# @package _global_\ndefaults:\n  - override /model: tiny\nmeasure: {repeats: 2}\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MEMSWEEP_CONF", raising=False)
        patch.setenv("MEMSWEEP_CACHE", str(folder / "cache"))
        patch.setenv("FROM_OUTSIDE", "the-old-value")
        patch.setenv("ELSEWHERE", "the-new-value")
        project = Project(root)
        yield Compared(root, folder / "cache", review(sides("HEAD", ".", project), project, Wishes()))


def test_a_change_that_presets_share_is_told_once_with_what_it_means_for_training(compared: Compared) -> None:
    (shared,) = [
        items
        for names, items in compared.blocks().items()
        if set(names) == {"default", "first_look", "typed"}
    ]

    assert [(one["section"], one.get("where"), one["path"], one["old"], one["new"]) for one in shared] == [
        ("config", None, "trainer.batch", 4, 8),
        ("training", "trainer", "per_device_train_batch_size", 4, 8),
    ]


def test_order_comments_and_ways_of_writing_a_number_are_no_change(compared: Compared) -> None:
    paths = {one.get("path") for one in compared.of("typed")}

    assert paths == {
        "trainer.batch",
        "per_device_train_batch_size",
        "trainer.arguments.logging_steps",
        "logging_steps",
        "launch.environment.HF_TOKEN",
        "HF_TOKEN",
        "launch.environment.FROM_OUTSIDE",
        "FROM_OUTSIDE",
    }


def test_a_number_that_became_text_is_a_change_of_type(compared: Compared) -> None:
    (found,) = (one for one in compared.of("typed") if one.get("path") == "trainer.arguments.logging_steps")

    assert (found["kind"], found["old"], found["new"]) == ("retyped", 1, "1")


def test_no_secret_is_shown_anywhere(compared: Compared) -> None:
    text = json.dumps(compared.found.to_mapping())

    assert "-secret" not in text
    assert "***" in text


def test_what_the_environment_holds_is_shown_only_when_that_is_asked_for(
    compared: Compared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_OUTSIDE", "the-old-value")
    monkeypatch.setenv("ELSEWHERE", "the-new-value")
    project = Project(compared.root)
    (found,) = (one for one in compared.of("typed") if one.get("path") == "launch.environment.FROM_OUTSIDE")

    asked = review(sides("HEAD", ".", project), project, Wishes(experiments=("typed",), resolve=True))

    assert (found["old"], found["new"]) == ("${oc.env:FROM_OUTSIDE,nothing}", "${oc.env:ELSEWHERE,nothing}")
    assert "the-new-value" not in json.dumps(compared.found.to_mapping())
    assert not any("the-new-value" in file.read_text() for file in compared.cache.rglob("*.json"))
    assert {"old": "the-old-value", "new": "the-new-value", "path": "FROM_OUTSIDE"}.items() <= next(
        one.items()
        for block in asked.to_mapping()["differences"]
        for one in block["items"]
        if one.get("path") == "FROM_OUTSIDE"
    )
    assert "-secret" not in json.dumps(asked.to_mapping())


def test_overrides_that_no_preset_takes_are_refused(compared: Compared) -> None:
    project = Project(compared.root)
    wishes = Wishes(overrides=("model=tyni",), experiments=("default",), use_cache=False)

    with pytest.raises(ConfigError, match=r"nothing composes:\nmodel has no option 'tyni'; it has hub"):
        review(sides("HEAD", ".", project), project, wishes)


def test_a_switched_option_is_one_item_with_its_consequences(compared: Compared) -> None:
    own = [items for names, items in compared.blocks().items() if names == ("first_look",)]

    (switch,) = (one for one in own[0] if one["section"] == "switch")
    assert (switch["path"], switch["old"], switch["new"]) == ("technique/optimizer", "baseline", "adamw_8bit")
    assert {
        "section": "training",
        "where": "trainer",
        "path": "optim",
        "kind": "added",
        "new": "adamw_8bit",
    } in own[0]


def test_a_rules_change_is_told_by_the_cells_that_vanish_and_why(compared: Compared) -> None:
    texts = [one["text"] for one in compared.of("first_look") if one["section"] == "search"]

    assert texts[0] == "8 combinations, 8 of them legal -> 8 combinations, 6 of them legal"
    assert texts[1].startswith(
        "2 vanish, refused now: packing=bfd does not go with adapter=lora: a test says so"
    )


def test_another_default_of_an_option_that_is_searched_is_a_difference_of_the_preset(
    compared: Compared,
) -> None:
    texts = [one["text"] for one in compared.of("first_look") if one["section"] == "search"]

    assert texts[-1] == "trials with adapter=lora get r 32 instead of 16 (2 of its 6 legal combinations)"
    assert any("adapter=lora get r 32" in one.get("text", "") for one in compared.of("default"))
    assert not any("get r 32" in one.get("text", "") for one in compared.of("typed"))


def test_a_preset_that_composes_no_more_is_told_apart_from_one_that_composes_now(
    compared: Compared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMSWEEP_CACHE", str(compared.cache))
    project = Project(compared.root)

    back = review(sides(".", "HEAD", project), project, Wishes())

    assert compared.found.broken == ()
    assert back.broken == ("broken",)
    assert back.to_mapping()["no_longer_compose"] == ["broken"]


def test_a_preset_that_composes_on_one_side_only_is_told_and_stops_no_other(compared: Compared) -> None:
    (only,) = compared.of("broken")

    assert only["section"] == "composes"
    assert only["text"].startswith("does not compose at HEAD")
    assert "model has no option 'nowhere'" in only["text"]


def test_new_and_gone_presets_are_told(compared: Compared) -> None:
    data = compared.found.to_mapping()

    (new,) = data["new_presets"]
    assert new["name"] == "fresh"
    assert [one["path"] for one in new["items"]] == ["model", "measure.repeats"]
    assert data["gone_presets"] == ["gone"]


def test_what_an_option_sets_is_told_even_where_no_preset_chooses_it(compared: Compared) -> None:
    options = {one["option"]: one for one in compared.found.to_mapping()["options"]}

    assert set(options) == {
        "budget/l4_24gib",
        "technique/adapter/lora",
        "technique/optimizer/sgd",
        "technique/packing/bfd",
    }
    assert options["technique/optimizer/sgd"]["changes"] == [
        {"path": "settings.trainer.optim", "kind": "changed", "old": "sgd", "new": "sgd_of_another_name"}
    ]
    assert "first_look" in options["technique/packing/bfd"]["used_by"]


def test_the_second_time_nothing_is_composed(compared: Compared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSWEEP_CACHE", str(compared.cache))
    monkeypatch.setattr(snapshot.sys, "executable", "/nothing/here")
    project = Project(compared.root)

    assert review(sides("HEAD", ".", project), project, Wishes()) == compared.found
    with pytest.raises(FileNotFoundError):
        review(sides("HEAD", ".", project), project, Wishes(use_cache=False))


def test_the_checkout_is_left_as_it_was(compared: Compared) -> None:
    assert git(compared.root, "worktree", "list").count("\n") == 0
    assert not list(compared.root.rglob("__pycache__"))


def test_code_of_another_version_composes_its_own_side(tmp_path: Path) -> None:
    root = make_checkout(tmp_path / "checkout", with_code=True)
    plugin = root / "sweeper" / "hydra_plugins" / "pareto_sweeper" / "sweeper.py"
    edit(plugin, "    def cells(", "    def cells_of_later(")
    commit(root)
    edit(plugin, "    def cells_of_later(", "    def cells(")
    edit(plugin, "listed_cells(config, loader, arguments, limit)", "listed_cells(config, more=1)")
    edit(
        root / "src" / "memsweep" / "config" / "schema.py",
        "    seed: int = 0\n",
        "    seed: int = 0\n    later: int = 5\n",
    )
    project = Project(root)

    found = review(sides("HEAD", ".", project), project, Wishes(experiments=("default",))).to_mapping()

    assert [
        (one["section"], one.get("path"), one.get("new")) for one in found["differences"][0]["items"]
    ] == [
        ("config", "later", 5),
    ]
    first, second = (note["text"] for note in found["notes"] if note["presets"])
    assert first.startswith("what it searches could not be had at HEAD")
    assert first.endswith("ParetoSweeper of this version does not tell what it searches")
    assert second == (
        "what it searches could not be had at working tree: "
        "its code raised TypeError: listed_cells() got an unexpected keyword argument 'more'"
    )
    assert found["search_unknown"] == ["default"]


def test_a_trial_is_compared_with_what_its_overrides_compose_to_now(
    compared: Compared, tmp_path: Path
) -> None:
    project = Project(compared.root)
    job = snapshot.Job(name="trial", overrides=("model=tiny", "technique/adapter=lora"))
    with snapshot.composing(
        project, None, [job], resolve=True, use_cache=False, on_done=lambda _: None
    ) as side:
        config = dict(side.raw()["entries"]["trial"]["resolved"])
    folder = TrialFolder(tmp_path / "7")
    folder.path.mkdir()
    folder.overrides.write_text("model=tiny\ntechnique/adapter=lora\n")
    config["trainer"] = {**config["trainer"], "batch": 2}
    folder.config.write_text(yaml.safe_dump(config))

    found = review((Trial(label="7", folder=folder), sides(".", ".", project)[0]), project, Wishes())

    items = [item for block in found.to_mapping()["differences"] for item in block["items"]]
    assert [(one["path"], one["old"], one["new"]) for one in items] == [
        ("trainer.batch", 2, 8),
        ("per_device_train_batch_size", 2, 8),
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_behind_when_it_is_interrupted(
    number: int, compared: Compared, tmp_path: Path
) -> None:
    before = git(compared.root, "status", "--porcelain")
    process = subprocess.Popen(
        [sys.executable, "-m", "memsweep", "diff", "--no-cache"],
        cwd=compared.root,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT / "src")},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("memsweep-diff-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)

    process.send_signal(number)
    _, said = process.communicate(timeout=60)

    assert (process.returncode, said) == (130, "interrupted\n")
    assert list(tmp_path.glob("memsweep-diff-*")) == []
    assert git(compared.root, "status", "--porcelain") == before
    assert git(compared.root, "worktree", "list").count("\n") == 0


def test_a_presets_own_baseline_shows_what_it_chooses(compared: Compared) -> None:
    project = Project(compared.root)

    found = review(
        sides("baseline", ".", project), project, Wishes(experiments=("first_look",), use_cache=False)
    ).to_mapping()

    items = [item for block in found["differences"] for item in block["items"]]
    assert [(one["section"], one["path"], one["new"]) for one in items] == [
        ("switch", "technique/optimizer", "adamw_8bit"),
        ("training", "optim", "adamw_8bit"),
    ]
