"""Options that this machine cannot run ask for what the libraries know, as far as a CPU can tell.

Arguments, names and versions are compared with what the installed libraries take.  Where the code that an
option switches on can run without a device, something stands in for the device.  `HERE` says what comes of
asking for the option all the same, so that a library which begins to offer it on a CPU is noticed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import elsewhere
import pytest
import torch
from accelerate.utils import DistributedType
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from seen import N_LAYERS, N_STEPS, built_trainer, walk_config, watch
from transformers import GenerationConfig
from transformers.integrations.hub_kernels import is_kernel
from transformers.modeling_flash_attention_utils import (
    FLASH_ATTENTION_COMPATIBILITY_MATRIX,
    FLASH_ATTN_KERNEL_FALLBACK,
)
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from walk import Fate, Walk

from memsweep.machine import ALLOCATOR_VARIABLES as ALLOCATOR
from memsweep.machine import Device, package_versions
from memsweep.ranks.plan import plan_of
from memsweep.technique.catalogue import conf_folder, read_catalogue
from memsweep.technique.compatibility import Circumstances, violations
from memsweep.technique.option import Option
from memsweep.technique.settings import Settings, merge
from memsweep.technique.support import Cell, support
from memsweep.trainers.arguments import model_keywords, training_arguments
from memsweep.trainers.build import recipe_of
from memsweep.trainers.fields import resolved
from memsweep.trial.environment import trial_environment
from tiny import tiny_config

CATALOGUE = read_catalogue(conf_folder())
CELLS = [
    cell for cell in support(CATALOGUE, asked=Device.CPU) if cell.word in ("needs", "simulated", "unverified")
]
OPTIONS = [option for technique in CATALOGUE.techniques.values() for option in technique.options.values()]
AWAY = [option for option in OPTIONS if option.label in {cell.option for cell in CELLS}]
GENERATORS = ("grpo", "rloo", "online_dpo")

NOT_INSTALLED = "doesn't seem to be installed"
ONE_PROCESS = "processes were asked for; accelerate has 1"
NO_VLLM = "ImportError: vLLM is not available"
HERE: Mapping[str, tuple[Fate, str]] = {
    "activation_offloading=enabled": (
        Fate.RAISES,
        "AttributeError: 'NoneType' object has no attribute 'type'",
    ),
    **{
        f"allocator={name}": (Fate.NOT_IN_FORCE, "says nothing about the memory of a cpu")
        for name in ("expandable_segments", "gc_threshold", "max_split")
    },
    **{
        f"attention=flash_attention_{n}": (Fate.RAISES, f"ImportError: FlashAttention{n} .*{NOT_INSTALLED}")
        for n in (2, 3, 4)
    },
    "attention=flex": (Fate.RAISES, "FlexAttention does not support backward on CPU"),
    # transformers 5.17 forgets the first error, and says at the second try that there is no such attention.
    "attention=kernels_flash_attn2": (
        Fate.RAISES,
        "`kernels` is either|`kernels-community/flash-attn2` is not",
    ),
    "checkpointing=offloaded": (Fate.RAISES, "RuntimeError: .*(pin_memory|NVIDIA)"),
    "ds3_gather=disabled": (Fate.NOT_IN_FORCE, "weights are not sharded by ZeRO-3"),
    "empty_cache=every_n_steps": (Fate.NOT_IN_FORCE, "torch keeps no cache of a cpu's memory"),
    "generation_cache=offloaded": (Fate.RAISES, "(Assertion|Runtime)Error: .*(CUDA|NVIDIA)"),
    "generation_cache=quantized": (Fate.RAISES, "ImportError: You need to install optimum-quanto"),
    "kernels=enabled": (Fate.RAISES, "ValueError: Kernels are not available"),
    "optimizer=paged_adamw_8bit": (Fate.NOT_IN_FORCE, "no state is paged: on a cpu"),
    **{f"sharding={name}": (Fate.NOT_IN_FORCE, ONE_PROCESS) for name in ("ddp", "fsdp2", "zero2", "zero3")},
    **{f"vllm={name}": (Fate.RAISES, NO_VLLM) for name in ("colocate", "colocate_sleep", "server")},
}
SLOW = {"attention=flex"}  # it compiles before it raises

ON_PYPI = {
    "bitsandbytes",
    "deepspeed",
    "flash-attn",
    "flash-attn-3",
    "flash-attn-4",
    "kernels",
    "optimum-quanto",
    "vllm",
}
EMPTY = {"flash-attn-3": "<3", "flash-attn-4": "<4"}  # PyPI has a 0.0.0 and a 0.0.1 that hold nothing
OLDER = {"kernels": ">=0.16,<0.18.2"}  # what some transformers from 5.17 on takes, and the newest does not
REQUIREMENTS = sorted({text for option in OPTIONS for text in option.needs.packages})
VERSIONS = [f"{a}.{b}.{c}" for a, b, c in itertools.product(range(6), range(60), range(8))]


def named(cells: list[Cell]) -> list[Any]:
    return [pytest.param(cell, id=f"{cell.option}-{cell.trainer}") for cell in cells]


def of(technique: str) -> list[Any]:
    return named([cell for cell in CELLS if cell.technique == technique])


def options(cell: Cell, **parameters: Any) -> dict[str, Any]:
    """Return the cell's option with what it needs beside it."""
    given = {f"technique.{cell.technique}.{name}": value for name, value in parameters.items()}
    return {**(cell.partners[0] if cell.partners else {}), cell.technique: cell.name, **given}


