"""The study as Optuna's own tools see it: a copy, for its dashboard and its plots.

The sampler works on a study in memory, and the files in the study's folder are what counts; so a copy that
cannot be written costs one warning and nothing else.
"""

from __future__ import annotations

import datetime
import logging
import warnings
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.exceptions import DuplicatedStudyError, ExperimentalWarning
from optuna.storages import BaseStorage, RDBStorage
from optuna.trial import TrialState, create_trial
from sqlalchemy import event

from memsweep.errors import StudyExists
from memsweep.record.study import Study
from memsweep.record.trial import TrialResult
from memsweep.search.parameter import Parameter
from memsweep.search.tell import Told

log = logging.getLogger(__name__)

# A finished trial cannot be changed in Optuna's storage, so later runs of it have no place there.
_FIGURES = "of each trial's first run; medians over repeats are in results.jsonl and the report"


class Mirror:
    """A copy of the study in Optuna's storage.

    Attributes:
        url: Where; None when there is none.
        note: What it does not hold, to stand behind its name; empty when it holds all.
    """

    def __init__(self, url: str | None, study: Study, *, has_repeats: bool = False) -> None:
        """Make the copy, empty.

        Args:
            url: Optuna's URL of the storage; None for no copy.
            study: What the study sets out to do.
            has_repeats: Some set-ups are measured more than once, which the copy does not follow.

        Raises:
            StudyExists: If the storage already has a study of that name.
        """
        self.url = url
        self.note = " (the first run of each)" if has_repeats else ""
        self._study: optuna.Study | None = None
        if url is None:
            return
        try:
            self._study = optuna.create_study(
                storage=_opened(url),
                study_name=study.name,
                directions=[direction.value for direction in study.objectives.values()],
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ExperimentalWarning)
                self._study.set_metric_names(list(study.objectives))
            facts = {"command": study.command, "created": study.created, "figures": _FIGURES}
            for key, value in facts.items():
                self._study.set_user_attr(key, value)
        except DuplicatedStudyError as error:
            raise StudyExists(
                f"{url} already has a study {study.name!r}, and this version does not add to a study; "
                f"give the new one another name: hydra.sweeper.study_name={study.name}-2"
            ) from error
        except Exception as error:
            self._give_up(error)

    def add(
        self, result: TrialResult, told: Told, inside: Mapping[str, str], parameters: tuple[Parameter, ...]
    ) -> None:
        """Add a finished trial.

        Args:
            result: The trial.
            told: What the sampler was told of it.
            inside: Parameter name to label, of those that the sampler could have drawn.
            parameters: The searched parameters.
        """
        if self._study is None:
            return
        try:
            self._study.add_trial(_frozen(result, told, inside, parameters))
        except Exception as error:
            self._give_up(error)

    @property
    def command(self) -> str | None:
        """What to type to look at it; None when there is nothing to look at."""
        return None if self._study is None else f"optuna-dashboard {self.url}"

    def _give_up(self, error: Exception) -> None:
        """Warn once, and write no more."""
        self._study = None
        log.warning(
            "%s is left behind from here on (%s); results.jsonl has every trial", self.url, _first_line(error)
        )


def _opened(url: str) -> BaseStorage:
    """Return the storage at `url`.

    SQLite does not wait for the disk: what a loss of power costs can be made again from the trial folders,
    and waiting took 20 to 50 ms a trial.
    """
    storage = RDBStorage(url)
    if url.startswith("sqlite:"):
        event.listen(storage.engine, "connect", _without_waiting)
        storage.engine.dispose()  # connections made before do not know of it
    return storage


def _without_waiting(connection: Any, record: object) -> None:  # noqa: ARG001, SQLAlchemy passes both
    connection.execute("PRAGMA synchronous=OFF")


def _frozen(
    result: TrialResult, told: Told, inside: Mapping[str, str], parameters: tuple[Parameter, ...]
) -> optuna.trial.FrozenTrial:
    params: dict[str, Any] = {}
    distributions: dict[str, BaseDistribution] = {}
    for parameter in parameters:
        if parameter.name in inside:
            params[parameter.name] = parameter.drawn(inside[parameter.name])
            distributions[parameter.name] = parameter.distribution
    attributes: dict[str, Any] = {
        "number": result.number,
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
        params=params,
        distributions=distributions,
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
