from __future__ import annotations

from pathlib import Path

import pytest

from memsweep.machine import Device
from memsweep.report.text import markdown_table
from memsweep.technique.catalogue import Catalogue, conf_folder, read_catalogue
from memsweep.technique.support import Cell, by_trainer, reasons, support


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return read_catalogue(conf_folder())


@pytest.fixture(scope="module")
def cells(catalogue: Catalogue) -> dict[tuple[str, str], Cell]:
    return {(cell.option, cell.trainer): cell for cell in support(catalogue)}


def test_every_option_is_judged_in_every_trainer(
    catalogue: Catalogue, cells: dict[tuple[str, str], Cell]
) -> None:
    n_options = sum(len(technique.options) - 1 for technique in catalogue.techniques.values())

    assert len(cells) == n_options * len(catalogue.trainers)


@pytest.mark.parametrize(
    ("option", "trainer", "word"),
    [
        ("adapter=lora", "sft", "yes"),
        ("packing=bfd", "dpo", "no"),
        ("quantization=nf4", "dpo", "with"),
        ("padding_free=enabled", "sft", "with"),
        ("vllm=server", "grpo", "unverified"),
        ("activation_offloading=enabled", "sft", "unverified"),
        ("sharding=zero3", "sft", "simulated"),
        ("ds3_gather=disabled", "grpo", "simulated"),
        ("ds3_gather=disabled", "sft", "no"),
    ],
)
def test_verdicts_follow_the_rules(
    option: str, trainer: str, word: str, cells: dict[tuple[str, str], Cell]
) -> None:
    assert cells[option, trainer].word == word


def test_what_is_needed_beside_an_option_is_named(cells: dict[tuple[str, str], Cell]) -> None:
    assert "lora" in cells["quantization=nf4", "sft"].text


def test_what_the_machine_lacks_is_named(cells: dict[tuple[str, str], Cell]) -> None:
    assert "a process beside the trial" in cells["vllm=server", "grpo"].text
    assert cells["sharding=ddp", "sft"].text == (
        "seen on a CPU with launch=cpu_simulated, not verified on several devices; "
        "needs several devices, or launch=cpu_simulated"
    )


def test_every_refusal_has_a_reason_with_its_source(cells: dict[tuple[str, str], Cell]) -> None:
    for cell in cells.values():
        if cell.word == "no":
            assert cell.reasons
            assert all("(" in reason for reason in cell.reasons)


def test_the_table_has_one_row_an_option_and_one_column_a_trainer(
    catalogue: Catalogue, cells: dict[tuple[str, str], Cell]
) -> None:
    header, rows = by_trainer(tuple(cells.values()))

    assert header == ["option", *catalogue.trainers, "needs"]
    assert all(len(row) == len(header) for row in rows)


def test_one_trainer_is_listed_with_reasons(cells: dict[tuple[str, str], Cell]) -> None:
    header, rows = reasons([cell for cell in cells.values() if cell.trainer == "dpo"])

    assert header == ["option", "dpo", "why"]
    assert all(why for _, word, why in rows if word != "yes")


def test_the_readme_shows_what_the_catalogue_says(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make matrix` puts it there anew, on a processor that computes in bfloat16."""
    monkeypatch.setattr("memsweep.machine.has_native_bf16", lambda: (True, "a test"))
    readme = (Path(__file__).parents[3] / "README.md").read_text()
    shown = readme.partition("<!-- matrix -->\n")[2].partition("<!-- end -->")[0]

    assert shown.strip() == markdown_table(*by_trainer(support(catalogue, asked=Device.CPU)))
