from __future__ import annotations

from typing import Any

from memsweep.diff.leaves import flattened
from memsweep.diff.read_back import in_force_changes

LORA = {
    "adapter": {
        "modules": "e76cdad6fe7948f9",
        "number_of_modules": 4,
        "dtypes": {"torch.float32": 8},
        "per_module": {"r": ["8"]},
        "configs": {"default": {"r": 8, "bias": "none", "task_type": "CAUSAL_LM"}},
    },
    "model": {"modules": {"Linear": 27, "LoraModel": 1}, "class": "PeftModel", "wrapper": "PeftModel"},
}
BASELINE: dict[str, Any] = {
    "adapter": None,
    "model": {"modules": {"Linear": 15}, "class": "Model", "wrapper": "Model"},
}


def told(old: Any, new: Any, **facts: Any) -> list[tuple[str, str | None, str | None]]:
    changes = in_force_changes(flattened(old), flattened(new), **facts)
    return [(change.path, change.old, change.new) for change in changes]


def test_hashes_and_counts_are_left_out_and_kinds_that_one_side_lacks_are_told() -> None:
    assert told(BASELINE, LORA, asked=(set(), {"r"})) == [
        ("adapter.configs.default.r", None, "8"),
        ("model.class", '"Model"', '"PeftModel"'),
        ("model.modules", None, '["LoraModel"]'),
    ]


def test_where_nobody_knows_what_was_asked_what_a_library_fills_in_is_told_too() -> None:
    paths = [path for path, *_ in told(LORA, BASELINE)]

    assert "adapter.configs.default.task_type" in paths
    assert "adapter.configs.default.bias" not in paths


def test_what_only_the_environment_of_one_trial_had_is_told_though_nobody_asked_for_it() -> None:
    preloaded = {"environment": {"LD_PRELOAD": "other.so"}}

    assert told({}, preloaded, asked=(set(), set())) == [("environment.LD_PRELOAD", None, '"other.so"')]


def test_another_number_of_the_same_kinds_is_nothing_and_another_type_is_something() -> None:
    def dtypes(**numbers: int) -> Any:
        return {"model": {"dtypes": {f"torch.{name}": number for name, number in numbers.items()}}}

    assert told(dtypes(float32=26), dtypes(float32=34)) == []
    assert told(dtypes(float32=26), dtypes(bfloat16=24, float32=2)) == [
        ("model.dtypes", None, '["torch.bfloat16"]')
    ]
    assert told(dtypes(float32=26), dtypes(bfloat16=26)) == [
        ("model.dtypes", '["torch.float32"]', '["torch.bfloat16"]')
    ]


def test_kinds_where_none_were_are_told_as_what_one_side_has() -> None:
    assert told({"optimizer": {"states": {"8 bits": 4}}}, {"optimizer": {"states": {}}}) == [
        ("optimizer.states", '["8 bits"]', None)
    ]


def test_what_every_module_does_is_told_once() -> None:
    found = told({"a": [False] * 28}, {"a": [True] * 28})

    assert found == [("a", "[false]", "[true]")]


def test_of_groups_of_parameters_only_what_is_not_the_default_is_compared() -> None:
    def groups(lr: float, numbers: int, decay: float) -> Any:
        group = {"lr": lr, "numbers": numbers, "weight_decay": decay}
        return {"optimizer": {"defaults": {"lr": lr, "weight_decay": 0.01}, "groups": [group]}}

    assert told(groups(1.0, 5, 0.0), groups(2.0, 6, 0.0)) == [("optimizer.defaults.lr", "1.0", "2.0")]
    assert told(groups(1.0, 5, 0.0), groups(1.0, 5, 0.5)) == [
        ("optimizer.groups", '[{"weight_decay": 0.0}]', '[{"weight_decay": 0.5}]')
    ]


def test_ignored_paths_do_not_count_folded_or_not() -> None:
    for pattern in ("model.modules", "model.modules.LoraModel"):
        found = told(BASELINE, LORA, asked=(set(), set()), is_ignored=lambda path, own=pattern: path == own)

        assert [path for path, *_ in found] == ["model.class"]
