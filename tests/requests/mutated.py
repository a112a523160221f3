"""Requests that were meant, spoilt at random: words of a command line, and files of a study's folder."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from refused import READERS, Request, memsweep, reading, train

DRY = "hydra.sweeper.dry_run=true"

MEANT = (
    "technique/packing=baseline,bfd technique/adapter=lora technique.adapter.r=8,16",
    "trainer=dpo space=preference_memory model=tiny hydra.sweeper.n_trials=8",
    "space=none trainer.batch=2,4 seed=range(1,5) hydra.sweeper.sampler.name=tpe",
    "technique/micro_batch=size technique.micro_batch.size=1,2 hydra.sweeper.max_seconds=2h",
    "seed=interval(1,9) hydra.sweeper.exclude=[{seed:{at_most:2.5},because:slow}] tracking=none",
    "seed=1,2 trainer.batch=2,4 hydra.sweeper.when={seed:{trainer.batch:2}} hydra.launcher.slots=1",
    "hydra.sweeper.objectives={speed:maximize} hydra.sweeper.constraints={c:{measure:a,at_most:3}}",
    "hydra.sweeper.study_name=mine hydra.sweeper.storage=null budget=custom budget.memory_bytes=6000000000",
)

ODD_VALUES = (
    *(
        "",
        "null",
        "true",
        "-1",
        "0",
        "1.5",
        "nan",
        "inf",
        "-inf",
        "1e400",
        "9" * 30,
        "''",
        "' '",
        "[]",
        "{}",
        "[[]]",
    ),
    *(
        "{a:1}",
        "[1,[2,{b:3}]]",
        "${seed}",
        "${nope}",
        "${oc.env:HOME}",
        "${oc.env:NO_SUCH}",
        "${hydra:job.num}",
    ),
    *(
        "glob(*)",
        "glob()",
        "choice()",
        "choice(1)",
        "range(3)",
        "range(3,1)",
        "range(1,9,-1)",
        "interval(1,0)",
    ),
    *(
        "interval(0,1e-320)",
        "tag(log,interval(-1,1))",
        "sort(1,a)",
        "shuffle(1,2,2)",
        "str(1,1.0)",
        "int(nan)",
    ),
    *(
        "../../etc/passwd",
        "a/b",
        ".",
        "..",
        "a b",
        "'a,b'",
        "a\\,b",
        "a=b",
        "\u00e9",
        "\u202e",
        "\x1b[31m",
        "x" * 300,
    ),
)
ODD_KEYS = (
    "",
    "+",
    "~",
    "++",
    "technique",
    "hydra",
    "hydra.sweeper",
    "a.b.c",
    "technique/adapter@x",
    "model.path",
)
MARKS = "=,:;{}[]()'\"$@~+/.\\*?! \t\n-_0\u00e9"

ODD_DATA: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 1e300, "", "x", "\u202e", [], [1], ["x"], {}, {"x": 1}, {"x": None}),
    *([[]], [None], {"": ""}, 10**30, "x" * 2_000, "9", "nan", "../../x"),
)


def command_line(seed: int) -> Request:
    """Return a study that was meant, with one to three words spoilt; it would run nothing."""
    chance = random.Random(seed)
    words = chance.choice(MEANT).split()
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(words))
        words[place : place + 1] = chance.choice((_value, _key, _mark, _gap, _twice, _sign))(
            words[place], chance
        )
    return train(["-m", *words, DRY])


def _value(word: str, chance: random.Random) -> list[str]:
    return [f"{word.partition('=')[0]}={chance.choice(ODD_VALUES)}"]


def _key(word: str, chance: random.Random) -> list[str]:
    return [f"{chance.choice(ODD_KEYS)}={word.partition('=')[2]}"]


def _mark(word: str, chance: random.Random) -> list[str]:
    at = chance.randrange(len(word) + 1)
    return [word[:at] + chance.choice(MARKS) + word[at:]]


def _gap(word: str, chance: random.Random) -> list[str]:
    at = chance.randrange(len(word) + 1)
    return [word[:at] + word[at + chance.randint(1, 4) :]]


def _twice(word: str, chance: random.Random) -> list[str]:
    return [word, *_value(word, chance)]


def _sign(word: str, chance: random.Random) -> list[str]:
    return [chance.choice(("+", "~", "++", "~~", "-", "@")) + word]


def study_files(seed: int) -> Request:
    """Return a question about a finished study, one of whose files holds something else than was written."""
    chance = random.Random(seed)
    file = chance.choice(("study.json", "results.jsonl", "results.jsonl", "trials/0/outcome.json"))
    name, first = READERS[0], chance.choice(READERS[1:4])
    command = first if seed % 8 else name  # making a report's pictures takes a second
    edit = _spoilt(chance)
    return memsweep(reading(command, "example"), studies=True, edits={f"outputs/example/{file}": edit})


def _spoilt(chance: random.Random) -> Callable[[Any], Any]:
    def edit(data: Any) -> Any:
        places = list(_places(data, ()))
        path = chance.choice(places)
        data = json.loads(json.dumps(data))
        node = data
        for step in path[:-1]:
            node = node[step]
        if isinstance(node, dict) and chance.random() < 0.2:
            del node[path[-1]]
        else:
            node[path[-1]] = chance.choice(ODD_DATA)
        return data

    return edit


def _places(node: Any, path: tuple[Any, ...]) -> Any:
    """Yield the path to every value below a node."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for step, value in items:
        yield (*path, step)
        yield from _places(value, (*path, step))
