from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from memsweep.config.allowed import is_module, only_allowed, require_allowed, require_known_packages
from memsweep.config.store import register
from memsweep.errors import ConfigError
from memsweep.technique.catalogue import conf_folder

STREAM = {"class": "logging.StreamHandler", "stream": "ext://sys.stdout", "formatter": "simple"}


def refused(config: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        require_allowed(OmegaConf.create(config))
    return str(caught.value)


def in_hydra(path: str, value: Any) -> dict[str, Any]:
    """Return a config with `value` at a path below `hydra`."""
    config: Any = value
    for part in reversed(["hydra", *path.split("/")]):
        config = {part: config}
    return dict(config)


def handler(**facts: Any) -> dict[str, Any]:
    return in_hydra("job_logging/handlers/one", {**STREAM, **facts})


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("sweeper", "os.system"),
        ("sweeper", "hydra_plugins"),
        ("launcher", "subprocess.Popen"),
        ("callbacks/x", "os.system"),
        ("callbacks/x", "hydra_plugins.pareto_sweeper._jobs.os.system"),
        ("sweeper/sampler", "subprocess.Popen"),
        ("sweeper/sampler", "optunas.samplers.X"),
        ("sweeper/sampler/inner", "os.system"),
        ("job/x", "os.system"),
    ],
)
def test_a_class_is_named_only_where_it_is_meant_to_be_and_from_a_list(path: str, target: str) -> None:
    assert f"{path.replace('/', '.')}._target_={target} is not allowed" in refused(
        in_hydra(path, {"_target_": target})
    )


def test_an_apps_own_part_names_no_class() -> None:
    assert "model.geometry._target_=os.system" in refused({"model": {"geometry": {"_target_": "os.system"}}})
    assert "_target_=os.system" in refused({"_target_": "os.system"})
    assert "a.0._target_=os.system" in refused({"a": [{"_target_": "os.system"}]})


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("sweeper", "hydra_plugins.pareto_sweeper.sweeper.ParetoSweeper"),
        ("sweeper", "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"),
        ("launcher", "hydra_plugins.pareto_sweeper.launcher.IsolatedLauncher"),
        ("sweeper/sampler", "optuna.samplers.TPESampler"),
        ("callbacks/x", "hydra.experimental.callbacks.LogJobReturnCallback"),
    ],
)
def test_what_is_on_the_lists_passes(path: str, target: str) -> None:
    require_allowed(OmegaConf.create(in_hydra(path, {"_target_": target})))


@pytest.mark.parametrize("value", [True, "true", "${x}"])
def test_nothing_within_a_plugins_settings_becomes_an_object(value: Any) -> None:
    assert "hydra.sweeper._recursive_" in refused(in_hydra("sweeper", {"_recursive_": value}))


@pytest.mark.parametrize(
    "path",
    ["callbacks", "callbacks/x", "job/env_set", "launcher/environment", "launcher/preload", "job_logging"],
)
def test_what_is_made_something_of_stands_where_it_can_be_seen(path: str) -> None:
    assert "must be written out" in refused(in_hydra(path, "${somewhere}"))


@pytest.mark.parametrize(
    "facts",
    [
        {"class": "logging.handlers.SMTPHandler"},
        {"class": "os.system"},
        {"()": "os.system"},
        {"class": "${which}"},
        {"stream": "ext://os.environ"},
        {"stream": "cfg://handlers.other"},
        {".": {"baseFilename": "/home/me/.profile"}},
        {"class": "logging.FileHandler", "filename": "/home/me/.profile"},
        {"class": "logging.FileHandler", "filename": "${hydra.runtime.output_dir}/../../x.log"},
        {"class": "logging.FileHandler", "filename": "${hydra.runtime.output_dir}/${model.path}"},
        {"class": "logging.FileHandler", "filename": "x.log"},
        {"formatter": "${which}"},
    ],
)
def test_logging_calls_and_writes_nothing_else(facts: dict[str, Any]) -> None:
    assert "hydra.job_logging.handlers.one" in refused(handler(**facts))


def test_a_formatter_or_a_filter_is_none_of_somebodys_own() -> None:
    called = {"()": "os.system"}

    assert "formatters.x.()=os.system" in refused(in_hydra("hydra_logging/formatters/x", called))
    assert "filters.x.()=os.system" in refused(in_hydra("hydra_logging/filters/x", called))
    assert "loggers.x.class=os.system" in refused(in_hydra("hydra_logging/loggers/x", {"class": "os.system"}))


def test_hydras_own_ways_to_log_pass() -> None:
    file = {"class": "logging.FileHandler", "filename": "${hydra.runtime.output_dir}/${hydra.job.name}.log"}
    colours = {"()": "colorlog.ColoredFormatter", "format": "[%(asctime)s] ${not.looked.at}"}

    require_allowed(OmegaConf.create(handler()))
    require_allowed(OmegaConf.create(in_hydra("job_logging/handlers/file", file)))
    require_allowed(OmegaConf.create(in_hydra("job_logging/formatters/colorlog", colours)))


