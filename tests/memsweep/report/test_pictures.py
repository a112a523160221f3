"""Pictures without a browser: which there are, that they are the same each time, and what they hold."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import pytest

from memsweep.findings.find import find
from memsweep.record.folder import StudyFolder
from memsweep.record.study import Direction, Study, read_study
from memsweep.record.trial import TrialResult
from memsweep.report.pictures import (
    COLORS,
    effects_picture,
    front_picture,
    ladder_picture,
    write_pictures,
)
from synthetic import ended, measured, study_of, trials_of_every_kind

CSS = Path(__file__).resolve().parents[3] / "src" / "memsweep" / "report" / "page.css"
BASELINE = {"adapter": "baseline"}


def drawn(folder: StudyFolder) -> dict[str, bytes]:
    study, results = read_study(folder.path)
    return {path.name: path.read_bytes() for path in write_pictures(folder, find(results, study))}


def test_the_same_study_gives_the_same_bytes(make_study: Callable[..., StudyFolder]) -> None:
    folder = make_study()

    first = drawn(folder)

    assert sorted(first) == [
        f"{name}.{form}" for name in ("effects", "front", "ladder") for form in ("png", "svg")
    ]
    with mpl.rc_context({"lines.linewidth": 9, "font.size": 20}):  # as from a style of one's own
        assert drawn(folder) == first
    assert all(data.startswith(b"\x89PNG") for name, data in first.items() if name.endswith("png"))
    assert not [name for name, data in first.items() if re.search(rb"dc:date|20\d\d-\d\d-\d\d", data)]


def test_a_picture_that_is_not_drawn_any_more_is_removed(make_study: Callable[..., StudyFolder]) -> None:
    folder = make_study(8)
    folder.pictures.mkdir()
    (folder.pictures / "effects.svg").write_text("old", encoding="utf-8")
    study = study_of(1)

    written = write_pictures(folder, find(trials_of_every_kind(1), study))

    assert [path.name for path in written] == ["front.svg", "front.png"]
    assert not (folder.pictures / "effects.svg").exists()


def test_every_measured_trial_is_a_point_and_no_other(results: tuple[TrialResult, ...], study: Study) -> None:
    found = find(results, study)
    figure = front_picture(found)
    assert figure is not None

    n_points = sum(
        len(points.get_offsets())
        for points in figure.axes[0].collections
        if len(points.get_offsets()) and points.get_label() != "_child"
    )
    assert n_points == len(found.measured) + _n_bars(figure)
    assert "not in the picture: 3 out of memory" in figure.get_supxlabel()


def _n_bars(figure: object) -> int:
    """Return how many of the collections are bars of intervals: they have offsets of their own."""
    from matplotlib.collections import LineCollection

    return sum(
        len(one.get_offsets())
        for one in figure.axes[0].collections
        if isinstance(one, LineCollection)  # type: ignore[attr-defined]
    )


def test_a_factor_lies_where_its_logarithm_is(study: Study) -> None:
    results = [measured(0, BASELINE), measured(1, {"adapter": "lora"})]
    figure = ladder_picture(find(results, study))
    assert figure is not None

    for panel, name in zip(figure.axes, study.objectives, strict=True):
        low, high = panel.get_xlim()
        assert low == -high
        expected = ["1.00 x", f"{results[1].objectives[name] / results[0].objectives[name]:.2f} x"]
        assert [text.get_text() for text in panel.texts] == expected
        assert [line.get_xdata()[0] for line in panel.lines if line.get_marker() == "o"] == pytest.approx(
            [0.0, math.log(results[1].objectives[name] / results[0].objectives[name])]
        )


def test_nothing_measured_is_no_picture(study: Study) -> None:
    from memsweep.record.outcome import Crashed, Phase

    found = find([ended(0, BASELINE, Crashed(reason="a test", phase=Phase.BUILD))], study)

    assert (front_picture(found), ladder_picture(found), effects_picture(found)) == (None, None, None)


def test_one_objective_is_drawn_over_the_trials_numbers() -> None:
    study = study_of(2, objectives={"loss": Direction.MINIMIZE}, constraints={}, reference={})
    results = [
        measured(n, {}, objectives={"loss": 0.5 + n}, measures={}, constraints={}, feasible=True)
        for n in range(2)
    ]
    figure = front_picture(find(results, study))
    assert figure is not None

    assert figure.axes[0].get_xlabel() == "trial"


def test_colours_are_those_of_the_page_in_light() -> None:
    light = CSS.read_text(encoding="utf-8").partition("@media")[0]

    assert tuple(re.findall(r"--group-\d: (#[0-9a-f]{6})", light)) == COLORS


@pytest.mark.parametrize("n_trials", [2, 200])
def test_small_and_large_studies_are_drawn(n_trials: int, make_study: Callable[..., StudyFolder]) -> None:
    assert "front.png" in drawn(make_study(n_trials))
