"""A sweep from what Hydra hands over to the exit code.

0    a front was found
1    nothing feasible was measured, or too much failed
2    what was asked for is not on offer; the message says what is
130  interrupted; what was finished is written
"""

from __future__ import annotations

import importlib.metadata
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import optuna
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from memsweep.complaint import complaint
from memsweep.errors import MemsweepError
from memsweep.record.folder import StudyFolder
from memsweep.record.study import Study
from memsweep.search.ask import Asker
from memsweep.search.mirror import Mirror
from memsweep.search.space import Cell, Space
from memsweep.study.book import Book
from memsweep.study.files import StudyFiles
from memsweep.study.ladder import Ladder, alone
from memsweep.study.progress import Progress
from memsweep.study.publish import Publisher
from memsweep.study.warm_start import WarmStart
from memsweep.units import measure_text

from ._app import App, app_of
from ._build import Asked, build_space
from ._dry_run import describe
from ._enqueue import first_cell, read_trials
from ._folder import require_no_trials, trial_folder
from ._interrupts import Interrupts
from ._launches import require_one_way
from ._opening import opening
from ._proposals import Proposals
from ._settings import SweepSettings, read_settings
from ._study import StudyRun
from ._typed import in_use

_PACKAGES = (
    "memsweep",
    "hydra-core",
    "omegaconf",
    "optuna",
    "torch",
    "transformers",
    "trl",
    "peft",
    "accelerate",
)
_CONTEXT = ("trainer", "model", "dataset", "reward", "measure", "budget", "launch")


