"""Pipelines that end in the middle of a batch: the next run adds what is missing, and no more."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import quire.pipeline
from pipeline_outputs import check_outputs, rewritten, run
from trades_recorded import record

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PEER = """
import os, signal, sys
import quire.pipeline

left = int(sys.argv[2])

def done(what):
    global left
    left -= 1
    if left == 0:
        print(what, flush=True)
        os.killpg(0, signal.SIGKILL)  # this process, Java and the workers

quire.pipeline.run(quire.pipeline.load(sys.argv[1]), watch=done)
"""


class EndedError(Exception):
    """A run ends here."""


def run_to(spark: SparkSession, folder: Path, place: int) -> str | None:
    """Run until *place* things were done; return what the last one was, None at the end."""
    done: list[str] = []

    def watch(what: str) -> None:
        done.append(what)
        if len(done) == place:
            raise EndedError(what)

    pipeline = quire.pipeline.load(folder / "pipeline.yaml")
    report = quire.pipeline.run(pipeline, spark=spark, watch=watch)
    assert (report.outcome == "failed") == (len(done) == place)
    return done[-1] if len(done) == place else None


def test_a_run_that_ends_anywhere_is_taken_up_by_the_next(
    spark: SparkSession, tmp_path: Path
) -> None:
    recorded = record(tmp_path, 500)
    rewritten(tmp_path, ("available-now", "once"))
    ended: list[str | None] = [run_to(spark, tmp_path, place) for place in range(1, 13)]

    assert [str(what).split()[0] for what in ended] == [
        *("batch", "source", "source", "step", "step", "sink", "sink", "sink"),
        *("quarantine", "state", "None", "None"),
    ]
    check_outputs(spark, tmp_path, recorded)


# After the steps, and in the second batch after the queue, the last of the sinks: each needs a
# driver of its own, the places between are above.
@pytest.mark.parametrize("place", [5, 18])
def test_a_killed_run_is_taken_up_by_the_next(
    spark: SparkSession, tmp_path: Path, place: int
) -> None:
    recorded = record(tmp_path, 500)
    command = [sys.executable, "-c", PEER, str(tmp_path / "pipeline.yaml"), str(place)]
    killed = subprocess.run(command, start_new_session=True, stdout=subprocess.PIPE, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert killed.stdout.split()[0] == (b"step" if place == 5 else b"sink")

    report = run(spark, tmp_path)
    assert sum(sink.repeated for sink in report.sinks) == (0 if place == 5 else 3)
    check_outputs(spark, tmp_path, recorded)
