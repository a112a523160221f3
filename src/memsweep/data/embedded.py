"""What does a trial train on when nobody brought data?

The documentation of the running Python's standard library, as conversations: a person asks for the
documentation of a signature, an assistant writes it.  Each kind of trainer gets the same examples in its
form.  The same Python, library and seed give the same rows on every machine.
"""

from __future__ import annotations

import functools
import json
import random
import sys
from collections.abc import Sequence

from memsweep.config.schema import DataKind
from memsweep.data import documentation as rules
from memsweep.data.cache import cached_text, hash_of, rules_of
from memsweep.data.documentation import Documented, documentation, source_files
from memsweep.data.rows import Row


@functools.cache  # the library does not change under a running Python; 600 files take 10 ms to look at
def embedded_key() -> str:
    """Return a hash of what the examples are made from: the rules, the Python, its library's files."""
    files = [(str(path), path.stat().st_size) for path in source_files()]
    return hash_of(rules_of(__file__, str(rules.__file__)), sys.implementation.name, sys.version, files)


def embedded_documents() -> tuple[Documented, ...]:
    """Return the documentation, from the cache when it was read before."""

    def read() -> str:
        return json.dumps([[entry.name, entry.question, entry.text] for entry in documentation()])

    entries = json.loads(cached_text(f"data/embedded-{embedded_key()}.json", read))
    return tuple(Documented(*entry) for entry in entries)


def embedded_rows(kind: DataKind, seed: int) -> list[Row]:
    """Return all embedded examples as rows for a kind of trainer.

    Args:
        kind: What a row must hold.
        seed: Decides the order, and which way a rejected answer is wrong.
    """
    documents = list(embedded_documents())
    chance = random.Random(seed)
    chance.shuffle(documents)
    # A mismatched answer is another entry's, of about the same length, which then tells nothing.
    by_length = sorted(range(len(documents)), key=lambda index: len(documents[index].text))
    neighbour = dict(zip(by_length, by_length[1:] + by_length[-2:-1], strict=True))
    rows = []
    for index, document in enumerate(documents):
        mismatched = documents[neighbour[index]].text
        wrong = mismatched if chance.random() < 0.5 else _corrupted(document.text, chance)
        if wrong == document.text:  # a short one that came out of it unharmed
            wrong = mismatched
        rows.append(_row(kind, document, wrong, is_good=index % 2 == 0))
    return rows


def embedded_texts() -> list[str]:
    """Return every text there is, to train a tokenizer on."""
    return [part for document in embedded_documents() for part in (document.question, document.text)]


def _row(kind: DataKind, document: Documented, wrong: str, *, is_good: bool) -> Row:
    prompt = [{"role": "user", "content": document.question}]
    if kind is DataKind.PROMPT_ONLY:
        return {"prompt": prompt}
    right_answer, wrong_answer = _answer(document.text), _answer(wrong)
    if kind is DataKind.PREFERENCE:
        return {"prompt": prompt, "chosen": right_answer, "rejected": wrong_answer}
    if kind is DataKind.UNPAIRED_PREFERENCE:
        return {"prompt": prompt, "completion": right_answer if is_good else wrong_answer, "label": is_good}
    return {"prompt": prompt, "completion": right_answer}


def _answer(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


def _corrupted(text: str, chance: random.Random) -> str:
    """Return `text` with its lines in another order and some words missing."""
    lines: Sequence[str] = text.splitlines()
    lines = chance.sample(lines, len(lines))
    return "\n".join(
        " ".join(word for word in line.split(" ") if chance.random() > 0.1) or line for line in lines
    )
