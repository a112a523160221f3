"""The parameters of options that a study did not search: `micro_batch=size` is of which size?

They are in no line of results.jsonl, only in the configuration of each trial.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memsweep.record.folder import StudyFolder
from memsweep.record.trial import TrialResult
from memsweep.technique.yaml_text import parse_yaml
from memsweep.visible import visible


def unsearched(folder: StudyFolder, results: Iterable[TrialResult]) -> tuple[str, ...]:
    """Return the options of some trials with their parameters: `micro_batch=size size=2`, each once.

    What was searched is left out, since each trial's label says it.  So are trials whose configuration is not
    there any more, and those of an app without techniques.
    """
    found = set()
    for result in results:
        for technique, chosen in _techniques(folder, result.number).items():
            if not isinstance(chosen, dict):
                continue
            texts = [
                f"{name}={value}"
                for name, value in chosen.items()
                if name != "option" and f"technique.{technique}.{name}" not in result.parameters
            ]
            if texts:
                found.add(" ".join([f"{technique}={chosen.get('option')}", *texts]))
    return tuple(sorted(map(visible, found)))


def _techniques(folder: StudyFolder, number: int) -> dict[str, Any]:
    """Return technique to option and parameters, as a trial was composed; empty where nobody knows."""
    file = folder.trial(number).config
    try:
        config = parse_yaml(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    techniques = config.get("technique") if isinstance(config, dict) else None
    return techniques if isinstance(techniques, dict) else {}
