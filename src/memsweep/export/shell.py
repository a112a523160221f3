"""environment.sh and run.sh: the variables that the trial's process had, and the one command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from memsweep.config.forbidden import variable_problems
from memsweep.export.chosen import Chosen
from memsweep.machine import ALLOCATOR_VARIABLES
from memsweep.measure.allocator import KEPT_BYTES, LOOSE_BYTES, TIGHT_BYTES, Allocator
from memsweep.secret import masked

# Variables that libraries compute by, whoever set them; none of them is a path or a secret.
_KEPT = ("GOMP_", "KMP_", "MALLOC_", "MKL_", "OMP_", *ALLOCATOR_VARIABLES)
_DEVICES = "CUDA_VISIBLE_DEVICES"

TIGHT_LINE = f"export MALLOC_MMAP_THRESHOLD_={TIGHT_BYTES} MALLOC_TRIM_THRESHOLD_={TIGHT_BYTES}"
"""What gives freed memory back at once, as while a trial's peak was measured on a CPU."""


def variables(chosen: Chosen) -> dict[str, str]:
    """Return the variables that a training needs to be as fast, and as small, as its trial; no secrets."""
    before: Mapping[str, str] = chosen.effective["environment"]
    found = {
        name: str(value) for name, value in before.items() if name.startswith(_KEPT) and _is_harmless(name)
    }
    found["TOKENIZERS_PARALLELISM"] = "false"
    found |= {**chosen.config.launch.environment, **chosen.settings.environment}
    if has_loose_allocator(chosen):
        found.setdefault("MALLOC_MMAP_THRESHOLD_", str(LOOSE_BYTES))
        found.setdefault("MALLOC_TRIM_THRESHOLD_", str(KEPT_BYTES))
    return {name: value for name, value in found.items() if masked(value, name) == value and name != _DEVICES}


def withheld(chosen: Chosen) -> tuple[str, ...]:
    """Return the variables that the study sets and that hold a secret."""
    given = chosen.config.launch.environment
    return tuple(sorted(name for name, value in given.items() if masked(value, name) != value))


def environment_text(chosen: Chosen) -> str:
    """Return environment.sh."""
    lines = ["# The variables that the trial's process had, as far as they matter.  Read by run.sh."]
    for name, value in sorted(variables(chosen).items()):
        if name == "MALLOC_MMAP_THRESHOLD_" and has_loose_allocator(chosen):
            lines += [
                "# Freed memory is kept for the next step, as while the trial's speed was measured.  Its",
                f"# peak was measured with both at {TIGHT_BYTES}: each block is given back, which is slower.",
                "# So the peak can be higher than measured here.  The other way, as the last line:",
                f"# {TIGHT_LINE}",
            ]
        lines.append(f"export {name}={shlex.quote(value)}")
    lines += [f"# export {name}=...  # a secret, which was not written down" for name in withheld(chosen)]
    if not chosen.on_cpu and chosen.processes == 1:
        lines += [
            "# Measured on one device: the trainer would spread over all that it sees.",
            f'export {_DEVICES}="${{{_DEVICES}:-0}}"',
        ]
    return "\n".join(lines) + "\n"


def run_text(command: str) -> str:
    """Return run.sh.

    Args:
        command: What trains, without the words that may follow it.
    """
    program = command.split()[0]
    return (
        "#!/bin/sh\n"
        "# Trains.  Further words override config.yaml: sh run.sh --max_steps 20 --output_dir elsewhere\n"
        "set -e\n"
        'cd "$(dirname "$0")"\n'
        ". ./environment.sh\n"
        f"if ! command -v {program} >/dev/null; then\n"
        f'  echo "{program} is not on PATH: pip install -r requirements.txt" >&2\n'
        "  exit 127\n"
        "fi\n"
        f'exec {command} "$@"\n'
    )


def _is_harmless(name: str) -> bool:
    """Tell whether a variable that a study's file has can be one, and leads to no code."""
    return not list(variable_problems([name], "environment"))


def has_loose_allocator(chosen: Chosen) -> bool:
    """Tell whether the trial's speed was measured with the C library keeping freed memory."""
    memory = chosen.record.facts.get("memory", {})
    return chosen.on_cpu and memory.get("allocator") == Allocator.TIGHT
