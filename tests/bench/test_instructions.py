"""The guard against slower code that noise cannot fool: machine instructions of a message."""

import platform
import shutil

import pytest
from bench import instructions
from bench.instructions import Cost

from quire import _native

TOLERANCE = 0.03
OTHER_COMPILER = 0.15
HINT = "if that is meant: make instructions, and commit bench/instructions.json"


@pytest.mark.slow
def test_a_message_costs_the_instructions_of_the_baseline() -> None:
    baseline = instructions.baseline()
    if platform.machine() != baseline["machine"] or platform.system() != "Linux":
        pytest.skip(f"the baseline is of Linux on {baseline['machine']}")
    assert shutil.which("valgrind"), "valgrind is missing: apt install valgrind"
    assert _native.BUILD_PROFILE == "release", "a debug build costs more: make build"
    same_compiler = instructions.surroundings()["rustc"] == baseline["rustc"]
    tolerance = TOLERANCE if same_compiler else OTHER_COMPILER
    found = instructions.measure()
    before = {name: Cost(**cost) for name, cost in baseline["costs"].items()}
    assert found.keys() == before.keys(), HINT
    moved = {
        name: f"{before[name]} -> {cost}"
        for name, cost in found.items()
        if cost.instructions != pytest.approx(before[name].instructions, rel=tolerance)
        or cost.calls != pytest.approx(before[name].calls, rel=tolerance, abs=0.1)
    }
    assert not moved, HINT