def settings_of(option: Option, **parameters: Any) -> Settings:
    trainer = option.support.allowed[0] if option.support else "sft"
    given = {f"technique.{option.technique}.{name}": value for name, value in parameters.items()}
    return merge(CATALOGUE.choose({option.technique: option.name}, given), trainer, CATALOGUE)


def differences_of(option: Option) -> list[Settings]:
    """Return what an option sets with each of the values that a person may give, one parameter at a time."""
    found = [settings_of(option)]
    for name, parameter in option.parameters.items():
        ends = (parameter.minimum, parameter.maximum)
        values = [*parameter.search, *(type(parameter.default)(end) for end in ends if end is not None)]
        found += [settings_of(option, **{name: value}) for value in values]
    return found


ALLOCATORS = [pytest.param(o, id=o.name) for o in AWAY if settings_of(o).environment]
LAUNCHED = [pytest.param(o, id=o.name) for o in AWAY if settings_of(o).launch]
LOADED = [pytest.param(o, id=o.label) for o in AWAY if settings_of(o).model]
FLASH = [
    o for o in AWAY if settings_of(o).model.get("attn_implementation", "").startswith("flash_attention_")
]


@pytest.mark.parametrize("cell", named(CELLS))
def test_the_arguments_are_taken_as_they_are_where_there_is_a_device(cell: Cell, tmp_path: Path) -> None:
    recipe = recipe_of(cell.trainer)
    for partner in cell.partners or ({},):
        chosen = {**partner, cell.technique: cell.name}
        request = elsewhere.cuda_request(cell.trainer, chosen, CATALOGUE, tmp_path)
        with elsewhere.pretended_device():
            arguments, asked = training_arguments(recipe, request)

        wanted = resolved(request.settings.trainer, recipe.config_class)
        assert {name: getattr(arguments, name) for name in wanted} == wanted
        assert wanted.items() <= asked.items()
        assert (arguments.use_cpu, arguments.bf16) == (False, "precision" not in chosen)


@pytest.mark.parametrize("option", LOADED)
def test_the_keywords_for_the_model_are_ones_that_loading_looks_for(option: Option, tmp_path: Path) -> None:
    request = elsewhere.cuda_request("sft", {option.technique: option.name}, CATALOGUE, tmp_path)
    with elsewhere.pretended_device():
        keywords = model_keywords(recipe_of("sft"), request)

    assert keywords.keys() >= settings_of(option).model.keys()
    assert [name for name in keywords if not elsewhere.is_a_keyword_of_loading(name)] == []


