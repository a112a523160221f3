"""What a composed config may have made of it: nothing but what is on the lists here.

Hydra makes an object of whatever class a config names, the standard library's logging calls whatever function
one names, and a config may come with a branch, a file or a command that somebody else wrote.  So each config
that Hydra has composed passes here before anything is made of it, for every trial of a sweep too:

- `_target_`: the sweeper and the launcher (Hydra itself takes only installed plugins), a sampler or a storage
  by Optuna's name, which no sweeper of ours makes, and Hydra's own callbacks.  Nowhere else.
- logging: streams, and files in the folder of the run.
- variables, paths and modules of `hydra`: none that lead to other code, or out of the study's folder.
- `${oc.env:...}`: no secret, because what is composed is written down.

Other Hydra apps with the sweeper of ours compose by themselves; their configs are theirs to trust.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from omegaconf import DictConfig, OmegaConf

from memsweep.config.forbidden import variable_problems
from memsweep.errors import ConfigError
from memsweep.secret import is_secret_variable

_PLUGINS = re.compile(r"(hydra_plugins|hydra\._internal\.core_plugins)\.[\w.]+")
_OF_OPTUNA = re.compile(r"optuna\.(samplers|storages)\.[\w.]+")
_CALLBACKS = (
    "hydra_plugins.pareto_sweeper._chosen.ChosenSweeper",
    "hydra.experimental.callbacks.LogJobReturnCallback",
    "hydra.experimental.callbacks.PickleJobInfoCallback",
)
_TARGET, _RECURSIVE = "_target_", "_recursive_"
_NAMESPACE = "hydra_plugins"  # of Hydra's plugins, so that several distributions can have one each

_CALLED: Mapping[str, tuple[str, ...]] = {
    "handlers": ("logging.StreamHandler", "logging.NullHandler", "logging.FileHandler"),
    "formatters": ("logging.Formatter", "colorlog.ColoredFormatter"),
}
_STREAMS = ("ext://sys.stdout", "ext://sys.stderr")
_LOG_FILE = re.compile(
    r"\$\{hydra\.(?:runtime\.output_dir|run\.dir|sweep\.dir)\}/(?:\$\{hydra\.job\.name\}|[\w-]+)(?:\.[\w-]+)*"
)
"""Hydra's own default: `${hydra.runtime.output_dir}/${hydra.job.name}.log`."""

_READS_VARIABLE = re.compile(r"oc\.env\s*:\s*([^,}]*)")
_DECODED = re.compile(r"\$\{oc\.decode:\$\{oc\.env:[A-Za-z_]\w*(?:,[^${}]*)?\}\}")
_UNSEEN = re.compile(r"\$\{\s*(?:oc\.create\b|oc\.decode\b|\$\{|oc\.\$\{)")
"""What nobody can tell by looking stands for."""
_STORAGE = "hydra.sweeper.storage"
"""May hold a password, as a URL has it: it is masked wherever a config is written down (`config.masking`)."""

_TYPED = ("hydra.overrides", "hydra.job.override_dirname")  # as text, which nobody resolves
_SEARCHPATH = "hydra.searchpath"
_PACKAGE = re.compile(r"pkg://(?!hydra\.|hydra_plugins\.)[^\s,\]]*")


def require_allowed(composed: DictConfig) -> None:
    """Raise if something would be made of a composed config that is not on the lists.

    Args:
        composed: Everything, `hydra` included where it is there.

    Raises:
        ConfigError: With all that would, and what is allowed.
    """
    data: Any = OmegaConf.to_container(composed, resolve=False, enum_to_str=True)
    hydra = _node(data, "hydra")
    problems = [
        *_targets(data),
        *_references(hydra),
        *_logging(hydra, "job_logging"),
        *_logging(hydra, "hydra_logging"),
        *_places(hydra),
        *_variables(hydra),
        *_secrets(data),
    ]
    if problems:
        raise ConfigError("\n".join(dict.fromkeys(problems)))