@pytest.mark.parametrize("name", ["../../.config", "/etc/x", "a/b", "..", "a\\b", "${model.path}", "a\x1bb"])
@pytest.mark.parametrize("path", ["output_subdir", "job/name"])
def test_a_name_within_a_runs_folder_leads_nowhere_else(path: str, name: str) -> None:
    assert f"hydra.{path.replace('/', '.')}=" in refused(in_hydra(path, name))


@pytest.mark.parametrize("path", ["job/env_set", "launcher/environment"])
def test_hydras_variables_lead_to_no_code(path: str) -> None:
    where = f"hydra.{path.replace('/', '.')}"

    assert f"{where}.LD_PRELOAD" in refused(in_hydra(path, {"LD_PRELOAD": "x.so"}))
    require_allowed(OmegaConf.create(in_hydra(path, {"OMP_NUM_THREADS": "2"})))


@pytest.mark.parametrize(
    "value",
    [
        "${oc.env:HF_TOKEN}",
        "a ${oc.env:AWS_SECRET_ACCESS_KEY,none} b",
        "${oc.env: HF_TOKEN }",
        "${oc.env:'HF_TOKEN'}",
        "${oc.env:${which}}",
        "${oc.decode:${oc.env:WANDB_API_KEY}}",
        "${oc.select:nothing,${oc.env:DB_PASSWORD}}",
        "${oc.create:'{a: b}'}",
        "${oc.decode:'x'}",
        "${oc.${which}:HF_TOKEN}",
        "${${which}:HF_TOKEN}",
    ],
)
def test_no_secret_is_composed_because_what_is_composed_is_written_down(value: str) -> None:
    assert "model.name" in refused({"model": {"name": value}})


@pytest.mark.parametrize(
    "value",
    [
        "${oc.env:USER_DATA}",
        "${oc.env:N_THREADS,2}",
        "${oc.decode:${oc.env:N_THREADS}}",
        "${oc.decode:${oc.env:N_THREADS,2}}",
        "${model.path}",
        "${a.${b}}",
        "${oc.env:TOKENIZERS_PARALLELISM}",
    ],
)
def test_what_is_no_secret_may_be_looked_up(value: str) -> None:
    require_allowed(OmegaConf.create({"model": {"name": value}}))


def test_the_storages_password_may_come_from_the_environment() -> None:
    url = "postgresql://me:${oc.env:DB_PASSWORD}@host/studies"

    require_allowed(OmegaConf.create(in_hydra("sweeper/storage", url)))


@pytest.mark.parametrize(
    "text", ["hydra.searchpath=[pkg://outputs.evil]", "hydra.searchpath=[file:///a,pkg://b]"]
)
def test_no_package_is_imported_to_look_for_configs_in_it(text: str) -> None:
    with pytest.raises(ConfigError, match="may not name pkg://"):
        require_known_packages([text])


def test_a_folder_may_be_searched_for_configs() -> None:
    require_known_packages(["hydra.searchpath=[file:///a,pkg://hydra.conf]", "a=pkg://b"])


def test_a_folder_without_an_init_is_no_module_to_load_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_outputs" / "evil").mkdir(parents=True)
    (tmp_path / "my_outputs" / "evil" / "__init__.py").touch()
    (tmp_path / "my_app").mkdir()
    (tmp_path / "my_app" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    assert not is_module("my_outputs.evil")
    assert is_module("my_app.models")
    assert is_module("torch")
    assert is_module("hydra_plugins.pareto_sweeper")
    assert not is_module("os;system")


def test_everything_that_is_wrong_is_told_at_once() -> None:
    config = in_hydra("callbacks/x", {"_target_": "os.system"})
    config["hydra"]["job"] = {"name": "a/b"}

    assert len(refused(config).splitlines()) == 2


@pytest.fixture
def composing() -> Iterator[None]:
    register(conf_folder())
    GlobalHydra.instance().clear()
    with initialize(version_base="1.3", config_path=None):
        yield
    GlobalHydra.instance().clear()


@pytest.mark.usefixtures("composing")
def test_what_hydra_composes_passes_here_first() -> None:
    hostile = ["+hydra.callbacks.x={_target_: os.system, command: 'touch pwned'}"]
    with only_allowed():
        ours = compose("config", return_hydra_config=True)
        with pytest.raises(ConfigError, match=r"os\.system"):
            compose("config", overrides=hostile, return_hydra_config=True)
        with pytest.raises(ConfigError, match="may not name pkg://evil"):
            compose("config", overrides=["hydra.searchpath=[pkg://evil]"])
    theirs = compose("config", overrides=hostile, return_hydra_config=True)

    assert ours.hydra.sweeper._target_ == "hydra_plugins.pareto_sweeper.sweeper.ParetoSweeper"
    assert theirs.hydra.callbacks.x.command == "touch pwned"
