"""A sweep from what Hydra hands over to the exit code.

0    a front was found
1    nothing feasible was measured, too much failed, or nothing more can be written
2    what was asked for is not on offer; the message says what is
130  interrupted; what was finished is written
"""

from __future__ import annotations

import copy
import json
import logging
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
from hydra.errors import HydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from memsweep.complaint import complaint
from memsweep.config.masking import masked_yaml, secrets_masked
from memsweep.errors import ConfigError, MemsweepError, StudyUnwritable
from memsweep.record.folder import StudyFolder, write_text, writing
from memsweep.record.links import require_closed
from memsweep.search.ask import Asker
from memsweep.search.mirror import Mirror
from memsweep.search.space import Cell
from memsweep.secret import masked_text
from memsweep.study.book import Book
from memsweep.study.files import StudyFiles
from memsweep.study.ladder import Ladder, alone
from memsweep.study.lock import StudyLock
from memsweep.study.progress import Progress
from memsweep.study.publish import Publisher
from memsweep.study.warm_start import WarmStart
from memsweep.units import measure_text

from ._app import app_of
from ._build import Asked, build_space
from ._dry_run import describe
from ._enqueue import first_cell, read_trials, require_meant
from ._facts import repeating, study_of
from ._folder import trial_folder
from ._groups import values_of_keys
from ._interrupts import Interrupts
from ._launches import require_one_way
from ._opening import opening
from ._proposals import Proposals
from ._resume import Start, start_of
from ._settings import SweepSettings, read_settings
from ._study import StudyRun
from ._typed import in_use

_SHOWN = 12
"""Refusals that are told."""


