"""What is exported trains by itself, and as its trial did.

Each case measures a trial of a tiny model in a process of its own, exports it with the command, and trains
with the folder in further processes in which memsweep cannot be imported.  What is in force there is read
back like a trial's, and must be the same but for what the README of the folder lists.

The noise bar: SPEED_BAR between the best pass of the trial and the best of the training, in seconds of the
processor, because tests have no machine for themselves; MEMORY_BAR between the two peaks, each by the same
instrument, or MEMORY_BYTES on models as small as these, where what libraries keep for each shape of a batch
weighs as much as the model.  Rows are the same, in the same order.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memsweep.cli.command import main
from memsweep.config.schema import DatasetConfig, DatasetSource, TrialConfig
from memsweep.data.embedded import embedded_rows
from memsweep.data.probe import probe
from memsweep.record.folder import StudyFolder, TrialFolder
from memsweep.record.outcome import Measured
from memsweep.record.rivals import Rivals
from memsweep.record.trial import TrialRecord
from memsweep.technique.catalogue import Catalogue, conf_folder, read_catalogue
from memsweep.trial.isolate import ProcessPool
from memsweep.trial.launch import begin_folder, run_isolated
from memsweep.units import MIB
from synthetic import measured, study_of
from tiny import DATA, share_cache, tiny_config

# A minute at most for each case on an idle machine; most of it is importing torch and TRL three times.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SPEED_BAR = 1.5
MEMORY_BAR = 1.1
MEMORY_BYTES = 16 * MIB
"""The most seen was 10 MiB of 67, packed, when other tests ran beside it."""

N_EXAMPLES, N_PASSES = 8, 4
WATCH = Path(__file__).parent / "watch"

# As in the trial, so that all that is in force can be compared.
AS_IN_THE_TRIAL = (
    *("--train_sampling_strategy", "sequential", "--save_strategy", "no", "--logging_strategy", "no"),
    *("--logging_nan_inf_filter", "false", "--disable_tqdm", "true"),
)

# Trainer, batch, options, whether there must be a script.  How many rows packing makes is not known here, and
# a trial fills its last batch up, so packed rows are trained on one by one.
CASES: Mapping[str, tuple[str, int, dict[str, str], bool]] = {
    "the baseline": ("sft", 4, {}, False),
    "packing and LoRA": ("sft", 1, {"packing": "bfd", "adapter": "lora"}, False),
    "an adapter that the command does not know": ("sft", 4, {"adapter": "ia3", "attention": "eager"}, True),
    "preferences, smaller micro-batches": ("dpo", 4, {"micro_batch": "size"}, False),
}


@dataclass(frozen=True)
class Case:
    """A trial, and the training with what was exported of it.

    Attributes:
        record: The trial's.
        effective: What was in force in it.
        folder: What was exported.
        facts: What was read of the training.
        steps_per_pass: Steps in which it meets every row once.
        has_script: Whether a script is expected.
    """

    record: TrialRecord
    effective: dict[str, Any]
    folder: Path
    facts: dict[str, Any]
    steps_per_pass: int
    has_script: bool

    @property
    def measures(self) -> Mapping[str, float]:
        assert isinstance(self.record.outcome, Measured), self.record.outcome
        return self.record.outcome.measures


def run_by_processor_time(
    config: TrialConfig, catalogue: Catalogue, folder: TrialFolder, rivals: Rivals | None = None
) -> TrialRecord:
    """Run a trial in this process, which was made for it, with a clock that others do not disturb."""
    from memsweep.trial import run as run_module

    run: Any = run_module
    run.Bracket = partial(run.Bracket, clock=time.process_time)
    record: TrialRecord = run.run_trial(config, catalogue, folder, rivals=rivals)
    return record


@pytest.fixture(scope="module", params=list(CASES))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, pool: ProcessPool) -> Case:
    """Measures, exports, trains."""
    trainer, batch, options, has_script = CASES[request.param]
    place = tmp_path_factory.mktemp("case")
    catalogue = read_catalogue(conf_folder())
    data = place / "rows.jsonl"
    config = _config(trainer, batch, options, data, catalogue)
    rows = embedded_rows(config.trainer.data, 0)
    _write(data, sorted(rows, key=lambda row: len(str(row)))[:: len(rows) // N_EXAMPLES][:N_EXAMPLES])

    study = _study(place, config, options)
    trial = study.trial(1)
    record = run_isolated(config, catalogue, trial, pool=pool)
    assert isinstance(record.outcome, Measured), record.outcome

    folder = place / "exported"
    assert main(["export", str(study.path), "1", "--to", str(folder)]) == 0
    # The training is to meet the batches of the trial, which chose its order by itself.
    ordered = probe(config.dataset, config.trainer.data, N_EXAMPLES, config.seed, batch=batch).rows
    _write(data, [dict(row) for row in ordered])
    effective = json.loads(trial.effective.read_text(encoding="utf-8"))
    steps_per_pass = -(-effective["rows"]["number"] // batch)
    facts = _train(folder, trial.config, place / "facts.json", steps_per_pass)
    return Case(record, effective, folder, facts, steps_per_pass, has_script)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessPool]:
    """The processes of the trials, in a cache of their own."""
    with pytest.MonkeyPatch.context() as patch, ProcessPool(max_templates=1) as made:
        share_cache(tmp_path_factory, patch)
        patch.setattr("memsweep.trial.launch.run_here", run_by_processor_time)
        yield made


def _config(
    trainer: str, batch: int, options: dict[str, str], data: Path, catalogue: Catalogue
) -> TrialConfig:
    dataset = DatasetConfig(name="jsonl", source=DatasetSource.JSONL, path=str(data))
    config = tiny_config(trainer, batch=batch, examples=N_EXAMPLES, passes=N_PASSES, dataset=dataset)
    measure = replace(config.measure, worst_step=False, precision=0.0001)
    return replace(config, technique=catalogue.choose(options), measure=measure)


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _study(place: Path, config: TrialConfig, options: dict[str, str]) -> StudyFolder:
    """Return a study of this one trial, as a sweep would have written it."""
    folder = StudyFolder(place / "study")
    study_of(1, constraints={}).write(folder)
    result = replace(measured(1, {}), choice={"adapter": "baseline", **options}, parameters={})
    folder.results.write_text(json.dumps(result.to_mapping()) + "\n", encoding="utf-8")
    composed = json.loads(json.dumps(asdict(config)))
    composed["technique"] = {
        name: {"option": chosen.option, **chosen.parameters} for name, chosen in config.technique.items()
    }
    assert DATA[config.trainer.name] == composed["trainer"]["data"]
    begin_folder(folder.trial(1), composed)
    return folder


def _train(folder: Path, config: Path, facts: Path, steps_per_pass: int) -> dict[str, Any]:
    steps = steps_per_pass * (2 + N_PASSES)
    environment = {
        **{
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OMP_", "MKL_", "MEMSWEEP_"))
        },
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(WATCH),
        "WATCH_CONFIG": str(config),
        "WATCH_FACTS": str(facts),
        "WATCH_SETTLED": str(steps_per_pass),
        "HF_HUB_OFFLINE": "1",
    }
    done = subprocess.run(
        ["sh", str(folder / "run.sh"), "--max_steps", str(steps), *AS_IN_THE_TRIAL],
        cwd="/",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]
    found: dict[str, Any] = json.loads(facts.read_text(encoding="utf-8"))
    return found


def flat(data: Any, path: str = "") -> dict[str, Any]:
    """Return dotted path to value."""
    if not isinstance(data, dict):
        return {path: data}
    parts = (flat(value, f"{path}.{name}".lstrip(".")) for name, value in data.items())
    return {name: value for part in parts for name, value in part.items()}


# Where it is said what the processes were started with, which is another matter; and who watches.
ELSEWHERE = ("environment.", "trainer.callbacks", "effective_hash", "model_keywords.")


def test_what_is_in_force_is_what_was_in_force_in_the_trial(case: Case) -> None:
    trial, training = flat(case.effective), flat(case.facts["effective"])

    differing = {
        name: (trial.get(name), training.get(name))
        for name in trial.keys() | training.keys()
        if trial.get(name) != training.get(name) and not name.startswith(ELSEWHERE)
    }
    assert differing == {}
    for name in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY"):
        assert training[f"environment.{name}"] == trial[f"environment.{name}"]
    assert trial["model.trained_parameters"] == case.measures["trained_parameters"]


def test_it_is_as_fast_as_its_trial(case: Case) -> None:
    windows = case.record.facts["windows"]
    trial = max(window["tokens"] / window["seconds"] for window in windows)
    edges = case.facts["ends"][2 * case.steps_per_pass - 1 :: case.steps_per_pass]
    seconds = min(end - begin for begin, end in itertools.pairwise(edges))
    training = case.measures["kept_tokens"] / seconds

    assert 1 / SPEED_BAR < training / trial < SPEED_BAR


def test_it_takes_as_much_memory_as_its_trial(case: Case) -> None:
    exported, trial = case.facts["measures"]["peak_memory_bytes"], case.measures["peak_memory_bytes"]

    assert exported == pytest.approx(trial, rel=MEMORY_BAR - 1, abs=MEMORY_BYTES)


def test_a_script_is_there_where_the_command_cannot_say_it(case: Case) -> None:
    assert (case.folder / "train.py").exists() == case.has_script


def test_the_trained_model_is_saved(case: Case) -> None:
    saved = {path.name for path in (case.folder / "output").iterdir()}

    assert saved & {"model.safetensors", "adapter_model.safetensors"}


def test_memsweep_was_out_of_reach() -> None:
    """The proof that the above proves something: the door is closed."""
    done = subprocess.run(
        [sys.executable, "-c", "import memsweep"],
        env={**os.environ, "PYTHONPATH": str(WATCH)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert "memsweep is not there for what was exported" in done.stderr
