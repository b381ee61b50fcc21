"""A program that ends while pyarrow still reads ahead."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import quire

SCRIPT = """
import sys, time
import quire
from quire.dataframes.scan import Scan

read = Scan._next

def slow(self, *given):
    print("reads", flush=True)
    time.sleep(0.5)
    return read(self, *given)

Scan._next = slow
dataset = quire.open(sys.argv[1], read_only=True).scan()
batches = dataset.to_batches()
{then}
"""
THEN = {
    "abandoned": "next(iter(batches)); del batches",
    "kept": "next(iter(batches))",
    "head": "del batches; dataset.head(1)",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "orders"
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_many([b"order"] * 200_000)
    return path


@pytest.mark.parametrize("then", THEN)
def test_the_exit_waits_for_a_batch_that_is_read(path: Path, then: str) -> None:
    check(path, then)


@pytest.mark.check
def test_the_exit_waits_on_a_busy_machine(path: Path) -> None:
    with ThreadPoolExecutor(6) as threads:
        assert [*threads.map(partial(check, path), [*THEN] * 10)]


def check(path: Path, then: str) -> None:
    script = SCRIPT.format(then=THEN[then])
    command = [sys.executable, "-c", script, str(path)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "reads" in ran.stdout
