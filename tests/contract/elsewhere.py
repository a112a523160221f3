"""Stand-ins for what this machine has not, and questions to libraries about machines that have it."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import transformers
from accelerate.state import AcceleratorState
from datasets import Dataset
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from seen import BATCH
from transformers import PreTrainedModel, cache_utils
from transformers.utils import import_utils
from trl.experimental.online_dpo import online_dpo_trainer
from trl.generation import vllm_generation
from trl.models import activation_offloading
from walk import choice

from memsweep.machine import ALLOCATOR_VARIABLES as ALLOCATOR
from memsweep.machine import Device
from memsweep.technique.catalogue import Catalogue
from memsweep.technique.rule import ARGUMENT
from memsweep.technique.settings import merge
from memsweep.trainers.recipe import TrialRequest
from tiny import tiny_config

TRL_IMPORTS = importlib.import_module("trl.import_utils")  # trl has no attribute of that name
SAVE_ON_CPU = torch.autograd.graph.save_on_cpu


def cuda_request(
    trainer: str, options: Mapping[str, Any], catalogue: Catalogue, folder: Path
) -> TrialRequest:
    """Return what a trial of `options` is built from on a machine with a device, up to the model itself."""
    given = {key.removeprefix(ARGUMENT): v for key, v in options.items() if key.startswith(ARGUMENT)}
    return TrialRequest(
        config=tiny_config(trainer, batch=BATCH, examples=BATCH, arguments=given),
        settings=merge(choice(trainer, options, catalogue), trainer, catalogue),
        device=Device.CUDA,
        model="nowhere",
        revision=None,
        tokenizer=None,  # type: ignore[arg-type]
        data=Dataset.from_dict({"row": list(range(BATCH))}),
        folder=folder,
    )


@contextmanager
def pretended_device() -> Iterator[None]:
    """Let torch and transformers answer as on a device that computes in bfloat16."""
    AcceleratorState._reset_state(reset_partial_state=True)
    with (
        mock.patch("torch.cuda.get_device_capability", lambda *_: (9, 0)),
        mock.patch("transformers.training_args.is_torch_bf16_gpu_available", lambda: True),
    ):
        yield
    AcceleratorState._reset_state(reset_partial_state=True)


def is_a_keyword_of_loading(name: str) -> bool:
    """Tell whether `from_pretrained` looks for a keyword `name`; most of them are not in its signature."""
    source = inspect.getsource(PreTrainedModel.from_pretrained)
    return re.search(rf'kwargs\.pop\(\s*"{name}"|"{name}" in kwargs', source) is not None


class EngineReachedError(Exception):
    """A trainer made the engine that stands in for vLLM's."""


@contextmanager
def stand_in_engine() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Put something in vLLM's place; yields what was made of it, `LLM` or `VLLMClient`, and its keywords."""
    made: list[tuple[str, dict[str, Any]]] = []

    def engine(kind: str) -> Callable[..., None]:
        def reached(**keywords: Any) -> None:
            made.append((kind, keywords))
            raise EngineReachedError(kind)

        return reached

    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ))  # colocated engines want RANK and WORLD_SIZE there
        for module in (vllm_generation, online_dpo_trainer):
            stack.enter_context(mock.patch.object(module, "is_vllm_available", lambda *_: True))
            for kind in ("LLM", "VLLMClient"):
                stack.enter_context(mock.patch.object(module, kind, engine(kind), create=True))
        yield made


@contextmanager
def unpinned_checkpoints() -> Iterator[list[str]]:
    """Keep checkpoints in memory that is not pinned; yields one entry a checkpointed layer."""
    kept: list[str] = []

    def save_on_cpu(pin_memory: bool, device_type: str) -> Any:
        kept.append(f"pinned={pin_memory}")
        return SAVE_ON_CPU(pin_memory=False)

    with mock.patch("transformers.modeling_utils.save_on_cpu", save_on_cpu):
        yield kept


@contextmanager
def unpinned_activations() -> Iterator[list[int]]:
    """Let TRL offload activations from a cpu to itself; yields the number of elements of each."""
    moved: list[int] = []
    made = activation_offloading.OffloadActivations.__init__

    def init(self: Any, *_: Any, **keywords: Any) -> None:
        made(self, **{**keywords, "use_pin_memory": False, "use_streams": False})
        pack = self.pack_hook

        def packed(activation: torch.Tensor) -> int:
            number = pack(activation)
            held, is_moved, *_ = self.tracker[number]
            moved.extend([held.numel()] if is_moved else [])
            return number

        self.pack_hook = packed

    with (
        mock.patch("torch.accelerator.current_accelerator", lambda *_, **__: torch.device("cpu")),
        mock.patch("torch.cpu.empty_cache", lambda: None, create=True),
        mock.patch.object(activation_offloading.OffloadActivations, "__init__", init),
    ):
        yield moved


