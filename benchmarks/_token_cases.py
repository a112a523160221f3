"""What is trained in the cases of token_truth.py, and what each must count.

A case is what is typed, the examples, and a function from the examples, as the tokenizer has them, to counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import _lengths as lengths
from _lengths import Expected, Length, Rows

LIMIT = 96
"""Tokens of a row where a case cuts or packs: some examples are longer, most are not."""

COMPLETION = 8
EXAMPLES, BATCH = 10, 4  # a pass does not fill its last batch


@dataclass(frozen=True, slots=True)
class Source:
    """The examples of a case, as the tokenizer has them.

    Attributes:
        rows: The examples.
        tokenizer: The tokenizer.
    """

    rows: Sequence[Mapping[str, Any]]
    tokenizer: Any

    def ids(self, value: Any, *, asks: bool = False) -> list[int]:
        """Return the ids of a text or of messages; `asks` when the answer is about to come."""
        if not isinstance(value, str):
            value = self.tokenizer.apply_chat_template(value, tokenize=False, add_generation_prompt=asks)
        return list(self.tokenizer(value, add_special_tokens=False)["input_ids"])

    def answers(self, column: str = "completion") -> list[tuple[int, int]]:
        """Return the tokens of prompt and answer together, and those of the prompt."""
        found = []
        for row in self.rows:
            prompt, answer = row["prompt"], row[column]
            if isinstance(answer, str):
                answer += self.tokenizer.eos_token  # TRL ends a text, and not a conversation
            found.append(_shared(self.ids(prompt, asks=True), self.ids(prompt + answer)))
        return found

    def prompts(self) -> list[int]:
        """Return the tokens of each prompt."""
        return [len(self.ids(row["prompt"], asks=True)) for row in self.rows]

    def texts(self) -> list[tuple[int, int]]:
        """Return the tokens of each text, of which nothing is a prompt."""
        return [(len(self.ids(row["text"] + self.tokenizer.eos_token)), 0) for row in self.rows]

    def pairs(self, limit: int | None = None) -> Rows:
        """Return both sides of each preference, cut to `limit`; none where the prompt alone fills it."""
        sides = zip(self.answers("chosen"), self.answers("rejected"), strict=True)
        return [
            [cut(one, limit), cut(other, limit)] for one, other in sides if limit is None or one[1] < limit
        ]


def _shared(prompt: Sequence[int], whole: Sequence[int]) -> tuple[int, int]:
    """Return the tokens of `whole`, and how many it begins alike with `prompt`."""
    alike = next((n for n, (one, other) in enumerate(zip(prompt, whole, strict=False)) if one != other), None)
    return len(whole), min(len(prompt), len(whole)) if alike is None else alike


def cut(sequence: tuple[int, int], limit: int | None) -> Length:
    """Return a sequence, its tokens and those of its prompt, cut to `limit`."""
    tokens, prompt = sequence
    return lengths.part(tokens, prompt, 0, limit or tokens)


def cut_rows(sequences: Sequence[tuple[int, int]], limit: int | None = None) -> Rows:
    """Return rows of one sequence each; none where the prompt alone fills the limit."""
    return [[cut(one, limit)] for one in sequences if limit is None or one[1] < limit]


@dataclass(frozen=True, slots=True)
class Case:
    """A set-up, and what it must count.

    Attributes:
        name: What the table calls it.
        overrides: What is typed.
        expects: From the examples to what a pass must count.
        data: The examples; None means the embedded conversations.
        pads_with_end: Whether the tokenizer pads with the token that ends a text.
    """

    name: str
    overrides: tuple[str, ...]
    expects: Callable[[Source], Expected]
    data: Sequence[Mapping[str, Any]] | None
    pads_with_end: bool = False


def _answer(number: int, other: bool = False) -> str:
    """Return a text of 2 to 134 words, unlike in length to that of the next number."""
    words = [
        "the",
        "list",
        "returns",
        "a",
        "number",
        "when",
        "called",
        "with",
        "one",
        "argument",
        "and",
        "raises",
        "an",
        "error",
        "otherwise",
    ]
    return " ".join((words * 9)[other : other + 2 + (number * 37 + 12 * other) % 133])


TEXTS = [{"text": _answer(n)} for n in range(EXAMPLES)]
WRITTEN = [
    {"prompt": f"What does {_answer(n)[: 5 + n]} mean?", "completion": f" {_answer(n)}"}
    for n in range(EXAMPLES)
]
SPOKEN = [
    {
        "prompt": [{"role": "user", "content": row["prompt"]}],
        "completion": [{"role": "assistant", "content": row["completion"]}],
    }
    for row in WRITTEN
]
PREFERRED = [
    {
        "prompt": row["prompt"],
        "chosen": row["completion"],
        "rejected": [{"role": "assistant", "content": _answer(n, other=True)}],
    }
    for n, row in enumerate(SPOKEN)
]
JUDGED = [{**row, "label": n % 2 == 0} for n, row in enumerate(SPOKEN)]
PROMPTS = [{"prompt": row["prompt"]} for row in SPOKEN]


def _sft(limit: int | None = 1024, **how: Any) -> Callable[[Source], Expected]:
    return lambda source: lengths.a_pass(cut_rows(source.answers(), limit), BATCH, **how)


def _packed(strategy: str) -> Callable[[Source], Expected]:
    def expects(source: Source) -> Expected:
        sequences = source.answers()
        if strategy == "wrapped":
            return lengths.a_pass(lengths.wrapped(sequences, LIMIT), BATCH)
        if strategy == "bfd":
            parts = [cut(one, LIMIT) for one in sequences]
        else:
            parts = [piece for one in sequences for piece in lengths.fragments(*one, LIMIT)]
        return lengths.a_pass(lengths.best_fit(parts, LIMIT), BATCH, is_flat=True)

    return expects


def _pairs(limit: int | None = 1024, **how: Any) -> Callable[[Source], Expected]:
    return lambda source: lengths.a_pass(source.pairs(limit), BATCH, **how)


def _scored(limit: int) -> Callable[[Source], Expected]:
    """Reward: two whole sequences, none longer than the limit; nothing is learned token by token."""

    def expects(source: Source) -> Expected:
        rows = [row for row in source.pairs() if all(side.tokens <= limit for side in row)]
        return lengths.a_pass(rows, BATCH, learns=False)

    return expects


def _online(
    generations: int, together: int, times: int = 1, room: int | None = None, multiple: int = 1
) -> Callable[[Source], Expected]:
    """Expect completions of the whole budget.

    Args:
        generations: Completions of a prompt.
        together: Prompts that are padded together.
        times: How often each completion is trained on.
        room: What a prompt is cut to in training.
        multiple: What widths are padded to.
    """

    def expects(source: Source) -> Expected:
        prompts = source.prompts()
        per_step = BATCH if generations == 0 else BATCH // generations
        count = generations or 2
        kept = [n if room is None else min(n, room) for n in prompts]
        taken = [kept[place % len(kept)] for place in range(lengths.rounded_up(len(kept), per_step))]
        once = lengths.groups(taken, count, together, COMPLETION, multiple)
        return Expected(once.tokens * times, (once.slots or 0) * times, sum(kept))

    return expects


def _cut_to(limit: int) -> tuple[str, ...]:
    return ("technique/truncation=max_length", f"technique.truncation.max_length={limit}")


SHORT, NONE = _cut_to(LIMIT), ("technique/truncation=none",)
TWO = ("technique/micro_batch=size", "technique.micro_batch.size=2")
WIDE = ("technique/pad_to_multiple_of=multiple", "technique.pad_to_multiple_of.multiple=64")
FLAT = ("technique/padding_free=enabled",)
ONLINE = (f"trainer.completion_tokens={COMPLETION}",)
PAIR = ("technique/generations=count", "technique.generations.n=2", *ONLINE)

SFT = (
    ("sft padded", (), _sft()),
    ("sft, all activations kept", ("technique/checkpointing=disabled",), _sft()),
    ("sft cut", SHORT, _sft(LIMIT)),
    ("sft whole", NONE, _sft(None)),
    ("sft padded to 64", WIDE, _sft(multiple=64)),
    ("sft two by two", TWO, _sft(micro=2)),
    ("sft padding-free", (*FLAT, *NONE), _sft(None, is_flat=True)),
    ("sft padding-free two by two", (*FLAT, *NONE, *TWO), _sft(None, micro=2, is_flat=True)),
    ("sft padding-free padded to 64", (*FLAT, *NONE, *WIDE), _sft(None, multiple=64, is_flat=True)),
    ("sft packed bfd", ("technique/packing=bfd", *SHORT), _packed("bfd")),
    ("sft packed bfd_split", ("technique/packing=bfd_split", *SHORT), _packed("bfd_split")),
    ("sft packed wrapped", ("technique/packing=wrapped", *SHORT), _packed("wrapped")),
    ("sft LoRA", ("technique/adapter=lora",), _sft()),
    ("sft prompt tuning", ("technique/adapter=prompt_tuning",), _sft()),
)
DPO, KTO, REWARD = ("trainer=dpo",), ("trainer=kto",), ("trainer=reward",)
GRPO, RLOO, ONLINE_DPO = ("trainer=grpo", *PAIR), ("trainer=rloo", *PAIR), ("trainer=online_dpo", *ONLINE)
TWICE = ("trainer.arguments.num_iterations=2",)
FLAT_WIDE = (*FLAT, *NONE, *WIDE)

CASES = (
    Case("sft, the embedded data", (), _sft(), None),
    *(Case(*case, SPOKEN) for case in SFT),
    Case("sft texts", (), lambda source: lengths.a_pass(cut_rows(source.texts()), BATCH), TEXTS),
    Case("sft prompts and texts", (), _sft(), WRITTEN),
    Case("sft, padded with the end token", (), _sft(), WRITTEN, True),
    Case("sft padding-free, the same", FLAT_WIDE, _sft(None, multiple=64, is_flat=True), WRITTEN, True),
    Case("dpo", DPO, _pairs(), PREFERRED),
    Case("dpo cut, two by two", (*DPO, *SHORT, *TWO), _pairs(LIMIT, micro=2), PREFERRED),
    Case("dpo LoRA", (*DPO, "technique/adapter=lora"), _pairs(), PREFERRED),
    Case("kto", KTO, _sft(), JUDGED),
    Case("kto cut, two by two, to 64", (*KTO, *SHORT, *TWO, *WIDE), _sft(LIMIT, micro=2, multiple=64),
         JUDGED),
    Case("reward", REWARD, _scored(1024), PREFERRED),
    Case("reward, long ones left out", (*REWARD, *_cut_to(160)), _scored(160), PREFERRED),
    Case("grpo", GRPO, _online(2, 2), PROMPTS),
    Case("grpo, trained on twice", (*GRPO, *TWICE), _online(2, 2, 2), PROMPTS),
    Case("grpo padded to 64", (*GRPO, *WIDE), _online(2, 2, multiple=64), PROMPTS),
    Case("rloo two by two", (*RLOO, *TWO), _online(2, 2), PROMPTS),
    Case("online_dpo", ONLINE_DPO, _online(0, BATCH), PROMPTS),
    Case("online_dpo cut, two by two", (*ONLINE_DPO, *_cut_to(24), *TWO), _online(0, 2, room=24 - COMPLETION),
         PROMPTS),
)  # fmt: skip
