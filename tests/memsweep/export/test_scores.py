from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memsweep.config.schema import RewardConfig
from memsweep.export.scores import OWN_FUNCTION, scores
from memsweep.trainers.rewards import reward

COMPLETIONS = ["one one two.", "<answer>three</answer>", [{"role": "assistant", "content": "four"}]]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("length", {"target_characters": 20}),
        ("regex", {"pattern": r"[.!?]\s*$"}),
        ("format", {"opening": "<answer>", "closing": "</answer>"}),
        ("distinct_words", {}),
    ],
)
def test_the_written_module_scores_as_the_trial_did(name: str, arguments: dict[str, Any]) -> None:
    config = RewardConfig(name=name, arguments=arguments)
    module = scores(config, Path("there")).module
    assert module is not None
    namespace: dict[str, Any] = {}
    exec(module, namespace)

    original = reward(config)
    assert not isinstance(original, str)
    assert namespace[OWN_FUNCTION](completions=COMPLETIONS) == original(completions=COMPLETIONS)
    assert "memsweep" not in module
    assert namespace[OWN_FUNCTION].__name__ == original.__name__


def test_a_reward_model_is_named(tmp_path: Path) -> None:
    hub = scores(RewardConfig(name="model", arguments={"path": "organization/judge"}), tmp_path)
    (tmp_path / "judge").mkdir()
    own = scores(RewardConfig(name="model", arguments={"path": str(tmp_path / "judge")}), tmp_path / "there")

    assert (hub.module, hub.model) == (None, "organization/judge")
    assert own.model == str((tmp_path / "judge").resolve())
