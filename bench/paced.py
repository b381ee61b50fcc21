"""Appends at a fixed rate: what the longest call of each window takes, and the page faults."""

from __future__ import annotations

import json
import statistics
from array import array
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench import machine
from bench.harness import Failed, Measure, Result, Scenario, fresh_directory, result, run_to_end
from bench.latency import of_windows, percentiles
from bench.quire_queues import open_queue
from bench.scenarios import LIFE_RATE, Operation
from bench.task import DISTINCT, Task

WINDOW = 655
"""Messages of 96 bytes that fill 64 KiB."""


@contextmanager
def pacing(scenario: Scenario) -> Generator[Measure]:
    """Each run has a fresh queue; all messages are looked for afterwards."""

    def measure(one: Operation) -> Result:
        with fresh_directory(scenario.place, scenario.size, scenario.total) as directory:
            out = directory / "appends"
            asked = replace(scenario.task(one, directory), rate=LIFE_RATE, out=str(out))
            with machine.observed() as surroundings:
                outcome = json.loads(run_to_end(asked))
            verify(asked)
            faults = outcome["faults"] / asked.count * 1e6
            return result(surroundings, faults=faults, **_evaluate(out, asked))

    yield measure


def _evaluate(out: Path, asked: Task) -> Result:
    """Take each append's begin and time; no warm-up."""
    appends = array("q")
    appends.frombytes(out.read_bytes())
    took_us = [nanos / 1000 for nanos in appends[1::2][-asked.count :]]
    if len(took_us) != asked.count:
        raise Failed(f"another count: task={asked} found={len(took_us)}")
    return {
        "nanos": statistics.fmean(took_us) * 1000,
        "windows": of_windows(took_us, WINDOW),
        "append": percentiles(took_us),
    }


def verify(asked: Task) -> None:
    """Check that every message is there, in order."""
    numbers: list[int] = []
    with open_queue(asked.queue, read_only=True) as queue, queue.tailer() as tailer:
        while found := tailer.read_many(DISTINCT):
            # A drainer puts a short message before the others.
            of_size = [message for message in found if len(message) == asked.size]
            numbers += [int.from_bytes(message[:8], "little") for message in of_size]
    if numbers != [*range(asked.total)]:
        raise Failed(f"other messages: task={asked} count={len(numbers)}")