@pytest.mark.parametrize("option", LOADED)
def test_an_attention_is_one_that_transformers_knows_and_only_what_is_fetched_needs_the_network(
    option: Option,
) -> None:
    model = settings_of(option).model
    attention = model.get("attn_implementation")
    from_a_hub = is_kernel(attention) or bool(model.get("use_kernels"))

    if attention is not None:
        known = FLASH_ATTN_KERNEL_FALLBACK.values() if from_a_hub else ALL_ATTENTION_FUNCTIONS.valid_keys()
        assert attention in known
    assert option.needs.network == from_a_hub
    assert any(Requirement(text).name == "kernels" for text in option.needs.packages) == from_a_hub


@pytest.mark.parametrize("option", [pytest.param(o, id=o.name) for o in FLASH])
def test_the_least_device_of_a_flash_attention_is_the_one_of_transformers(option: Option) -> None:
    version = int(settings_of(option).model["attn_implementation"][-1])
    least = FLASH_ATTENTION_COMPATIBILITY_MATRIX[version].get("cuda_min_major_version", 8)

    assert option.needs.min_compute_capability == least


@pytest.mark.parametrize("cell", of("generation_cache"))
def test_a_cache_for_generation_is_one_that_transformers_knows(cell: Cell) -> None:
    with pytest.raises(ValueError, match="cache_implementation"):
        GenerationConfig(cache_implementation="unheard_of").validate()

    setting = settings_of(CATALOGUE.option(cell.technique, cell.name)).trainer["cache_implementation"]
    GenerationConfig(cache_implementation=setting).validate()


@pytest.mark.parametrize("cell", of("vllm"))
def test_an_engine_gets_its_share_of_the_device_and_may_sleep_only_where_it_is_asked_to(
    cell: Cell, walk: Walk
) -> None:
    declared = CATALOGUE.option("vllm", cell.name).parameters
    chosen = options(cell, **({"memory_share": 0.2} if "memory_share" in declared else {}))
    settings = merge(walk.choice(cell.trainer, chosen), cell.trainer, CATALOGUE)
    with elsewhere.stand_in_engine() as made, pytest.raises(elsewhere.EngineReachedError):
        built_trainer(walk_config(cell.trainer, walk.folder), settings, walk.folder)

    ((kind, keywords),) = made
    assert kind == ("VLLMClient" if cell.name == "server" else "LLM")
    if kind == "LLM":
        assert keywords["gpu_memory_utilization"] == 0.2
        assert keywords["enable_sleep_mode"] == cell.name.endswith("sleep")


@pytest.mark.parametrize("trainer", GENERATORS)
def test_an_engine_in_the_same_process_does_not_take_weights_in_eight_bits(trainer: str, walk: Walk) -> None:
    for quantization, message in (("int8", "does not support in-flight 8-bit"), ("nf4", "LLM")):
        chosen = {"vllm": "colocate", "quantization": quantization, "adapter": "lora"}
        settings = merge(walk.choice(trainer, chosen), trainer, CATALOGUE)
        with elsewhere.stand_in_engine(), pytest.raises(Exception, match=message):
            built_trainer(walk_config(trainer, walk.folder), settings, walk.folder)


@pytest.mark.parametrize("cell", of("checkpointing"))
def test_offloaded_checkpoints_go_to_the_host_and_change_no_number(cell: Cell, walk: Walk) -> None:
    settings = merge(walk.choice(cell.trainer, options(cell)), cell.trainer, CATALOGUE)
    with elsewhere.unpinned_checkpoints() as kept:
        seen = watch(walk_config(cell.trainer, walk.folder), settings, walk.folder)

    assert kept == ["pinned=True"] * N_LAYERS * N_STEPS
    assert seen.has_the_numbers_of(walk.baseline(cell.trainer, {"checkpointing": "full"}))


