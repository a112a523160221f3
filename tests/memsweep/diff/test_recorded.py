from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memsweep.diff.recorded import entry_of_file, entry_of_trial, is_baseline
from memsweep.errors import ConfigError
from memsweep.record.folder import TrialFolder
from memsweep.technique.catalogue import read_catalogue

CATALOGUE = read_catalogue(Path(__file__).resolve().parents[3] / "conf")
LORA = {
    "trainer": {"name": "sft", "batch": 4, "arguments": {"learning_rate": 0.1}},
    "technique": {"adapter": {"option": "lora", "r": 8, "alpha": 32}, "packing": {"option": "baseline"}},
}
MakeTrial = Callable[..., TrialFolder]


def test_a_trial_tells_what_it_was_given_and_what_was_in_force(make_trial: MakeTrial) -> None:
    found = entry_of_trial(make_trial(1, LORA, {"model": {"dtype": "float32"}}), CATALOGUE)

    assert found.training is not None
    assert found.training["adapter"]["r"] == 8
    assert found.training["trainer"]["learning_rate"] == 0.1
    assert found.training["trainer"]["gradient_accumulation_steps"] == 1
    assert found.in_force == {"model.dtype": "float32"}


def test_which_options_were_chosen_is_read_from_hydras_record(make_trial: MakeTrial) -> None:
    folder = make_trial(1, LORA)
    (folder.path / ".hydra").mkdir()
    (folder.path / ".hydra" / "hydra.yaml").write_text(
        "hydra: {runtime: {choices: {model: tiny, experiment: null}}}"
    )

    assert entry_of_trial(folder, None).choices == {"model": "tiny"}


def test_an_option_that_is_gone_leaves_the_rest_comparable(make_trial: MakeTrial) -> None:
    config = {**LORA, "technique": {"adapter": {"option": "gone"}}}

    found = entry_of_trial(make_trial(1, config), CATALOGUE)

    assert found.training is None
    assert "no option 'gone'" in found.untrained
    assert found.leaves["trainer.batch"] == 4


def test_only_a_trial_of_all_baselines_is_the_baseline(make_trial: MakeTrial) -> None:
    baseline = {"technique": {"adapter": {"option": "baseline"}}}

    assert is_baseline(make_trial(0, baseline))
    assert not is_baseline(make_trial(1, LORA))
    assert not is_baseline(make_trial(2, {"seed": 0}))


@pytest.mark.parametrize("text", ["[1, 2]", "a: [", "a: 1\na: 2"])
def test_a_file_that_is_no_config_is_named_with_the_reason(text: str, tmp_path: Path) -> None:
    file = tmp_path / "some.yaml"
    file.write_text(text)

    with pytest.raises(ConfigError, match=r"some\.yaml"):
        entry_of_file(file, None)


def test_a_damaged_record_of_what_was_in_force_is_named(make_trial: MakeTrial) -> None:
    folder = make_trial(1, LORA)
    folder.effective.write_text("{")

    with pytest.raises(ConfigError, match=r"effective\.json is not JSON"):
        entry_of_trial(folder, None)
