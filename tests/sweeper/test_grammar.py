"""Hydra's override grammar entire: each job gets exactly the typed values that were written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from fake_launcher import Outcome
from hydra import initialize
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from omegaconf import DictConfig, OmegaConf

from hydra_plugins.pareto_sweeper._app import PlainApp
from hydra_plugins.pareto_sweeper._build import Asked, build_space
from memsweep.search.grammar import label_text, read_value
from memsweep.search.match import same_value

Run = Callable[..., Outcome]

APP: dict[str, Any] = {
    "defaults": [{"db": "mysql"}, {"db@source": "mysql"}],
    "x": 0,
    "y": 0,
    "a": {"b": 1},
    "gone": 1,
}
GROUPS = {"db/mysql": {"port": 1}, "db/postgres": {"port": 2}, "db/sqlite": {"port": 3}}

# OmegaConf reads these itself, wherever they stand: a value that is missing, and a reference.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6).filter(
    lambda text: text != "???" and "${" not in text
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT)
KEYS = st.from_regex(r"[a-z][a-z0-9_]{0,4}", fullmatch=True).filter(
    lambda key: key not in ("null", "true", "false", "nan", "inf")
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)
SOME = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Grammar:
    """What an exhaustive sweep of the app runs, by this sweeper and by Hydra's own."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._composed: dict[tuple[str, ...], str] = {}
        self._config = loader.load_configuration("config", [], RunMode.MULTIRUN)

    def jobs(self, arguments: Sequence[str]) -> list[list[str]]:
        """Return what each trial is given."""
        asked = Asked(params={})
        space, _ = build_space(asked, arguments, PlainApp(), self._loader, self._config)
        return [list(space.overrides(cell)) for cell in space.cells()]

    def jobs_of_hydra(self, arguments: Sequence[str]) -> list[list[str]]:
        """Return what each job of Hydra's basic sweeper is given."""
        overrides = OverridesParser.create(config_loader=self._loader).parse_overrides(list(arguments))
        (batch,) = BasicSweeper.split_arguments(overrides, max_batch_size=None)
        return [list(job) for job in batch]

    def composed(self, job: Sequence[str]) -> str:
        """Return a job's config as text that shows every type."""
        if tuple(job) not in self._composed:
            config = self._loader.load_sweep_config(self._config, list(job))
            keys = sorted(str(key) for key in config if key != "hydra")
            self._composed[tuple(job)] = repr({key: plain(config, key) for key in keys})
        return self._composed[tuple(job)]

    def merged(self, job: Sequence[str]) -> dict[str, Any]:
        """Return the config that overrides of plain keys make, without composing groups anew."""
        config = OmegaConf.create({"x": 0, "y": 0})
        overrides = OverridesParser.create().parse_overrides(list(job))
        ConfigLoaderImpl._apply_overrides_to_config(overrides, config)
        return {key: plain(config, key) for key in ("x", "y")}


def plain(config: DictConfig, key: str) -> Any:
    node = config._get_node(key)
    return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else config[key]


@pytest.fixture
def grammar(hydra_restore_singletons: None) -> Iterator[Grammar]:
    """The app's config and groups, in Hydra's own store."""
    store = ConfigStore.instance()
    for name, node in GROUPS.items():
        group, _, option = name.rpartition("/")
        store.store(group=group, name=option, node=node)
    defaults = [*APP["defaults"], "_self_", {"override hydra/sweeper": "pareto"}]
    store.store(name="config", node={**APP, "defaults": defaults})
    with initialize(version_base="1.3", config_path=None):
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        yield Grammar(hydra.config_loader)


@SOME
@given(values=st.lists(VALUES, min_size=1, max_size=5), new=VALUES)
def test_any_value_reaches_the_config_as_it_was_written(
    grammar: Grammar, values: list[Any], new: Any
) -> None:
    texts = [label_text(value) for value in values]
    assume(len(set(texts)) == len(texts))
    found = [grammar.merged(job) for job in grammar.jobs([f"x={','.join(texts)}", f"y={label_text(new)}"])]

    assert [one["y"] for one in found if not same_value(one["y"], new)] == []
    assert len(found) == len(values)
    assert all(same_value(one["x"], value) for one, value in zip(found, values, strict=True))


