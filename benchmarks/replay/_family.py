"""A family of large spaces that nobody has measured: techniques by arithmetic, not by training.

Ten techniques, 44,928 legal cells.  Weights, gradients, optimizer states, activations and logits are added
up in bytes, operations in seconds; what one technique does depends on others (packing and attention,
offloading and checkpointing, adapters and optimizers).  Constants are rounded from what the techniques' own
sources say and are no measurement; noise of 2 % is put on top.  It serves as a space too large to be
measured, nothing else.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from _table import Table
from numpy.typing import NDArray

LEVELS: Mapping[str, tuple[str, ...]] = {
    "checkpointing": ("baseline", "disabled", "every_2", "selective"),
    "packing": ("baseline", "bfd", "bfd_split", "padding_free"),
    "adapter": ("baseline", "lora", "lora_all", "dora"),
    "quantization": ("baseline", "int8", "nf4"),
    "optimizer": ("baseline", "adamw_8bit", "adafactor"),
    "micro_batch": ("baseline", "2", "4", "8"),
    "attention": ("baseline", "sdpa", "flash"),
    "offloading": ("baseline", "enabled"),
    "padding": ("baseline", "64", "512"),
    "allocator": ("baseline", "expandable"),
}

_NOISE = 0.02
_VOCABULARY = 32_768


@dataclass(frozen=True, slots=True)
class World:
    """A model, its data and a device.

    Attributes:
        n_parameters: Of the model.
        n_layers, width, n_heads: Its shape.
        length: Longest sequence.
        fill: Share of a padded batch that is no padding.
        operations_per_second: Of the device.
    """

    n_parameters: float
    n_layers: int
    width: int
    n_heads: int
    length: int
    fill: float
    operations_per_second: float


_SHAPES = ((0.5e9, 24, 896, 14), (1.5e9, 28, 1536, 12), (3e9, 36, 2048, 16), (7e9, 28, 3584, 28))


def world(rng: np.random.Generator, number: int) -> World:
    """Return world `number`: its model by turns, the rest drawn."""
    return World(
        *_SHAPES[number % len(_SHAPES)],
        length=int(rng.choice([512, 1024, 2048, 4096])),
        fill=float(rng.uniform(0.35, 0.8)),
        operations_per_second=float(rng.uniform(1.5e14, 4e14)),
    )


def is_legal(cell: Mapping[str, str]) -> bool:
    """Tell whether the techniques of a cell go together."""
    if cell["quantization"] != "baseline" and cell["adapter"] == "baseline":
        return False
    if cell["checkpointing"] == "selective" and cell["adapter"] != "baseline":
        return False
    return not (cell["offloading"] == "enabled" and cell["checkpointing"] == "every_2")


def measured(cell: Mapping[str, str], here: World) -> tuple[float, float]:
    """Return tokens per second and bytes of a cell, without noise."""
    has_adapter = cell["adapter"] != "baseline"
    rows = {"baseline": 1, "2": 2, "4": 4, "8": 8}[cell["micro_batch"]]
    slots = float(rows * here.length)
    if cell["packing"] == "padding_free":
        slots *= here.fill
    share = {"baseline": 1.0, "lora": 0.004, "lora_all": 0.012, "dora": 0.013}[cell["adapter"]]
    trained = here.n_parameters * share
    held = here.n_parameters * {"baseline": 2.0, "int8": 1.1, "nf4": 0.56}[cell["quantization"]]
    held += trained * (2 + {"baseline": 8.0, "adamw_8bit": 2.1, "adafactor": 0.05}[cell["optimizer"]])
    held = (held + _activations(cell, here, slots) + min(slots, 4096) * _VOCABULARY * 4) * (
        1.12 if cell["allocator"] == "baseline" else 1.04
    )
    seconds = slots * here.n_parameters * 6 * (0.72 if has_adapter else 1.0)
    seconds *= {"baseline": 4 / 3, "disabled": 1.0, "every_2": 7 / 6, "selective": 1.12}[
        cell["checkpointing"]
    ]
    seconds *= {"baseline": 1.0, "int8": 1.5, "nf4": 1.25}[cell["quantization"]]
    is_packed = cell["packing"] != "baseline"
    seconds *= {"baseline": 1.35, "sdpa": 1.2 if is_packed else 1.08, "flash": 1.0}[cell["attention"]]
    seconds *= 1.3 if cell["adapter"] == "dora" else 1.0
    if cell["offloading"] == "enabled":
        seconds *= 1.5 if cell["checkpointing"] == "disabled" else 1.03
    seconds += {"baseline": 0.02, "adamw_8bit": 0.03, "adafactor": 0.05}[cell["optimizer"]] * trained * 200
    seconds = seconds / here.operations_per_second + 0.03
    if cell["packing"] == "baseline":
        wasted = {"baseline": 0.0, "64": 0.02, "512": 0.02 * 8**0.5}[cell["padding"]]
        tokens = slots * here.fill * (1 - wasted)
    else:
        tokens = slots
    return tokens / seconds, held


def _activations(cell: Mapping[str, str], here: World, slots: float) -> float:
    size = slots * here.width * here.n_layers
    size *= {"baseline": 44, "sdpa": 34, "flash": 30}[cell["attention"]]
    size *= 1.25 if cell["adapter"] in ("lora_all", "dora") else 1.0
    if cell["attention"] == "baseline":
        size += slots * here.length * here.n_layers * here.n_heads * 6
    if cell["attention"] == "sdpa" and cell["packing"] != "baseline":
        size += slots**2
    kept = {"baseline": 0.06, "disabled": 1.0, "every_2": 0.53, "selective": 0.16}[cell["checkpointing"]]
    size = size * kept + slots * here.width * 60
    if cell["offloading"] == "enabled":
        size *= 0.25 if kept > 0.3 else 0.85
    return size


@lru_cache(maxsize=2)
def table(number: int) -> Table:
    """Return table `number` of the family: a world, noise, and a limit that a third to two thirds exceed."""
    rng = np.random.default_rng(number)
    here = world(rng, number)
    every = (dict(zip(LEVELS, labels, strict=True)) for labels in itertools.product(*LEVELS.values()))
    cells = [cell for cell in every if is_legal(cell)]
    values = np.array([measured(cell, here) for cell in cells])
    values *= np.exp(rng.normal(0.0, _NOISE, values.shape))
    limit = float(np.quantile(values[:, 1], rng.uniform(0.35, 0.7)))
    rows: list[tuple[str, ...]] = [tuple(cell.values()) for cell in cells]
    seconds: Any = 10.0 + 60.0 * values[:, 0].min() / values[:, 0]
    return Table(f"family {number}", LEVELS, rows, values, seconds, limit)


class PriorOfFamily:
    """A prediction of a table's objectives, as wrong as one may be expected to be.

    Memory is known to 3 %, throughput to 15 %: every option is off by a factor of its own, every cell by
    another, and throughput by a common one.
    """

    def __init__(self, one: Table, seed: int) -> None:
        rng = np.random.default_rng(1_000 + seed)
        self._levels, self._index = one.levels, one.index
        off = np.zeros((len(one.cells), 2))
        for column, options in enumerate(one.levels.values()):
            factors = {option: rng.normal(0.0, (0.12, 0.015)) for option in options[1:]}
            off += np.array([factors.get(cell[column], np.zeros(2)) for cell in one.cells])
        off += rng.normal(0.0, (0.05, 0.015), off.shape)
        off[:, 0] += rng.normal(0.0, 0.3)
        self._losses = one.losses + off

    def losses(self, cells: Sequence[Mapping[str, Any]]) -> NDArray[np.float64]:
        """Return predictions (n_cells, 2) as losses."""
        rows = [self._index[tuple(cell[f"technique/{name}"] for name in self._levels)] for cell in cells]
        return np.asarray(self._losses[rows])
