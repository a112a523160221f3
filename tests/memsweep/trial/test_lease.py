"""What is shared out among trials side by side, and that nobody has it twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from memsweep.errors import ConfigError
from memsweep.measure import driver
from memsweep.record.comparable import differences
from memsweep.trial.lease import Lease, core_shares, leases, visible_devices


@pytest.fixture
def threaded(tmp_path: Path) -> Path:
    """Four physical cores of two threads each, numbered as most machines do: 0 and 4 are one core."""
    for core in range(8):
        folder = tmp_path / f"cpu{core}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text("0\n")
        (folder / "thread_siblings_list").write_text(f"{core % 4},{core % 4 + 4}\n")
    return tmp_path


def shared(n_slots: int, environment: Mapping[str, str], n_cores: int = 8, **facts: Any) -> Sequence[Lease]:
    facts = {"cores": range(n_cores), "n_usable": n_cores, "topology": Path("/nowhere"), **facts}
    return leases(n_slots, environment, **facts)


class TestCores:
    def test_every_slot_has_as_many_and_none_has_anothers(self) -> None:
        found = core_shares(range(7), 2, 7, Path("/nowhere"))

        assert found == [(0, 1, 2), (3, 4, 5)]

    def test_threads_of_one_core_go_to_one_slot(self, threaded: Path) -> None:
        assert core_shares(range(8), 2, 8, threaded) == [(0, 1, 4, 5), (2, 3, 6, 7)]

    def test_where_there_are_more_slots_than_physical_cores_threads_are_shared_out(
        self, threaded: Path
    ) -> None:
        found = core_shares(range(8), 8, 8, threaded)

        assert sorted(found) == [(core,) for core in range(8)]

    def test_only_cores_that_may_be_used_are_shared_out_alike(self, threaded: Path) -> None:
        found = core_shares([0, 1, 2, 4], 2, 4, threaded)

        assert [len(share) for share in found] == [1, 1]

    def test_a_quota_is_shared_out_too_over_cores_that_are_no_siblings(self, threaded: Path) -> None:
        assert core_shares(range(8), 2, 4, threaded) == [(0, 1), (2, 3)]

    def test_more_slots_than_cores_are_refused(self) -> None:
        with pytest.raises(
            ConfigError, match=r"slots=3 needs a core for each .* may use 2 .*; type hydra\.launcher\.slots=2"
        ):
            shared(3, {}, n_cores=2, on_devices=False)


class TestDevices:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("0,1", ("0", "1")),
            ("3, 1", ("3", "1")),
            ("GPU-8932f937,MIG-74c6a31e", ("GPU-8932f937", "MIG-74c6a31e")),
            ("MIG-GPU-8932f937/1/0", ("MIG-GPU-8932f937/1/0",)),
            ("0,-1,1", ("0",)),
            ("", ()),
            ("-1", ()),
        ],
    )
    def test_the_variables_own_names_are_kept(self, text: str, expected: tuple[str, ...]) -> None:
        assert visible_devices({"CUDA_VISIBLE_DEVICES": text}) == expected

    def test_a_device_that_is_named_twice_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="names 1 twice"):
            visible_devices({"CUDA_VISIBLE_DEVICES": "1,0,1"})

    def test_without_the_variable_the_driver_is_asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(driver, "ask", lambda question: question(FakeDriver({"GPU-a": [], "GPU-b": []})))

        assert visible_devices({}) == ("GPU-a", "GPU-b")

    def test_a_device_in_parts_is_named_by_its_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        parts = {"GPU-a": ["MIG-a", "MIG-b"], "GPU-b": []}
        monkeypatch.setattr(driver, "ask", lambda question: question(FakeDriver(parts)))

        assert visible_devices({}) == ("MIG-a", "MIG-b", "GPU-b")

    def test_each_slot_sees_its_own_part(self) -> None:
        found = shared(2, {"CUDA_VISIBLE_DEVICES": "2,0,GPU-a,1,7"})

        assert [one.environment for one in found] == [
            {"CUDA_VISIBLE_DEVICES": "2,0"},
            {"CUDA_VISIBLE_DEVICES": "GPU-a,1"},
        ]

    def test_more_slots_than_devices_are_refused_with_all_that_is_wrong(self) -> None:
        with pytest.raises(ConfigError) as error:
            shared(3, {"CUDA_VISIBLE_DEVICES": "4,5"}, n_cores=2)

        assert "needs a core for each trial" in str(error.value)
        assert "needs a device for each trial, and 2 can be seen: 4, 5; type hydra.launcher.slots=2" in str(
            error.value
        )

    def test_a_share_is_told_in_words(self) -> None:
        found = [
            shared(2, {"CUDA_VISIBLE_DEVICES": "0,1"})[0].text,
            shared(8, {"CUDA_VISIBLE_DEVICES": ""})[0].text,
            shared(2, {"CUDA_VISIBLE_DEVICES": "0,1,2,3"})[0].condition,
        ]

        assert found == ["4 cores and 1 device", "1 core", "one of 2 slots, 2 devices"]

    def test_without_devices_only_cores_are_shared_out(self) -> None:
        for found in (
            shared(2, {"CUDA_VISIBLE_DEVICES": ""}),
            shared(2, {"CUDA_VISIBLE_DEVICES": "0"}, on_devices=False),
        ):
            assert [one.environment for one in found] == [{}, {}]


def test_trials_of_other_shares_are_not_compared() -> None:
    two, four = (shared(n, {})[0].condition for n in (2, 4))
    alone: dict[str, str] = {"machine": "a"}

    assert differences({"machine": "a", "share": two}, {"machine": "a", "share": four}, "trial 0") == (
        "other share than trial 0: one of 2 slots, not one of 4 slots",
    )
    assert differences({"machine": "a", "share": two}, alone, "trial 0")
    assert not differences({"machine": "a", "share": two}, {"machine": "a", "share": two}, "trial 0")


class FakeDriver:
    """NVML, as far as it is asked for names.

    Args:
        parts: UUID of each device to those of its instances; none means that it is not split.
    """

    def __init__(self, parts: Mapping[str, Sequence[str]]) -> None:
        self._parts = parts

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802, the library's names
        return len(self._parts)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        return list(self._parts)[index]

    def nvmlDeviceGetMigMode(self, device: str) -> tuple[int, int]:  # noqa: N802
        mode = int(bool(self._parts[device]))
        return mode, mode

    def nvmlDeviceGetMaxMigDeviceCount(self, device: str) -> int:  # noqa: N802
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: str, index: int) -> str:  # noqa: N802
        return self._parts[device][index]

    def nvmlDeviceGetUUID(self, handle: str) -> str:  # noqa: N802
        return handle
