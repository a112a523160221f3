"""What four bits stand for: the numbers of nf4, whatever is done with the scales, are not those of fp4."""

from __future__ import annotations

from seen import built_trainer, walk_config
from walk import Walk

from memsweep.technique.settings import merge


def codebooks(walk: Walk, option: str) -> set[tuple[float, ...]]:
    settings = merge(walk.choice("sft", {"quantization": option, "adapter": "lora"}), "sft", walk.catalogue)
    model = built_trainer(walk_config("sft", walk.folder), settings, walk.folder).trainer.model
    states = [parameter.quant_state for parameter in model.parameters() if hasattr(parameter, "quant_state")]
    return {tuple(state.code.tolist()) for state in states}


def test_double_quantization_keeps_the_numbers_and_fp4_has_others(walk: Walk) -> None:
    nf4, double, fp4 = (codebooks(walk, option) for option in ("nf4", "nf4_double", "fp4"))

    assert len(nf4) == len(fp4) == 1
    assert nf4 == double != fp4
