from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memsweep.errors import CatalogueError
from memsweep.technique.catalogue import read_catalogue

Write = Callable[[str, str], None]

PROSE = "saves: nothing\ncosts: nothing\nsource: arXiv:0000.00000\nchanges: nothing\n"


@pytest.mark.parametrize(
    ("rule", "part"),
    [
        (
            "requires: [{packing: [bfd], because: b, source: s}]",
            "a rule is about 'packing', which is no technique and none of trainer, device, bf16, batch, "
            "measure.evaluation_examples, trainer.arguments.<field>\n",
        ),
        ("requires: [{lenght: [limit], because: b, source: s}]", "about 'lenght'; did you mean length?\n"),
        ("requires: [{any_off: [a], because: b, source: s}]", "about 'any_off'; did you mean any_of?\n"),
        (
            "requires: [{trainer.argument.beta: [1], because: b, source: s}]",
            "about 'trainer.argument.beta'; did you mean trainer.arguments.beta?\n",
        ),
        ("requires: [{trainer.arguments: [1], because: b, source: s}]", "trainer.arguments.<field>?\n"),
        (
            "requires: [{measure.evaluation_exmples: {above: 0}, because: b, source: s}]",
            "about 'measure.evaluation_exmples'; did you mean measure.evaluation_examples?\n",
        ),
        ("requires: [{trainer.batch: [1], because: b, source: s}]", "did you mean batch?\n"),
        (
            "requires: [{length.tokns: [1], because: b, source: s}]",
            "parameter; did you mean length.tokens?\n",
        ),
        ("requires: [{length: [limt], because: b, source: s}]", "about length=limt; did you mean limit?\n"),
        (
            "requires: [{length: [bfd], because: b, source: s}]",
            "length=bfd; the options are baseline, limit\n",
        ),
        (
            "excludes: [{length.alpha: [1], because: b, source: s}]",
            "no option of length has that parameter\n",
        ),
        (
            "excludes: [{adapter: [lora], because: b, source: s}]",
            "a rule is about adapter itself, which is dangling wherever the rule counts\n",
        ),
        (
            "excludes: [{adapter.r: [1], because: b, source: s}]",
            "a rule is about adapter.r, which dangling does not have; it has none\n",
        ),
        (
            "requires: [{length: [limit], because: b, source: s, versions: {transfromers: '>=5'}}]",
            "a rule is for versions of 'transfromers', which is not installed and which nothing here needs; "
            "did you mean transformers?\n",
        ),
        ("excludes: [{trainer: [ppo], because: b, source: s}]", "no trainer 'ppo'; there are dpo, grpo, sft"),
        ("excludes: [{trainer: [gpro], because: b, source: s}]", "no trainer 'gpro'; did you mean grpo?\n"),
        ("trainers: {allowed: [ppo], because: b, source: s}", "no trainer 'ppo'"),
        ("settings: {trainers: {ppo: {trainer: {beta: 1}}}}", "no trainer 'ppo'"),
        ("same_as: whole", "same_as names 'whole'; the options are"),
        ("same_as: dora", "same_as names 'dora'; did you mean lora?"),
        ("same_as: {option: baseline, when: {length: [long]}}", "length=long; the options are"),
    ],
)
def test_a_rule_about_what_does_not_exist_is_refused(conf: Path, write: Write, rule: str, part: str) -> None:
    write("adapter/dangling", f"summary: Names what is not there.\n{PROSE}{rule}\n")

    with pytest.raises(CatalogueError) as error:
        read_catalogue(conf)

    assert part in f"{error.value}\n"


def test_a_rule_may_be_for_versions_of_a_package_that_something_needs(conf: Path, write: Write) -> None:
    rule = "requires: [{length: [limit], because: b, source: s, versions: {no-such-package-123: '>=1'}}]\n"
    write("adapter/older", f"summary: X.\n{PROSE}needs: {{packages: [no-such-package-123]}}\n{rule}")

    assert read_catalogue(conf).option("adapter", "older").rules[0].versions == {"no-such-package-123": ">=1"}


UNUSED = "parameters: {alpha: {default: 1, help: x}}\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "parameters.alpha is used by no setting"),
        (
            'settings: {adapter: {type: lora, lora_alpha: "{alpha}"}}\n',
            'parameters.alpha is used by no setting; write "${alpha}" for "{alpha}"',
        ),
    ],
)
def test_a_parameter_that_nothing_uses_is_refused(conf: Path, write: Write, text: str, problem: str) -> None:
    write("adapter/idle", f"summary: X.\n{PROSE}{UNUSED}{text}")

    with pytest.raises(CatalogueError) as error:
        read_catalogue(conf)

    assert str(error.value).splitlines()[1:] == [f"  technique/adapter/idle.yaml: {problem}"]


@pytest.mark.parametrize("file", ["adapter/idle", "length/other"])
def test_a_parameter_may_be_there_for_a_rule(conf: Path, write: Write, file: str) -> None:
    rule = "requires: [{adapter.alpha: {divides: batch}, because: b, source: s}]\n"
    text = f"summary: X.\n{PROSE}"
    write("adapter/idle", f"{text}{UNUSED}{rule if file == 'adapter/idle' else ''}")
    write("length/other", f"{text}{rule if file == 'length/other' else ''}")

    assert "alpha" in read_catalogue(conf).option("adapter", "idle").parameters


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("technique/adapter/dora.yml", "files that end in .yml are not read: name it dora.yaml"),
        ("model/mine.yml", "files that end in .yml are not read: name it mine.yaml"),
        ("technique/dora.yaml", "is not read: an option is technique/<technique>/<option>.yaml"),
        ("technique/adapter/more/dora.yaml", "is not read: an option is technique/<technique>/<option>.yaml"),
        ("technique/adapter/Dora.yaml", "'Dora' cannot be a name: lower-case letters, digits and _"),
        ("technique/adapter/my-dora.yaml", "'my-dora' cannot be a name"),
        ("technique/4bit/baseline.yaml", "technique/4bit: '4bit' cannot be a name"),
        ("technique/on/baseline.yaml", "technique/on: YAML reads on as a truth value; give it a name"),
    ],
)
def test_a_file_that_nothing_would_read_or_name_is_refused(conf: Path, file: str, problem: str) -> None:
    (conf / file).parent.mkdir(parents=True, exist_ok=True)
    (conf / file).write_text("summary: X.\n" + PROSE)

    with pytest.raises(CatalogueError) as error:
        read_catalogue(conf)

    (line,) = str(error.value).splitlines()[1:]
    assert file.split("/")[1] in line
    assert problem in line


def test_a_rule_is_about_a_number_that_configurations_have(conf: Path, write: Write) -> None:
    rule = "requires: [{{{condition}, because: b, source: s}}]\n"
    for name, condition in {"a": "measure.passes: [1]", "b": "length.tokens: {divides: passes}"}.items():
        write(f"adapter/{name}", "summary: X.\n" + PROSE + rule.format(condition=condition))

    with pytest.raises(CatalogueError) as error:
        read_catalogue(conf)

    assert "a rule is about 'measure.passes', which is no technique and none of trainer," in str(error.value)
    assert "a rule is about 'passes', which is none of batch, measure.evaluation_examples" in str(error.value)


def test_a_rule_is_about_a_device_that_there_is(conf: Path, write: Write) -> None:
    write("adapter/a", "summary: X.\n" + PROSE + "requires: [{device: [gpu], because: b, source: s}]\n")

    with pytest.raises(CatalogueError, match="a rule is about device=gpu; it is one of cpu, cuda"):
        read_catalogue(conf)
