"""What does an option need that no choice can give: another trainer, a device, a package, a network?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from memsweep.technique.option import Option
from memsweep.technique.rule import one_of

if TYPE_CHECKING:
    from memsweep.technique.compatibility import Circumstances

_WHY_DEVICE = "it acts on an accelerator only; see launch.device"


def unmet(option: Option, here: Circumstances) -> list[str]:
    """Return a sentence for each need of the option that no choice can meet under the circumstances."""
    needs, label, sentences = option.needs, option.label, []
    support = option.support
    if support is not None and here.trainer not in support.allowed:
        allowed = one_of(support.allowed)
        why = f"{support.because} ({support.source})"
        sentences.append(f"{label} needs trainer={allowed}, got trainer={here.trainer}: {why}")
    if needs.device not in ("any", here.device):
        sentences.append(f"{label} needs device={needs.device}, got device={here.device}: {_WHY_DEVICE}")
    for text in needs.packages:
        sentence = _missing(label, text, here.versions)
        sentences.extend([sentence] if sentence else [])
    least, has = needs.min_compute_capability, here.compute_capability
    if here.device == "cuda" and least is not None and has is not None and has < least:
        sentences.append(f"{label} needs compute capability {least:.1f} or more, got {has:.1f}")
    if needs.network and not here.network:
        sentences.append(f"{label} needs the network, which is switched off (HF_HUB_OFFLINE): it downloads")
    if needs.several_devices and not here.several_devices:
        sentences.append(
            f"{label} needs several devices, one for each of its processes, and there are not so many here; "
            "launch=cpu_simulated lets processes on a CPU stand in for them"
        )
    if needs.several_processes and not here.several_processes:
        sentences.append(
            f"{label} needs a process beside the trial, which is not started for it: not offered yet"
        )
    return sentences


def _missing(label: str, text: str, versions: Mapping[str, str]) -> str | None:
    wanted = Requirement(text)
    installed = versions.get(wanted.name)
    if installed is None:
        return f"{label} needs the package {text}, which is not installed"
    if wanted.specifier.contains(installed, prereleases=True):
        return None
    return f"{label} needs the package {text}, got {wanted.name} {installed}"