def sweep(
    raw: Mapping[str, Any],
    config: DictConfig,
    hydra_context: HydraContext,
    launcher: Launcher | None,
    arguments: list[str],
) -> list[Sequence[Any]]:
    """Run a study, and end the program unless it found a front.

    Args:
        raw: The fields of `hydra.sweeper`.
        config: Hydra's composed config; its study is settled (`_folder.py`).
        hydra_context: Knows the config groups.
        launcher: Runs the trials; None for a dry run.
        arguments: The command line's overrides, without those of `hydra.`.

    Returns:
        What the launcher gave back, batch by batch; of long studies the first trials only.

    Raises:
        SystemExit: With the exit code, unless that is 0.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # what it would say, the study says
    try:
        with Interrupts() as interrupts:
            return _sweep(raw, config, hydra_context, launcher, arguments, interrupts)
    except (MemsweepError, HydraException, OmegaConfBaseException) as error:
        print(complaint(error), file=sys.stderr)
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
    study = _study(settings, space, app, config)
    asker = Asker(space, judge, settings.sampler, settings.seed, study)
    listed = asker.legal.listed()
    study = replace(study, n_cells=None if listed is None else len(listed))
    baseline = first_cell(asker)
    # What is wrong with the app's own keys is wrong with every trial: found here, before anything starts.
    app.require_meant(loader.load_sweep_config(config, list(space.overrides(baseline))))
    warm_start = None if settings.warm_start is None else WarmStart(settings.warm_start, asker, study)
    if launcher is None:
        print(describe(settings, space, asker, study))
        return []
    require_no_trials(folder)
    enqueued = [] if settings.enqueue is None else read_trials(settings.enqueue, space, loader)
    first = [asker.of_cell(baseline, is_baseline=True)]
    first += [asker.of_cell(cell, None if own is space else own) for cell, own in enqueued]
    if settings.ladder == "first":
        first += [asker.of_cell(cell) for cell in alone(space, baseline, asker.is_legal)]
    require_one_way(launcher, settings.n_jobs)
    prepare = getattr(launcher, "prepare", None)
    if prepare is not None:
        prepare(first[0].overrides)
    book = Book(study, _repeating(config, hydra_context, space))
    proposals = Proposals(asker, book, first, _ladder(settings, asker, book, baseline), warm_start)
    return _run(settings, config, hydra_context, launcher, asker, book, proposals, counts.note, interrupts)


def _run(
    settings: SweepSettings,
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
    folder.path.mkdir(parents=True, exist_ok=True)
    OmegaConf.save(config, folder.path / "multirun.yaml")
    files = StudyFiles(folder)
    files.write(book)
    mirror = Mirror(settings.storage, book.study, has_repeats=settings.has_repeats)
    tracking = OmegaConf.select(config, "tracking")
    publisher = Publisher(folder, dict(tracking) if OmegaConf.is_dict(tracking) else {})
    progress = Progress(settings.progress, settings.n_trials)
    for line in opening(settings, asker, book.study, mirror, note):
        progress.note(line)
    if hasattr(launcher, "on_phase"):
        launcher.on_phase = progress.phase
    run = StudyRun(
        settings=settings,
        asker=asker,
        book=book,
        launcher=launcher,
        files=files,
        mirror=mirror,
        publisher=publisher,
        progress=progress,
        proposals=proposals,
        interrupts=interrupts,
        folder_of_number=lambda number: trial_folder(config, number),
        validate=lambda overrides: _compose(hydra_context, config, overrides),
    )
    code = run.run()
    progress.note(f"ended: {book.study.ended}")
    places: list[tuple[str, Path | str]] = [("study", folder.path)]
    places += [(f"trials in Optuna's dashboard{mirror.note}", mirror.command)] if mirror.command else []
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


def _study(settings: SweepSettings, space: Space, app: App, config: DictConfig) -> Study:
    """Return what the study sets out to do."""
    parameters: dict[str, Any] = {}
    for parameter in space.parameters:
        distribution = parameter.distribution
        bounds = {key: getattr(distribution, key, None) for key in ("low", "high", "log")}
        shown: dict[str, Any] = {"values": list(parameter.labels)} if parameter.labels else bounds
        if parameter.conditions:
            shown["only_with"] = [condition.text for condition in parameter.conditions]
        parameters[parameter.name] = shown
    searched = {parameter.key for parameter in space.parameters}
    choices = config.hydra.runtime.choices
    context = {
        group: str(choices[group])
        for group in _CONTEXT
        if choices.get(group) is not None and group not in searched
    }
    return Study(
        name=settings.study_name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=shlex.join(["python", program(), *sys.argv[1:]]),
        objectives=settings.objectives,
        constraints=settings.constraints,
        parameters=parameters,
        fixed=space.fixed,
        sampler={**settings.sampler, "seed": settings.sampler.get("seed") or settings.seed},
        n_trials=settings.n_trials,
        context=context if app.techniques else {},
        versions={"python": platform.python_version(), **_versions()},
    )


def _measure(config: DictConfig) -> dict[str, Any]:
    """Return what the app says of how often to measure; nothing where it says nothing."""
    if not OmegaConf.is_dict(OmegaConf.select(config, "measure")):
        return {}
    return {key: OmegaConf.select(config, f"measure.{key}") for key in ("repeats", "front_repeats")}


def program() -> str:
    """Return the script that runs, as short as it can be typed from here."""
    path = Path(sys.argv[0]).absolute()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _repeating(config: DictConfig, hydra_context: HydraContext, space: Space) -> str:
    """Return what to type after `python` before a trial's overrides, to run it alone.

    A file that the trial names may choose another sweeper, installed or not, and ask for a sweep by itself.
    """
    # Unresolved: what is typed may refer to what only a trial has, as ${hydra.job.num}.
    by_hand: Any = OmegaConf.to_container(config.hydra.overrides, resolve=False)
    words = [text for text in by_hand["hydra"] if text.startswith("hydra/sweeper=")]
    typed = OverridesParser.create().parse_overrides(by_hand["task"])
    presets = [str(one.input_line) for one in typed if not one.is_sweep_override()]
    if (words or presets) and not space.techniques:  # an app of ours has no such files, and composes slowly
        alone = hydra_context.config_loader.load_configuration(
            config.hydra.job.config_name, [*presets, *words], RunMode.RUN
        )
        words += ["hydra.mode=RUN"] if alone.hydra.mode is RunMode.MULTIRUN else []
    return shlex.join([program(), *words])


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _compose(hydra_context: HydraContext, config: DictConfig, overrides: Sequence[str]) -> None:
    hydra_context.config_loader.load_sweep_config(config, list(overrides))
