"""Apps to sweep in this process, with a launcher that runs nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_launcher import FakeLauncher, Outcome, Task
from hydra._internal.callbacks import Callbacks
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.types import HydraContext, RunMode
from omegaconf import OmegaConf

from hydra_plugins.pareto_sweeper._folder import settle_folder
from hydra_plugins.pareto_sweeper._sweep import sweep
from memsweep.config.store import register
from memsweep.record.folder import StudyFolder


@pytest.fixture
def run_sweep(
    tmp_path: Path,
    hydra_restore_singletons: None,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[..., Outcome]]:
    """A function that sweeps an app in this process, with a launcher that runs nothing."""

    monkeypatch.setattr("sys.argv", ["app.py"])
    # A second at the end of every study, which tests of the loop need not wait for.
    monkeypatch.setattr("memsweep.report.files.write_pictures", lambda *_: ())
    monkeypatch.chdir(tmp_path)

    def run(
        arguments: Sequence[str],
        task: Task,
        *,
        config: Mapping[str, Any] | None = None,
        groups: Mapping[str, Mapping[str, Any]] | None = None,
        launcher: FakeLauncher | None = None,
        sweep_dir: str | None = None,
        **settings: Any,
    ) -> Outcome:
        """Sweep.

        Args:
            arguments: The command line.
            task: What a job returns.
            config: The app's config; with `groups`, its config groups as {"db/mysql": node}.
            groups: See `config`.
            launcher: Another one than that which runs a job at a time.
            sweep_dir: Text of `hydra.sweep.dir`; None: the folder `study`.
            settings: Of `hydra.sweeper`.
        """
        store = ConfigStore.instance()
        if config is not None:
            for name, node in (groups or {}).items():
                group, _, option = name.rpartition("/")
                store.store(group=group, name=option, node=dict(node))
            defaults = [*config.get("defaults", []), "_self_", {"override hydra/sweeper": "pareto"}]
            store.store(name="config", node={**config, "defaults": defaults})
        folder = tmp_path / "study"
        values = {"storage": None, "progress": "plain", **settings}
        typed = [f"++hydra.sweeper.{key}={_text(value)}" for key, value in values.items()]
        launcher = launcher or FakeLauncher(task)
        launcher.task = task
        code = 0
        GlobalHydra.instance().clear()
        hydra = Hydra.create_main_hydra2("app", create_config_search_path(None))
        try:
            where = [f"hydra.sweep.dir={sweep_dir or folder}", "hydra.sweep.subdir=trials/${hydra.job.num}"]
            composed = hydra.compose_config(
                config_name="config",
                overrides=[*arguments, *typed, *where],
                run_mode=RunMode.MULTIRUN,
                with_log_configuration=False,
            )
            context = HydraContext(config_loader=hydra.config_loader, callbacks=Callbacks(composed))
            settle_folder(composed)
            raw = {key: value for key, value in composed.hydra.sweeper.items() if not key.startswith("_")}
            sweep(
                raw,
                composed,
                context,
                None if values.get("dry_run") else launcher,
                OmegaConf.to_container(composed.hydra.overrides.task),  # type: ignore[arg-type]
            )
        except SystemExit as end:
            code = end.code  # type: ignore[assignment]
        finally:
            GlobalHydra.instance().clear()
        captured = capfd.readouterr()
        return Outcome(code, StudyFolder(folder), launcher, captured.out, captured.err)

    yield run


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ",".join(f"{key}:{_text(item)}" for key, item in value.items())
        return "{" + inside + "}"
    return "null" if value is None else json.dumps(value) if isinstance(value, bool) else str(value)


RANK = "technique.adapter.r"

TECHNIQUES = {
    "adapter/baseline": {},
    "adapter/lora": {
        "changes": "trained_parameters",
        "parameters": {"r": {"default": 16, "search": [8, 16], "help": "rank"}},
        "settings": {"adapter": {"type": "lora", "r": "${r}"}},
    },
    "adapter/ia3": {"changes": "trained_parameters", "settings": {"adapter": {"type": "ia3"}}},
    "quantization/baseline": {},
    "quantization/nf4": {
        "changes": "numerics",
        "requires": [{"adapter": ["lora", "ia3"], "because": "it is frozen", "source": "a test"}],
        "settings": {"model": {"four_bit": True}},
    },
    "packing/baseline": {},
    "packing/bfd": {"changes": "batch", "settings": {"trainer": {"packing": True}}},
    "packing/again": {"changes": "batch", "same_as": "bfd", "settings": {"trainer": {"packing": "again"}}},
}


@pytest.fixture
def technique_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hydra_restore_singletons: None) -> Path:
    """An app with three techniques: of 18 combinations 15 are legal and ask for 10 different things."""
    conf = tmp_path / "conf"
    prose = dict.fromkeys(("summary", "costs", "source"), "a test")
    shared = {**prose, "saves": "nothing", "changes": "nothing"}
    for name, node in TECHNIQUES.items():
        _write(conf / "technique" / f"{name}.yaml", {**shared, **node})
    _write(conf / "trainer" / "sft.yaml", {"name": "sft", "batch": 8})
    _write(conf / "space" / "some.yaml", {"params": {"technique/*": "glob(*)"}}, "# @package hydra.sweeper\n")
    _write(
        conf / "config.yaml",
        {
            "defaults": [
                "techniques",
                {"trainer": "sft"},
                {"space": "some"},
                "_self_",
                {"override hydra/sweeper": "pareto"},
            ],
            "launch": {"device": "cpu"},
            "hydra": {"sweeper": {"objectives": {"speed": "maximize", "size": "minimize"}}},
        },
    )
    monkeypatch.setenv("MEMSWEEP_CONF", str(conf))
    register(conf)
    return conf


def _write(file: Path, node: Mapping[str, Any], head: str = "") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(head + OmegaConf.to_yaml(OmegaConf.create(dict(node))), encoding="utf-8")
