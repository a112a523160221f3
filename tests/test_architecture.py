"""What holds the whole together: import arrows, sizes, no technique known by name, a true file map.

The arrows (README.md draws them) are a dict of allowed roots a package; everything is read from the source by
its syntax tree, so nothing here imports what it judges.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "memsweep"
PLUGIN = ROOT / "sweeper" / "hydra_plugins" / "pareto_sweeper"

OURS = "memsweep."

# Of ours, what each may import; a package may always import itself, and everyone the standard library.
KNOWERS = {"errors", "units", "config", "technique", "record", "machine"}
ARROWS: dict[str, set[str]] = {
    "errors": set(),
    "units": set(),
    "student": set(),
    "secret": set(),
    "visible": set(),
    "config": {"errors", "technique", "machine", "secret"},
    "technique": {"errors", "machine"},
    "machine": set(),
    "record": {"errors", "units", "visible"},
    "pareto": {"errors"},
    "measure": {"errors", "units", "machine", "student"},
    "data": {"errors", "units", "config", "record"},
    "model": {"errors", "units", "config", "record", "data"},
    "ranks": {"errors", "record"},
    "trainers": {"errors", "units", "config", "technique", "machine", "data", "measure", "ranks"},
    "readback": {"config", "machine", "ranks", "technique", "trainers"},
    "trial": {*KNOWERS, "measure", "data", "model", "ranks", "visible", "trainers", "readback"},
    "findings": {"units", "student", "record", "pareto"},
    "report": {"errors", "units", "record", "findings", "lengths", "technique", "visible"},
    "tracking": {"errors", "record", "findings", "technique", "secret", "units"},
    "dashboard": {"errors", "units", "record", "findings"},
    "lengths": {"errors", "config", "technique", "complaint", "data", "model", "trainers"},
    "search": {"errors", "record", "pareto", "secret"},
    "study": {"errors", "units", "record", "pareto", "findings", "report", "search", "tracking"},
    "export": {
        *("errors", "units", "secret", "machine", "config", "technique", "record", "findings"),
        *("data", "model", "measure", "ranks", "trainers", "visible"),
    },
    "complaint": set(),
    "diff": {"complaint", "config", "data", "errors", "machine", "record", "secret", "technique", "visible"},
    "entry": {*KNOWERS, "complaint", "data", "model", "secret", "trial"},
    "cli": {
        *KNOWERS,
        *(
            "diff",
            "secret",
            "visible",
            "dashboard",
            "export",
            "lengths",
            "findings",
            "report",
            "tracking",
            "study",
        ),
    },
    "__main__": {"cli"},
    "train.py": {"entry", "errors"},
    "sweeper": {*KNOWERS, "complaint", "data", "model", "report", "search", "secret", "study", "trial"},
}

# Of others.  A module named here may import what its package may not.
OTHERS: dict[str, set[str]] = {
    "errors": set(),
    "units": set(),
    "student": set(),
    "secret": set(),
    "visible": set(),
    "config": {"hydra", "omegaconf"},
    "technique": {"yaml", "packaging"},
    "machine": {"pynvml"},
    "record": set(),
    "pareto": {"numpy"},
    "measure": {"torch", "transformers", "pynvml"},
    "data": {"datasets", "pyarrow"},
    "model": {"torch", "transformers", "tokenizers"},
    "ranks": set(),
    "ranks/launched.py": {"accelerate", "yaml"},
    "ranks/meeting.py": {"torch"},
    "ranks/simulated.py": {"torch", "transformers", "accelerate"},
    "trainers": {"torch", "transformers", "trl", "peft", "datasets"},
    "readback": {"torch", "transformers", "peft", "accelerate"},
    "trial": {"torch", "transformers", "datasets", "cloudpickle", "yaml"},
    "findings": {"numpy"},
    "report": {"rich"},
    "tracking": set(),
    "tracking/runs.py": {"wandb"},
    "tracking/plots.py": {"plotly"},
    "tracking/wandb_report.py": {"wandb_workspaces"},
    "report/html.py": {"plotly"},
    "report/pictures.py": {"matplotlib"},
    "dashboard": {"optuna"},
    "dashboard/exhibit.py": {"optuna", "optuna_dashboard", "plotly"},
    "dashboard/site.py": {"optuna_dashboard"},
    "lengths": {"numpy"},
    "lengths/whose.py": {"hydra", "omegaconf", "transformers"},
    "lengths/drawing.py": {"matplotlib"},
    "lengths/progress.py": {"rich"},
    "lengths/tokenized.py": {"trl"},
    "search": {"optuna", "numpy", "scipy"},
    "search/grammar.py": {"hydra"},
    "search/storage.py": {"sqlalchemy"},
    "study": {"numpy", "rich", "yaml"},
    "export": {"yaml", "transformers", "peft", "trl"},
    "complaint": {"hydra", "omegaconf"},
    "diff": {"rich"},
    "diff/compose.py": {"hydra", "omegaconf"},
    "entry": {"hydra", "omegaconf"},
    "cli": set(),
    "__main__": set(),
    "train.py": {"hydra", "omegaconf", "hydra_plugins"},
    "sweeper": {"hydra", "omegaconf", "optuna", "cloudpickle"},
}

MAX_LINES = 300
# Longer, each with its reason.
LONGER: dict[str, str] = {
    "src/memsweep/record/outcome.py": "the closed list of outcomes: one short class each, read as one table",
    "src/memsweep/config/schema.py": "the whole configuration's types, one class a group, read as one table",
}


def sources() -> Iterator[tuple[str, Path]]:
    """Yield package and file of everything that is shipped."""
    for file in sorted(PACKAGE.rglob("*.py")):
        yield file.relative_to(PACKAGE).parts[0].removesuffix(".py"), file
    for file in sorted(PLUGIN.rglob("*.py")):
        yield "sweeper", file
    if (ROOT / "train.py").exists():
        yield "train.py", ROOT / "train.py"


def name_of(file: Path) -> str:
    """Return a file's path from the repository's root."""
    return str(file.relative_to(ROOT))


def imports(file: Path) -> Iterator[str]:
    """Yield the dotted names that a file imports, wherever in it; relative ones left out."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            if node.module == "memsweep":
                yield from (f"memsweep.{alias.name}" for alias in node.names)
            else:
                yield node.module


