from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memsweep.cli.command import main
from memsweep.lengths.table import Lengths
from memsweep.record.folder import StudyFolder
from tiny import share_cache


@pytest.fixture(autouse=True)
def data(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """What names some texts, for the tiny model."""
    share_cache(tmp_path_factory, monkeypatch)
    path = tmp_path / "texts.jsonl"
    lines = [json.dumps({"text": "one word " * (1 + number % 50)}) for number in range(300)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return ["model=tiny", "dataset=jsonl", f"dataset.path={path}"]


def test_the_distribution_and_its_consequences_are_printed(
    data: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lengths", *data, "--batch-size", "2,4"]) == 0

    out = capsys.readouterr().out
    assert out.startswith("jsonl for sft, tokenized as for tiny: 300 examples, ")
    assert "max_length=1,024 in force keeps" in out
    assert "\N{FULL BLOCK}" in out
    assert "wrapped full" in out


def test_as_json_it_is_the_table_that_reports_read(
    data: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lengths", *data, "--json", "--batch-size", "3"]) == 0

    found = Lengths.from_mapping(json.loads(capsys.readouterr().out))
    assert found.n_examples == 300
    assert [one.batch for one in found.padding] == [3]


def test_a_picture_is_drawn_beside_the_text(data: list[str], tmp_path: Path) -> None:
    assert main(["lengths", *data, "--picture", str(tmp_path / "lengths.svg")]) == 0
    assert (tmp_path / "lengths.svg").stat().st_size > 1_000


def test_of_a_study_the_table_is_kept_in_its_folder(
    data: list[str], make_study: Callable[..., StudyFolder]
) -> None:
    folder = make_study(fixed=tuple(data))

    assert main(["lengths", "--study", str(folder.path)]) == 0
    assert Lengths.from_mapping(json.loads(folder.lengths.read_text(encoding="utf-8"))).n_examples == 300


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["model=tiny", "dataset=jsonl", "dataset.path=nowhere.jsonl"], "is not there"),
        (["model=tiny", "dataset=jsonl"], "needs a file"),
        (["model=tiny", "--picture", "x.jpg"], "a picture is .svg or .png"),
        (["--study", "nowhere"], "no study 'nowhere'"),
        (["--study", ".", "model=tiny"], "no study '.'"),
    ],
)
def test_a_bad_request_is_one_message(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lengths", *arguments]) == 2

    err = capsys.readouterr().err
    assert err.startswith("memsweep: ")
    assert words in err


@pytest.mark.parametrize("typed", ["0", "2,x", ""])
def test_a_batch_that_is_none_is_refused(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["lengths", "--batch-size", typed])

    assert ended.value.code == 2
    assert "must be numbers above 0" in capsys.readouterr().err
