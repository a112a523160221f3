"""One file of conf/technique, from YAML to `Option`: what is wrong with it is said all at once.

Only the form is checked here.  Whether the techniques, options and trainers that a rule names exist can be
told only when every file was read (`checking`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from memsweep.technique.form import as_list, expressions, mapping, only
from memsweep.technique.option import Changes, Needs, Option, Parameter, Saves, Seam, Support
from memsweep.technique.reading_rules import read_equivalences, read_rules, require_because
from memsweep.technique.rule import RuleKind

_PROSE = ("summary", "costs", "source")
_RULES = ("needs", "trainers", "requires", "excludes")
_KEYS = (*_PROSE, "saves", "changes", *_RULES, "parameters", "same_as", "settings")


def read_option(technique: str, name: str, data: object, problems: list[str]) -> Option | None:
    """Return the option that a file describes, or None after adding to `problems` what is wrong.

    Args:
        technique: The file's folder.
        name: The file's name, without `.yaml`.
        data: What the file holds, `${...}` not resolved.
        problems: Where to add one sentence for each problem, without the file's name.
    """
    count = len(problems)
    if not isinstance(data, Mapping):
        problems.append(f"must be a mapping with the keys {', '.join(_KEYS)}")
        return None
    only(data, _KEYS, "the file", problems)
    problems.extend(
        f"{key} must be a sentence, got {data.get(key)!r}"
        for key in _PROSE
        if not isinstance(data.get(key), str) or not data[key].strip()
    )
    saves = _words(data.get("saves"), Saves, "saves", problems)
    changes = _words(data.get("changes"), Changes, "changes", problems)
    parameters = {
        str(key): _parameter(str(key), value, problems)
        for key, value in mapping(data, "parameters", problems).items()
    }
    settings = dict(mapping(data, "settings", problems))
    by_trainer = settings.pop("trainers", None) or {}
    _check_settings(settings, parameters, "settings", problems)
    for trainer, part in mapping({"settings.trainers": by_trainer}, "settings.trainers", problems).items():
        if isinstance(part, Mapping):
            _check_settings(part, parameters, f"settings.trainers.{trainer}", problems)
        else:
            problems.append(f"no trainer {trainer!r}; did you mean the seam {Seam.TRAINER}?")
    needs = _needs(mapping(data, "needs", problems), problems)
    support = _support(data.get("trainers"), problems)
    rules = (
        *read_rules(data, RuleKind.REQUIRES, problems),
        *read_rules(data, RuleKind.EXCLUDES, problems),
    )
    same_as = tuple(read_equivalences(data.get("same_as"), parameters, problems))
    if len(problems) > count:
        return None
    return Option(
        technique=technique,
        name=name,
        summary=data["summary"].strip(),
        saves=saves,
        costs=data["costs"].strip(),
        source=data["source"].strip(),
        changes=changes,
        needs=needs,
        support=support,
        rules=rules,
        parameters={key: value for key, value in parameters.items() if value is not None},
        settings=settings,
        settings_by_trainer=by_trainer,
        same_as=same_as,
    )


def _words(value: object, kind: type[StrEnum], key: str, problems: list[str]) -> tuple[str, ...]:
    words = as_list(value)
    known = [str(word) for word in kind]
    if not words or any(word not in known for word in words):
        problems.append(f"{key} must be one or more of {', '.join(known)}, got {value!r}")
        return ()
    if "nothing" in words and len(words) > 1:
        problems.append(f"{key} is nothing or something, got {value!r}")
    return tuple(str(word) for word in words)


def _parameter(name: str, data: object, problems: list[str]) -> Parameter | None:
    where = f"parameters.{name}"
    if not isinstance(data, Mapping):
        problems.append(f"{where} must be a mapping with default, search and help, got {data!r}")
        return None
    only(data, ("default", "search", "help", "min", "max"), where, problems)
    if name == "option" or not name.isidentifier():
        problems.append(f"{where} is not a name that a parameter can have")
    default, text = data.get("default"), data.get("help")
    if not isinstance(default, (bool, int, float, str)):
        problems.append(f"{where}.default must be a number or a word, got {default!r}")
        return None
    if not isinstance(text, str):
        problems.append(f"{where}.help must say what it does, got {text!r}")
        return None
    if not _are_numbers(data, ("min", "max"), where, problems):
        return None
    parameter = Parameter(
        name=name,
        default=default,
        search=tuple(as_list(data.get("search"))),
        help=text,
        minimum=data.get("min"),
        maximum=data.get("max"),
    )
    for value in (default, *parameter.search):
        problem = parameter.problem(value)
        if problem:
            problems.append(f"{where}: a value {problem}")
    return parameter


def _are_numbers(data: Mapping[str, Any], keys: Sequence[str], where: str, problems: list[str]) -> bool:
    """Tell whether `data` has numbers, or nothing, at `keys`; say which are something else."""
    strange = [
        key
        for key in keys
        if data.get(key) is not None
        and (isinstance(data[key], bool) or not isinstance(data[key], int | float))
    ]
    problems.extend(f"{where}.{key} must be a number, got {data[key]!r}" for key in strange)
    return not strange


def _check_settings(
    settings: Mapping[str, Any], parameters: Mapping[str, object], where: str, problems: list[str]
) -> None:
    seams = [str(seam) for seam in Seam]
    only(settings, seams, where, problems)
    problems.extend(
        f"{where}.{seam} must be a mapping, got {part!r}"
        for seam, part in settings.items()
        if not isinstance(part or {}, Mapping)
    )
    known = ", ".join(parameters) or "none"
    problems.extend(
        f"{where} uses ${{{name}}}, which is not a parameter of this option ({known})"
        for name in expressions(settings)
        if name not in parameters
    )


def _needs(data: Mapping[str, Any], problems: list[str]) -> Needs:
    known = (
        "packages",
        "device",
        "min_compute_capability",
        "network",
        "several_devices",
        "several_processes",
        "verified",
    )
    only(data, known, "needs", problems)
    if data.get("device", "any") not in ("any", "cuda"):
        problems.append(f"needs.device must be any or cuda, got {data['device']!r}")
    if data.get("verified", "cpu") not in ("cpu", "simulated", "hardware", "source"):
        got = data["verified"]
        problems.append(f"needs.verified must be cpu, simulated, hardware or source, got {got!r}")
    _are_numbers(data, ("min_compute_capability",), "needs", problems)
    for package in as_list(data.get("packages")):
        try:
            Requirement(package)
        except (InvalidRequirement, TypeError):
            problems.append(f"needs.packages: {package!r} is not a requirement that pip takes")
    return Needs(
        **{**data, "packages": tuple(as_list(data.get("packages")))} if set(data) <= set(known) else {}
    )


def _support(data: object, problems: list[str]) -> Support | None:
    if data is None:
        return None
    if not isinstance(data, Mapping):
        problems.append(f"trainers must be a mapping with allowed, because and source, got {data!r}")
        return None
    only(data, ("allowed", "because", "source"), "trainers", problems)
    if not as_list(data.get("allowed")):
        problems.append("trainers.allowed must list a trainer")
    require_because(data, "trainers", problems)
    return Support(
        allowed=tuple(as_list(data.get("allowed"))),
        because=str(data.get("because")),
        source=str(data.get("source")),
    )
