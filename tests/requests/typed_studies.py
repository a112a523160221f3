"""Sweeps that cannot be meant: their spaces, settings, names, rules, and what lies in their folders."""

from __future__ import annotations

from refused import Request, train

SWEEPER = "hydra.sweeper"


def sweep(typed: str | list[str], *says: str, **how: object) -> Request:
    """Return a request for a study."""
    if isinstance(typed, str):
        return train(f"-m {typed}", *says, **how)
    return train(["-m", *typed], *says, **how)


def setting(name: str, value: str, *says: str, **how: object) -> Request:
    """Return a request for a study with one of the sweeper's settings."""
    return sweep([f"{SWEEPER}.{name}={value}"], *says, **how)


SPACES = [
    sweep("seed=range(3,3)", "seed=range(3,3) names no value"),
    sweep("seed=range(1,10,0)", "seed=range(1,10,0)"),
    sweep("seed=range(0,1e300)", "seed=range(0,1e300)"),
    sweep("seed=range(0,inf)", "seed=range(0,inf)"),
    sweep("seed=range(nan,3)", "seed=range(nan,3)"),
    sweep("seed=range(0,10000000)", "names more than 100,000 values", "int(interval(first,last))"),
    sweep("seed=interval(2,1)", "seed=interval(2,1)", "start < end"),
    sweep("seed=interval(1,1)", "seed=interval(1,1)", "start < end"),
    sweep("seed=interval(nan,1)", "seed=interval(nan,1)"),
    sweep("seed=interval(0,inf)", "seed=interval(0,inf)"),
    sweep(["seed=tag(log,interval(0,1))"], "interval(0,1)", "logarithmic"),
    sweep(["seed=int(interval(0.2,0.7))"], "seed=int(interval(0.2,0.7))"),
    sweep("seed=1,1", "names one value twice"),
    sweep("seed=nan,nan", "names one value twice"),
    sweep("seed=1,x", "seed", "x"),
    sweep("seed=x,1", "seed must be int, got 'x'"),
    sweep("trainer.batch=0,4", "trainer.batch must be at least 1, got 0"),
    sweep(["technique/packing=glob(zzz)"], "names no option", "bfd"),
    sweep(["technique/packing=glob([)"], "technique/packing"),
    sweep(["technique/*=glob(*)"], "technique/*"),
    sweep(["nope=glob(*)"], "nope"),
    sweep("@seed=1,2", "@seed has no option 1"),
    sweep("trainer=1,2", "trainer has no option 1", "sft"),
    sweep("model=tiny,tinyy", "model has no option 'tinyy' (did you mean tiny?)"),
    sweep("nope=1,2", "nope"),
    sweep("trainer.nope=1,2", "trainer.nope"),
    sweep("hydra.verbose=true,false", "hydra.verbose"),
    sweep("hydra.sweeper.n_trials=3,4", "hydra.sweeper.n_trials"),
    sweep("hydra.job.num=1,2", "hydra.job.num"),
    sweep("~seed=1,2", "seed", "is 0 and not 1"),
    sweep(["+hydra.sweeper.params.seed=[1,2]"], "hydra.sweeper.params.seed", "'choice(a,b)'"),
    sweep(["+hydra.sweeper.params.seed='range('"], "hydra.sweeper.params", "range("),
    sweep(["+hydra.sweeper.params.seed='1,,2'"], "hydra.sweeper.params", "1,,2"),
    sweep(["+hydra.sweeper.params={'a b': '1,2'}"], "hydra.sweeper.params", "a b"),
    sweep(["+hydra.sweeper.params={'': '1,2'}"], "hydra.sweeper.params"),
    sweep(["+hydra.sweeper.params={'nope/*': 'glob(*)'}"], "nope/*"),
    sweep(["+hydra.sweeper.params={'hydra.verbose': 'true,false'}"], "hydra.verbose"),
    sweep(["+hydra.sweeper.params={technique/packing: 'bfd,foo'}"], "technique/packing has no option 'foo'"),
    setting("params", "3", "hydra.sweeper.params", "3"),
    setting("params", "[a]", "hydra.sweeper.params"),
    setting("search_space", "3", "hydra.sweeper.search_space"),
    sweep(
        ["space=none", f"{SWEEPER}.search_space={{seed:{{type:float}}}}"], "hydra.sweeper.search_space", "low"
    ),
    sweep(["space=none", f"{SWEEPER}.search_space={{seed:{{type:int,low:5,high:1}}}}"], "seed"),
    setting("custom_search_space", "os.system", "hydra.sweeper.custom_search_space is not supported"),
    setting("option_parameters", "some", "option_parameters must be one of fixed, searched, got 'some'"),
]


