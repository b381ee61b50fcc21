"""Seeks by time: the first one of a new process, over messages in many cycles."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import quire
from bench import machine
from bench.harness import ROOT, TIMEOUT_S, Failed, Result, result
from bench.scenarios import Operation
from bench.task import START_MS

_CYCLE_MS = 60_000
_SEEK = """
import json, sys, time
began = time.perf_counter_ns()
import quire
imported = time.perf_counter_ns()
with quire.open(sys.argv[1], read_only=True) as queue, queue.tailer() as tailer:
    opened, cpu = time.perf_counter_ns(), time.process_time_ns()
    assert tailer.move_to_time(float(sys.argv[2]), time_field=sys.argv[3] or None)
    sought, cpu = time.perf_counter_ns(), time.process_time_ns() - cpu
    at = tailer.read_map()["at"]
    found = {"import_nanos": imported - began, "open_nanos": opened - imported}
    print(json.dumps(found | {"nanos": sought - opened, "cpu_nanos": cpu, "at": at}))
"""


def fill(path: Path, count: int, cycles: int) -> None:
    """Append messages with a time, in order, evenly through the first half of each cycle."""
    start_ms = START_MS // _CYCLE_MS * _CYCLE_MS
    clock, of_cycle = quire.ManualClock(start_ms), count // cycles
    with (
        quire.open(path, roll_cycle="MINUTELY", clock=clock, block_bytes=1 << 20) as queue,
        queue.appender() as appender,
    ):
        for _ in range(cycles):
            for number in range(of_cycle):
                at = clock.now_ms + number * _CYCLE_MS // (2 * of_cycle)
                appender.write_map({"at": at, "price": 1.0825})
            clock.advance(_CYCLE_MS)


def seek(path: Path, count: int, cycles: int, one: Operation) -> Result:
    """Seek a random message's time or a random cycle's start, and check the message found."""
    of_cycle = count // cycles
    cycle, number = (random.randrange(most) for most in (cycles, of_cycle))  # noqa: S311 - places
    at = START_MS // _CYCLE_MS * _CYCLE_MS + cycle * _CYCLE_MS
    sought, field = at, ""
    if one.name == "seek@field":
        at += number * _CYCLE_MS // (2 * of_cycle)
        sought, field = at - 1, "at"  # just before, as a float is not exact
    with machine.observed() as surroundings:
        found = _in_a_process([str(path), str(sought / 1000), field])
    if found["at"] != at:
        raise Failed(f"another message: operation={one.key} wanted={at} found={found}")
    return result(surroundings, **found)


def _in_a_process(arguments: list[str]) -> Result:
    done = subprocess.run(
        [sys.executable, "-c", _SEEK, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise Failed(f"it failed: arguments={arguments}\n{done.stderr[-3000:]}")
    found: Result = json.loads(done.stdout)
    return found
