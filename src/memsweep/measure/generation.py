"""How many tokens does an online trainer generate, and how long does it take?

The model's own `generate` is wrapped.  A completion ends with its first end-of-sequence token, which counts;
what follows it is padding, whatever the padding token's id.  On CUDA the time is that between two events in
the stream, so that nothing waits for the device.  What another engine generates is not seen here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import torch

from memsweep.measure.gathers import GatherCount, is_whole


@dataclass(frozen=True, slots=True)
class Generated:
    """What was generated until now.

    Attributes:
        tokens: Completions' tokens.
        seconds: Time in `generate`.
        calls: How often `generate` was called.
        gathers: How often weights were made whole; None where they always are.
        whole_calls: How often `generate` was called on whole weights; None where they always are.
    """

    tokens: int = 0
    seconds: float = 0.0
    calls: int = 0
    gathers: int | None = None
    whole_calls: int | None = None

    def __sub__(self, other: Generated) -> Generated:
        return Generated(
            self.tokens - other.tokens,
            self.seconds - other.seconds,
            self.calls - other.calls,
            _less(self.gathers, other.gathers),
            _less(self.whole_calls, other.whole_calls),
        )


def _less(one: int | None, other: int | None) -> int | None:
    return None if one is None else one - (other or 0)


def completion_tokens(ids: torch.Tensor, ends: list[int]) -> torch.Tensor:
    """Return the tokens of completions up to their first end, which counts, as a scalar on their device.

    Args:
        ids: (n_completions, n_slots).
        ends: Ids of the tokens that end a completion.
    """
    is_end = torch.isin(ids, torch.tensor(ends, device=ids.device))
    ended_before = is_end.int().cumsum(dim=1) - is_end.int()
    return (ended_before == 0).sum()


class GenerationWatch:
    """Counts what a model generates, from now on.

    Args:
        model: What is asked to generate; an adapter's wrapper where there is one.
        gathers: Counts how often its weights are made whole; None where they always are.
    """

    def __init__(self, model: Any, gathers: GatherCount | None = None) -> None:
        self._model, self._gathers = model, gathers
        self._calls, self._whole_calls = 0, 0
        self._counted: list[torch.Tensor] = []
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
        self._tokens, self._seconds = 0, 0.0
        self._generate = model.generate
        model.generate = self._watched

    def now(self) -> Generated:
        """Return what was generated until now; on CUDA the device must have been waited for."""
        if self._counted:
            self._tokens += int(torch.stack(self._counted).sum())
            self._counted = []
        self._seconds += sum(first.elapsed_time(last) for first, last in self._events) / 1000
        self._events = []
        if self._gathers is None:
            return Generated(self._tokens, self._seconds, self._calls)
        n_gathers = self._gathers.n_gathers
        return Generated(self._tokens, self._seconds, self._calls, n_gathers, self._whole_calls)

    def close(self) -> None:
        """Stop counting."""
        if self._gathers is not None:
            self._gathers.close()
        if self._model.__dict__.get("generate") == self._watched:
            del self._model.generate

    def _watched(self, *positional: Any, **named: Any) -> Any:
        self._calls += 1
        if self._gathers is not None:
            self._whole_calls += is_whole(self._model)
        on_device = next(self._model.parameters()).is_cuda
        began = _event() if on_device else time.perf_counter()
        result = self._generate(*positional, **named)
        if isinstance(began, float):
            self._seconds += time.perf_counter() - began
        else:
            self._events.append((began, _event()))
        self._count(result, positional, named)
        return result

    def _count(self, result: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        ids = getattr(result, "sequences", result)
        prompt = named.get("input_ids", named.get("inputs", positional[0] if positional else None))
        if not isinstance(prompt, torch.Tensor):
            return
        config = named.get("generation_config") or self._model.generation_config
        ends = config.eos_token_id
        wanted = [] if ends is None else [ends] if isinstance(ends, int) else list(ends)
        self._counted.append(completion_tokens(ids[:, prompt.shape[1] :], wanted))


def _event() -> torch.cuda.Event:
    event: torch.cuda.Event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event
