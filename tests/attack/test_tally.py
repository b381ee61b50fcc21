"""`make torture` goes on where it was stopped, and adds up what it did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paths import ROOT, TESTS

TRIED = """
import pytest
import tally as counts

@pytest.mark.parametrize("name", ["first", "second"])
def test_a_promise(name, tally):
    assert name not in {failing!r}
    tally("All is kept", counts.scaled(1, 100), "tries of run " + str(counts.RUN))

def test_another_thing():
    raise AssertionError
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder of tests under the project's own plugin."""
    (tmp_path / "conftest.py").write_text(
        "import pytest\nimport tally as counts\nfrom torture import Torture\n"
        "TORTURE = Torture()\n"
        "def pytest_configure(config): config.pluginmanager.register(TORTURE)\n"
        "@pytest.fixture\ndef tally(): return TORTURE.leave\n",
        "utf-8",
    )
    return tmp_path


def torture(project: Path, *, failing: str = "", share: float = 0.5, **more: str) -> str:
    """Run it, and return what pytest said."""
    (project / "test_it.py").write_text(TRIED.format(failing=failing), "utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": str(TESTS / "support"),
        "QUIRE_TALLY": str(project / "tally.json"),
        "QUIRE_TORTURE": str(share),
        **more,
    }
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", str(project)]
    ran = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    return ran.stdout


def tallied(project: Path) -> dict[str, Any]:
    """Return what is stored."""
    found: dict[str, Any] = json.loads((project / "tally.json").read_text("utf-8"))
    return found


def test_runs_add_up_and_each_has_other_seeds(project: Path) -> None:
    torture(project)
    torture(project, share=0.1)
    [first, second] = tallied(project)["tests"].values()
    assert first["counts"] == second["counts"] == {"tries of run 0": 50, "tries of run 1": 10}
    assert (first["runs"], first["promise"]) == (2, "All is kept")


def test_what_failed_is_noted_and_not_counted(project: Path) -> None:
    torture(project, failing="second")
    found = tallied(project)
    assert [*found["tests"]] == ["test_it.py::test_a_promise[first]"]
    [failure] = found["failures"]
    assert failure["test"] == "test_it.py::test_a_promise[second]"
    assert failure["became"] == "not yet explained"


def test_what_was_tried_least_comes_first(project: Path) -> None:
    torture(project, failing="first")
    shown = torture(project)
    assert shown.index("test_a_promise[first] PASSED") < shown.index("[second] PASSED")


def test_when_the_minutes_are_over_nothing_is_started(project: Path) -> None:
    assert "2 skipped, 1 deselected" in torture(project, QUIRE_TORTURE_MINUTES="0")
    assert tallied(project)["tests"] == {}


def test_every_promise_on_the_page_has_a_test() -> None:
    tests = json.loads((TESTS / "attack" / "tally.json").read_text("utf-8"))["tests"]
    for name in tests:
        path, _, function = name.partition("::")
        assert f"def {function.split('[')[0]}(" in (ROOT / path).read_text("utf-8"), name
