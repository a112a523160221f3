"""The study as Optuna's own tools see it: a copy, for its dashboard and its plots.

The sampler works on a study in memory, and the trial folders are what counts; so a copy that cannot be
written costs one warning and nothing else, and one that is damaged or says something else is made anew.
Only the study's controller writes it.
"""

from __future__ import annotations

import datetime
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, json_to_distribution
from optuna.exceptions import DuplicatedStudyError, ExperimentalWarning
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from memsweep.errors import StudyExists
from memsweep.record.folder import set_damaged_aside
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.search.parameter import drawn
from memsweep.search.storage import file_of, opened
from memsweep.search.tell import Told
from memsweep.secret import masked_text, without_password

log = logging.getLogger(__name__)

# A finished trial cannot be changed in Optuna's storage, so later runs of it have no place there.
_FIGURES = "of each trial's first run; medians over repeats are in results.jsonl and the report"
_NUMBER, _CREATED = "number", "created"


@dataclass(frozen=True, slots=True)
class Row:
    """A trial for the copy.

    Attributes:
        result: The trial.
        told: What the sampler was told of it.
        inside: Parameter name to label, of those that the sampler could have drawn.
    """

    result: TrialResult
    told: Told
    inside: Mapping[str, str]


class Mirror:
    """A copy of the study in Optuna's storage.

    Attributes:
        url: Where; None when there is none.
    """

    def __init__(
        self,
        url: str | None,
        study: Study,
        *,
        own: Path | None = None,
        notice: Callable[[str], object] = log.warning,
    ) -> None:
        """Open the copy, or make it.

        Args:
            url: Optuna's URL of the storage; None for no copy.
            study: What the study sets out to do.
            own: The study's own folder: what is damaged in it is set aside, and made anew.
            notice: Told what was set aside or made anew.

        Raises:
            StudyExists: If the storage already has another study of that name.
        """
        self.url = url
        self._facts = study
        self._study: optuna.Study | None = None
        self._notice, self._is_anew = notice, False
        self._distributions = {name: json_to_distribution(text) for name, text in study.distributions.items()}
        if url is None:
            return
        file = file_of(url)
        self._file = file if own is not None and file is not None and file.parent == own else None
        try:
            self._study = self._opened()
        except StudyExists:
            raise
        except Exception as error:
            if self._file is None or not self._file.is_file():
                self._give_up(error)
            else:
                self._make_anew(f"it cannot be read ({_first_line(error)})")

    def catch_up(self, rows: Sequence[Row]) -> None:
        """Have the copy hold these trials and no others: what is missing is added, or all is made anew.

        Args:
            rows: Every finished trial of the study, in the order they finished.
        """
        if self._study is None:
            return
        try:
            stored = self._study.get_trials(deepcopy=False)
        except Exception as error:
            stored = []
            if self._file is None:
                self._give_up(error)
            else:
                self._make_anew(f"its trials cannot be read ({_first_line(error)})")
        n_same = self._n_same(stored, rows)
        if n_same < len(stored):
            self._make_anew(f"its trial {n_same} is not what the trial folders hold")
            n_same = 0
        elif not stored and len(rows) > 1 and not self._is_anew:  # of one it may not have come to tell
            self._notice(f"{self._name} is made from the trial folders: there was none")
        for row in rows[n_same:]:
            self.add(row.result, row.told, row.inside)

    def add(self, result: TrialResult, told: Told, inside: Mapping[str, str]) -> None:
        """Add a finished trial.

        Args:
            result: The trial.
            told: What the sampler was told of it.
            inside: Parameter name to label, of those that the sampler could have drawn.
        """
        if self._study is None:
            return
        try:
            self._study.add_trial(_frozen(result, told, inside, self._distributions))
        except Exception as error:
            self._give_up(error)

    @property
    def _name(self) -> str:
        return "the copy for Optuna" if self._file is None else self._file.name

    def _opened(self) -> optuna.Study:
        """Return the study in the storage, made where there is none."""
        assert self.url is not None
        facts, storage = self._facts, opened(self.url)
        try:
            return self._made(storage)
        except DuplicatedStudyError as error:
            found = optuna.load_study(storage=storage, study_name=facts.name)
            if found.user_attrs.get(_CREATED) == facts.created:
                return found
            if self._file is not None:  # in this folder lies nobody else's: there was no time to mark it
                optuna.delete_study(storage=storage, study_name=facts.name)
                return self._made(storage)
            raise StudyExists(
                f"{masked_text(self.url)} already has a study {facts.name!r}, which is not the one in this "
                f"folder; give this one another name: hydra.sweeper.study_name={facts.name}-2"
            ) from error

    def _made(self, storage: BaseStorage) -> optuna.Study:
        facts = self._facts
        study = optuna.create_study(
            storage=storage,
            study_name=facts.name,
            directions=[direction.value for direction in facts.objectives.values()],
        )
        # First of all: by this it is known to be this study's, should its controller end right here.
        study.set_user_attr(_CREATED, facts.created)
        study.set_user_attr("command", facts.command)
        study.set_user_attr("figures", _FIGURES)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            study.set_metric_names(list(facts.objectives))
        return study

    def _n_same(self, stored: Sequence[FrozenTrial], rows: Sequence[Row]) -> int:
        """Return how many of the stored trials are the first of `rows`."""
        for place, trial in enumerate(stored):
            if place >= len(rows) or not self._is_same(trial, rows[place]):
                return place
        return len(stored)

    def _is_same(self, trial: FrozenTrial, row: Row) -> bool:
        number, state = trial.user_attrs.get(_NUMBER), trial.state
        if number != row.result.number or state is not row.told.state:
            return False
        # Optuna refuses trials whose parameter has other choices than before: a space has grown.
        return all(self._distributions.get(name) == one for name, one in trial.distributions.items())

    def _make_anew(self, why: str) -> None:
        """Make an empty copy in place of the one there is."""
        self._is_anew = True
        try:
            if self._file is not None and self._file.is_file():
                aside = set_damaged_aside(self._file)
                for suffix in ("-journal", "-wal", "-shm"):
                    self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
                self._notice(
                    f"{self._name} is made anew from the trial folders: {why}; it is {aside.name} now"
                )
            elif self._study is not None:
                optuna.delete_study(storage=self._study._storage, study_name=self._facts.name)
                self._notice(f"{self._name} is made anew from the trial folders: {why}")
            self._study = self._opened()
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """Warn once, and write no more."""
        self._study = None
        log.warning(
            "%s is left behind from here on (%s); results.jsonl has every trial",
            masked_text(str(self.url)),
            without_password(_first_line(error), str(self.url)),
        )