def test_every_package_has_its_arrows() -> None:
    packages = {package for package, _ in sources() if package != "__init__"}

    assert packages - set(ARROWS) == set()
    assert packages - set(OTHERS) == set()


@pytest.mark.parametrize(
    ("package", "file"), [pytest.param(*source, id=name_of(source[1])) for source in sources()]
)
def test_imports_follow_the_arrows(package: str, file: Path) -> None:
    own_name = str(file.relative_to(PACKAGE)) if file.is_relative_to(PACKAGE) else ""
    ours = ARROWS.get(package, set()) | {package, "__version__"}
    others = OTHERS.get(package, set()) | OTHERS.get(own_name, set())
    stray = []
    for name in imports(file):
        root = name.split(".")[0]
        if root in sys.stdlib_module_names:
            continue
        if root == "memsweep":
            inner = name.removeprefix(OURS).split(".")[0] if name.startswith(OURS) else ""
            is_allowed = inner in ours or inner == ""
        else:
            is_allowed = root in others
        if not is_allowed:
            stray.append(name)

    assert stray == [], f"{name_of(file)} imports {stray}; {package} may import {sorted(ours | others)}"


def test_only_one_module_imports_wandb() -> None:
    importers = [
        name_of(file) for _, file in sources() if "wandb" in {n.split(".")[0] for n in imports(file)}
    ]

    assert importers == ["src/memsweep/tracking/runs.py"]