def rule(name: str, value: str, *says: str) -> Request:
    """Return a request for a study of two keys, with a rule about them."""
    return sweep(["space=none", "seed=1,2", "trainer.batch=2,4", f"++{SWEEPER}.{name}={value}"], *says)


RULES = [
    setting("when", "{seed:{trainer.batch:2}}", "to add seed to it, type ++hydra.sweeper.when={seed:"),
    rule("when", "3", "hydra.sweeper.when", "3"),
    rule("when", "[a]", "hydra.sweeper.when"),
    rule("when", "{nope:{seed:1}}", "hydra.sweeper.when.nope", "neither searched nor in the config"),
    rule("when", "{seed:{nope:1}}", "nope", "neither searched nor in the config"),
    rule("when", "{seed:3}", "hydra.sweeper.when.seed must map keys", "3"),
    rule("when", "{seed:{}}", "hydra.sweeper.when.seed must map keys"),
    rule("when", "{seed:{technique/packing:foo}}", "technique/packing is never foo", "bfd"),
    rule("when", "{seed:{trainer.batch:{at_least:x}}}", "at_least takes a number, got 'x'"),
    rule("when", "{seed:{trainer.batch:{at_least:9,at_most:1}}}", "no number is at least 9 and at most 1"),
    rule("when", "{seed:{trainer.batch:{more:1}}}", "at_least", "more"),
    rule("when", "{seed:{trainer.batch:[]}}", "at least one value"),
    rule("when", "{seed:{seed:1}}", "seed"),
    sweep(
        [
            "space=none",
            "seed=1,2",
            "trainer.batch=2,4",
            f"++{SWEEPER}.when={{seed:{{trainer.batch:2}},trainer.batch:{{seed:1}}}}",
        ],
        "hydra.sweeper.when",
        "trainer.batch",
    ),
    rule("exclude", "3", "hydra.sweeper.exclude must be a list of mappings", "3"),
    rule("exclude", "{seed:1}", "hydra.sweeper.exclude must be a list of mappings"),
    rule("exclude", "[3]", "hydra.sweeper.exclude, entry 1 must map keys", "3"),
    rule("exclude", "[{}]", "hydra.sweeper.exclude, entry 1 must map keys"),
    rule("exclude", "[{because:x}]", "hydra.sweeper.exclude, entry 1 must map keys"),
    rule("exclude", "[{seed:1,because:[x]}]", "because must be text"),
    rule("exclude", "[{nope:1}]", "hydra.sweeper.exclude, entry 1: nope is neither searched"),
    rule("exclude", "[{technique/packing:foo}]", "technique/packing is never foo"),
    sweep(["seed=1,2", f"{SWEEPER}.exclude=[{{seed:[1,2]}}]"], "seed=1 or 2 is excluded"),
]


def added(name: str, value: str, *says: str) -> Request:
    """Return a request for a study with one more key in a mapping of the sweeper's."""
    return sweep([f"++{SWEEPER}.{name}={value}"], *says)