def _frozen(
    result: TrialResult, told: Told, inside: Mapping[str, str], distributions: Mapping[str, BaseDistribution]
) -> FrozenTrial:
    found = {
        name: (distributions[name], value)
        for name, label in inside.items()
        if name in distributions and (value := drawn(distributions[name], label)) is not None
    }
    attributes: dict[str, Any] = {
        _NUMBER: result.number,
        "outcome": result.outcome.type,
        "set-up": result.label,
        "command": result.command,
        "measures": dict(result.measures),  # one attribute: each costs about 3 ms to store
    }
    if not result.objectives:
        attributes["reason"] = result.outcome.text
    frozen = create_trial(
        state=told.state,
        values=None if told.state is TrialState.FAIL else list(told.values or ()),
        params={name: value for name, (_, value) in found.items()},
        distributions={name: distribution for name, (distribution, _) in found.items()},
        user_attrs=attributes,
        # The dashboard knows constraints only in the form that Optuna had before version 5.
        system_attrs={"constraints": list(told.constraints.values())} if told.constraints else {},
        constraints=dict(told.constraints) or None,
    )
    seconds = result.seconds.get("total", 0.0)
    frozen.datetime_start = datetime.datetime.now() - datetime.timedelta(seconds=seconds)
    return frozen


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