@pytest.mark.parametrize("cell", of("activation_offloading"))
def test_offloaded_activations_come_back_as_they_were(cell: Cell, walk: Walk) -> None:
    settings = merge(walk.choice(cell.trainer, options(cell)), cell.trainer, CATALOGUE)
    with elsewhere.unpinned_activations() as moved:
        seen = watch(walk_config(cell.trainer, walk.folder), settings, walk.folder)

    assert len(moved) >= N_LAYERS * N_STEPS
    assert seen.has_the_numbers_of(walk.baseline(cell.trainer, {}))


@pytest.mark.parametrize("cell", of("empty_cache"))
def test_the_cache_is_given_back_at_every_nth_step(cell: Cell, walk: Walk) -> None:
    settings = merge(walk.choice(cell.trainer, options(cell, n=2)), cell.trainer, CATALOGUE)
    assert list(settings.trainer.values()) == [2]
    with elsewhere.counted_empty_cache() as times:
        watch(walk_config(cell.trainer, walk.folder), settings, walk.folder)

    assert len(times) == N_STEPS // 2


def test_a_paged_optimizer_is_asked_for_pages(walk: Walk) -> None:
    paged, plain = (
        built_trainer(
            walk_config("sft", walk.folder), settings_of(CATALOGUE.option("optimizer", name)), walk.folder
        ).trainer.create_optimizer()
        for name in ("paged_adamw_8bit", "adamw_8bit")
    )

    assert type(paged) is type(plain)
    assert (paged.is_paged, plain.is_paged) == (True, False)
    assert paged.args.optim_bits == plain.args.optim_bits == 8


@pytest.mark.parametrize("option", ALLOCATORS)
def test_an_allocator_has_the_same_settings_under_both_names(option: Option) -> None:
    for settings in differences_of(option):
        assert settings.environment.keys() == set(ALLOCATOR)
        assert len(set(settings.environment.values())) == 1


def test_torch_takes_the_allocators_settings_and_knows_each_key() -> None:
    """A CPU's torch takes any value of a key that it does not know, but nonsense for none that it does."""
    asked = [dict(s.environment) for o in ALLOCATORS for s in differences_of(o.values[0])]
    keys = {pair.partition(":")[0] for case in asked for v in case.values() for pair in v.split(",")}
    nonsense = [{ALLOCATOR[0]: f"{key}:?"} for key in sorted(keys)]
    either = [{name: "max_split_size_mb:64"} for name in ALLOCATOR]
    both = {ALLOCATOR[0]: "max_split_size_mb:64", ALLOCATOR[1]: "max_split_size_mb:32"}

    found = iter(elsewhere.parsed([*asked, *nonsense, *either, both, {ALLOCATOR[0]: "unheard_of:?"}]))

    assert [said for case in asked if (said := next(found)) != f"has {case[ALLOCATOR[0]]}"] == []
    assert [case for case in nonsense if not next(found).startswith("refuses")] == []
    assert [next(found), next(found)] == ["has max_split_size_mb:64"] * 2
    assert next(found) == "has max_split_size_mb:64", "the older name goes before the newer one"
    assert next(found) == "has unheard_of:?"


@pytest.mark.parametrize("base", [{}, dict.fromkeys(ALLOCATOR, "max_split_size_mb:64")], ids=["bare", "set"])
@pytest.mark.parametrize("trainer", GENERATORS)
def test_an_engine_that_sleeps_reads_of_expandable_segments_under_the_only_name_that_it_looks_at(
    trainer: str, base: Mapping[str, str]
) -> None:
    """vLLM looks for this text in the older variable, and switches them off while it allocates its pool."""
    chosen = CATALOGUE.choose({"vllm": "colocate_sleep", "allocator": "expandable_segments"})
    settings = merge(chosen, trainer, CATALOGUE)
    versions = {"vllm": "0.30.0"}
    there = Circumstances(trainer=trainer, device="cuda", versions=versions, numbers={"batch": 8})

    assert violations(chosen, there, CATALOGUE) == ()
    assert settings.trainer["vllm_enable_sleep_mode"] is True
    environment = trial_environment(tiny_config(trainer), settings, base)
    assert "expandable_segments:True" in environment["PYTORCH_CUDA_ALLOC_CONF"]
    assert environment["PYTORCH_ALLOC_CONF"] == environment["PYTORCH_CUDA_ALLOC_CONF"]


