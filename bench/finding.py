"""
Seeks by time, and appends that roll: `python -m bench.finding`.

A seek is the first one of a new process, over messages in many cycles: times of a field are found
by binary search over cycles and messages, cycle starts by the list of files. An append that rolls
ends one file and begins the next; with early acquire a pretoucher has made that one before.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import quire
from bench import parts, tables

_START_MS = 1_705_314_600_000
_CYCLE_MS = 60_000
_SEEK = """
import json, sys, time
began = time.perf_counter_ns()
import quire
imported = time.perf_counter_ns()
with quire.open(sys.argv[1], read_only=True) as queue, queue.tailer() as tailer:
    opened, cpu = time.perf_counter_ns(), time.process_time_ns()
    found = tailer.move_to_time(float(sys.argv[2]), time_field=sys.argv[3] or None)
    sought, cpu = time.perf_counter_ns(), time.process_time_ns() - cpu
    assert found and tailer.read() is not None
print(json.dumps([imported - began, opened - imported, cpu, sought - opened]))
"""


def main() -> None:
    """Measure in each place and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100,000 messages, 100 rolls")
    parser.add_argument("--messages", type=int, help="how many instead")
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    count, cycles = (100_000, 100) if asked.quick else (10_000_000, 1000)
    count = asked.messages or count
    sought: list[tuple[str, ...]] = []
    rolled: list[tuple[str, ...]] = []
    for place in parts.places():
        with tempfile.TemporaryDirectory(dir=place) as folder:
            queue = Path(folder) / "queue"
            _fill(queue, count, cycles)
            sought += [
                (str(place), field or "cycle", *_seeks(queue, cycles, field, asked.rounds))
                for field in ("at", "")
            ]
        for early in (False, True):
            with tempfile.TemporaryDirectory(dir=place) as folder:
                nanos = _rolls(Path(folder) / "queue", cycles, early=early)
            rolled.append((str(place), "yes" if early else "no", *_spread(nanos)))
    print(f"first seek of a process, {count:,} messages in {cycles:,} cycles, medians in ms:\n")
    print(
        tables.table(
            ("place", "time of", "import", "open", "seek, CPU", "seek", "seek, longest"), sought
        )
    )
    print(f"\nthe append that rolls, {cycles:,} rolls, in us:\n")
    print(tables.table(("place", "early acquire", "median", "p99", "p99.9", "longest"), rolled))


def _fill(path: Path, count: int, cycles: int) -> None:
    clock = quire.ManualClock(_START_MS)
    with (
        quire.open(path, roll_cycle="MINUTELY", clock=clock, block_bytes=1 << 20) as queue,
        queue.appender() as appender,
    ):
        of_cycle = count // cycles
        for _ in range(cycles):
            for number in range(of_cycle):
                at = clock.now_ms + number * _CYCLE_MS // (2 * of_cycle)
                appender.write_map({"at": at, "price": 1.0825})
            clock.advance(_CYCLE_MS)


def _seeks(path: Path, cycles: int, field: str, rounds: int) -> tuple[str, ...]:
    found: list[list[int]] = []
    for number in range(rounds):
        cycle = (number * 397 + 211) % cycles
        start_s = (_START_MS + cycle * _CYCLE_MS) // 60_000 * 60
        seconds = start_s + 12.345 if field else start_s
        line = [sys.executable, "-c", _SEEK, str(path), str(seconds), field]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    columns = [*zip(*found, strict=True)]
    medians = [statistics.median(column) for column in columns]
    return tuple(f"{nanos / 1e6:.1f}" for nanos in (*medians, max(columns[-1])))


def _rolls(path: Path, cycles: int, *, early: bool) -> list[int]:
    clock = quire.ManualClock(_START_MS)
    nanos: list[int] = []
    with (
        quire.open(path, roll_cycle="TEST_SECONDLY", clock=clock) as queue,
        queue.appender() as appender,
        queue.pretoucher(early_acquire_next_cycle=early, preroll_time_s=0.5) as pretoucher,
    ):
        appender.write_bytes(bytes(96))
        for _ in range(cycles):
            clock.advance(600)
            if early:
                pretoucher.execute()
            clock.advance(400)
            began = time.perf_counter_ns()
            appender.write_bytes(bytes(96))
            nanos.append(time.perf_counter_ns() - began)
    return nanos


def _spread(nanos: list[int]) -> tuple[str, ...]:
    ranked = sorted(nanos)
    parts_of = (0.5, 0.99, 0.999)
    found = [ranked[min(int(part * len(ranked)), len(ranked) - 1)] for part in parts_of]
    return tuple(f"{each / 1000:.0f}" for each in (*found, ranked[-1]))


if __name__ == "__main__":
    main()
