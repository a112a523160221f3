"""What `train.py` does: one trial from the command line, its one line, its exit code; errors for people.

In the process that is made for a trial the same `trial` runs it, so that a study's launcher and a single run
share one way in.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from memsweep.complaint import complaint, unread
from memsweep.config.allowed import only_allowed
from memsweep.config.groups import require_groups
from memsweep.config.masking import secrets_masked
from memsweep.config.schema import TrialConfig, trial_config
from memsweep.config.store import register
from memsweep.data.ready import require_data
from memsweep.errors import ConfigError, IncompatibleTechniques
from memsweep.model.path import require_model
from memsweep.record.folder import TrialFolder
from memsweep.record.outcome import CutShort, Incompatible, Measured, Phase, Reused, to_mapping
from memsweep.record.trial import TrialRecord
from memsweep.secret import masked_text
from memsweep.technique.catalogue import Catalogue, conf_folder
from memsweep.technique.compatibility import circumstances_here, violations
from memsweep.technique.option import BASELINE
from memsweep.technique.settings import doubly_set
from memsweep.trial.ending import explanation
from memsweep.trial.launch import begin_folder, run_isolated
from memsweep.trial.process import in_trial_process, known_rivals, known_set_ups
from memsweep.units import bytes_text, measure_text

BAD_REQUEST, INTERRUPTED = 2, 130
_SWEEPER, _RERUN = "hydra_plugins.pareto_sweeper.", "--experimental-rerun"
_DOING = {
    Phase.START: "importing torch and TRL: about 10 s",
    Phase.DATA: "reading the data",
    Phase.BUILD: "building model and trainer",
    Phase.WARM_UP: "warming up",
    Phase.MEASURE: "measuring",
    Phase.END: "writing the outcome",
}


def catalogue() -> Catalogue:
    """Make conf/ known to Hydra and return the techniques in it; a fault there ends the program."""
    try:
        return register(conf_folder())
    except ConfigError as error:
        sys.exit(_refused(error))


def run(main: Callable[[], object]) -> int:
    """Run Hydra's `main` and return the exit code; a bad request is told in words, not as a traceback."""
    shows_all = os.environ.get("HYDRA_FULL_ERROR") == "1"
    os.environ["HYDRA_FULL_ERROR"] = "1"  # else Hydra prints errors itself, and exits with 1
    try:
        _require_no_rerun(sys.argv[1:])
        with _one_config_store(), only_allowed(), secrets_masked():
            main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except SystemExit as end:
        if end.code == 1 and not _is_at_work(end):  # Hydra said what is wrong: `--cfg job -p nowhere`
            return BAD_REQUEST
        raise
    except Exception as error:
        if shows_all or _is_at_work(error):
            raise
        return _refused(error, sys.argv[1:])
    return 0


def _require_no_rerun(typed: Sequence[str]) -> None:
    """Raise if Hydra is asked to run a pickled job: whatever such a file says is executed.

    Raises:
        ConfigError: It says what repeats a trial.
    """
    for word in typed:
        if word.startswith("--e") and _RERUN.startswith(word.partition("=")[0]):
            raise ConfigError(
                f"{_RERUN} is not supported: it executes what a file holds.  A trial is repeated by the "
                "command that it ended with, made of the lines of its overrides.txt"
            )


def _is_at_work(error: BaseException) -> bool:
    """Tell whether an error is no fault of the request: memsweep itself was at work, and did not mean it.

    Whatever Hydra raises while it reads a request, and by whatever class, is what is wrong with the request.
    """
    if isinstance(error, ConfigError | HydraException | OmegaConfBaseException):
        return False
    trace, begun = error.__traceback__, {trial.__code__}
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code in begun or str(frame.f_globals.get("__name__")).startswith(_SWEEPER):
            return True
        trace = trace.tb_next
    return False


def trial(config: DictConfig, techniques: Catalogue) -> dict[str, Any]:
    """Run the trial that `config` asks for: here if this process was made for it, else in one that is.

    Args:
        config: The composed config, without `hydra`.
        techniques: The techniques there are.

    Returns:
        `memsweep.record.outcome.to_mapping` of the outcome.  On the command line it does not return: it
        prints one line and exits with the outcome's code.
    """
    folder = TrialFolder(Path(HydraConfig.get().runtime.output_dir))
    if in_trial_process():
        from memsweep.trial.run import run_trial  # imports torch

        asked = trial_config(_plain(config))
        record = run_trial(asked, techniques, folder, known_set_ups(), known_rivals())
        return to_mapping(record.outcome)
    typed = list(HydraConfig.get().overrides.task)
    try:
        require_groups(OverridesParser.create().parse_overrides(typed), techniques.techniques)
        data = _plain(config)
        asked = trial_config(data)
        require_model(asked.model)
        require_data(asked.dataset, asked.trainer.data)
        begin_folder(folder, data, typed)
        _require_legal(asked, techniques, folder)
        with _PhaseLine() as line:
            record = run_isolated(asked, techniques, folder, on_phase=line.show)
    except (ConfigError, OmegaConfBaseException) as error:
        sys.exit(_refused(error))
    _report(asked, record, folder)
    sys.exit(record.outcome.exit_code)