def sweep(
    raw: Mapping[str, Any],
    config: DictConfig,
    hydra_context: HydraContext,
    launcher: Launcher | None,
    arguments: list[str],
) -> list[Sequence[Any]]:
    """Run a study, or go on with it, and end the program unless it found a front.

    Args:
        raw: The fields of `hydra.sweeper`.
        config: Hydra's composed config; its study is settled (`_folder.py`).
        hydra_context: Knows the config groups.
        launcher: Runs the trials; may be None for a dry run.
        arguments: The command line's overrides, without those of `hydra.`.

    Returns:
        What the launcher gave back, batch by batch; of long studies the first trials only.

    Raises:
        SystemExit: With the exit code, unless that is 0.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # what it would say, the study says
    logging.raiseExceptions = False  # a line that nobody reads any more is no reason for a traceback
    try:
        with Interrupts() as interrupts, secrets_masked():  # some launchers run their jobs in this process
            return _sweep(raw, config, hydra_context, launcher, arguments, interrupts)
    except StudyUnwritable as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except (MemsweepError, HydraException, OmegaConfBaseException) as error:
        print(masked_text(complaint(error)), file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


def _sweep(
    raw: Mapping[str, Any],
    config: DictConfig,
    hydra_context: HydraContext,
    launcher: Launcher | None,
    arguments: list[str],
    interrupts: Interrupts,
) -> list[Sequence[Any]]:
    loader = hydra_context.config_loader
    folder = StudyFolder(Path(config.hydra.sweep.dir))
    settings = read_settings(raw, folder, str(config.hydra.sweeper.study_name), _measure(config))
    for place in (folder, *(() if settings.warm_start is None else (StudyFolder(settings.warm_start),))):
        require_closed(place)
    app = app_of(config, loader)
    counts = in_use(settings.params, settings.when, settings.exclude, arguments, config)
    asked = Asked(
        params=counts.params,
        all_params=settings.params,
        when=counts.when,
        exclude=counts.exclude,
        option_parameters=settings.option_parameters == "searched",
    )
    space, judge = build_space(asked, arguments, app, loader, config, seed=settings.seed)
    program = repeating(config, hydra_context, space)
    study = study_of(settings, space, app, config, _excluded(counts.exclude), program)
    asker = Asker(space, judge, settings.sampler, settings.seed, study)
    listed = asker.legal.listed()
    study = replace(study, n_cells=None if listed is None else len(listed))
    baseline = first_cell(asker)
    # What is wrong with the app's own keys is wrong with every trial: found here, before anything starts.
    composed = loader.load_sweep_config(config, list(space.overrides(baseline)))
    app.require_meant(composed, values_of_keys(loader, space))
    Publisher.require(_tracking(config))
    warm_start = None if settings.warm_start is None else WarmStart(settings.warm_start, asker, study)
    enqueued = [] if settings.enqueue is None else read_trials(settings.enqueue, space, loader)
    if settings.enqueue is not None:
        require_meant(settings.enqueue, enqueued, app, config, loader)
    require_one_way(launcher, settings.n_jobs)
    if settings.dry_run:
        check = getattr(launcher, "check", None)
        if check is not None:
            check(space.overrides(baseline))
        print(describe(settings, space, asker, study))
        return []
    assert launcher is not None
    if listed is not None and not listed and not enqueued:
        refusals = [f"  {text}" for text, _ in asker.legal.refusals().most_common(_SHOWN)]
        raise ConfigError("\n".join(["no combination that is asked for can run:", *refusals]))
    trial_folder(copy.deepcopy(config), 0, list(space.overrides(baseline)), lambda _: composed)
    is_there = folder.path.is_dir()
    with StudyLock(folder):
        try:
            start = start_of(settings, study)
            settings = settings.with_total(start.study.n_trials)
            first = [asker.of_cell(baseline, is_baseline=True)]
            first += [asker.of_cell(cell, None if own is space else own) for cell, own in enqueued]
            if settings.ladder == "first":
                first += [asker.of_cell(cell) for cell in alone(space, baseline, asker.is_legal)]
            prepare = getattr(launcher, "prepare", None)
            if prepare is not None:
                prepare(first[0].overrides)
        except BaseException:
            _leave_nothing(folder, is_there)
            raise
        book = Book(start.study, program)
        proposals = Proposals(asker, book, first, _ladder(settings, asker, book, baseline), warm_start)
        try:
            return _run(
                settings,
                start,
                config,
                hydra_context,
                launcher,
                asker,
                book,
                proposals,
                counts.note,
                interrupts,
            )
        except ConfigError:  # a storage that has another study of that name, a first trial that is refused
            if not start.past.trials and start.before is None:
                _leave_nothing(folder, is_there)
            raise


def _run(
    settings: SweepSettings,
    start: Start,
    config: DictConfig,
    hydra_context: HydraContext,
    launcher: Launcher,
    asker: Asker,
    book: Book,
    proposals: Proposals,
    note: str | None,
    interrupts: Interrupts,
) -> list[Sequence[Any]]:
    folder = settings.folder
    progress = Progress(settings.progress, settings.n_trials)
    with writing(folder.path):
        write_text(folder.path / "multirun.yaml", masked_yaml(config))
        book.study.write(folder)
    mirror = Mirror(
        settings.storage,
        book.study,
        own=folder.path,
        notice=progress.note,
    )
    publisher = Publisher(folder, _tracking(config))
    for line in (*opening(settings, asker, book.study, note), *start.texts):
        progress.note(line)
    if hasattr(launcher, "on_phase"):
        launcher.on_phase = progress.phase

    def compose(overrides: Sequence[str]) -> DictConfig:
        return hydra_context.config_loader.load_sweep_config(config, list(overrides))

    run = StudyRun(
        settings=settings,
        start=start,
        asker=asker,
        book=book,
        launcher=launcher,
        files=StudyFiles(folder),
        mirror=mirror,
        publisher=publisher,
        progress=progress,
        proposals=proposals,
        interrupts=interrupts,
        folder_of=lambda number, overrides: trial_folder(config, number, overrides, compose),
        validate=compose,
    )
    code = run.run()
    progress.note(f"ended: {book.study.ended}")
    if code == 130:
        progress.note("the same command goes on with it")
    dashboard = ("trials in Optuna's dashboard", f"memsweep dashboard {folder.path}")
    places: list[tuple[str, Path | str]] = [("study", folder.path), dashboard]
    publisher.end(book, code, places)
    if code == 1:
        for name, miss in book.misses().items():
            measure = book.study.constraints[name].measure
            print(
                f"no trial meets {name}; the nearest misses it by {measure_text(measure, miss)}",
                file=sys.stderr,
            )
    if code:
        sys.exit(code)
    return list(run.launches.returns)


def _ladder(settings: SweepSettings, asker: Asker, book: Book, baseline: Cell) -> Ladder | None:
    """Return what proposes the last trials; None where the sampler does."""
    if settings.ladder != "auto" or not asker.space.techniques:
        return None
    return Ladder(asker, book, baseline, int(settings.n_trials * settings.ladder_share))


def _leave_nothing(folder: StudyFolder, was_there: bool) -> None:
    """Remove the folder of a study that did not come about, unless something else is in it too."""
    if was_there:
        return
    for path in (folder.lock, folder.study, folder.storage, folder.path / "multirun.yaml"):
        path.unlink(missing_ok=True)
    with suppress(OSError):  # a first trial's folder, with what it said
        folder.path.rmdir()


def _tracking(config: DictConfig) -> dict[str, Any]:
    """Return what the app says of Weights & Biases; nothing where it says nothing."""
    tracking = OmegaConf.select(config, "tracking")
    return dict(tracking) if OmegaConf.is_dict(tracking) else {}


def _measure(config: DictConfig) -> dict[str, Any]:
    """Return what the app says of how often to measure; nothing where it says nothing."""
    if not OmegaConf.is_dict(OmegaConf.select(config, "measure")):
        return {}
    return {key: OmegaConf.select(config, f"measure.{key}") for key in ("repeats", "front_repeats")}


def _excluded(exclude: Any) -> list[str]:
    """Return what is excluded in words; why does not enter."""
    nodes = exclude if isinstance(exclude, list) else []
    return [
        " with ".join(
            f"{key}={json.dumps(value, default=str)}" for key, value in node.items() if key != "because"
        )
        for node in nodes
        if isinstance(node, Mapping)
    ]