def test_modules_stay_short() -> None:
    too_long = {
        name_of(file): n_lines
        for _, file in sources()
        if (n_lines := len(file.read_text(encoding="utf-8").splitlines())) > MAX_LINES
    }

    assert {name: n for name, n in too_long.items() if name not in LONGER} == {}
    assert set(LONGER) - set(too_long) == set(), "shorter now: take it off the list"


ORDINARY_WORDS = {"baseline", "none", "enabled", "disabled", "count", "size", "full", "multiple"}
SEAMS = {"adapter"}
"""A technique that is called as a seam is: the seam may be compared with."""


def technique_names() -> set[str]:
    """Return the names of techniques and options, those left out that are ordinary words of this code."""
    folder = ROOT / "conf" / "technique"
    names = {path.stem for path in folder.glob("*/*.yaml")} | {path.name for path in folder.iterdir()}
    return names - ORDINARY_WORDS - SEAMS


def test_no_technique_is_known_by_name() -> None:
    names = technique_names()
    known = []
    for package, file in sources():
        if package not in (
            "measure",
            "trial",
            "report",
            "findings",
            "diff",
            "export",
            "tracking",
            "record",
            "pareto",
            "sweeper",
            "technique",
            "config",
        ):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            operands: list[ast.expr] = []
            if isinstance(node, ast.Compare):
                operands = [node.left, *node.comparators]
            elif isinstance(node, ast.MatchValue):
                operands = [node.value]
            for operand in operands:
                parts = operand.elts if isinstance(operand, ast.Tuple | ast.List | ast.Set) else [operand]
                known += [
                    f"{name_of(file)}:{part.lineno} compares with {part.value!r}"
                    for part in parts
                    if isinstance(part, ast.Constant) and part.value in names
                ]

    assert known == []


@pytest.mark.parametrize(
    "module",
    [
        "memsweep.report.files",
        "memsweep.report.html",
        "memsweep.report.text",
        "memsweep.tracking.log",
        "memsweep.pareto.hypervolume",
        "memsweep.record.study",
        "memsweep.technique.compatibility",
        "memsweep.technique.settings",
        "memsweep.config.schema",
        "memsweep.config.store",
        "memsweep.model.path",
        "memsweep.diff.compare",
        "memsweep.cli.command",
        "memsweep.dashboard.server",
        "memsweep.lengths.table",
    ],
)
def test_what_needs_no_torch_imports_none(module: str) -> None:
    script = (
        f"import {module}, sys; heavy = ('torch', 'transformers', 'trl', 'wandb', 'plotly', 'matplotlib'); "
        "print([name for name in heavy if name in sys.modules])"
    )

    found = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert found.stdout.strip() == "[]"


def mapped() -> set[str]:
    """Return the paths that the file map of README.md names: the first word of each line of its block."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if re.match(r"\S+/? {2,}\S", line)]
    return {line.split()[0].rstrip("/") for line in lines}


def test_the_readmes_file_map_names_every_folder() -> None:
    folders = [folder for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()]
    folders += [folder for folder in (ROOT / "conf").iterdir() if folder.is_dir()]
    folders += [folder for folder in (ROOT / "tests").iterdir() if any(folder.glob("**/test_*.py"))]
    folders += [ROOT / name for name in ("conf", "sweeper", "tests", "benchmarks", "outputs")]

    assert {name_of(folder) for folder in folders} - mapped() == set()


def test_everything_on_the_file_map_exists() -> None:
    named = {path for path in mapped() if "/" in path or path.endswith((".py", ".md", ".toml"))}

    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_links_between_documents_lead_somewhere() -> None:
    broken = [
        f"{name_of(document)} -> {target}"
        for document in [*ROOT.glob("*.md"), *ROOT.glob("*/README.md")]
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
        if not (document.parent / target).exists()
    ]

    assert broken == []


def test_no_two_test_modules_have_one_name() -> None:
    names = [file.name for file in (ROOT / "tests").rglob("test_*.py")]

    assert [
        name for name in set(names) if names.count(name) > 1
    ] == []  # pytest would import only one of them
