from __future__ import annotations

import pytest

from memsweep.errors import ConfigError
from memsweep.ranks.plan import plan_of, simulates
from memsweep.technique.catalogue import conf_folder, read_catalogue
from memsweep.technique.settings import merge

CATALOGUE = read_catalogue(conf_folder())


def plan(option: str, **parameters: int):  # type: ignore[no-untyped-def]
    given = {f"technique.sharding.{name}": value for name, value in parameters.items()}
    return plan_of(merge(CATALOGUE.choose({"sharding": option}, given), "sft", CATALOGUE).launch)


def test_a_trial_is_one_process_unless_an_option_asks_for_several() -> None:
    assert plan("baseline") is None
    assert plan_of({"processes": 1}) is None


@pytest.mark.parametrize(
    ("option", "kind", "version", "stage", "weights", "optimizer"),
    [
        ("ddp", "MULTI_GPU", None, None, False, False),
        ("fsdp2", "FSDP", 2, None, True, True),
        ("zero2", "DEEPSPEED", None, 2, False, True),
        ("zero3", "DEEPSPEED", None, 3, True, True),
    ],
)
def test_each_option_says_who_shares_the_work_and_what_is_shared(
    option: str, kind: str, version: int | None, stage: int | None, weights: bool, optimizer: bool
) -> None:
    found = plan(option, processes=3)

    assert found is not None
    assert (found.n_processes, found.distributed_type) == (3, kind)
    assert (found.fsdp_version, found.zero_stage) == (version, stage)
    assert (found.shards_weights, found.shards_optimizer) == (weights, optimizer)
    assert bool(found.deepspeed_config) == (kind == "DEEPSPEED")


def test_only_what_a_cpu_does_not_do_itself_is_simulated() -> None:
    asked = {option: plan(option) for option in ("baseline", "ddp", "fsdp2", "zero2", "zero3")}

    assert [name for name, one in asked.items() if simulates(one, simulates_devices=True)] == [
        "fsdp2",
        "zero2",
        "zero3",
    ]
    assert not any(simulates(one, simulates_devices=False) for one in asked.values())


@pytest.mark.parametrize(
    ("launch", "problem"),
    [
        ({"sharding": "ddp", "processes": 2}, "has no sharding; it takes processes, distributed_type"),
        ({"processes": 0, "distributed_type": "FSDP"}, "must be a number from 1 on, got 0"),
        ({"processes": 2}, "needs a distributed_type"),
    ],
)
def test_a_launch_that_nothing_reads_is_refused(launch: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        plan_of(launch)
