"""Streams whose driver is killed at any moment: what is in their sinks in the end."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import quire
from paths import SUPPORT
from streams import Source
from tally import Tally

LIVES = 2

pytestmark = pytest.mark.slow


class Life:
    """A driver with processes of its own."""

    def __init__(self, folder: Path, word: str) -> None:
        command = [sys.executable, str(SUPPORT / "streaming_victim.py"), str(folder), word]
        with (folder / "driver.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, start_new_session=True, stdout=log, stderr=log
            )

    def goes_on(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> int:
        return self._process.wait(600)

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        assert self._process.wait(300) == -signal.SIGKILL


def batches_of(folder: Path) -> int:
    """Count the batches that the query which starts last has planned."""
    return len([it for it in folder.glob("checkpoint-quire/offsets/*") if it.name.isdecimal()])


def test_a_killed_stream_goes_on_without_gap_or_duplicate(
    spark: SparkSession, tmp_path: Path, tally: Tally
) -> None:
    chance = random.SystemRandom()
    source = Source(tmp_path / "queues")
    for _ in range(LIVES):
        source.record("orders", 40)
        source.record("eu/trades", 25)
        source.roll()

    for _ in range(LIVES):
        enough = batches_of(tmp_path) + chance.randint(1, 3)
        life = Life(tmp_path, "on")
        try:
            while life.goes_on() and batches_of(tmp_path) < enough:
                time.sleep(0.1)
            time.sleep(chance.uniform(0, 0.4))
        finally:
            life.kill()
        assert batches_of(tmp_path) >= enough, (tmp_path / "driver.log").read_text()
        source.record("orders", 3)
    assert Life(tmp_path, "rest").wait() == 0, (tmp_path / "driver.log").read_text()

    rows = spark.read.parquet(str(tmp_path / "out-parquet")).collect()
    assert sorted((row.topic, row.n) for row in rows) == source.numbers()
    with quire.open(tmp_path / "out-quire", read_only=True) as queue, queue.tailer() as tailer:
        copied = [(it["topic"], it["n"]) for it in iter(tailer.read_map, None)]
    assert sorted(copied) == source.numbers()
    for topic in source.counts:
        came = [n for its, n in copied if its == topic]
        assert came == sorted(came)
    tally("a killed stream goes on without gap or duplicate", LIVES, "kills")
