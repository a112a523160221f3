"""What to try next, whatever the sampler does."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from optuna.samplers import RandomSampler

from hydra_plugins.pareto_sweeper._overrides import searched
from memsweep.record.study import Direction, Study
from memsweep.search.ask import Asker
from memsweep.search.space import Space
from memsweep.search.verdict import Request, Verdict

PARSER = OverridesParser.create()
SPACE = Space(entries=tuple(searched(PARSER.parse_override(text), 0) for text in ("x=a,b,c", "y=1,2")))
STUDY = Study(name="a test", created="", command="", objectives={"loss": Direction.MINIMIZE})


def judge(request: Request) -> Verdict:
    return Verdict(requested_hash=" ".join(request.rest))


def test_a_sampler_that_raises_costs_a_warning_and_no_trial(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> Any:
        raise FloatingPointError("a test")

    monkeypatch.setattr(RandomSampler, "sample_independent", broken)
    caplog.set_level(logging.WARNING)
    asker = Asker(SPACE, judge, {"name": "random"}, 0, STUDY)
    found = [asker.propose([1.0]) for _ in range(6)]

    assert None not in found
    assert len({proposal.overrides for proposal in found if proposal is not None}) == 6
    assert asker.propose([1.0]) is None
    assert "the sampler failed (FloatingPointError: a test)" in caplog.text
