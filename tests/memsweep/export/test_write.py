from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from memsweep.errors import ConfigError
from memsweep.export.write import export_trial
from memsweep.trainers.build import RECIPES


def config_of(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    return data


def texts(folder: Path) -> str:
    kinds = {".md", ".yaml", ".sh", ".txt", ".py"}
    return "\n".join(file.read_text(encoding="utf-8") for file in folder.iterdir() if file.suffix in kinds)


def accepted(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """Return what the parser of TRL's own command makes of config.yaml."""
    from importlib import import_module

    monkeypatch.chdir(folder)
    parser = import_module(f"trl.scripts.{command}").make_parser()
    *parsed, rest = parser.parse_args_and_config(
        ["--config", "config.yaml", "--max_steps", "20"], return_remaining_strings=True
    )
    assert rest == ["--accelerate_config", "accelerate.yaml"]
    return tuple(parsed)


@pytest.mark.parametrize("trainer", [name for name in RECIPES if name not in ("online_dpo", "reward")])
def test_trls_own_parser_accepts_the_configuration(
    trainer: str, choose: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = export_trial(choose(trainer), tmp_path / "there")
    script, arguments, model, data = accepted(trainer, tmp_path / "there", monkeypatch)

    assert done.reasons == ()
    assert (arguments.max_steps, arguments.num_train_epochs, arguments.use_cpu) == (20, 1, True)
    assert (model.model_name_or_path, model.dtype) == ("model", "float32")
    assert data.datasets[0].data_files == "data/train.jsonl"
    assert getattr(script, "reward_funcs", None) == (
        ["rewards.reward"] if trainer in ("grpo", "rloo") else None
    )


def test_an_adapter_and_packing_go_into_the_configuration(
    choose: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_trial(choose(options={"adapter": "lora", "packing": "bfd"}), tmp_path / "there")
    _, arguments, model, _ = accepted("sft", tmp_path / "there", monkeypatch)

    assert (arguments.packing, arguments.packing_strategy) == (True, "bfd")
    assert model.use_peft is True
    assert model.lora_dropout == 0.0


@pytest.mark.parametrize(
    ("trainer", "options", "reason"),
    [
        ("online_dpo", {}, "it has no `trl online_dpo`"),
        ("reward", {}, "it reads another tokenizer from the model than the trial had"),
        ("sft", {"adapter": "ia3"}, "it knows no adapter but LoRA"),
        ("sft", {"adapter": "lora", "quantization": "nf4"}, "4-bit weights in the type of the others"),
    ],
)
def test_what_the_command_cannot_say_becomes_a_script(
    trainer: str, options: dict[str, str], reason: str, choose: Any, tmp_path: Path
) -> None:
    done = export_trial(choose(trainer, options=options), tmp_path)

    assert any(reason in one for one in done.reasons)
    compile((tmp_path / "train.py").read_text(encoding="utf-8"), "train.py", "exec")
    assert "exec python train.py" in (tmp_path / "run.sh").read_text(encoding="utf-8")
    assert "datasets" not in config_of(tmp_path)
    assert reason in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_the_page_names_every_file_there_is(choose: Any, tmp_path: Path) -> None:
    export_trial(choose("grpo"), tmp_path)

    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^- `([^`]+)`: ", text.partition("## Files")[2], re.MULTILINE))
    there = {f"{path.name}/" if path.name == "model" else path.name for path in tmp_path.iterdir()}
    assert named == (there - {"README.md", "data"}) | {"data/train.jsonl"}


def test_nothing_of_this_machine_or_of_ours_is_written(choose: Any, tmp_path: Path) -> None:
    export_trial(choose("grpo"), tmp_path / "there")
    said = texts(tmp_path / "there")

    assert str(tmp_path) not in said
    assert str(Path.home()) not in said
    assert not re.search(r"^\s*(import|from) memsweep", said, re.MULTILINE)


def test_force_replaces_what_an_export_writes_and_nothing_else(choose: Any, tmp_path: Path) -> None:
    export_trial(choose("online_dpo"), tmp_path)
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")

    with pytest.raises(ConfigError, match="--force"):
        export_trial(choose("dpo"), tmp_path)
    export_trial(choose("dpo"), tmp_path, is_forced=True)
    assert not (tmp_path / "train.py").exists()
    assert not (tmp_path / "rewards.py").exists()
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_asking_for_an_export_imports_nothing_heavy_before_it_must() -> None:
    script = (
        "import sys, memsweep.export.chosen, memsweep.export.room; "
        "print([name for name in ('torch', 'transformers', 'trl') if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