SETTINGS = [
    setting("n_trials", "0", "hydra.sweeper.n_trials must be at least 1, got 0"),
    setting("n_trials", "-1", "hydra.sweeper.n_trials must be at least 1, got -1"),
    setting("n_trials", "1.5", "n_trials", "1.5"),
    setting("n_trials", "null", "n_trials"),
    setting("n_trials", "[3]", "n_trials"),
    setting("n_trials", "'3 trials'", "n_trials", "3 trials"),
    setting("n_jobs", "0", "hydra.sweeper.n_jobs must be at least 1, got 0"),
    setting("n_jobs", "2", "n_jobs", "hydra.launcher.slots"),
    setting("max_seconds", "0", "hydra.sweeper.max_seconds must be a duration above 0", "got 0"),
    setting("max_seconds", "soon", "hydra.sweeper.max_seconds", "got 'soon'"),
    setting("max_seconds", "nan", "hydra.sweeper.max_seconds", "got nan"),
    setting("max_seconds", "-5m", "hydra.sweeper.max_seconds", "got '-5m'"),
    setting("max_seconds", "1h30", "hydra.sweeper.max_seconds", "got '1h30'"),
    setting("max_seconds", "''", "hydra.sweeper.max_seconds", "got ''"),
    setting("max_seconds", "[60]", "hydra.sweeper.max_seconds", "got [60]"),
    setting("max_device_hours", "0", "hydra.sweeper.max_device_hours must be a duration above 0"),
    setting("max_device_hours", "lots", "hydra.sweeper.max_device_hours", "got 'lots'"),
    setting("stagnation", "0", "hydra.sweeper.stagnation must be at least 1, got 0"),
    setting("stagnation_tolerance", "nan", "hydra.sweeper.stagnation_tolerance must be at least 0, got nan"),
    setting("max_failure_rate", "2", "hydra.sweeper.max_failure_rate must be from 0 to 1, got 2"),
    setting("max_failure_rate", "nan", "hydra.sweeper.max_failure_rate must be from 0 to 1, got nan"),
    setting("max_failures", "-1", "hydra.sweeper.max_failures must be at least 0, got -1"),
    setting("fail_fast", "maybe", "fail_fast", "maybe"),
    setting("cut_short", "maybe", "cut_short", "maybe"),
    setting("dry_run", "maybe", "dry_run", "maybe"),
    setting("ladder", "up", "hydra.sweeper.ladder must be one of auto, first, off, got 'up'"),
    setting("ladder_share", "2", "hydra.sweeper.ladder_share must be from 0 to 1, got 2"),
    setting("ladder_share", "nan", "hydra.sweeper.ladder_share must be from 0 to 1, got nan"),
    setting("extra_trials", "-1", "hydra.sweeper.extra_trials must be at least 0, got -1"),
    setting("repeats", "0", "repeats must be", "got 0"),
    setting("repeats", "often", "repeats", "often"),
    setting("front_repeats", "-1", "front_repeats must be", "got -1"),
    setting("seed", "x", "seed", "x"),
    setting("seed", "-1", "hydra.sweeper.seed", "-1"),
    setting("seed", "99999999999999999999", "hydra.sweeper.seed", "99999999999999999999"),
    setting("progress", "loud", "hydra.sweeper.progress must be one of auto, live, plain, off, got 'loud'"),
    setting("resume", "maybe", "hydra.sweeper.resume must be one of auto, require, never, got 'maybe'"),
    setting("sampler", "cmaes", "hydra.sweeper.sampler", "cmaes"),
    setting("sampler", "3", "hydra.sweeper.sampler", "3"),
    setting("sampler", "null", "hydra.sweeper.sampler"),
    setting("sampler.name", "cmaes", "hydra.sweeper.sampler must be one of auto", "got 'cmaes'"),
    setting("sampler.nope", "1", "nope"),
    setting("sampler.cost_weight", "lots", "cost_weight", "lots"),
    setting("sampler.cost_weight", "nan", "cost_weight", "nan"),
    setting("sampler.n_startup_trials", "-1", "n_startup_trials", "-1"),
    setting("sampler.n_startup_trials", "few", "n_startup_trials", "few"),
    setting("sampler.seed", "x", "seed", "x"),
    sweep("hydra/sweeper/sampler=tpe hydra.sweeper.sampler.n_ei_candidates=x", "n_ei_candidates", "x"),
    sweep("hydra/sweeper/sampler=tpe hydra.sweeper.sampler.n_startup_trials=-3", "n_startup_trials", "-3"),
    sweep("hydra/sweeper/sampler=tpe +hydra.sweeper.sampler.gamma=1", "gamma", "n_ei_candidates"),
    sweep("hydra/sweeper/sampler=nsgaii hydra.sweeper.sampler.population_size=1", "population_size", "2"),
    sweep("hydra/sweeper/sampler=nsgaii hydra.sweeper.sampler.population_size=x", "population_size", "x"),
    sweep("hydra/sweeper/sampler=nsgaii hydra.sweeper.sampler.mutation_prob=2", "mutation_prob"),
    sweep("hydra/sweeper/sampler=qmc hydra.sweeper.sampler.qmc_type=nope", "nope", "halton"),
    sweep("hydra/sweeper/sampler=random hydra.sweeper.sampler.seed=-1", "seed", "-1"),
    sweep(
        "hydra/sweeper/sampler=grid launch.timeout_seconds=interval(100.0,200.0)",
        "grid",
        "launch.timeout_seconds",
    ),
    setting("direction", "up", "hydra.sweeper.direction must be minimize or maximize, got 'up'"),
    setting("objectives", "3", "objectives", "3"),
    added("objectives", "{speed:up}", "objective speed must be minimize or maximize, got 'up'"),
    added("objectives", "{speed:null}", "objective", "speed"),
    setting("constraints", "3", "constraints", "3"),
    added(
        "constraints", "{c:3}", "hydra.sweeper.constraints.c must be {measure: name, at_most: number}", "3"
    ),
    added("constraints", "{c:{measure:a}}", "hydra.sweeper.constraints.c needs a measure and one of at_most"),
    added("constraints", "{c:{measure:a,at_most:lots}}", "constraints.c.at_most must be a number", "'lots'"),
    added("constraints", "{c:{measure:a,at_most:nan}}", "constraints.c.at_most must be a number", "nan"),
    setting(
        "constraints.memory_budget.at_most", "24GiB", "memory_budget.at_most must be a number", "'24GiB'"
    ),
    setting("storage", "study.db", "hydra.sweeper.storage must be auto, null or a URL", "got 'study.db'"),
    setting("storage", "3", "hydra.sweeper.storage must be auto, null or a URL", "got 3"),
    setting("storage", "''", "hydra.sweeper.storage must be auto, null or a URL", "got ''"),
    setting("storage", "sqllite:///x.db", "hydra.sweeper.storage", "sqllite"),
    setting("storage", "mysql://nobody@nowhere/x", "hydra.sweeper.storage", "mysql"),
    setting("storage", "'://'", "hydra.sweeper.storage", "://"),
    setting("storage", "http://localhost:1/x", "hydra.sweeper.storage", "http"),
    setting("storage", "sqlite:///nowhere/x.db", "hydra.sweeper.storage", "nowhere"),
    setting("storage", "sqlite:///there", "hydra.sweeper.storage", "there", files={"there": None}),
    setting(
        "storage", "{_target_:optuna.storages.RDBStorage,url:sqlite:///x.db}", "type hydra.sweeper.storage="
    ),
    train("-m hydra.launcher.slots=0", "hydra.launcher.slots must be at least 1, got 0"),
    train("-m hydra.launcher.slots=-3", "hydra.launcher.slots must be at least 1, got -3"),
    train("-m hydra.launcher.slots=many", "slots", "many"),
    train("-m hydra.launcher.slots=4096", "4096", "a core for each trial"),
    train("-m hydra.launcher.start_method=thread", "start_method", "thread", "spawn"),
    train("-m hydra.launcher.max_templates=0", "max_templates", "0"),
    train("-m hydra.launcher.max_templates=x", "max_templates", "x"),
    train("-m hydra.launcher.timeout_seconds=-1", "hydra.launcher.timeout_seconds", "-1"),
    train("-m hydra.launcher.timeout_seconds=nan", "hydra.launcher.timeout_seconds", "nan"),
    train("-m hydra.launcher.preload=3", "preload"),
    train("-m hydra.launcher.environment=3", "environment"),
    train(["-m", "+hydra.launcher.environment={'A=B': x}"], "hydra.launcher.environment", "A=B"),
    train("-m tracking.mode=nope", "tracking.mode must be one of", "got 'nope'"),
    train("-m tracking.project=a/b", "tracking.project may have", "'a/b'"),
    train("-m tracking=3", "tracking"),
    train("-m measure.repeats=0", "measure.repeats must be at least 1, got 0"),
    train("-m measure.front_repeats=x", "measure.front_repeats must be int, got 'x'"),
]

