"""Tests in several processes: run for real, on modules made here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from side_by_side import group_of

pytest.importorskip("xdist", reason="tests in several processes need pytest-xdist")

TESTS = Path(__file__).parent
SIDE_BY_SIDE = ["--numprocesses", "2", "--dist", "loadscope", "--no-loadscope-reorder"]

TIMED = """
import json, os, time
from pathlib import Path
import pytest

def take(seconds):
    began = time.monotonic()
    time.sleep(seconds)
    span = {"module": __name__, "process": os.getpid(), "began": began, "ended": time.monotonic()}
    Path(f"{os.getpid()}-{time.monotonic_ns()}.json").write_text(json.dumps(span))
"""


@dataclass(frozen=True)
class Span:
    """When a test ran, and where."""

    module: str
    process: int
    began: float
    ended: float

    def overlaps(self, other: Span) -> bool:
        return self is not other and self.began < other.ended and other.began < self.ended


def run(folder: Path, *words: str, **modules: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in `folder` on `modules`, as `make test` does on these."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    alone: no other test runs meanwhile\n")
    (folder / "conftest.py").write_text(
        f"import sys\nsys.path[:0] = [{str(TESTS)!r}, {str(TESTS.parent / 'src')!r}]\n"
        "pytest_plugins = ['side_by_side']\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-p", "no:cacheprovider", *SIDE_BY_SIDE, *words]
    environment = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }  # Hydra's plugin takes seconds to import
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=100
    )


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("tests/conf/test_stated.py::test_x", "tests/conf/test_stated.py::test_y[sft]", True),
        ("tests/conf/test_stated.py::test_x", "tests/conf/test_composed.py::test_x", False),
        (
            "tests/contract/test_matrix.py::test_x[packing=bfd-sft]",
            "tests/contract/test_rules.py::test_y[sft a=b c=d]",
            True,
        ),
        (
            "tests/contract/test_matrix.py::test_x[a=b-dpo]",
            "tests/contract/test_matrix.py::test_x[a=b-online_dpo]",
            False,
        ),
        (
            "tests/contract/test_documents.py::test_x[bfd-sdpa]",
            "tests/contract/test_documents.py::test_y",
            True,
        ),
        (
            "tests/memsweep/trial/test_run.py::test_x[sft]",
            "tests/memsweep/trial/test_run.py::test_x[dpo]",
            False,
        ),
    ],
)
def test_what_shares_something_stays_together(one: str, other: str, together: bool) -> None:
    assert (group_of(one) == group_of(other)) is together


@pytest.mark.slow
def test_a_module_stays_in_one_process_and_a_test_that_must_be_alone_is(tmp_path: Path) -> None:
    crowd = f"{TIMED}\n@pytest.mark.parametrize('n', range(3))\ndef test(n):\n    take(0.5)\n"
    single = f"{TIMED}\n@pytest.mark.alone\ndef test():\n    take(0.1)\n"

    # When one process is through with its first modules and could begin the last, the other is busy.
    done = run(tmp_path, test_a=crowd, test_b=crowd, test_c=crowd, test_z=single)
    spans = [Span(**json.loads(file.read_text())) for file in tmp_path.glob("*.json")]
    (alone,) = [span for span in spans if span.module == "test_z"]

    assert done.returncode == 0, done.stdout
    assert len(spans) == 10
    assert not any(alone.overlaps(other) for other in spans)
    assert any(one.overlaps(other) for one in spans for other in spans)
    assert len({(span.module, span.process) for span in spans}) == 4


@pytest.mark.slow
def test_a_process_that_dies_is_a_failure(tmp_path: Path) -> None:
    fatal, fine = "import os\ndef test_it():\n    os._exit(0)\n", "def test_it():\n    pass\n"

    done = run(tmp_path, test_a=fatal, test_b=fine)

    assert done.returncode == 1, done.stdout
    assert "crashed while running" in done.stdout
    assert "1 passed" in done.stdout


@pytest.mark.slow
def test_no_tests_are_a_failure(tmp_path: Path) -> None:
    assert run(tmp_path, "-m", "alone", test_a="def test_it():\n    pass\n").returncode == 5
