"""A conf folder of three techniques, small enough to read in one look."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memsweep.technique.catalogue import Catalogue, read_catalogue

PROSE = "saves: nothing\ncosts: nothing\nsource: arXiv:0000.00000\nchanges: nothing\n"

FILES = {
    "adapter/baseline": "summary: All is trained.\n" + PROSE,
    "adapter/lora": """
summary: A low-rank update is trained.
saves: [gradients, optimizer]
costs: two multiplies
source: arXiv:2106.09685
changes: trained_parameters
parameters:
  r: {default: 16, search: [4, 16], min: 1, help: rank}
settings:
  adapter: {type: lora, r: "${r}", name: "rank-${r}"}
  trainers:
    dpo: {trainer: {beta: 0.2}}
""",
    "adapter/prompt": "summary: A prompt is trained.\n"
    + PROSE
    + "settings: {adapter: {type: prompt_tuning}}\n",
    "length/baseline": "summary: 1,024 tokens.\n" + PROSE,
    "length/limit": """
summary: Limit the length.
saves: activations
costs: tokens
source: trl==1.16.0
changes: [data, batch]
parameters:
  tokens: {default: 512, search: [256], help: tokens}
same_as: {option: baseline, trainers: [sft], parameters: {tokens: 1024}}
settings:
  trainer: {max_length: "${tokens}"}
  environment: {LENGTH: "${tokens}"}
""",
    "quantization/baseline": "summary: As loaded.\n" + PROSE,
    "quantization/nf4": """
summary: Four bits.
saves: weights
costs: time
source: arXiv:2305.14314
changes: numerics
needs: {packages: ["bitsandbytes>=0.40"]}
trainers: {allowed: [sft, dpo], because: the rest was not tried, source: trl==1.16.0}
requires:
  - adapter: {other_than: [baseline]}
    because: 4-bit base weights receive no gradient
    source: arXiv:2305.14314 section 3
  - length.tokens: {at_least: 128}
    trainers: [dpo]
    because: short ones were not tried
    source: trl==1.16.0
excludes:
  - adapter: prompt
    device: cpu
    because: it was slow
    source: trl==1.16.0
    versions: {bitsandbytes: "<0.50"}
settings:
  model: {quantization: {load_in_4bit: true}}
""",
    "quantization/same": "summary: The same, twice.\n" + PROSE + "settings: {adapter: {type: twice}}\n",
}


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """A folder that can be written to."""
    for name, text in FILES.items():
        file = tmp_path / "technique" / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for trainer in ("sft", "dpo", "grpo"):
        (tmp_path / "trainer").mkdir(exist_ok=True)
        (tmp_path / "trainer" / f"{trainer}.yaml").write_text(f"name: {trainer}\n")
    return tmp_path


@pytest.fixture
def catalogue(conf: Path) -> Catalogue:
    """The catalogue of that folder."""
    return read_catalogue(conf)


@pytest.fixture
def write(conf: Path) -> Callable[[str, str], None]:
    """A function that adds a file: `write("adapter/dora", "summary: ...")`."""

    def add(name: str, text: str) -> None:
        file = conf / "technique" / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    return add
