"""What is seen of a real trainer while it takes two optimizer steps on a tiny model.

Nothing here reads a setting back: hooks see batches, layers and kernels; tensors are weighed; parameters are
compared with what they were.  `Seen` holds it all, so that one training serves every question about it.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from begun import built_from
from memsweep.config.schema import DataKind, DatasetConfig, DatasetSource, TrialConfig
from memsweep.measure.tokens import count
from memsweep.readback.in_force import differences
from memsweep.technique.settings import Settings
from memsweep.trainers.build import Built
from tiny import DATA, tiny_config

N_STEPS = 2
N_LAYERS = 4
N_EXAMPLES = 8
N_OTHERS = 4
BATCH = 4

# Large enough that every trained parameter moves in two steps, in bfloat16 too; gradients as they come.
ARGUMENTS = {"learning_rate": 0.02, "max_grad_norm": 0.0, "warmup_steps": 0}

WORDS = [
    "amber",
    "basin",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "haven",
    "inlet",
    "jetty",
    "kelp",
    "lagoon",
    "marsh",
    "north",
    "ocean",
    "prairie",
    "quarry",
    "ridge",
    "shore",
    "tundra",
    "upland",
    "valley",
    "willow",
    "yonder",
    "zenith",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One forward pass with gradients.

    Attributes:
        rows: Rows of `input_ids`.
        slots: Positions, padding too.
        tokens: Positions that hold a token.
        documents: Runs of position ids that start at 0; None where the model was given none.
    """

    rows: int
    slots: int
    tokens: int
    documents: int | None


