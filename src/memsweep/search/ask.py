"""What to try next: the sampler's proposal where it is legal and new, else the nearest cell that is.

The study that the sampler works on is in memory.  It holds more trials than were run: a proposal that was
tried already is told as failed, which samplers do not see, and a few that break rules are told as
infeasible, so that the sampler learns where not to look.

What is drawn for a proposal follows from the seed and from how many the sampler was asked for before, and
from nothing that was drawn for those.  So a study that is continued draws what it would have drawn.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import optuna
from optuna.trial import TrialState, create_trial

from memsweep.errors import ConfigError
from memsweep.record.asked import Asked, Origin
from memsweep.record.study import Study
from memsweep.search.candidates import LegalCandidates
from memsweep.search.legal import LegalCells
from memsweep.search.proposal import Proposal, suggest
from memsweep.search.samplers import GRID, make_sampler, reseed, sampler_name
from memsweep.search.space import Cell, Space
from memsweep.search.structured.beliefs import Prior
from memsweep.search.structured.history import ELSEWHERE, KNOWN, SECONDS
from memsweep.search.tell import ENDED, Told
from memsweep.search.verdict import Judge, Verdict

log = logging.getLogger(__name__)

_ASKS = 4
"""Proposals that are drawn before a cell is picked without the sampler."""

_REMEMBERED = 20
"""Proposals that are looked back on: where none of them was legal, asking again is no use."""

_SETTLED = 10
"""Trials told before the sampler hears of broken rules: until then it only explores."""


class Asker:
    """Proposes trials and hears how they ended.

    Args:
        space: The search space.
        judge: Knows which cells may run.
        sampler: The sampler's `name` or `_target_`, and what it takes.
        seed: Where `sampler` has none of its own; also of what is drawn beside it.
        study: Objectives and constraints.
        prior: Predictions for a sampler that can use them; None for none.

    Attributes:
        n_draws: How many proposals the sampler was asked for; a study that is continued sets it.
    """

    def __init__(
        self,
        space: Space,
        judge: Judge,
        sampler: Mapping[str, Any],
        seed: int,
        study: Study,
        prior: Prior | None = None,
    ) -> None:
        self.space = space
        self.n_draws = 0
        own_seed = sampler.get("seed")
        self._seed = seed if own_seed is None else int(own_seed)
        self._rng = rng = random.Random(self._seed)
        self.legal = LegalCells(space, judge, rng)
        self._visited: set[Cell] = set()
        self._names = tuple(study.constraints)
        self._recent: deque[bool] = deque(maxlen=_REMEMBERED)
        self._n_told = 0
        self._told_illegal = 0
        self._candidates = LegalCandidates(space, self.legal, rng, self._visited)
        is_grid = sampler_name(sampler) == GRID
        endless = [parameter.key for parameter in space.parameters if not parameter.labels]
        if is_grid and endless:
            raise ConfigError(
                f"hydra.sweeper.sampler=grid goes through lists, and {' and '.join(endless)} has none: type "
                "values, as choice(1,2) or range(1,9), or take another sampler"
            )
        self._ordered: Iterator[Cell] | None = self.legal.ordered() if is_grid else None
        self._study = optuna.create_study(
            sampler=make_sampler(sampler, seed, self._candidates, prior),
            directions=[direction.value for direction in study.objectives.values()],
        )

    @property
    def n_left(self) -> int | None:
        """How many legal cells have not been proposed; None where they are not listed."""
        listed = self.legal.listed()
        return None if listed is None else sum(cell not in self._visited for cell in listed)

    def is_legal(self, cell: Cell) -> bool:
        """Tell whether a cell breaks no rule."""
        return not self.legal.verdict(cell).violations

    def is_tried(self, cell: Cell) -> bool:
        """Tell whether a cell has been proposed."""
        return cell in self._visited

    def propose(self, worst: list[float]) -> Proposal | None:
        """Return the next trial; None when there is none that has not been proposed.

        Args:
            worst: Finite values for what breaks rules, one an objective.
        """
        draw = self.n_draws
        self.n_draws += 1
        self._rng.seed(f"{self._seed} {draw}")
        reseed(self._study.sampler, self._seed, draw)
        found = self._drawn(worst)
        return None if found is None else replace(found, origin=Origin.SAMPLER, draw=draw)

    def _drawn(self, worst: list[float]) -> Proposal | None:
        if self._ordered is not None:
            cell = next((cell for cell in self._ordered if cell not in self._visited), None)
            return None if cell is None else self.of_cell(cell)
        if self.n_left == 0:
            return None
        cell = ()
        is_hopeless = len(self._recent) == _REMEMBERED and not any(self._recent)
        for _ in range(1 if is_hopeless else _ASKS):
            trial = self._study.ask()
            try:
                cell = self._cell_of(trial)
            except Exception as error:  # whatever a sampler dies of, the study goes on
                log.warning("the sampler failed (%s: %s); a trial is chosen without it", _name(error), error)
                self._study.tell(trial, state=TrialState.FAIL)
                cell = self.space.random_cell(self._rng)
                break
            if cell in self._visited:
                self._study.tell(trial, state=TrialState.FAIL)
                continue
            verdict = self.legal.verdict(cell)
            self._recent.append(not verdict.violations)
            if not verdict.violations:
                return self._proposal(cell, trial, verdict)
            self._refuse(trial, worst)
        found = self.legal.near(cell, self._visited)
        return None if found is None else self.of_cell(found)

    def withdraw(self, proposal: Proposal) -> None:
        """Take back a proposal that is not to be tried after all; it may be proposed again."""
        self._study.tell(proposal.trial, state=TrialState.FAIL)
        self._visited.discard(self.cell_of(proposal.parameters))
        self._ordered = None if self._ordered is None else self.legal.ordered()

    def cell_of(self, parameters: Mapping[str, str | None]) -> Cell:
        """Return the cell with these labels by key; what is missing takes its first."""
        return self.space.cell({p.name: parameters.get(p.key) for p in self.space.parameters})

    def of_cell(self, cell: Cell, space: Space | None = None, *, is_baseline: bool = False) -> Proposal:
        """Return a proposal of a given cell, which need not be legal nor inside the space.

        Args:
            cell: The cell.
            space: The space with other fixed overrides, where the cell has some of its own.
            is_baseline: It is what the others are compared with.
        """
        trial = self._given((space or self.space).drawn(cell))
        verdict = self.legal.verdict(cell) if space is None else self.legal.judge(space.request(cell))
        return self._proposal(cell, trial, verdict, space=space, is_baseline=is_baseline)

    def of_past(self, asked: Asked, cell: Cell | None) -> Proposal:
        """Return what a trial of this study was asked to do as a proposal, so that its end can be told.

        Args:
            asked: What its folder says.
            cell: The cell of this space that asks for the same, which is not proposed again; None for none.
        """
        if cell is None:
            labels = {p: asked.parameters[p.key] for p in self.space.parameters if p.key in asked.parameters}
            drawn = {p.name: value for p, label in labels.items() if (value := p.drawn(label)) is not None}
        else:
            drawn = self.space.drawn(cell)
        verdict = Verdict(
            choice=asked.choice,
            changes=asked.changes,
            violations=asked.violations,
            requested_hash=asked.requested_hash,
        )
        if cell is not None:
            self._visit(cell, verdict)
        return Proposal(
            overrides=asked.overrides,
            parameters=asked.parameters,
            inside={p.name: p.label(drawn[p.name]) for p in self.space.parameters if p.name in drawn},
            verdict=verdict,
            trial=self._given(drawn),
            is_baseline=asked.is_baseline,
            origin=asked.origin,
            draw=asked.draw,
            again_of=asked.again_of,
        )

    def _given(self, drawn: Mapping[str, Any]) -> optuna.Trial:
        """Return a running trial of the sampler's study with values that the sampler is not asked for."""
        self._study.enqueue_trial(dict(drawn))
        trial = self._study.ask()
        for parameter in self.space.parameters:
            if parameter.name in drawn:
                suggest(trial, parameter)
        return trial

    def tell(self, proposal: Proposal, told: Told) -> None:
        """Tell the sampler how a proposal ended."""
        if told.state is TrialState.FAIL:
            self._study.tell(proposal.trial, state=TrialState.FAIL)
            return
        for name, violation in told.constraints.items():
            proposal.trial.set_constraint(name, violation)
        proposal.trial.set_user_attr(KNOWN, told.known)
        if told.seconds:
            proposal.trial.set_user_attr(SECONDS, told.seconds)
        self._study.tell(proposal.trial, list(told.values or ()))
        self._n_told += 1

    def learn(self, cell: Cell, told: Told, *, is_enough: bool) -> None:
        """Tell the sampler of a trial that another study has run; this study's front does not hold it.

        Args:
            cell: What it has run.
            told: How it ended.
            is_enough: Do not propose the cell in this study.
        """
        if told.state is TrialState.FAIL:
            return
        if is_enough:
            self._visit(cell, self.legal.verdict(cell))
        drawn = self.space.drawn(cell)
        trial = create_trial(
            state=told.state,
            values=list(told.values or ()),
            params=drawn,
            distributions={p.name: p.distribution for p in self.space.parameters if p.name in drawn},
            user_attrs={KNOWN: told.known, ELSEWHERE: True},
            constraints=dict(told.constraints),
        )
        self._study.add_trial(trial)

    def _visit(self, cell: Cell, verdict: Verdict) -> None:
        self._visited.add(cell)
        self._candidates.asked_for(verdict.requested_hash)

    def _proposal(
        self,
        cell: Cell,
        trial: optuna.Trial,
        verdict: Verdict,
        *,
        space: Space | None = None,
        is_baseline: bool = False,
    ) -> Proposal:
        used = space or self.space
        if space is None:
            self._visit(cell, verdict)
        labels = used.labels(cell)
        inside = {name: label for name, label in labels.items() if label is not None and name in trial.params}
        return Proposal(
            overrides=used.overrides(cell),
            parameters=used.shown(cell),
            inside=inside,
            verdict=verdict,
            trial=trial,
            is_baseline=is_baseline,
        )

    def _cell_of(self, trial: optuna.Trial) -> Cell:
        """Return the cell that the sampler draws for a trial."""
        labels: dict[str, str | None] = {}
        for parameter in self.space.parameters:
            exists = self.space.exists(parameter, labels)
            labels[parameter.name] = parameter.label(suggest(trial, parameter)) if exists else None
        return tuple(labels.values())

    def _refuse(self, trial: optuna.Trial, worst: list[float]) -> None:
        """Tell the sampler of broken rules, but not so often that rules drown measurements."""
        if self._n_told < _SETTLED or self._told_illegal >= self._n_told:
            self._study.tell(trial, state=TrialState.FAIL)
            return
        self._told_illegal += 1
        for name in self._names:
            trial.set_constraint(name, 0.0)
        trial.set_constraint(ENDED, 1.0)
        self._study.tell(trial, worst)


def _name(error: Exception) -> str:
    return type(error).__name__
