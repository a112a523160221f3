"""conf/ composes: every option of every group, the presets, and a technique that was not there before."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from memsweep.config.schema import TrialConfig, trial_config
from memsweep.search.match import read_match
from memsweep.technique.catalogue import Catalogue
from memsweep.technique.compatibility import Circumstances, violations
from memsweep.technique.yaml_text import read_yaml

Composer = Callable[..., DictConfig]

TRIAL_GROUPS = ("trainer", "model", "dataset", "reward", "measure", "budget", "launch")
STUDY_GROUPS = ("tracking", "objective", "space")
# What a person has to type beside the option.
COMPLETED_BY = {
    "model=path": ["model.path=/model"],
    "model=hub": ["model.name=organization/model"],
    "dataset=jsonl": ["dataset.path=/data.jsonl"],
    "dataset=parquet": ["dataset.path=/data.parquet"],
    "dataset=csv": ["dataset.path=/data.csv"],
    "dataset=hub": ["dataset.name=organization/data"],
}


def as_trial(config: DictConfig) -> TrialConfig:
    data = OmegaConf.to_container(config, resolve=False)
    assert isinstance(data, dict)
    return trial_config({str(key): value for key, value in data.items() if key != "hydra"})


def options(conf: Path, group: str) -> list[str]:
    return sorted(path.stem for path in (conf / group).glob("*.yaml"))


def test_untold_it_is_the_small_model_in_sft_with_all_baselines(
    composer: Composer, catalogue: Catalogue
) -> None:
    config = composer()

    trial = as_trial(config)
    assert (trial.trainer.name, trial.model.name, trial.dataset.name) == ("sft", "small", "embedded")
    assert trial.technique == catalogue.baseline_choice()
    assert config.hydra.runtime.choices["hydra/sweeper"] == "pareto"
    assert config.hydra.runtime.choices["hydra/launcher"] == "isolated"


def test_every_option_of_every_trial_group_makes_a_trial(composer: Composer, conf: Path) -> None:
    found = {group: options(conf, group) for group in TRIAL_GROUPS}
    for index in range(max(len(names) for names in found.values())):
        picked = [f"{group}={names[index % len(names)]}" for group, names in found.items()]
        typed = [override for choice in picked for override in COMPLETED_BY.get(choice, [])]

        trial = as_trial(composer(*picked, *typed))

        assert trial.trainer.name == picked[0].partition("=")[2]


def test_every_option_of_every_study_group_composes(composer: Composer, conf: Path) -> None:
    found = {group: options(conf, group) for group in STUDY_GROUPS}
    for index in range(max(len(names) for names in found.values())):
        composer(*(f"{group}={names[index % len(names)]}" for group, names in found.items()))


def test_every_option_of_every_technique_is_stored_with_its_defaults(
    composer: Composer, catalogue: Catalogue
) -> None:
    last = {name: list(technique.options)[-1] for name, technique in catalogue.techniques.items()}

    trial = as_trial(composer(*(f"technique/{name}={option}" for name, option in last.items())))

    assert trial.technique == catalogue.choose(last)
    for technique in catalogue.techniques.values():
        for option in technique.options.values():
            node = ConfigStore.instance().load(f"technique/{technique.name}/{option.name}.yaml").node
            assert node == {"option": option.name, **option.defaults()}


def test_composed_techniques_carry_no_prose(composer: Composer) -> None:
    assert composer("technique/adapter=lora").technique.adapter == {"option": "lora", "r": 16, "alpha": 32}


def test_a_parameter_is_typed_by_its_name(composer: Composer) -> None:
    assert composer("technique/adapter=lora", "technique.adapter.r=4").technique.adapter.r == 4
    with pytest.raises(HydraException, match="Could not override"):
        composer("technique.adaptr.r=4")


def test_a_parameter_can_be_typed_before_its_option_is_known_and_the_catalogue_judges_it(
    composer: Composer, catalogue: Catalogue
) -> None:
    trial = as_trial(composer("technique.adapter.r=4"))  # the baseline has no rank, a searched option may

    here = Circumstances(trainer="sft", device="cpu")
    (refusal,) = violations(trial.technique, here, catalogue)
    assert refusal.startswith(
        "adapter=baseline has no parameter r; it has none; r belongs to technique/adapter=dora, "
    )


def test_a_wrong_option_lists_the_right_ones(composer: Composer) -> None:
    with pytest.raises(HydraException, match=r"(?s)technique/adapter.*lora_all_linear"):
        composer("technique/adapter=lorra")


def test_the_budget_is_a_constraint_and_none_without_a_ceiling(composer: Composer) -> None:
    config = composer("budget=custom")
    assert config.hydra.sweeper.constraints.memory_budget.at_most is None

    config.budget.memory_bytes = 1000

    assert config.hydra.sweeper.constraints.memory_budget.at_most == 1000


def test_a_budget_is_its_nominal_bytes(conf: Path) -> None:
    for name in options(conf, "budget"):
        nominal = re.search(r"_(\d+)gib$", name)
        expected = int(nominal.group(1)) << 30 if nominal else None

        assert read_yaml(conf / "budget" / f"{name}.yaml") == {"name": name, "memory_bytes": expected}


def test_every_space_names_groups_and_options_that_exist(conf: Path, catalogue: Catalogue) -> None:
    for space in options(conf, "space"):
        node = read_yaml(conf / "space" / f"{space}.yaml")
        for key, text in node["params"].items():
            if key == "technique/*" or not key.startswith("technique/"):
                continue
            technique = catalogue.techniques[key.removeprefix("technique/")]
            assert set(str(text).split(",")) <= set(technique.options), f"{space}: {key}"
        demands = [*node.get("when", {}).values(), *node.get("exclude", [])]
        assert set(node.get("when", {})) <= set(node["params"]), space
        for key, demand in ((k, v) for pairs in demands for k, v in pairs.items() if k != "because"):
            named = read_match(demand, of_options=True).named
            technique = catalogue.techniques[key.removeprefix("technique/")]
            assert key in node["params"], f"{space}: {key}"
            assert named, f"{space}: {key}"
            assert set(named) <= set(technique.options), f"{space}: {key}"
        assert all(len(str(one["because"])) > 20 for one in node.get("exclude", []))


def test_the_default_space_has_dozens_of_legal_set_ups_on_any_machine(
    composer: Composer, catalogue: Catalogue
) -> None:
    here = Circumstances(
        trainer="sft",
        device="cpu",
        versions={"bitsandbytes": "0.50.2", "transformers": "5.24.0"},
        numbers={"batch": 8},
    )

    cells = cells_of(composer().hydra.sweeper.params, catalogue)

    legal = [cell for cell in cells if not violations(catalogue.choose(cell), here, catalogue)]
    assert 30 <= len(legal) <= 80


def cells_of(params: DictConfig, catalogue: Catalogue) -> list[dict[str, str]]:
    cells: list[dict[str, str]] = [{}]
    for key, text in params.items():
        technique = str(key).removeprefix("technique/")
        assert technique in catalogue.techniques
        cells = [{**cell, technique: option} for cell in cells for option in str(text).split(",")]
    return cells


def test_every_preset_leaves_something_to_run(
    composer: Composer, conf: Path, catalogue: Catalogue, ideal: Callable[[str], Circumstances]
) -> None:
    for preset in options(conf, "experiment"):
        config = composer(f"experiment={preset}")
        fixed = {name: node.option for name, node in config.technique.items()}
        searched = {k: v for k, v in config.hydra.sweeper.params.items() if str(k).startswith("technique/")}

        cells = cells_of(OmegaConf.create(searched), catalogue)

        machine = ideal(config.trainer.name)
        legal = [c for c in cells if not violations(catalogue.choose({**fixed, **c}), machine, catalogue)]
        assert len(legal) > 1, preset


def test_what_a_preset_says_of_the_study_counts(composer: Composer, conf: Path) -> None:
    for preset in options(conf, "experiment"):
        said = OmegaConf.load(conf / "experiment" / f"{preset}.yaml")

        assert composer(f"experiment={preset}").hydra.sweeper.n_trials == said.hydra.sweeper.n_trials, preset


def test_the_help_page_has_the_groups_and_the_commands(composer: Composer) -> None:
    page = composer().hydra.help.template

    assert "$APP_CONFIG_GROUPS" in page
    assert "python train.py -m" in page


def test_a_technique_is_one_new_folder(composer: Composer, conf: Path, tmp_path: Path) -> None:
    """The example of conf/README.md, put where it says and used as it says."""
    blocks = re.findall(
        r"```yaml\n# (conf/technique/\S+)\n(.*?)```", (conf / "README.md").read_text(), re.DOTALL
    )
    assert len(blocks) == 2
    shutil.copytree(conf, tmp_path / "conf")
    for path, text in blocks:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)

    untold = composer(conf=tmp_path / "conf")
    told = composer(
        "technique/label_smoothing=soft", "technique.label_smoothing.factor=0.05", conf=tmp_path / "conf"
    )

    assert untold.technique.label_smoothing == {"option": "baseline"}
    assert told.technique.label_smoothing == {"option": "soft", "factor": 0.05}
    assert "label_smoothing" in ConfigStore.instance().list("technique")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_parameters"),
    [
        ("qwen2_5_0_5b", 494_032_768),
        ("qwen2_5_1_5b", 1_543_714_304),
        ("qwen2_5_7b", 7_615_616_512),
        ("llama3_2_1b", 1_235_814_400),
        ("llama3_2_3b", 3_212_749_824),
        ("smollm2_135m", 134_515_008),
    ],
)
def test_a_well_known_geometry_has_its_published_size(
    composer: Composer, name: str, n_parameters: int
) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    geometry = as_trial(composer(f"model={name}")).model.geometry
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**geometry))

    assert sum(parameter.numel() for parameter in model.parameters()) == n_parameters
