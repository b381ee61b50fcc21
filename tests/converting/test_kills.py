"""Conversions that are killed at every step: the next one goes on, without gap or repeat."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from converted import INTO, Into, check_map, fill, messages, payloads

# Runs conversions in children that kill themselves at the n-th call of a function, before or after
# it, until one lives; prints how often that was for each function.
AT_EACH_CALL = """
import os, signal, sys
import pyarrow.parquet
import quire
from quire._common.durable import SafeFolder
from quire.converting.conversion import Conversion

source, folder, into = sys.argv[1:]
PLACES = {
    "replace": SafeFolder,
    "_write": Conversion,
    "_append": Conversion,
    "sync_tree": SafeFolder,
    "publish": SafeFolder,
}

def arm(name, when, nth):
    real, calls = getattr(PLACES[name], name), 0
    def call(*given, **named):
        nonlocal calls
        calls += 1
        is_due = calls == nth
        if is_due and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*given, **named)
        if is_due:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    setattr(PLACES[name], name, call)

def killed(name, when, dest):
    for nth in range(1, 100):
        if not os.fork():
            arm(name, when, nth)
            quire.convert(source, dest, into=into)
            os._exit(0)
        if os.wait()[1] == 0:
            return nth - 1

for name in PLACES:
    for when in ("before", "after"):
        print(killed(name, when, f"{folder}/{name}-{when}"))
"""
DAYS = [[b"%d of day %d" % (number, day) for number in range(300)] for day in range(4)]


@pytest.mark.slow
@pytest.mark.parametrize("into", INTO)
def test_a_conversion_that_is_killed_at_any_step_is_resumed(into: Into, tmp_path: Path) -> None:
    source, results = tmp_path / "source", tmp_path / "results"
    expected = fill(source, "vanilla", DAYS)

    ran = subprocess.run(
        [sys.executable, "-c", AT_EACH_CALL, str(source), str(results), into],
        capture_output=True,
        text=True,
        check=True,
    )

    kills = [int(line) for line in ran.stdout.splitlines()]
    assert len(kills) == len([*results.iterdir()]) == 10
    assert all(kills), "some function was never called"
    for dest in results.iterdir():
        assert payloads(messages(dest)) == payloads(expected)
        check_map(dest, expected, messages(dest))
        assert not [*dest.glob(".*.tmp")]


CONVERT = "import sys, quire; quire.convert(sys.argv[1], sys.argv[2], into=sys.argv[3])"


@pytest.mark.slow
@pytest.mark.parametrize("into", INTO)
def test_a_conversion_that_is_killed_at_any_moment_is_resumed(into: Into, tmp_path: Path) -> None:
    days = [
        [b"%d of day %d" % (it, day) * (it % 9) or b"-" for it in range(60_000)] for day in (1, 2)
    ]
    source, dest = tmp_path / "source", tmp_path / "dest"
    expected = fill(source, "chronicle", days)
    chance = random.Random(13)  # noqa: S311 - any moment will do
    command = [sys.executable, "-c", CONVERT, str(source), str(dest), into]
    for _ in range(3):
        with subprocess.Popen(command) as process:
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0, 1))
            process.kill()

    subprocess.run(command, check=True)

    assert payloads(messages(dest)) == payloads(expected)
    check_map(dest, expected, messages(dest))