STUDY_NAMES = [
    setting("study_name", name, "hydra.sweeper.study_name must be", *says)
    for name, says in (
        ("..", ("'..'",)),
        (".", ("'.'",)),
        ("''", ("''",)),
        ("../up", ("'../up'",)),
        ("/etc/cron.d/x", ("/etc/cron.d/x",)),
        ("a/../../b", ("a/../../b",)),
        (".hidden", ("'.hidden'",)),
        ("'a\\\\b'", ("a\\",)),
        ("'a\nb'", ("a\\nb",)),
        ("'a\tb'", ("a\\tb",)),
        ("'a\x7fb'", ("a\\x7fb",)),
        ("'a\x1b[31mb'", ("\\x1b[31m",)),
        ("'a\u202eb'", ("\\u202e",)),
        ("'a\u2028b'", ("\\u2028",)),
        ("x" * 5_000, ("xxx", "characters) ...")),
        ("'" + "\u00e9" * 199 + "'", ("\u00e9\u00e9",)),
        ("${oc.env:HOME}", ("slash",)),
        ("' '", ("' '",)),
    )
]
STUDY_NAMES.append(setting("study_name", "a\udcffb", "cannot read the override", "udcff"))

FOLDERS = [
    setting("study_name", "s", "outputs", files={"outputs": "a file"}),
    setting("study_name", "s", "outputs/s", files={"outputs/s": "a file"}),
    setting("study_name", "s", "outputs", files={"outputs": None}, modes={"outputs": 0o555}),
    setting("study_name", "s", "outputs/s", files={"outputs/s": None}, modes={"outputs/s": 0o555}),
    setting("study_name", "s", "outputs/s", files={"outputs/s/.lock": None}),
    sweep("hydra.sweep.dir=there/s", "there", files={"there": "a file"}),
    sweep(f"hydra.sweep.dir={'d' * 5000}", "File name too long"),
    sweep("hydra.sweep.dir=[a]", "hydra.sweep.dir"),
    sweep("hydra.sweep.subdir=../../../up", "hydra.sweep.subdir", "../../../up"),
    sweep("hydra.sweep.subdir=/elsewhere", "hydra.sweep.subdir", "/elsewhere"),
    sweep(
        "hydra.sweeper.resume=require hydra.sweeper.study_name=s", "holds no trial to continue", "outputs/s"
    ),
    sweep(
        "hydra.sweeper.resume=never hydra.sweeper.study_name=s",
        "adds to none",
        "hydra.sweeper.study_name=s-2",
        files={"outputs/s/trials/0/trial.json": "{}"},
    ),
    setting(
        "study_name",
        "s",
        "no trial.json that can be read",
        "outputs/s/trials/0",
        files={"outputs/s/trials/0/outcome.json": "{}"},
    ),
    setting("study_name", "s", "outputs/s/trials/0", files={"outputs/s/trials/0/trial.json": "[1]"}),
    setting("study_name", "s", "outputs/s/trials/0", files={"outputs/s/trials/0/trial.json": b"\xff\x00"}),
    setting(
        "study_name", "s", "outputs/s/trials/0", files={"outputs/s/trials/0/trial.json": '{"number": "x"}'}
    ),
]