@pytest.mark.parametrize("option", LAUNCHED)
def test_a_launch_is_of_a_kind_that_accelerate_knows_with_at_least_two_processes(option: Option) -> None:
    for settings in differences_of(option):
        plan = plan_of(settings.launch)
        assert plan is not None
        assert plan.n_processes >= 2
        assert plan.distributed_type in list(DistributedType)
        packages = [Requirement(text).name for text in option.needs.packages]
        assert packages == (["deepspeed"] if plan.deepspeed_config else [])
    assert option.needs.several_devices


def test_what_this_machine_does_not_have_is_not_said_to_be_seen() -> None:
    unseen = [o for o in OPTIONS if o.needs.device == "cuda" or o.needs.several_processes]
    shared = [o for o in OPTIONS if o.needs.several_devices]

    assert [o.label for o in unseen if o.needs.verified != "source"] == []
    assert [o.label for o in shared if o.needs.verified != "simulated"] == []
    assert [o.label for o in OPTIONS if o.needs.verified == "hardware"] == []


def within(bounds: Mapping[str, str], package: str) -> SpecifierSet:
    return SpecifierSet(bounds.get(package, "<0"))


@pytest.mark.parametrize("text", REQUIREMENTS)
def test_no_version_that_the_libraries_take_is_refused(text: str) -> None:
    wanted = Requirement(text)
    empty = within(EMPTY, wanted.name)
    with elsewhere.version_judge(wanted.name) as takes:
        taken = [version for version in VERSIONS if takes(version) and not empty.contains(version)]

    assert wanted.name in ON_PYPI
    assert taken
    assert [version for version in taken if not wanted.specifier.contains(version)] == []


@pytest.mark.skipif(not elsewhere.is_newest(), reason="the bounds are those of a later transformers")
@pytest.mark.parametrize("text", REQUIREMENTS)
def test_no_version_that_the_libraries_refuse_is_taken(text: str) -> None:
    wanted = Requirement(text)
    empty, older = within(EMPTY, wanted.name), within(OLDER, wanted.name)
    with elsewhere.version_judge(wanted.name) as takes:
        good = [v for v in VERSIONS if (takes(v) or older.contains(v)) and not empty.contains(v)]

    assert set(wanted.specifier.filter(VERSIONS)) <= set(good)


def test_every_option_that_cannot_run_here_is_asked_for_all_the_same() -> None:
    assert {cell.option for cell in CELLS} == set(HERE)


def asked_for() -> list[Any]:
    """Return every cell that raises early, and one of each option that trains or compiles first."""
    found, trained = [], set()
    for cell in CELLS:
        fate, _ = HERE.get(cell.option, (None, ""))
        if fate is not Fate.RAISES or cell.option in SLOW:
            if cell.option in trained:
                continue
            trained.add(cell.option)
        marks = [pytest.mark.slow] if cell.option in SLOW else []
        found.append(pytest.param(cell, id=f"{cell.option}-{cell.trainer}", marks=marks))
    return found


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device here")
@pytest.mark.parametrize("cell", asked_for())
def test_asked_for_on_a_cpu_it_comes_to_nothing_in_the_way_that_is_known(cell: Cell, walk: Walk) -> None:
    names = [Requirement(text).name for text in CATALOGUE.option(cell.technique, cell.name).needs.packages]
    fate, message = HERE[cell.option]
    if fate is Fate.RAISES and names and package_versions(names):
        pytest.skip(f"{', '.join(names)} is installed here")

    result = walk.run(cell.trainer, options(cell), again=True)

    assert result.fate is fate, result.message
    assert re.search(message, result.message), result.message
