"""What the `memsweep` command cannot do: words, sizes, trials that are not there, damaged studies."""

from __future__ import annotations

from typing import Any

from refused import READERS, Edit, Request, memsweep, reading

QUICK = (READERS[0], READERS[1], READERS[3])
"""Those that read all of it, and import no torch."""

STUDY, RESULTS = "outputs/example/study.json", "outputs/example/results.jsonl"


def without(key: str) -> Edit:
    """Return what takes a key from an object."""
    return lambda data: {name: value for name, value in data.items() if name != key}


def having(**changed: Any) -> Edit:
    """Return what gives keys of an object other values."""
    return lambda data: {**data, **changed}


def damaged(file: str, *edits: Edit) -> list[Request]:
    """Return each reader in turn, of a study with one file edited."""
    return [
        memsweep(reading(QUICK[number % len(QUICK)], "example"), "example", studies=True, edits={file: edit})
        for number, edit in enumerate(edits)
    ]


WORDS = [
    memsweep("", "COMMAND"),
    memsweep("nope", "nope", "report"),
    memsweep("--nope", "COMMAND"),
    memsweep("report", "STUDY"),
    memsweep("report a b", "b"),
    memsweep("report --nope a", "--nope"),
    *[memsweep(reading(name, "nowhere"), "no study 'nowhere'", "train.py -m") for name in READERS],
    *[memsweep(reading(name, "exmaple"), "no study 'exmaple'", "example", studies=True) for name in READERS],
    memsweep(["report", ""], "no study ''"),
    memsweep(["report", "x" * 5000], "no study"),
    memsweep(["report", "a\nb"], "a\\nb"),
    memsweep(["report", "\udcff"], "udcff"),
    memsweep("report there", "there", files={"there": "a file"}),
    memsweep("report there", "there", files={"there/study.json": None}),
    memsweep("report example", "study.json", studies=True, modes={STUDY: 0}),
    memsweep("report example", "results.jsonl", studies=True, modes={RESULTS: 0}),
    memsweep("report example", "outputs/example", studies=True, modes={"outputs/example": 0o555}),
    memsweep("report example --dry-run", "--dry-run belongs to --wandb", studies=True),
    memsweep("report example --wandb", "example has no runs in W&B", studies=True),
    memsweep("report example --wandb --dry-run", "example has no runs in W&B", studies=True),
    memsweep(
        "report example --wandb --dry-run",
        "wandb",
        studies=True,
        files={"outputs/example/wandb/memsweep.json": "{"},
    ),
    memsweep("dashboard nowhere", "nowhere"),
    memsweep("dashboard example --port 99999", "--port", "99999", studies=True),
    memsweep("dashboard example --port x", "--port", "'x'", studies=True),
    memsweep("recommend example --memory 24", "--memory", "'24'", "24GiB", studies=True),
    memsweep("recommend example --memory -1GiB", "--memory", studies=True),
    memsweep("recommend example --memory 0GiB", "--memory", "0GiB", studies=True),
    memsweep("recommend example --memory 1e9GiB", "--memory", "1e9GiB", studies=True),
    memsweep("recommend example --memory nanGiB", "--memory", "nanGiB", studies=True),
    memsweep("recommend example --memory 24parsec", "--memory", "24parsec", studies=True),
    memsweep(f"recommend example --memory {'9' * 400}GiB", "--memory", studies=True),
    memsweep("recommend example --min-speed 90%", "--min-speed", "'90%'", studies=True),
    memsweep("recommend example --min-speed 0", "--min-speed", "'0'", studies=True),
    memsweep("recommend example --min-speed nan", "--min-speed", "'nan'", studies=True),
    memsweep("recommend example --min-speed 1.1", "--min-speed", "'1.1'", studies=True),
    memsweep("recommend example --prefer cheap", "--prefer", "cheap", "knee", studies=True),
    memsweep(
        "recommend example --changes speed", "--changes must be among numerics", "got speed", studies=True
    ),
    memsweep("recommend example --changes data --any-changes", "--any-changes", studies=True),
    memsweep(
        "export example seven --to there", "TRIAL must be the number of a trial", "'seven'", studies=True
    ),
    memsweep("export example 99 --to there", "example has no trial 99", "0, 1, 2", studies=True),
    memsweep(f"export example {'9' * 5000} --to there", "trial", studies=True),
    memsweep(
        ["export", "example", "\u00b2", "--to", "there"], "TRIAL must be the number of a trial", studies=True
    ),
    memsweep("export example 3 --to there", "trial 3 was not measured", studies=True),
    memsweep("export example 6 --to there", "export 0", studies=True),
    memsweep("export example 0", "--to", studies=True),
    memsweep("export example 0 --to there", "measure it again", studies=True),
    memsweep("clean example --keep nope", "--keep must be front", "nope", studies=True),
    memsweep("clean example --keep 99", "there is no trial 99", studies=True),
    memsweep(["clean", "example", "--keep", "\u00b2"], "--keep must be front", studies=True),
    memsweep("clean example --keep 1..3", "--keep must be front", "1..3", studies=True),
    memsweep("rebuild nowhere", "no study 'nowhere'"),
    memsweep("rebuild there", "study.json", "study_name=there", files={"there": None}),
    memsweep("rebuild example", "outputs/example", studies=True, modes={"outputs/example": 0o555}),
    memsweep("techniques --trainer ppo", "no trainer 'ppo'", "dpo"),
    memsweep("techniques --json --markdown", "--markdown", "--json"),
    memsweep("techniques nope", "nope"),
    memsweep("diff nowhere elsewhere", "'nowhere'", "'elsewhere'", "a side is a git ref"),
    memsweep(["diff", "", "."], "a side is"),
    memsweep("diff --json --markdown", "--markdown"),
    memsweep("diff baseline baseline", "baseline", "name another side"),
    memsweep(["diff", "x" * 5000, "."], "File name too long"),
    memsweep("diff a.yaml b.yaml", "a.yaml", files={"a.yaml": "a: [1", "b.yaml": "a: 1"}),
    memsweep("diff a.yaml b.yaml", "a.yaml", files={"a.yaml": b"\xff\xfe\x00", "b.yaml": "a: 1"}),
    memsweep("diff a.yaml b.yaml", "a.yaml must hold a mapping", files={"a.yaml": "[1]", "b.yaml": "a: 1"}),
    memsweep("diff a.yaml b.yaml", "b.yaml", files={"a.yaml": "a: 1", "b.yaml": "a: 1"}, modes={"b.yaml": 0}),
    memsweep(
        "diff t b.yaml", "t", files={"t/config.yaml": "a: 1", "t/effective.json": "{", "b.yaml": "a: 1"}
    ),
    memsweep("diff a.yaml b.yaml", "a.yaml", files={"a.yaml": "[" * 100_000, "b.yaml": "a: 1"}),
    memsweep("diff a.yaml b.yaml", "a.yaml", files={"a.yaml": "? [a]\n: 1\n", "b.yaml": "a: 1"}),
    memsweep("lengths --batch-size 0", "--batch-size", "'0'"),
    memsweep("lengths --batch-size x", "--batch-size", "'x'"),
    memsweep(["lengths", "--batch-size", "\u00b2"], "--batch-size"),
    memsweep("lengths --picture x.jpg", "a picture is .svg or .png", "x.jpg"),
    memsweep("lengths --picture nowhere/x.svg", "there is no folder nowhere"),
    memsweep("lengths --study example model=tiny", "--study says whose data", "model=tiny", studies=True),
    memsweep("lengths model=tinny", "model has no option 'tinny' (did you mean tiny?)"),
    memsweep("lengths seed=[1", "cannot read the override 'seed=[1'"),
    memsweep("lengths nope=1", "nope is not a setting"),
    memsweep("lengths seed=1,2", "seed=1,2"),
    memsweep("lengths trainer.batch=0", "trainer.batch must be at least 1, got 0"),
    memsweep(["lengths", "seed=${seed}"], "seed"),
    memsweep("lengths model=path model.path=nowhere", "model.path=nowhere is not there"),
]

