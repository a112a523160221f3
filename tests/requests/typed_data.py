"""Data, models and conf/ folders that cannot be used, for a trial, a study and `memsweep lengths`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from refused import Content, Request, memsweep, train


def lines(*rows: object) -> str:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def asked_of(files: Sequence[tuple[str, Content, Sequence[str]]]) -> Iterator[Request]:
    """Yield for each file of data a trial, a study or a count of lengths with it, in turn.

    Args:
        files: Kind, content, and what the refusal must hold.
    """
    for number, (kind, content, says) in enumerate(files):
        typed = f"model=tiny dataset={kind} dataset.path=d.{kind}"
        name = f"d.{kind}"
        modes = {name: 0} if "Permission denied" in says else {}
        ask = (memsweep, train, train)[number % 3]
        words = (f"lengths {typed}", typed, f"-m {typed}")[number % 3]
        yield ask(words, *says, files={name: content}, modes=modes)


FILES: list[tuple[str, Content, Sequence[str]]] = [
    ("jsonl", "", ("d.jsonl has the columns (none)", "text")),
    ("jsonl", "\n\n", ("d.jsonl has the columns (none)",)),
    ("jsonl", "{", ("d.jsonl cannot be read as jsonl: line 1",)),
    ("jsonl", lines({"text": "a"}) + "{'text': 'b'}\n", ("d.jsonl cannot be read as jsonl: line 2",)),
    ("jsonl", "[1]\n", ("line 1: an object is needed, got list",)),
    ("jsonl", b"\xff\xfe\x00\x01" * 9, ("d.jsonl cannot be read as jsonl",)),
    ("jsonl", b'{"text": "caf\xe9"}\n', ("d.jsonl cannot be read as jsonl", "utf-8")),
    ("jsonl", "[" * 100_000, ("d.jsonl cannot be read as jsonl",)),
    ("jsonl", lines({"words": "a"}), ("d.jsonl has the columns words", "text (text missing)")),
    ("jsonl", lines({"text": 3}), ("d.jsonl, row 1: text must be text, got 3",)),
    ("jsonl", lines({"text": ["a"]}), ("d.jsonl, row 1: text must be text",)),
    ("jsonl", lines({"messages": [{"role": "user"}]}), ("d.jsonl, row 1: messages must hold messages",)),
    ("jsonl", lines({"prompt": "a", "completion": [{"a": 1}]}), ("d.jsonl, row 1: completion must hold",)),
    ("jsonl", lines({"text": "x" * 2_000_000})[:-9], ("d.jsonl cannot be read as jsonl: line 1",)),
    ("jsonl", lines({"text": "a"}), ("d.jsonl", "Permission denied")),
    ("jsonl", None, ("d.jsonl holds no file that ends in .jsonl",)),
    ("csv", "", ("d.csv has the columns (none)",)),
    ("csv", "text\na\nb,c\n", ("row 2 has more fields than the first line names",)),
    ("csv", "words\na\n", ("d.csv has the columns words",)),
    ("csv", b"text\n\xff\xfe\n", ("d.csv cannot be read as csv",)),
    ("csv", "text\n" + "x" * 200_000 + "\n", ("d.csv cannot be read as csv", "field")),
    ("parquet", "", ("d.parquet cannot be read as parquet",)),
    ("parquet", b"PAR1" + b"\x00" * 99 + b"PAR1", ("d.parquet cannot be read as parquet",)),
]

DATA = [
    *asked_of(FILES),
    train("dataset=jsonl dataset.path=nowhere.jsonl", "dataset.path=nowhere.jsonl is not there"),
    train("-m dataset=jsonl dataset.path=nowhere.jsonl", "dataset.path=nowhere.jsonl is not there"),
    train(["dataset=jsonl", f"dataset.path={'x' * 5000}"], "dataset.path="),
    train(
        "trainer=dpo dataset=jsonl dataset.path=d.jsonl",
        "chosen and rejected missing",
        files={"d.jsonl": lines({"text": "a"})},
    ),
    train(
        "trainer=kto dataset=jsonl dataset.path=d.jsonl",
        "row 1: label must be true or false, got 'good'",
        files={"d.jsonl": lines({"prompt": "a", "completion": "b", "label": "good"})},
    ),
    train(
        "-m trainer=kto space=none dataset=csv dataset.path=d.csv",
        "d.csv, row 1: label must be",
        files={"d.csv": "prompt,completion,label\na,b,good\n"},
    ),
]

MODELS = [
    *[
        train(f"{how}model=path model.path=there", "model.path=there", *says, files=files)
        for how in ("", "-m ")
        for files, says in (
            ({"there": None}, ("holds neither config.json nor",)),
            ({"there": "a file"}, ("must be a folder",)),
        )
    ],
    train(["model=path", f"model.path={'x' * 5000}"], "model.path="),
    train("model=path model.path=3", "model.path must be str, got 3"),
    train(["model=path", "model.path=''"], "model.path"),
    train("model=path model.path=there", "there", files={"there/config.json": None}),
    train(
        "model=path model.path=there",
        "there",
        "a.gguf",
        "b.gguf",
        files={"there/a.gguf": "", "there/b.gguf": ""},
    ),
    train("model=path model.path=there", "there", files={"there": None}, modes={"there": 0}),
]

PROSE = "summary: a\nsaves: weights\ncosts: none\nsource: here\nchanges: nothing\n"
OWN = {"MEMSWEEP_CONF": "conf"}


def conf(name: str, content: Content, *says: str) -> Request:
    """Return a trial from a conf folder with one file in it."""
    return train(
        "", *says, files={f"conf/{name}": content}, environment=OWN, program="train.py, conf/ read anew"
    )


CONF = [
    train(
        "",
        "nowhere",
        "MEMSWEEP_CONF",
        environment={"MEMSWEEP_CONF": "nowhere"},
        program="train.py, conf/ read anew",
    ),
    conf("technique", None, "holds no technique folder"),
    conf("technique/a/baseline.yaml", "[1]\n", "technique/a/baseline.yaml"),
    conf("technique/a/baseline.yaml", "summary: [\n", "technique/a/baseline.yaml"),
    conf("technique/a/baseline.yaml", b"\xff\xfe", "technique/a/baseline.yaml"),
    conf("technique/a/baseline.yaml", "summary: 3\n", "technique/a/baseline.yaml"),
    conf("technique/a/baseline.yaml", PROSE + "nope: 1\n", "technique/a/baseline.yaml", "nope"),
    conf("technique/a/baseline.yaml", PROSE + "settings: {nope: {}}\n", "technique/a/baseline.yaml", "nope"),
    conf("technique/a/baseline.yaml", PROSE + "parameters: {r: 3}\n", "technique/a/baseline.yaml", "r"),
    conf("technique/a/baseline.yaml", PROSE + "requires: 3\n", "technique/a/baseline.yaml", "requires"),
    conf("technique/a/baseline.yaml", PROSE + "requires: [{b: c, because: x, source: y}]\n", "b"),
    conf("technique/a/on.yaml", PROSE, "technique/a", "baseline.yaml"),
    memsweep("techniques", "nowhere", environment={"MEMSWEEP_CONF": "nowhere"}),
    memsweep("lengths", "nowhere", environment={"MEMSWEEP_CONF": "nowhere"}),
    train(
        "",
        "config",
        environment=OWN,
        files={"conf/technique/a/baseline.yaml": PROSE},
        program="train.py, conf/ read anew",
    ),
    train(
        "",
        "config.yaml",
        environment=OWN,
        files={"conf/technique/a/baseline.yaml": PROSE, "conf/config.yaml": "a: [1"},
        program="train.py, conf/ read anew",
    ),
    train(
        "",
        "model/x.yaml",
        environment=OWN,
        files={"conf/technique/a/baseline.yaml": PROSE, "conf/config.yaml": "", "conf/model/x.yaml": "[1]"},
        program="train.py, conf/ read anew",
    ),
]

ALL: dict[str, list[Request]] = {"data": DATA, "models": MODELS, "conf": CONF}
