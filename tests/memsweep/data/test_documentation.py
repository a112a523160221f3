from __future__ import annotations

from pathlib import Path

import pytest

from memsweep.data.documentation import documentation, source_files
from memsweep.errors import DatasetError

SENTENCE = "It does what its name says, and it says so at some length so that it is worth keeping. "

MODULE = f'''"""{SENTENCE * 5}"""

raise SystemExit("nobody may import this")

class Shelf:
    """{SENTENCE * 4}"""

    def put(self, book, *, upright=True):
        """{SENTENCE * 3}It puts."""

    def _hide(self):
        """{SENTENCE * 3}"""

def short():
    """Too short."""
'''


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library with one module, and one that is no documentation of an interface."""
    (tmp_path / "shelves.py").write_text(MODULE)
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_shelves.py").write_text(MODULE)
    return tmp_path


def test_modules_classes_and_functions_are_found_without_importing_anything(library: Path) -> None:
    names = [entry.name for entry in documentation(library)]

    assert names == ["shelves", "shelves.Shelf", "shelves.Shelf.put", "shelves.Shelf._hide"]


def test_a_class_is_documented_with_its_public_methods(library: Path) -> None:
    text = next(entry.text for entry in documentation(library) if entry.name == "shelves.Shelf")

    assert "put(self, book, *, upright=True)\n    It does" in text
    assert "_hide" not in text


def test_the_question_shows_the_signature(library: Path) -> None:
    entry = next(entry for entry in documentation(library) if entry.name == "shelves.Shelf.put")

    assert "def put(self, book, *, upright=True): ..." in entry.question


def test_the_same_text_is_there_once(library: Path) -> None:
    (library / "shelves_again.py").write_text(MODULE)

    assert [entry.name for entry in documentation(library) if "again" in entry.name] == []


def test_a_file_that_is_no_python_is_passed_over(library: Path) -> None:
    (library / "broken.py").write_text('"""half a docstring\ndef')

    assert {entry.name.split(".")[0] for entry in documentation(library)} == {"shelves"}


def test_a_library_without_files_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"holds no Python files; .* dataset=jsonl"):
        source_files(tmp_path)
