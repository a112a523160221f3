"""What continues a study, and what is another: key by key."""

from __future__ import annotations

from typing import Any

import pytest

from memsweep.study.fingerprint import differences

BEFORE: dict[str, Any] = {
    "objectives": [["speed", "maximize"]],
    "constraints": {"fits": "size at most 9.0"},
    "space": {
        "x": {"key": "x", "values": ["1", "2"]},
        "rate": {"key": "rate", "low": 0.1, "high": 1.0, "log": True},
        "r": {"key": "r", "values": ["8", "16"], "when": {"x": ["2"]}},
    },
    "given": {},
    "excluded": ["x=1 with rate=0.5"],
    "config": {"z": 1, "group.name": "small", "model.kind": "a"},
    "choices": {"model": "a"},
    "options": {"technique/adapter=lora": "abc"},
    "data": {"dataset.path": "123"},
    "versions": {"torch": "2.13.0"},
}


def changed(**sections: Any) -> dict[str, Any]:
    return {**BEFORE, **{name: {**BEFORE[name], **node} for name, node in sections.items()}}


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(BEFORE, id="the same"),
        pytest.param(changed(space={"x": {"key": "x", "values": ["3", "2", "1"]}}), id="more values"),
        pytest.param(
            changed(space={"rate": {"key": "rate", "low": 0.1, "high": 2.0, "log": True}}), id="interval"
        ),
        pytest.param(changed(space={"z": {"key": "z", "values": ["1", "2"]}}), id="a key with its value"),
        pytest.param(
            changed(space={"model": {"key": "model", "values": ["a", "b"]}}, config={"model.kind": "b"}),
            id="a group with its option",
        ),
        pytest.param({**BEFORE, "excluded": []}, id="less is excluded"),
        pytest.param(changed(options={"technique/adapter=ia3": "new"}), id="another option"),
        pytest.param(
            changed(
                space={
                    "x": {"key": "x", "values": ["1", "2", "3"]},
                    "q": {"key": "q", "values": ["1"], "when": {"x": ["3"]}},
                }
            ),
            id="a parameter of a new value",
        ),
        pytest.param({**BEFORE, "plan": {"repeats": 3}}, id="how often is measured"),
    ],
)
def test_it_goes_on(now: dict[str, Any]) -> None:
    assert differences(now, BEFORE) == []


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (
            changed(space={"x": {"key": "x", "values": ["1", "3"]}}),
            "x is searched over 1, 3; that does not hold all of 1, 2",
        ),
        (
            changed(space={"rate": {"key": "rate", "low": 0.2, "high": 1.0, "log": True}}),
            "rate is searched over 0.2 to 1.0, logarithmic; "
            "that does not hold all of 0.1 to 1.0, logarithmic",
        ),
        (
            changed(space={"r": {"key": "r", "values": ["8", "16"], "when": {"x": ["1", "2"]}}}),
            "r exists only with x=1 or 2; it existed only with x=2",
        ),
        (
            changed(space={"z": {"key": "z", "values": ["2", "3"]}}),
            "z is searched over 2, 3; the trials until now had 1",
        ),
        (
            changed(space={"w": {"key": "w", "values": ["2"]}}),
            "w is searched over 2; no trial until now had it",
        ),
        (changed(config={"z": None}), "z is null; it was 1"),
        (changed(config={"new": True}), "new is true; it was not there before"),
        (
            changed(constraints={"fits": "size at most 8.0"}),
            "the constraint fits is size at most 8.0; it was size at most 9.0",
        ),
        ({**BEFORE, "excluded": [*BEFORE["excluded"], "x=2"]}, "x=2 is excluded; it was not before"),
        (changed(options={"technique/adapter=lora": "abd"}), "what technique/adapter=lora sets has changed"),
        (changed(data={"dataset.path": "124"}), "what dataset.path holds has changed"),
        (changed(versions={"torch": "2.14.0"}), "torch is 2.14.0; it was 2.13.0"),
        (
            {**BEFORE, "objectives": [["speed", "minimize"]]},
            "the objectives are speed minimize; they were speed maximize",
        ),
        (changed(config={"group.name": "x" * 300}), "group.name is " + "x" * 197 + "...; it was small"),
    ],
)
def test_it_is_another(now: dict[str, Any], expected: str) -> None:
    assert differences(now, BEFORE) == [expected]


def test_all_differences_are_told_at_once() -> None:
    now = changed(config={"z": 2}, versions={"torch": "3"}, data={"dataset.path": "9"})

    assert len(differences(now, BEFORE)) == 3


@pytest.mark.parametrize(
    "space", [["x"], {"x": 1}, {"x": {"values": 3}}, {"x": {"values": ["1"], "when": [2]}}]
)
def test_one_that_cannot_be_read_is_another(space: Any) -> None:
    (sentence,) = differences(BEFORE, {**BEFORE, "space": space})

    assert "cannot be read in study.json" in sentence
