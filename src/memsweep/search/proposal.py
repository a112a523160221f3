"""A trial to be: what it would be given, what the app makes of it, and the sampler's own trial for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import optuna
from optuna.distributions import CategoricalDistribution, IntDistribution

from memsweep.record.asked import Asked, Origin
from memsweep.search.parameter import Parameter
from memsweep.search.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A trial to be.

    Attributes:
        overrides: What it is given.
        parameters: Searched key to label.
        inside: Parameter name to label, of those that the sampler could have drawn.
        verdict: What the app makes of it.
        trial: The sampler's trial, running.
        is_baseline: It is what the others are compared with.
        origin: Who asked for it.
        draw: The how-manieth question to the sampler it answers; None when nobody asked the sampler.
        again_of: Number of the trial that it takes the place of; None for none.
    """

    overrides: tuple[str, ...]
    parameters: Mapping[str, str]
    inside: Mapping[str, str]
    verdict: Verdict
    trial: optuna.Trial
    is_baseline: bool = False
    origin: Origin = Origin.GIVEN
    draw: int | None = None
    again_of: int | None = None

    def asked(self, number: int, elapsed_seconds: float, reused_from: int | None = None) -> Asked:
        """Return it as a trial's folder is to say it.

        Args:
            number: Of the trial.
            elapsed_seconds: How long the study has been running.
            reused_from: The trial whose outcome it has without being run; None when it is run.
        """
        return Asked(
            number=number,
            parameters=dict(self.parameters),
            overrides=self.overrides,
            choice=dict(self.verdict.choice),
            changes=self.verdict.changes,
            violations=self.verdict.violations,
            requested_hash=self.verdict.requested_hash,
            inside=dict(self.inside),
            is_baseline=self.is_baseline,
            origin=self.origin,
            draw=self.draw,
            again_of=self.again_of,
            reused_from=reused_from,
            elapsed_seconds=elapsed_seconds,
        )


def suggest(trial: optuna.Trial, parameter: Parameter) -> object:
    """Return what the sampler draws for a parameter, or what the trial was given of it."""
    distribution = parameter.distribution
    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(parameter.name, distribution.choices)
    low, high, log = distribution.low, distribution.high, distribution.log  # type: ignore[attr-defined]
    if isinstance(distribution, IntDistribution):
        return trial.suggest_int(parameter.name, low, high, step=distribution.step, log=log)
    step: float | None = distribution.step  # type: ignore[attr-defined]
    return trial.suggest_float(parameter.name, low, high, step=step, log=log)
