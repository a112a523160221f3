from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from memsweep.data.cache import cache_folder, cached_path, cached_text, hash_of


def test_the_folder_is_the_one_that_the_variable_names(own_cache: Path) -> None:
    assert cache_folder() == own_cache


def test_without_the_variable_it_lies_in_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMSWEEP_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")

    assert cache_folder() == Path("/somewhere/memsweep")


def test_text_is_made_once(own_cache: Path) -> None:
    made = [cached_text("a/text", lambda: "first"), cached_text("a/text", lambda: "second")]

    assert made == ["first", "first"]


def test_a_folder_is_made_once(own_cache: Path) -> None:
    for word in ("first", "second"):
        path = cached_path("b/folder", lambda folder, word=word: _write(folder, word))

    assert (path / "word").read_text() == "first"


def test_what_fails_leaves_nothing_behind(own_cache: Path) -> None:
    def fail(folder: Path) -> None:
        _write(folder, "half")
        raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        cached_path("c/folder", fail)

    assert list((own_cache / "c").iterdir()) == []


def test_processes_that_make_the_same_folder_at_once_agree_on_one(own_cache: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        seen = pool.map(_make_slowly, ["one", "two"])

    assert len(set(seen)) == 1
    assert [path.name for path in (own_cache / "d").iterdir()] == ["folder"]


def test_the_order_of_a_mapping_does_not_count() -> None:
    assert hash_of({"a": 1, "b": 2}) == hash_of({"b": 2, "a": 1})
    assert hash_of({"a": 1}) != hash_of({"a": 2})


def _write(folder: Path, word: str) -> None:
    (folder / "word").write_text(word)


def _make_slowly(word: str) -> str:
    import time

    def make(folder: Path) -> None:
        time.sleep(0.3)
        _write(folder, word)

    return (cached_path("d/folder", make) / "word").read_text()
