"""What listens, listens on this machine alone: the dashboard, the servers of tests and benchmarks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from memsweep.dashboard.server import HOST, bound

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    file
    for folder in ("src", "sweeper", "tests", "benchmarks")
    for file in sorted((ROOT / folder).rglob("*.py"))
]

_MAY_LISTEN = re.compile(r"bind|[Ss]erver|0\.0\.0\.0")
_LISTENS = re.compile(r"(\.bind|Server|create_server)$")


def everywhere(file: Path) -> Iterator[str]:
    """Yield each place where a file names all addresses of a machine, or leaves the address out."""
    text = file.read_text(encoding="utf-8")
    if _MAY_LISTEN.search(text) is None:
        return
    for node in ast.walk(ast.parse(text)):
        where = f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Constant) and node.value == "0.0.0.0":
            yield where
        if isinstance(node, ast.Call) and _LISTENS.search(ast.unparse(node.func)):
            places = [place.elts for place in node.args if isinstance(place, ast.Tuple)]
            if any(isinstance(place[0], ast.Constant) and not place[0].value for place in places if place):
                yield where


def test_no_file_binds_to_every_address() -> None:
    found = [where for file in FILES if file != Path(__file__) for where in everywhere(file)]

    assert found == []


@pytest.mark.parametrize("text", ['server.bind(("", 80))', 'Server("0.0.0.0", 80)'])
def test_the_search_finds_what_it_looks_for(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)

    assert list(everywhere(tmp_path / "one.py")) == ["one.py:1"]


def test_the_dashboard_is_on_loopback() -> None:
    with bound(lambda *_: [], 0) as server:
        assert server.socket.getsockname()[0] == HOST == "127.0.0.1"
