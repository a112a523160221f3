from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from memsweep.technique.catalogue import conf_folder, read_catalogue
from memsweep.technique.compatibility import Circumstances, violations
from memsweep.technique.work import ACCUMULATION, GENERATIONS, MICRO, TRLS_GENERATIONS, uneven

CATALOGUE = read_catalogue(conf_folder())


def refused(
    options: Mapping[str, str],
    trainer: str = "sft",
    batch: int = 4,
    *,
    arguments: Mapping[str, Any] | None = None,
    n_devices: int | None = None,
    **parameters: int,
) -> tuple[str, ...]:
    given = {f"technique.{name.replace('__', '.')}": value for name, value in parameters.items()}
    here = Circumstances(
        trainer=trainer,
        device="cpu",
        versions={"deepspeed": "0.19.8"},
        numbers={"batch": batch},
        arguments=arguments or {},
        several_devices=True,
        n_devices=n_devices,
    )
    return violations(CATALOGUE.choose(options, given), here, CATALOGUE)


@pytest.mark.parametrize("option", ["ddp", "fsdp2", "zero2", "zero3"])
def test_a_batch_that_processes_cannot_share_is_refused_with_what_they_can(option: str) -> None:
    assert refused({"sharding": option}, sharding__processes=2) == ()
    (sentence,) = refused({"sharding": option}, sharding__processes=3)
    assert sentence == (
        "trainer.batch=4 cannot be shared out to 3 processes: make it a multiple of 3, "
        "or take 1, 2, 4 of them"
    )


def test_a_micro_batch_must_divide_what_each_process_takes_of_a_step() -> None:
    both = {"sharding": "ddp", "micro_batch": "size"}

    assert refused(both, micro_batch__size=2) == ()
    (sentence,) = refused(both, micro_batch__size=4)
    assert "not a multiple of the micro-batch 4 times 2 processes: choose one of 1, 2" in sentence
    assert refused({"micro_batch": "size"}, micro_batch__size=4) == ()


def test_a_micro_batch_that_does_not_divide_the_batch_either_is_told_once() -> None:
    (sentence,) = refused({"sharding": "ddp", "micro_batch": "size"}, micro_batch__size=3)

    assert "micro_batch.size to divide batch (4)" in sentence


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({MICRO: 3}, "not a multiple of the micro-batch 3: choose one of 1, 2, 4"),
        ({MICRO: 2, ACCUMULATION: 4}, f"{ACCUMULATION}=4 changes the batch"),
        ({MICRO: 2, ACCUMULATION: 2}, None),
        ({MICRO: "two"}, None),  # the trainer's to refuse
    ],
)
def test_what_the_study_sets_itself_is_judged_too(arguments: dict[str, Any], part: str | None) -> None:
    found = refused({}, arguments=arguments)

    assert [part in sentence for sentence in found if part is not None] == ([] if part is None else [True])


def test_an_accumulation_that_one_process_needs_is_too_much_for_two() -> None:
    arguments = {ACCUMULATION: 1}

    assert refused({"sharding": "ddp"}, arguments=arguments) == ()
    assert len(refused({"micro_batch": "size"}, arguments=arguments, micro_batch__size=2)) == 1
    assert refused({"sharding": "ddp", "micro_batch": "size"}, arguments=arguments, micro_batch__size=2) == ()


@pytest.mark.parametrize(
    ("trainer", "batch", "arguments", "is_legal"),
    [
        ("grpo", 8, {}, True),
        ("grpo", 4, {}, False),
        ("grpo", 4, {GENERATIONS: 4}, True),
        ("grpo", 8, {GENERATIONS: 3}, False),
        ("rloo", 4, {}, True),
        ("rloo", 3, {}, False),
        ("sft", 3, {}, True),
    ],
)
def test_a_batch_holds_whole_groups_of_completions(
    trainer: str, batch: int, arguments: dict[str, int], is_legal: bool
) -> None:
    assert (refused({}, trainer, batch, arguments=arguments) == ()) is is_legal


def test_an_options_own_rule_speaks_for_the_size_of_its_groups() -> None:
    (sentence,) = refused({"generations": "count"}, "grpo", 8, generations__n=3)

    assert "generations.n to divide batch (8)" in sentence


def test_kto_wants_two_examples_in_each_process() -> None:
    sharded = {"sharding": "ddp"}

    assert refused(sharded, "kto", 4, sharding__processes=2) == ()
    (sentence,) = refused(sharded, "kto", 4, sharding__processes=4)
    assert "trainer=kto needs a micro-batch of 2 or more, got 1" in sentence


def test_more_processes_than_devices_are_refused_with_how_many_there_are() -> None:
    assert refused({"sharding": "ddp"}, n_devices=2, sharding__processes=2) == ()
    (sentence,) = refused({"sharding": "ddp"}, n_devices=2, sharding__processes=4)
    assert sentence == "4 processes need a device each, and there are 2: ask for 2, or for fewer"


def test_what_is_not_known_is_not_judged() -> None:
    here = Circumstances(trainer="grpo", device="cpu", several_devices=True)
    choice = CATALOGUE.choose({"sharding": "ddp"}, {"technique.sharding.processes": 3})

    assert violations(choice, here, CATALOGUE) == ()


def test_all_that_is_wrong_is_said_at_once() -> None:
    found = uneven("grpo", 8, 2, {MICRO: 3, GENERATIONS: 3})

    assert len(found) == 2


@pytest.mark.slow
def test_what_is_taken_for_trls_own_number_of_completions_is_that() -> None:
    from memsweep.trainers.build import RECIPES

    fields = {name: RECIPES[name].config_class.__dataclass_fields__ for name in TRLS_GENERATIONS}

    assert {name: known[GENERATIONS].default for name, known in fields.items()} == TRLS_GENERATIONS
