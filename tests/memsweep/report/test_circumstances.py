from __future__ import annotations

import dataclasses
from collections.abc import Callable

from memsweep.findings.find import find
from memsweep.lengths.table import Bin, Lengths, Part
from memsweep.record.folder import StudyFolder, write_json
from memsweep.record.study import Study, read_study
from memsweep.record.trial import TrialResult
from memsweep.report.circumstances import circumstances, lengths_text
from memsweep.report.html import write_report
from synthetic import measured

RECORDED = {
    "rows": 8,
    "source_tokens": 2_000,
    "kept_tokens": 1_500,
    "machine": {"processor": "a <fast> one", "memory_bytes": 1 << 30, "cores": [0, 1]},
    "threads": 2,
    "precision": "float32",
    "windows": [{"seconds": 1.0}],
}


def told(results: tuple[TrialResult, ...], study: Study) -> str:
    return "".join(circumstances(find(results, study), RECORDED))


def test_facts_of_data_and_machine_have_their_units(results: tuple[TrialResult, ...], study: Study) -> None:
    text = told(results, study)

    assert "<dt>share of tokens kept</dt><dd>75%</dd>" in text
    assert "<dt>source tokens</dt><dd>2,000</dd>" in text
    assert "<dt>memory</dt><dd>1.0 GiB</dd>" in text
    assert "<dd>a &lt;fast&gt; one</dd>" in text
    assert "<dt>precision</dt><dd>float32</dd>" in text
    assert "windows" not in text


def test_what_set_ups_keep_of_the_baselines_tokens_is_told(
    results: tuple[TrialResult, ...], study: Study
) -> None:
    assert "kept by other set-ups, of the baseline&#x27;s</dt><dd>80%</dd>" in told(results, study)


def test_the_commands_of_study_and_baseline_are_there(results: tuple[TrialResult, ...], study: Study) -> None:
    text = told(results, dataclasses.replace(study, n_cells=360))

    assert "<code>python train.py -m trainer=sft model=small</code>" in text
    assert "<code>python train.py</code>" in text
    assert "360 legal set-ups, of which 24 were asked for" in text


def test_nothing_recorded_leaves_sections_out(study: Study) -> None:
    text = "".join(circumstances(find([measured(0, {"adapter": "baseline"})], study), {}))

    assert "<h3>Machine</h3>" not in text
    assert "torch 2.13.0" in text


def test_lengths_are_told_where_they_were_counted(make_study: Callable[..., StudyFolder]) -> None:
    folder = make_study()
    assert lengths_text(folder) == ""

    same = dict.fromkeys(("50", "90", "95", "99"), 5)
    counted = Lengths(
        data="mine <tm>",
        trainer="sft",
        model="tiny",
        n_examples=1,
        n_unusable=0,
        tokens=5,
        max_length=None,
        tokens_kept=5,
        parts=(Part(name="text", n_sequences=1, tokens=5, shortest=5, longest=5, percentiles=same),),
        distribution=(Bin(low=0, high=7, n_sequences=1),),
        limits=(),
        padding=(),
        packing=(),
        remarks=(),
    )
    write_json(folder.lengths, counted.to_mapping())
    study, results = read_study(folder.path)
    page = write_report(folder, results, study).read_text(encoding="utf-8")
    assert "<h3>How long the examples are</h3>" in page
    assert "mine &lt;tm&gt; for sft" in page

    folder.lengths.write_text("{}", encoding="utf-8")
    assert lengths_text(folder).startswith("lengths.json cannot be read: ")