@contextmanager
def only_allowed() -> Iterator[None]:
    """Have every config that Hydra composes within the block pass `require_allowed` first.

    Callbacks are made, and logging is set up, right after a config is composed; there is no way to look at it
    before but where it is made.  Source: hydra-core==1.3.8 _internal/hydra.py, Hydra.run and Hydra.multirun.
    """
    original = ConfigLoaderImpl.load_configuration

    def load_configuration(self: Any, config_name: Any, overrides: Any, *rest: Any, **named: Any) -> Any:
        require_known_packages(overrides)
        composed = original(self, config_name, overrides, *rest, **named)
        require_allowed(composed)
        return composed

    replaced: Callable[..., Any] = load_configuration
    ConfigLoaderImpl.load_configuration = replaced  # type: ignore[method-assign]
    try:
        yield
    finally:
        ConfigLoaderImpl.load_configuration = original  # type: ignore[method-assign]


def require_known_packages(overrides: Iterable[str]) -> None:
    """Raise if configs are to be searched in a package, which imports it, and it is none of Hydra's.

    Args:
        overrides: As typed: by the time that a config is composed it has been imported.

    Raises:
        ConfigError: With what is allowed instead.
    """
    for text in overrides:
        key, _, value = str(text).partition("=")
        found = _PACKAGE.search(value) if key.lstrip("+~") == _SEARCHPATH else None
        if found is not None:
            raise ConfigError(
                f"{_SEARCHPATH} may not name {found[0]}: a package is imported to look into it.  Name "
                f"a folder, '{_SEARCHPATH}=[file:///path/to/configs]', or type --config-dir"
            )


def allowed_plugin(target: object) -> bool:
    """Tell whether a `_target_` can be a plugin of Hydra's, so that its module may be imported."""
    return _PLUGINS.fullmatch(str(target)) is not None


def _targets(data: Mapping[str, Any]) -> Iterator[str]:
    for path, name, value in _leaves(data):
        where = f"{path}.{name}" if path else name
        if name == _TARGET and not _is_allowed_target(path, str(value)):
            yield (
                f"{where}={value} is not allowed: a config may name a class only for hydra.sweeper and "
                "hydra.launcher (an installed plugin), for hydra.sweeper.sampler (optuna.samplers.*) and for "
                f"hydra.callbacks ({', '.join(_CALLBACKS[1:])})"
            )
        if name == _RECURSIVE and value not in (False, "false") and path.startswith("hydra."):
            yield f"{where}={value} is not allowed: nothing within {path} is an object; leave it out"


def _is_allowed_target(path: str, target: str) -> bool:
    if path in ("hydra.sweeper", "hydra.launcher"):
        return allowed_plugin(target)  # and of these Hydra takes those that it has found
    if path.startswith("hydra.sweeper."):
        return _OF_OPTUNA.fullmatch(target) is not None
    return path.startswith("hydra.callbacks.") and target in _CALLBACKS