@given(VALUES)
def test_a_value_rendered_and_read_again_is_that_value(value: Any) -> None:
    text = f"x={label_text(value)}"

    assert same_value(OverridesParser.create().parse_override(text).value(), value)


SWEEPS = {
    "x": [
        "x=1,2",
        "x=1,1.0,'1',true,'true',null,'null'",
        "x=1e-3,0.5,inf",
        "x=range(0,3)",
        "x=range(3)",
        "x=range(3,0,-1)",
        "x=range(0,1,0.25)",
        "x=float(range(1,3))",
        "x=int(choice(1.5,2.5))",
        "x=float([1,2],[3])",
        "x=shuffle(1,2,3)",
        "x=shuffle(range(1,4))",
        "x=sort(3,1,2)",
        "x=sort(3,1,2,reverse=true)",
        "x=sort(range(1,4),reverse=true)",
        "x=tag(some,choice(a,b))",
        "x='a,b',\"c=d\",'e\\'f',\"g h\"",
        "x=[1,'2'],[],[[3],{a:null}]",
        "x={a:1},{a:1.0},{}",
        "x=a:b,c/d,e.f,-g,h-1",
        "x=${y},1",
        "x=5",
        "x='1,2'",
        "x=[1,2]",
    ],
    "y": ["y=1,2", "y=extra", "++y=[a],b", "+new=1,2", "++new.key={a:[1]},null", "++new.key=1"],
    "a": ["a.b=1,2", "a.b=tag(log,range(1,3))", "a={b:2},{b:3}", "~a.b", "~a"],
    "db": ["db=mysql,postgres", "db=glob(*)", "db=glob(*,exclude=p*)", "db=glob([m*,s*])", "db=sqlite"],
    "source": ["db@source=mysql,postgres", "db@source=glob(*,exclude=[m*])", "~db@source"],
    "gone": ["~gone", "gone=2", "~gone=1"],
}


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    keys = draw(st.lists(st.sampled_from(sorted(SWEEPS)), min_size=1, max_size=3, unique=True))
    return [draw(st.sampled_from(SWEEPS[key])) for key in keys]


@settings(SOME, max_examples=12)
@given(arguments=command_lines())
def test_an_exhaustive_sweep_runs_the_jobs_of_hydras_own_sweeper(
    grammar: Grammar, arguments: list[str]
) -> None:
    expected = grammar.jobs_of_hydra(arguments)
    assume(len(expected) <= 4)  # a composition takes 50 ms

    found = grammar.jobs(arguments)

    assert sorted(map(grammar.composed, found)) == sorted(map(grammar.composed, expected))


@pytest.mark.parametrize("text", [text for texts in SWEEPS.values() for text in texts])
def test_each_form_of_override_names_the_values_that_hydra_names(grammar: Grammar, text: str) -> None:
    expected = grammar.jobs_of_hydra([text])

    found = grammar.jobs([text])

    assert {repr(parsed(job)) for job in found} == {repr(parsed(job)) for job in expected}
    assert len(found) == len(expected)


def parsed(job: Sequence[str]) -> list[tuple[str, Any]]:
    overrides = OverridesParser.create().parse_overrides(list(job))
    return [(one.get_key_element(), one.value()) for one in overrides]


def test_a_sweep_hands_its_launcher_what_was_written(run_sweep: Run) -> None:
    arguments = [
        "x='a,b',\"c=d\",'e\\'f',[1,'2'],{a:null}",
        "++y=1,1.0,'1',true,null",
        "db=glob(*,exclude=p*)",
        "db@source=sqlite",
        "+new=[1,2]",
        "~gone",
    ]
    outcome = run_sweep(
        arguments, lambda number, _: float(number), config=APP, groups=GROUPS, sampler="grid", n_trials=100
    )

    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.overrides) == 5 * 5 * 2
    assert {repr(read_value(text.partition("=")[2])) for text, *_ in outcome.overrides} == {
        "'a,b'",
        "'c=d'",
        '"e\'f"',
        "[1, '2']",
        "{'a': None}",
    }
    assert {repr(read_value(job[1].partition("=")[2])) for job in outcome.overrides} == {
        "1",
        "1.0",
        "'1'",
        "True",
        "None",
    }
    assert {tuple(job[2:]) for job in outcome.overrides} == {
        (f"db={name}", "db@source=sqlite", "+new=[1,2]", "~gone") for name in ("mysql", "sqlite")
    }
