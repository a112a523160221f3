"""Who unpickles, evaluates or runs a shell: a short list, each with what it is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    *(ROOT / "src").rglob("*.py"),
    *(ROOT / "sweeper" / "hydra_plugins").rglob("*.py"),
    ROOT / "train.py",
]

# Calls that make objects, or run what they are given.
CALLS = {
    *("pickle.load", "pickle.loads", "pickle.Unpickler", "cloudpickle.load", "cloudpickle.loads"),
    *(
        "torch.load",
        "numpy.load",
        "np.load",
        "joblib.load",
        "shelve.open",
        "marshal.load",
        "marshal.loads",
        "dill.load",
    ),
    *("pandas.read_pickle", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "eval", "exec", "compile"),
    *(
        "os.system",
        "os.popen",
        "subprocess.getoutput",
        "subprocess.getstatusoutput",
        "hydra.utils.instantiate",
    ),
    *("instantiate", "runpy.run_path", "runpy.run_module", "os.execve", "os.execv"),
}

# Where they may be: what comes through a pipe, or the memory, of a process that memsweep itself started.
ALLOWED = {
    ("src/memsweep/trial/answer.py", "pickle.loads"): "what a trial answers, through the pipe of its process",
    ("src/memsweep/trial/answer.py", "pickle.Unpickler"): "the same: its exception",
    (
        "src/memsweep/trial/child.py",
        "pickle.load",
    ): "what a trial is to do, from memory that its parent has made",
    ("src/memsweep/trial/child.py", "pickle.loads"): "the same: its function; and an exception of its own",
    ("src/memsweep/trial/group.py", "pickle.loads"): "what the processes of one trial send each other",
    ("src/memsweep/trial/team.py", "pickle.loads"): "the same",
    ("src/memsweep/trial/template.py", "pickle.load"): "the same, before a fresh interpreter takes its place",
    ("src/memsweep/trial/template.py", "os.execve"): "that fresh interpreter",
    ("sweeper/hydra_plugins/pareto_sweeper/_child.py", "pickle.loads"): "Hydra's state, part of the same",
    ("src/memsweep/technique/yaml_text.py", "yaml.load"): "with a loader that is a SafeLoader",
}


def calls(file: Path) -> Iterator[tuple[str, ast.Call]]:
    """Yield every call in a file with its dotted name, and each class that extends one of those listed."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node
            for keyword in node.keywords:
                if keyword.arg == "shell":
                    yield "shell=", node
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                yield ast.unparse(base), ast.Call(base, [], [])


def test_nothing_is_unpickled_or_evaluated_but_what_a_process_of_ours_sends() -> None:
    found = {
        (str(file.relative_to(ROOT)), name)
        for file in SOURCES
        for name, _ in calls(file)
        if name in CALLS or name == "shell="
    }

    assert found - set(ALLOWED) == set()
    assert set(ALLOWED) - found == set(), "take it off the list"


@pytest.mark.parametrize(
    "text", ["import pickle\npickle.loads(b'')", "eval('1')", "subprocess.run('x', shell=True)"]
)
def test_the_search_finds_what_it_looks_for(text: str, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(text, encoding="utf-8")

    assert {name for name, _ in calls(tmp_path / "one.py")} & {*CALLS, "shell="}


def test_yaml_is_read_by_a_safe_loader() -> None:
    import yaml

    from memsweep.technique.yaml_text import _Loader, parse_yaml

    assert issubclass(_Loader, yaml.SafeLoader | getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    with pytest.raises(ValueError, match="could not determine a constructor"):
        parse_yaml("a: !!python/object/apply:os.system ['touch pwned']")
