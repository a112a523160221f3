"""What documentation does the running Python's standard library hold?

It is real text that is on every machine with a Python, in every length from one sentence to a whole module,
and nobody has to ship it.  The files are read as text (`ast`): nothing is imported, nothing runs.
"""

from __future__ import annotations

import ast
import inspect
import sysconfig
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memsweep.errors import DatasetError

# No documentation of an interface: tests, bundled applications, generated tables; and what others installed.
SKIPPED_FOLDERS = frozenset(
    {
        "__pycache__", "dist-packages", "encodings", "ensurepip", "idlelib", "lib-dynload", "lib2to3",
        "msilib", "pydoc_data", "site-packages", "test", "tests", "turtledemo",
    }
)  # fmt: skip
SHORTEST_FUNCTION, SHORTEST_CLASS, SHORTEST_MODULE = 200, 320, 400  # characters
LONGEST = 10_000  # characters: about 2,500 tokens, beyond every default length limit of TRL


@dataclass(frozen=True, slots=True)
class Documented:
    """A function, class or module, and what is written about it.

    Attributes:
        name: Dotted, from the module on.
        question: What a person would ask: its kind and its signature.
        text: The documentation.
    """

    name: str
    question: str
    text: str


Function = ast.FunctionDef | ast.AsyncFunctionDef


def source_files(root: Path | None = None) -> tuple[Path, ...]:
    """Return the standard library's Python files in a fixed order.

    Args:
        root: The library's folder; None means that of the running Python.

    Raises:
        DatasetError: If there are none, as in Pythons that keep their library in an archive.
    """
    folder = root or Path(sysconfig.get_paths()["stdlib"])
    files = tuple(_walk(folder))
    if not files:
        raise DatasetError(
            f"dataset=embedded reads the documentation in Python's own library, and {folder} holds no Python "
            "files; use data of your own: dataset=jsonl dataset.path=/path/to/data.jsonl"
        )
    return files


def documentation(root: Path | None = None) -> tuple[Documented, ...]:
    """Return every function, class and module that is documented at some length, in a fixed order.

    Of those with the same text, as inherited methods have it, the first.

    Args:
        root: The library's folder; None means that of the running Python.
    """
    folder = root or Path(sysconfig.get_paths()["stdlib"])
    found: dict[str, Documented] = {}
    for path in source_files(folder):
        source = path.read_bytes()
        if b'"""' not in source and b"'''" not in source:
            continue  # no docstring of more than a line: do not parse
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # old escapes in old modules are not ours to mend
                tree = ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        parts = path.relative_to(folder).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for entry in _documented(tree, name):
            found.setdefault(entry.text, entry)
    return tuple(found.values())


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if path.name not in SKIPPED_FOLDERS and not path.name.startswith("config-"):
                yield from _walk(path)
        elif path.suffix == ".py":
            yield path


def _documented(module: ast.Module, name: str) -> Iterator[Documented]:
    members = list(_members(module))
    text = _whole(ast.get_docstring(module), members)
    if len(text) >= SHORTEST_MODULE:
        public = ", ".join(member.name for member in members if not member.name.startswith("_"))
        yield Documented(
            name, f"Document the module `{name}`.\n\nIt holds: {public or 'nothing public'}", text
        )
    for member in members:
        yield from _documented_member(member, name)


def _documented_member(member: Function | ast.ClassDef, where: str) -> Iterator[Documented]:
    name = f"{where}.{member.name}"
    if isinstance(member, ast.ClassDef):
        methods = list(_members(member))
        text = _whole(ast.get_docstring(member), methods)
        if len(text) >= SHORTEST_CLASS:
            lines = [f"class {member.name}:", *(f"    def {_signature(method)}: ..." for method in methods)]
            yield Documented(name, f"Document the class `{name}`.\n\n" + "\n".join(lines)[:1_000], text)
        for method in methods:
            yield from _documented_member(method, name)
    else:
        text = ast.get_docstring(member) or ""
        if SHORTEST_FUNCTION <= len(text) <= LONGEST:
            yield Documented(
                name, f"Document this function of `{where}`.\n\ndef {_signature(member)}: ...", text
            )


def _members(node: ast.Module | ast.ClassDef) -> Iterator[Function | ast.ClassDef]:
    """Yield the functions and classes that `node` holds, those behind an `if` or a `try` too."""
    waiting: list[ast.stmt] = list(reversed(node.body))
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement
        elif isinstance(statement, ast.If | ast.Try):
            waiting.extend(reversed([*statement.body, *statement.orelse]))


def _signature(member: Function | ast.ClassDef) -> str:
    if isinstance(member, ast.ClassDef):
        return member.name
    return f"{member.name}({ast.unparse(member.args)})"


def _whole(own: str | None, members: list[Function | ast.ClassDef]) -> str:
    """Return a class's or module's own documentation, then its members', as far as `LONGEST` allows."""
    sections = [own] if own and len(own) <= LONGEST else []
    length = sum(map(len, sections))
    for member in members:
        text = ast.get_docstring(member)
        if text and not member.name.startswith("_"):
            indented = inspect.cleandoc(text).replace("\n", "\n    ")
            section = f"{_signature(member)}\n    {indented}"
            length += len(section) + 2
            if length > LONGEST:
                break
            sections.append(section)
    return "\n\n".join(sections)