ENQUEUED = [
    setting("enqueue", "nowhere.txt", "there is no file nowhere.txt"),
    setting("enqueue", "there", "there", files={"there": None}),
    setting("enqueue", "3", "3"),
    setting("enqueue", "x" * 5_000, "hydra.sweeper.enqueue"),
    setting("enqueue", "t.txt", "t.txt", files={"t.txt": b"\xff\xfe\x00\x01"}),
    setting("enqueue", "t.txt", "t.txt", files={"t.txt": "seed=1\n"}, modes={"t.txt": 0}),
    setting("enqueue", "t.txt", "t.txt", "seed=1,2", files={"t.txt": "seed=1,2\n"}),
    setting("enqueue", "t.txt", "t.txt", "trial 2", files={"t.txt": "seed=1\nseed=(\n"}),
    setting("enqueue", "t.txt", "t.txt", "No closing quotation", files={"t.txt": "seed='\n"}),
    setting("enqueue", "t.txt", "t.txt", "hydra.verbose", files={"t.txt": "hydra.verbose=true\n"}),
    setting("enqueue", "t.txt", "t.txt, trial 1", "nope", files={"t.txt": "technique/packing=nope\n"}),
    setting("enqueue", "t.txt", "t.txt, trial 1", "nope", files={"t.txt": "technique/nope=bfd\n"}),
    setting("enqueue", "t.txt", "t.txt, trial 1", "nope", files={"t.txt": "nope=1\n"}),
    setting("enqueue", "t.txt", "t.txt, trial 1", "got 'x'", files={"t.txt": "seed=x\n"}),
    setting(
        "enqueue", "t.txt", "t.txt", "technique/adapter=lora", files={"t.txt": "technique.adapter=lora\n"}
    ),
    setting("enqueue", "t.yaml", "t.yaml must hold a list", files={"t.yaml": "a: 1\n"}),
    setting("enqueue", "t.yaml", "t.yaml", files={"t.yaml": ""}),
    setting("enqueue", "t.yaml", "t.yaml cannot be read", files={"t.yaml": "- [\n"}),
    setting("enqueue", "t.yaml", "t.yaml: a trial is a line", files={"t.yaml": "- 3\n"}),
    setting("enqueue", "t.yaml", "t.yaml: a trial is a line", files={"t.yaml": "- [3]\n"}),
    setting("enqueue", "t.yaml", "t.yaml", files={"t.yaml": "- {a b: 1}\n"}),
    setting("enqueue", "t.json", "t.json", files={"t.json": "{"}),
    setting("enqueue", "t.yaml", "t.yaml", files={"t.yaml": "- " + "[" * 3000 + "\n"}),
]

