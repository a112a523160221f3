from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from memsweep.measure.generation import GenerationWatch, completion_tokens


def test_a_completion_ends_with_its_first_end_which_counts() -> None:
    ids = torch.tensor([[5, 6, 2, 0, 0], [5, 6, 7, 8, 9], [2, 2, 2, 2, 2]])

    assert int(completion_tokens(ids, ends=[2])) == 3 + 5 + 1


def test_padding_with_the_end_token_is_not_counted_twice() -> None:
    ids = torch.tensor([[5, 2, 2, 2]])

    assert int(completion_tokens(ids, ends=[2])) == 2


def test_without_an_end_all_is_completion() -> None:
    assert int(completion_tokens(torch.ones(2, 3, dtype=torch.long), ends=[])) == 6


class Model(torch.nn.Linear):
    """Generates three tokens for each prompt, the last of the first row being its end."""

    generation_config = SimpleNamespace(eos_token_id=2)

    def generate(self, input_ids: torch.Tensor, **_: Any) -> torch.Tensor:
        rows = torch.tensor([[7, 2, 0], [7, 7, 7]])
        return torch.cat([input_ids, rows], dim=1)


def test_what_a_model_generates_is_counted_and_timed_without_the_prompts() -> None:
    model = Model(1, 1)
    watch = GenerationWatch(model)

    result = model.generate(input_ids=torch.ones(2, 9, dtype=torch.long))

    assert result.shape == (2, 12)
    assert watch.now().tokens == 2 + 3
    assert watch.now().seconds > 0


@pytest.mark.parametrize("given", ["input_ids", None])
def test_after_closing_nothing_counts_and_the_model_is_as_it_was(given: str | None) -> None:
    model = Model(1, 1)
    watch = GenerationWatch(model)
    watch.close()
    prompt = torch.ones(2, 9, dtype=torch.long)

    model.generate(**{given: prompt}) if given else model.generate(prompt)

    assert watch.now().tokens == 0
    assert "generate" not in vars(model)