@contextmanager
def _one_config_store() -> Iterator[None]:
    """Spare Hydra a deep copy of every config there is, each time it looks at what there is.

    `--help` does so for each group and each group's options: 9 s of copying, else under 1 s.  Nothing that
    Hydra does with the copy changes it: what is loaded from it is copied once more.
    Source: hydra-core==1.3.8 _internal/config_repository.py, CachingConfigRepository.__init__.
    """
    store: Any = ConfigStore.instance()
    store.__deepcopy__ = lambda _: store
    try:
        yield
    finally:
        del store.__deepcopy__


def _plain(config: DictConfig) -> dict[str, Any]:
    plain: Any = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    return {str(key): value for key, value in plain.items()}


def _require_legal(config: TrialConfig, techniques: Catalogue, folder: TrialFolder) -> None:
    """Raise if the chosen options break rules, and let the folder say so.

    Raises:
        IncompatibleTechniques: With all broken rules.
    """
    trainer = config.trainer
    techniques.require_trainer(trainer.name)
    here = circumstances_here(
        trainer.name,
        config.launch.device,
        techniques,
        config.numbers,
        trainer.arguments,
        simulates_devices=config.launch.simulates_devices,
    )
    broken = violations(config.technique, here, techniques)
    broken += doubly_set(config.technique, trainer.name, trainer.arguments, techniques)
    if broken:
        TrialRecord(outcome=Incompatible(violations=broken)).write(folder)
        raise IncompatibleTechniques(broken)


def _report(config: TrialConfig, record: TrialRecord, folder: TrialFolder) -> None:
    """Print one line for a measurement; what happened and where to look, for anything else."""
    where = _shown(folder.path)
    match record.outcome:
        case Measured(measures=measures, intervals=intervals, remarks=remarks):
            print(f"{_label(config)}: {measures_text(measures, intervals)} ({where})")
            for remark in remarks:
                print(f"  {remark}")
        case Reused(measures=measures) | CutShort(measures=measures):
            print(f"{_label(config)}: {measures_text(measures)} ({where})")
        case _:
            print(explanation(record, TrialFolder(Path(where)), _label(config)), file=sys.stderr)


def measures_text(
    measures: Mapping[str, float], intervals: Mapping[str, tuple[float, float]] = MappingProxyType({})
) -> str:
    """Return the measures that matter, in one line with units, and how well the throughput is known."""
    parts = []
    rate = "tokens_per_second"
    if rate in measures:
        parts.append(measure_text(rate, measures[rate], intervals.get(rate)))
    if "peak_memory_bytes" in measures:
        parts.append(f"peak {bytes_text(measures['peak_memory_bytes'])}")
    if measures.get("source_tokens"):
        share = 100 * measures.get("kept_tokens", 0) / measures["source_tokens"]
        parts.append(f"kept {share:.1f} % of tokens")
    return ", ".join(parts) or "nothing measured"


def _label(config: TrialConfig) -> str:
    chosen = {name: option for name, option in config.technique.items() if option.option != BASELINE}
    words = [config.trainer.name]
    for name, option in chosen.items():
        words.append(f"{name}={option.option}")
        words += [f"{key}={value}" for key, value in option.parameters.items()]
    return " ".join(words) if chosen else f"{config.trainer.name} baseline"


def _shown(path: Path) -> str:
    """Return `path` as short as it can be typed from here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _refused(error: Exception, typed: Sequence[str] = ()) -> int:
    is_meant = isinstance(error, ConfigError | HydraException | OmegaConfBaseException)
    said = complaint(error, typed) if is_meant else unread(error, typed)
    print(masked_text(said), file=sys.stderr)
    return BAD_REQUEST


class _PhaseLine:
    """One line on a terminal that says what the trial does; drawn when that changes, so it costs nothing."""

    def __init__(self) -> None:
        self._stream = sys.stderr if sys.stderr.isatty() else None

    def __enter__(self) -> _PhaseLine:
        self.show(Phase.START)
        return self

    def __exit__(self, *_: object) -> None:
        self._draw("")

    def show(self, phase: Phase) -> None:
        """Say what happens now."""
        self._draw(f"{_DOING[phase]} ...")

    def _draw(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(f"\r\x1b[K{text}")
            self._stream.flush()
