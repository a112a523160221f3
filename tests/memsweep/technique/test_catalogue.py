from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memsweep.errors import CatalogueError, UnknownOption
from memsweep.technique.catalogue import Catalogue, conf_folder, read_catalogue
from memsweep.technique.choice import ChosenOption

Write = Callable[[str, str], None]

PROSE = "saves: nothing\ncosts: nothing\nsource: arXiv:0000.00000\nchanges: nothing\n"


def test_folders_are_techniques_and_files_their_options_baseline_first(catalogue: Catalogue) -> None:
    found = {name: list(technique.options) for name, technique in catalogue.techniques.items()}

    assert found == {
        "adapter": ["baseline", "lora", "prompt"],
        "length": ["baseline", "limit"],
        "quantization": ["baseline", "nf4", "same"],
    }
    assert catalogue.trainers == ("dpo", "grpo", "sft")


def test_an_unknown_technique_lists_the_techniques(catalogue: Catalogue) -> None:
    with pytest.raises(
        UnknownOption, match="no technique 'adaptor'; there are adapter, length, quantization"
    ):
        catalogue.option("adaptor", "lora")


def test_an_unknown_option_lists_the_options(catalogue: Catalogue) -> None:
    with pytest.raises(UnknownOption, match="adapter has no option 'dora'; it has baseline, lora, prompt"):
        catalogue.option("adapter", "dora")


def test_a_choice_is_completed_with_baselines_and_defaults(catalogue: Catalogue) -> None:
    choice = catalogue.choose({"adapter": "lora"})

    assert choice == {
        "adapter": ChosenOption(option="lora", parameters={"r": 16}),
        "length": ChosenOption(option="baseline"),
        "quantization": ChosenOption(option="baseline"),
    }
    assert catalogue.choose({}) == catalogue.baseline_choice()


def test_a_parameter_replaces_its_default(catalogue: Catalogue) -> None:
    assert catalogue.choose({"adapter": "lora"}, {"technique.adapter.r": 4})["adapter"].parameters == {"r": 4}


def test_everything_wrong_with_a_request_is_said_at_once(catalogue: Catalogue) -> None:
    parameters = {
        "technique.adapter.alpha": 1,
        "technique.length.tokens": "many",
        "technique.quantization.bits": 4,
        "adapter.r": 4,
    }
    with pytest.raises(UnknownOption) as error:
        catalogue.choose({"adapter": "lora", "length": "limit", "packing": "bfd"}, parameters)

    assert str(error.value).splitlines() == [
        "no technique 'packing'; there are adapter, length, quantization",
        "technique.adapter.alpha: adapter=lora has no parameter 'alpha'; it has r",
        "technique.length.tokens must be int, got 'many'",
        "technique.quantization.bits: quantization=baseline has no parameter 'bits'; it has none",
        "adapter.r is no parameter; they are at technique.<technique>.<parameter>",
    ]


def test_a_value_out_of_bounds_is_refused(catalogue: Catalogue) -> None:
    with pytest.raises(UnknownOption, match=r"technique\.adapter\.r must be at least 1, got 0"):
        catalogue.choose({"adapter": "lora"}, {"technique.adapter.r": 0})


def test_what_is_other_than_an_option_is_listed(catalogue: Catalogue) -> None:
    (condition,) = catalogue.option("quantization", "nf4").rules[0].any_of[0].values()

    assert condition.allowed == ("lora", "prompt")


def test_all_problems_of_all_files_are_said_at_once(conf: Path, write: Write) -> None:
    write("adapter/dora", "summary: No source.\n")
    write("length/off", "summary: x\n")
    write("packing/bfd", "summary: Packs.\n" + PROSE)
    write("length/short", "summary: 'unclosed\n")

    with pytest.raises(CatalogueError) as error:
        read_catalogue(conf)

    text = str(error.value)
    assert "technique/adapter/dora.yaml: source must be a sentence" in text
    assert "technique/length/off.yaml: YAML reads off as a truth value" in text
    assert "technique/packing has no baseline.yaml" in text
    assert "technique/length/short.yaml: not readable as YAML" in text


def test_a_folder_without_techniques_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="set MEMSWEEP_CONF to the conf folder"):
        read_catalogue(tmp_path)


def test_the_environment_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEMSWEEP_CONF", str(tmp_path))
    assert conf_folder() == tmp_path

    monkeypatch.delenv("MEMSWEEP_CONF")
    assert (conf_folder() / "config.yaml").exists()


def test_rules_are_asked_without_torch() -> None:
    code = (
        "import sys, memsweep.machine, memsweep.config.store, memsweep.technique.compatibility, "
        "memsweep.technique.settings; "
        "print(sorted({'torch', 'transformers', 'trl', 'peft', 'optuna', 'numpy'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
