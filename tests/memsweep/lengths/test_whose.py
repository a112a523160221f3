from __future__ import annotations

from pathlib import Path

import pytest

from memsweep.errors import ConfigError
from memsweep.lengths.whose import asked, composed
from tiny import share_cache


@pytest.fixture(autouse=True)
def shared_cache(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    hydra_restore_singletons: None,
) -> Path:
    """The cache folder that all tests share; no group that is made known here stays for other tests."""
    return share_cache(tmp_path_factory, monkeypatch)


def test_the_limit_in_force_is_the_trainers_own_unless_asked_for() -> None:
    own = asked(*composed(["model=tiny"]))
    chosen = asked(
        *composed(["model=tiny", "technique/truncation=max_length", "technique.truncation.max_length=99"])
    )
    typed = asked(*composed(["model=tiny", "trainer.arguments.max_length=77"]))

    assert [who.how.max_length for who in (own, chosen, typed)] == [1024, 99, 77]
    assert own.how.can_pack
    assert own.how.packing is None


def test_packing_is_known_by_its_settings() -> None:
    assert asked(*composed(["model=tiny", "technique/packing=wrapped"])).how.packing == "wrapped"


def test_an_answers_budget_is_the_trainers() -> None:
    how = asked(*composed(["model=tiny", "trainer=online_dpo", "trainer.completion_tokens=48"])).how

    assert (how.max_length, how.answer_tokens) == (512, 48)


def test_no_model_is_made_where_its_tokenizer_is_enough(shared_cache: Path) -> None:
    before = set((shared_cache / "model").glob("*")) if (shared_cache / "model").exists() else set()

    who = asked(*composed(["model=qwen2_5_7b", "model.geometry.vocab_size=1000"]))

    assert who.tokenizer("words")["input_ids"]
    assert (set((shared_cache / "model").glob("*")) if (shared_cache / "model").exists() else set()) == before


def test_a_template_of_ones_own_is_used(tmp_path: Path) -> None:
    file = tmp_path / "own.jinja"
    file.write_text("{% for message in messages %}{{ message['content'] }}{% endfor %}", encoding="utf-8")

    who = asked(*composed(["model=tiny", f"trainer.arguments.chat_template_path={file}"]))

    assert who.tokenizer.apply_chat_template([{"role": "user", "content": "Why?"}], tokenize=False) == "Why?"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("trainer=nonsense", "trainer has no option 'nonsense'"),
        ("nonsense=1", "nonsense"),
        ("trainer.arguments.max_lenght=3", "max_length"),
        ("trainer.arguments.chat_template_path=org/model", "must be a file that ends in .jinja"),
        ("model=path", "needs a folder"),
    ],
)
def test_what_is_not_there_is_told_in_words(typed: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        asked(*composed(["model=tiny", typed] if not typed.startswith("model") else [typed]))
