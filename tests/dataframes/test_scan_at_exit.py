"""A program that ends while pyarrow still reads ahead."""

from __future__ import annotations

import subprocess
import sys
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


@pytest.mark.parametrize("then", THEN)
def test_the_exit_waits_for_a_batch_that_is_read(tmp_path: Path, then: str) -> None:
    path = tmp_path / "orders"
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_many([b"order"] * 200_000)
    script = SCRIPT.format(then=THEN[then])
    ran = subprocess.run(
        [sys.executable, "-c", script, path], check=False, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "reads" in ran.stdout