@dataclass(kw_only=True)
class Seen:
    """What two optimizer steps did.

    Attributes:
        losses: Of each micro-batch, in order.
        gradient_norm: Over all trained parameters at the first step, before any clipping.
        batches: Forward passes with gradients, in order.
        layer_calls: Times that each decoder layer computed with gradients, by its place; recomputing counts.
        sdpa_calls: Calls of torch's scaled_dot_product_attention, recomputation among them.
        weights: Parameter to its kind, type, number of elements as held, and bytes as held.
        moved: Parameters that are not what they were.
        optimizer: Class of the optimizer, as it is called.
        state_bytes: Bytes of the optimizer's state, scalars aside, by type.
        n_trained: Numbers that the optimizer changes.
        reference_bytes: Bytes of the weights of a reference model; 0 where there is none.
        reference_moved: Whether the reference model's weights are not what they were.
        rows: Rows that the trainer prepared.
        columns: Their columns.
        evaluation_rows: Rows that it prepared for evaluation.
        evaluation_loss: Loss over them after the first step; None where nothing is evaluated.
        prompts: Prompts that were scored in the first step, in order; empty where nothing is generated.
        caches: Classes of the key-value caches that generation used.
        compiled_graphs: Graphs that torch compiled.
        missing: What the trial's own check before the first step finds not to be in force.
    """

    losses: list[float] = field(default_factory=list)
    gradient_norm: float = 0.0
    batches: list[Batch] = field(default_factory=list)
    layer_calls: Counter[int] = field(default_factory=Counter)
    sdpa_calls: int = 0
    weights: dict[str, tuple[str, str, int, int]] = field(default_factory=dict)
    moved: set[str] = field(default_factory=set)
    optimizer: str = ""
    state_bytes: Counter[str] = field(default_factory=Counter)
    n_trained: int = 0
    reference_bytes: int = 0
    reference_moved: bool = False
    rows: int = 0
    columns: tuple[str, ...] = ()
    evaluation_rows: int = 0
    evaluation_loss: float | None = None
    prompts: list[str] = field(default_factory=list)
    caches: set[str] = field(default_factory=set)
    compiled_graphs: int = 0
    missing: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """Tokens trained on in all steps."""
        return sum(batch.tokens for batch in self.batches)

    @property
    def padding(self) -> int:
        """Positions without a token in all steps."""
        return sum(batch.slots - batch.tokens for batch in self.batches)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights as they are held."""
        return sum(held for _, _, _, held in self.weights.values())

    @property
    def all_state_bytes(self) -> int:
        """Bytes of the optimizer's state."""
        return sum(self.state_bytes.values())

    @property
    def first_loss(self) -> float:
        """The loss of the first step, over all its micro-batches."""
        return sum(self.losses[: len(self.losses) // N_STEPS])

    def has_the_numbers_of(self, other: Seen) -> bool:
        """Tell whether the first loss and gradients are those of `other`, but for the order of summation.

        Later steps follow an update that magnifies differences.
        """
        return math.isclose(self.first_loss, other.first_loss, rel_tol=1e-5, abs_tol=2e-6) and math.isclose(
            self.gradient_norm, other.gradient_norm, rel_tol=1e-4
        )

    def differences_to(self, other: Seen) -> tuple[str, ...]:
        """Return the names of what differs, numbers by more than the order of summation explains."""
        near = {"losses", "gradient_norm", "evaluation_loss", "missing"}
        names = [name for name in vars(self) if name not in near]
        different = [name for name in names if getattr(self, name) != getattr(other, name)]
        return (*different, *([] if self.has_the_numbers_of(other) else ["losses"]))


def walk_config(
    trainer: str,
    folder: Path,
    arguments: Mapping[str, Any] | None = None,
    n_layers: int | None = None,
    n_evaluation: int = 0,
) -> TrialConfig:
    """Return a trial of two steps on ragged texts of 20 to 90 tokens.

    Args:
        trainer: Its name.
        folder: Where the texts are written.
        arguments: Fields of the trainer's config class.
        n_layers: Of the model; `N_LAYERS` when None.
        n_evaluation: Other texts to evaluate on; at most `N_OTHERS`.
    """
    path = folder / f"{DATA[trainer]}.jsonl"
    if not path.exists():
        path.write_text("\n".join(json.dumps(row) for row in texts(DATA[trainer])))
    config = tiny_config(
        trainer,
        batch=BATCH,
        examples=N_EXAMPLES,
        dataset=DatasetConfig(name="words", source=DatasetSource.JSONL, path=str(path)),
        geometry={"num_hidden_layers": n_layers or N_LAYERS, "max_position_embeddings": 2048},
        arguments={**ARGUMENTS, **(arguments or {})},
    )
    measure = replace(config.measure, evaluation_examples=n_evaluation)
    return replace(config, measure=measure)


def texts(kind: DataKind) -> list[dict[str, Any]]:
    """Return `N_EXAMPLES` and `N_OTHERS` rows of words, every one of another length."""

    def text(start: int, n_words: int) -> str:
        return " ".join(WORDS[(start * 7 + n * n) % len(WORDS)] for n in range(n_words))

    rows = []
    for n in range(N_EXAMPLES + N_OTHERS):
        prompt, good, poor = text(n, 4 + n // 2), " " + text(n + 3, 6 + 2 * n), " " + text(n + 5, 8 + n)
        rows.append(
            {
                DataKind.PROMPT_COMPLETION: {"prompt": prompt, "completion": good},
                DataKind.PREFERENCE: {"prompt": prompt, "chosen": good, "rejected": poor},
                DataKind.UNPAIRED_PREFERENCE: {"prompt": prompt, "completion": good, "label": n % 2 == 0},
                DataKind.PROMPT_ONLY: {"prompt": prompt},
            }[kind]
        )
    return rows


def watch(config: TrialConfig, settings: Settings, folder: Path) -> Seen:
    """Build the trainer that `config` and `settings` ask for, let it take two steps, and say what was seen.

    Raises:
        Exception: Whatever the libraries raise.
    """
    built = built_trainer(config, settings, folder)
    trainer = built.trainer
    trainer.args.max_steps = N_STEPS
    seen = Seen(
        rows=len(trainer.train_dataset),
        columns=tuple(sorted(trainer.train_dataset.column_names)),
        evaluation_rows=len(trainer.eval_dataset or ()),
    )
    watcher = _Watcher(seen, built, settings)
    trainer.add_callback(watcher)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    with ExitStack() as stack:
        stack.enter_context(_counted_sdpa(seen))
        stack.enter_context(_recorded_losses(seen, trainer))
        stack.callback(watcher.close)
        trainer.train()
        watcher.finish()
    return seen


@contextmanager
def float32_as_baseline() -> Iterator[None]:
    """Let the baseline's precision be the same on every processor: the one of those without bfloat16."""

    def emulated() -> tuple[bool, str]:
        return False, "so that the walk is the same everywhere"

    with (
        mock.patch("memsweep.trainers.arguments.has_native_bf16", emulated),
        mock.patch("memsweep.machine.has_native_bf16", emulated),
    ):
        yield


def built_trainer(config: TrialConfig, settings: Settings, folder: Path) -> Built:
    """Return the trainer that a trial of `config` and `settings` would train with, rules aside."""
    torch.manual_seed(0)
    with float32_as_baseline():
        return built_from(config, settings, folder)


class _Watcher(TrainerCallback):
    """Looks at a trainer from inside its training loop."""

    def __init__(self, seen: Seen, built: Built, settings: Settings) -> None:
        self._seen, self._built, self._settings = seen, built, settings
        self._handles: list[Any] = []
        self._before: dict[str, torch.Tensor] = {}
        self._reference_before: list[torch.Tensor] = []

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        trainer, seen = self._built.trainer, self._seen
        seen.missing = differences(self._built, self._settings)
        model = trainer.model
        seen.weights = {name: _held(parameter) for name, parameter in model.named_parameters()}
        seen.n_trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
        self._before = {name: p.detach().clone() for name, p in model.named_parameters()}
        reference = getattr(trainer, "ref_model", None)
        if reference is not None:
            seen.reference_bytes = sum(p.nbytes for p in reference.parameters())
            self._reference_before = [p.detach().clone() for p in reference.parameters()]
        is_compiled = isinstance(trainer.model_wrapped, torch._dynamo.OptimizedModule)
        outer = trainer.model_wrapped if is_compiled else model
        self._handles.append(outer.register_forward_pre_hook(self._batch, with_kwargs=True))
        if not is_compiled:  # a hook within would be compiled, and break the graph
            # Within a layer: on the layer itself, transformers keeps hooks out of what is recomputed.
            parts = [m for name, m in model.named_modules() if name.endswith(".self_attn")]
            for place, part in enumerate(parts):
                self._handles.append(part.register_forward_pre_hook(self._layer(place), with_kwargs=True))
        rewards = getattr(trainer, "reward_funcs", None)
        if rewards:
            rewards[:] = [self._scored(function) for function in rewards]

    def on_step_end(
        self, _: TrainingArguments, state: TrainerState, control: TrainerControl, **__: Any
    ) -> None:
        control.should_evaluate = self._seen.evaluation_rows > 0 and state.global_step == 1

    def on_evaluate(self, *_: Any, metrics: Mapping[str, float], **__: Any) -> None:
        self._seen.evaluation_loss = metrics["eval_loss"]

    def on_pre_optimizer_step(
        self, _: TrainingArguments, state: TrainerState, __: TrainerControl, **___: Any
    ) -> None:
        if state.global_step == 0:
            grads = [p.grad for p in self._built.trainer.model.parameters() if p.grad is not None]
            self._seen.gradient_norm = float(sum(g.double().pow(2).sum() for g in grads)) ** 0.5

    def finish(self) -> None:
        trainer, seen = self._built.trainer, self._seen
        after = dict(trainer.model.named_parameters())
        seen.moved = {name for name, was in self._before.items() if not torch.equal(was, after[name])}
        inner = getattr(trainer.optimizer, "optimizer", trainer.optimizer)
        seen.optimizer = f"{type(inner).__module__}.{type(inner).__qualname__}"
        for state in inner.state.values():
            for value in state.values():
                if isinstance(value, torch.Tensor) and value.dim() > 0:
                    seen.state_bytes[str(value.dtype)] += value.nbytes
        if self._reference_before:
            now = trainer.ref_model.parameters()
            seen.reference_moved = any(
                not torch.equal(was, p) for was, p in zip(self._reference_before, now, strict=True)
            )
        seen.compiled_graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()

    def _batch(self, _: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        if not torch.is_grad_enabled():
            return
        batch = {"input_ids": positional[0], **named} if positional else named
        tokens, slots = count(batch)
        positions = batch.get("position_ids")
        documents = None if positions is None else int((positions == 0).sum()) - (slots - int(tokens))
        self._seen.batches.append(
            Batch(rows=len(batch["input_ids"]), slots=slots, tokens=int(tokens), documents=documents)
        )

    def _layer(self, place: int) -> Any:
        def called(_: Any, __: tuple[Any, ...], named: dict[str, Any]) -> None:
            if torch.is_grad_enabled():
                self._seen.layer_calls[place] += 1
            for name in ("cache", "past_key_values"):  # the second on transformers 5.17
                if not torch.is_grad_enabled() and named.get(name) is not None:
                    self._seen.caches.add(type(named[name]).__name__)

        return called

    def _scored(self, function: Any) -> Any:
        def scored(prompts: list[Any], completions: list[Any], **rest: Any) -> Any:
            if not self._built.trainer.state.global_step:
                self._seen.prompts += [str(prompt) for prompt in prompts]
            return function(prompts=prompts, completions=completions, **rest)

        scored.__name__ = getattr(function, "__name__", "reward")
        return scored


def _held(parameter: torch.nn.Parameter) -> tuple[str, str, int, int]:
    """Return how a weight is held: its class, type, elements and bytes, quantization state included."""
    held = parameter.nbytes
    for state in (getattr(parameter, "quant_state", None), getattr(parameter, "SCB", None)):
        if isinstance(state, torch.Tensor):
            held += state.nbytes
        elif state is not None:
            held += _state_bytes(state)
    return type(parameter).__name__, str(parameter.dtype), parameter.numel(), held


def _state_bytes(state: Any) -> int:
    tensors = [value for value in (state.absmax, state.code, state.offset) if isinstance(value, torch.Tensor)]
    inner = getattr(state, "state2", None)
    return sum(tensor.nbytes for tensor in tensors) + (_state_bytes(inner) if inner is not None else 0)


@contextmanager
def _counted_sdpa(seen: Seen) -> Iterator[None]:
    original = torch.nn.functional.scaled_dot_product_attention

    def counted(*positional: Any, **named: Any) -> torch.Tensor:
        if torch.is_grad_enabled():
            seen.sdpa_calls += 1
        return original(*positional, **named)

    with mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", counted):
        yield


@contextmanager
def _recorded_losses(seen: Seen, trainer: Any) -> Iterator[None]:
    original = trainer.training_step

    def recorded(*positional: Any, **named: Any) -> torch.Tensor:
        loss = original(*positional, **named)
        seen.losses.append(float(loss))
        return loss

    with mock.patch.object(trainer, "training_step", recorded):
        yield