NUMBERS = {"tokens_per_second": "fast", "peak_memory_bytes": None}

DAMAGED = [
    *[
        memsweep(
            reading(QUICK[number % len(QUICK)], "example"), "example", studies=True, files={file: content}
        )
        for file in (STUDY, RESULTS)
        for number, content in enumerate(
            ("{", "[]", "3", b"\xff\xfe\x00", '{"name": "x"}', "null\n", "[" * 100_000, '{"number": NaN}\n')
        )
    ],
    memsweep("report example", "example", studies=True, files={STUDY: ""}),
    *damaged(
        STUDY,
        without("objectives"),
        without("name"),
        without("command"),
        having(objectives=3),
        having(objectives=[]),
        having(objectives=[["tokens_per_second", "up"]]),
        having(objectives=[["tokens_per_second"]]),
        having(objectives=[[3, "minimize"]]),
        having(name=3),
        having(name=None),
        having(constraints=3),
        having(constraints={"c": {"measure": 3, "upper": "x", "bound": "much"}}),
        having(constraints={"c": {"nope": 3}}),
        having(reference={"tokens_per_second": {"value": "x", "logarithmic": True, "why": "y"}}),
        having(reference=[1]),
        having(parameters=3),
        having(fixed=3),
        having(fixed=[1]),
        having(sampler=3),
        having(n_trials="many"),
        having(context=3),
        having(context={"trainer": 3}),
        having(versions=3),
        having(compared_with="x"),
        having(conditions=3),
        having(ended=3),
        having(fingerprint=3),
        having(distributions=3),
        having(program=3),
        having(nope=3),
        having(created=3),
        having(command=["a"]),
    ),
    *damaged(
        RESULTS,
        without("number"),
        without("outcome"),
        having(number="x"),
        having(number=None),
        having(number=1.5),
        having(outcome=3),
        having(outcome={"type": "nope"}),
        having(outcome={"type": "measured"}),
        having(outcome={"type": "measured", "measures": 3}),
        having(outcome={"type": "measured", "measures": {"tokens_per_second": "fast"}}),
        having(outcome={"type": "crashed", "reason": 3, "phase": "nope"}),
        having(outcome={"type": "out_of_memory", "where": 3, "phase": "build", "requested_bytes": "x"}),
        having(objectives=3),
        having(objectives=NUMBERS),
        having(objectives={"tokens_per_second": 1.0}),
        having(measures=NUMBERS),
        having(measures=[1]),
        having(choice=3),
        having(choice={"adapter": 3}),
        having(parameters=[1]),
        having(parameters={"technique/adapter": 3}),
        having(overrides=3),
        having(overrides=[3]),
        having(constraints={"memory_budget": "x"}),
        having(feasible="yes"),
        having(on_front=3),
        having(requested_hash=3),
        having(changes=3),
        having(changes=[3]),
        having(reused_from="x"),
        having(seconds={"total": "x"}),
        having(seconds=3),
        having(versions=3),
        having(program=3),
        having(repeats=[3]),
        having(repeats=3),
        having(unlike=[3]),
        having(conditions=3),
        having(nope=3),
    ),
]

ALL: dict[str, list[Request]] = {"words": WORDS, "damaged": DAMAGED}