WARM = [
    setting("warm_start", "nowhere", "hydra.sweeper.warm_start", "nowhere"),
    setting("warm_start", "there", "hydra.sweeper.warm_start", "there", files={"there": "a file"}),
    setting("warm_start", "there", "hydra.sweeper.warm_start", "there", files={"there": None}),
    setting("warm_start", "x" * 5_000, "hydra.sweeper.warm_start"),
    setting("warm_start", "3", "hydra.sweeper.warm_start"),
    setting("warm_start", "example", "example", files={"outputs/example/study.json": "{"}),
    setting("warm_start", "example", "example", files={"outputs/example/study.json": '{"name": "x"}'}),
    setting(
        "warm_start", "example", "example", files={"outputs/example/results.jsonl": "{}\n"}, studies=True
    ),
    setting(
        "warm_start", "example", "example", files={"outputs/example/results.jsonl": b"\xff\n"}, studies=True
    ),
    sweep(
        "hydra.sweeper.warm_start=example trainer=dpo space=preference_memory",
        "example was about something else",
        "dpo",
        studies=True,
    ),
    setting("warm_start", "''", "hydra.sweeper.warm_start"),
]

ALL: dict[str, list[Request]] = {
    "spaces": SPACES,
    "rules": RULES,
    "settings": SETTINGS,
    "study names": STUDY_NAMES,
    "folders": FOLDERS,
    "enqueued": ENQUEUED,
    "warm": WARM,
}