def _references(hydra: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts of `hydra` that are made something of, and are said to stand elsewhere."""
    nodes = {
        "callbacks": hydra.get("callbacks"),
        "job.env_set": _node(hydra, "job").get("env_set"),
        "launcher.environment": _node(hydra, "launcher").get("environment"),
        "launcher.preload": _node(hydra, "launcher").get("preload"),
        **{f"callbacks.{name}": node for name, node in _node(hydra, "callbacks").items()},
    }
    for where, node in nodes.items():
        if isinstance(node, str):
            yield f"hydra.{where} must be written out, got {node!r}"


def _logging(hydra: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield what is wrong with how something is logged: `logging.config` calls what it names."""
    config = hydra.get(name)
    if isinstance(config, str):
        yield f"hydra.{name} must be written out, got {config!r}"
    if not isinstance(config, Mapping):
        return
    for path, key, value in _leaves(config, f"hydra.{name}"):
        where, text = f"{path}.{key}", str(value)
        parts = path.split(".")
        if "" in parts or key == ".":
            yield f"{path} sets attributes, and a config may not"
        elif key in ("()", "class"):
            yield from _not_among(where, text, _CALLED.get("".join(parts[2:3]), ()))
        elif key == "filename":
            if _LOG_FILE.fullmatch(text) is None:
                kept = "${hydra.runtime.output_dir}/<name>"
                yield f"{where}={text} is not allowed: a log lies in the folder of its run, {kept}"
        elif text.startswith(("ext://", "cfg://")):
            yield from _not_among(where, text, _STREAMS)
        elif "${" in text and key not in ("format", "fmt", "datefmt"):
            yield f"{where} must be written out, got {text!r}"


def _node(hydra: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = hydra.get(name)
    return found if isinstance(found, Mapping) else {}


def _not_among(where: str, text: str, allowed: tuple[str, ...]) -> Iterator[str]:
    if text not in allowed:
        yield f"{where}={text} is not allowed; allowed is {' or '.join(allowed) or 'nothing'}"


def _places(hydra: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with names that become part of a path, and with modules to import."""
    names = {
        "hydra.output_subdir": hydra.get("output_subdir"),
        "hydra.job.name": _node(hydra, "job").get("name"),
    }
    for where, value in names.items():
        text = "" if value is None else str(value)
        if re.search(r"[/\\]|\$\{", text) or text in (".", "..") or not text.isprintable():
            yield f"{where}={text!r} is not allowed: it names a file or folder within that of the run"
    preload = _node(hydra, "launcher").get("preload")
    for module in preload if isinstance(preload, list) else ():
        if not is_module(str(module)):
            yield (
                f"hydra.launcher.preload={module} is not allowed: it must be a module that is installed, or "
                "one of the app's whose outermost package has an __init__.py"
            )


def is_module(name: str) -> bool:
    """Tell whether a name is that of a module or of a real package: not any folder below the script's is one.

    A study's folder lies there too, and `outputs.<study>.<anything>` would import what somebody left in it.
    """
    outermost, *rest = name.split(".")
    if not outermost.isidentifier() or not all(part.isidentifier() for part in rest):
        return False
    try:
        found = find_spec(outermost)
    except (ImportError, ValueError):
        return False
    return found is None or found.origin is not None or outermost == _NAMESPACE


def _variables(hydra: Mapping[str, Any]) -> Iterator[str]:
    for part, name in (("job", "env_set"), ("launcher", "environment")):
        variables = _node(hydra, part).get(name)
        if isinstance(variables, Mapping):
            yield from variable_problems(map(str, variables), f"hydra.{part}.{name}")


def _secrets(data: Mapping[str, Any]) -> Iterator[str]:
    for path, key, value in _leaves(data):
        where = f"{path}.{key}" if path else key
        if not isinstance(value, str) or where.split("[")[0] == _STORAGE or where.startswith(_TYPED):
            continue
        if _UNSEEN.search(_DECODED.sub("", value)):
            yield f"{where} is not allowed: what {value!r} stands for cannot be told by looking; write it out"
        for name in _READS_VARIABLE.findall(value):
            if "$" in name or is_secret_variable(name.strip(" '\"")):
                yield (
                    f"{where} reads ${{oc.env:{name}}}, and a composed config is written down: leave it "
                    "out.  Libraries read their own keys (HF_TOKEN, WANDB_API_KEY) from the environment"
                )


def _leaves(node: Any, path: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield every value of plain data with the path of what holds it, and its key there."""
    pairs = node.items() if isinstance(node, Mapping) else enumerate(node)
    for key, value in pairs:
        if isinstance(value, Mapping | list):
            yield from _leaves(value, f"{path}.{key}" if path else str(key))
        else:
            yield path, str(key), value