@contextmanager
def counted_empty_cache() -> Iterator[list[str]]:
    """Yield one entry for each time that a training step gives the allocator's cache back."""
    times: list[str] = []

    def counted() -> None:
        caller = sys._getframe(1).f_code.co_name
        times.extend([caller] if caller == "training_step" else [])

    with (
        mock.patch("transformers.trainer.clear_device_cache", counted),
        mock.patch.object(online_dpo_trainer, "empty_cache", counted),
    ):
        yield times


# torch reads the variables once, when it is first asked: each case needs a process that has not asked.
_PARSE = """
import json, os, sys, torch
found = []
for variables in json.load(sys.stdin):
    read, write = os.pipe()
    if not os.fork():
        os.environ.update(variables)
        try:
            said = "has " + torch._C._accelerator_getAllocatorSettings()
        except Exception as error:
            said = "refuses " + str(error)
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    found.append(os.read(read, 65536).decode())
    os.wait()
print(json.dumps(found))
"""


def parsed(cases: Sequence[Mapping[str, str]]) -> list[str]:
    """Return what torch's allocator makes of each set of variables that is set after torch is imported.

    `has` and its settings, or `refuses` and why.  What a key of another backend is set to is not judged.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ALLOCATOR}
    done = subprocess.run(
        [sys.executable, "-c", _PARSE],
        input=json.dumps([dict(case) for case in cases]),
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    return list(json.loads(done.stdout))


@contextmanager
def version_judge(package: str) -> Iterator[Callable[[str], bool]]:
    """Yield whether the installed libraries would take a version of `package`, were it here.

    They must not refuse it when asked, and it must be within what their own metadata declare.
    """
    declared = [
        requirement.specifier
        for library in ("trl", "transformers")
        for requirement in map(Requirement, metadata.requires(library) or ())
        if canonicalize_name(requirement.name) == package
    ]
    installed = {"version": ""}

    def there(*_: Any, **__: Any) -> tuple[bool, str]:
        return True, installed["version"]

    distributions = {"flash_attn": [package], "flash_attn_interface": [package]}
    mapping: tuple[str, Any] = ("_package_distribution_mapping", lambda: distributions)
    if not hasattr(import_utils, mapping[0]):  # transformers 5.17
        mapping = ("PACKAGE_DISTRIBUTION_MAPPING", distributions)
    asked = _ASKED.get(package, lambda: True)

    def takes(version: str) -> bool:
        installed["version"] = version
        return all(known.contains(version) for known in declared) and asked()

    with (
        mock.patch.object(import_utils, "_is_package_available", there),
        mock.patch.object(TRL_IMPORTS, "_is_package_available", there),
        mock.patch.object(import_utils, *mapping),
        mock.patch.object(import_utils, "is_torch_cuda_available", lambda: True),
        mock.patch.object(import_utils, "is_optimum_quanto_available", lambda: True),
        mock.patch.object(cache_utils, "is_optimum_quanto_available", lambda: True),
        mock.patch.object(cache_utils, "is_quanto_greater", inspect.unwrap(import_utils.is_quanto_greater)),
    ):
        yield takes


def _plainly(name: str) -> Callable[[], bool]:
    """Return a question of transformers' without its memory of an earlier answer."""
    return inspect.unwrap(getattr(import_utils, name))


def _quanto() -> bool:
    try:
        cache_utils.QuantoQuantizedLayer()
    except ModuleNotFoundError:  # the version was taken, and the package itself is not here
        return True
    except ImportError:
        return False
    return True


def _vllm() -> bool:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        return bool(TRL_IMPORTS.is_vllm_available()) and not said


_ASKED: Mapping[str, Callable[[], bool]] = {
    "bitsandbytes": _plainly("is_bitsandbytes_available"),
    "flash-attn": _plainly("is_flash_attn_2_available"),
    "flash-attn-3": _plainly("is_flash_attn_3_available"),
    "flash-attn-4": _plainly("is_flash_attn_4_available"),
    "kernels": _plainly("is_kernels_available"),
    "optimum-quanto": _quanto,
    "vllm": _vllm,
}

NEWEST = "5.24"
"""Of transformers: the bounds of the catalogue are those of this one and later ones."""


def is_newest() -> bool:
    """Tell whether the installed transformers is one that the catalogue's upper bounds are for."""
    return Requirement(f"transformers>={NEWEST}").specifier.contains(transformers.__version__)
