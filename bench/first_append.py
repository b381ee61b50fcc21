"""
The first append of a new process in a queue of many cycles, and how long other writers wait for it.

    python -m bench.first_append [CYCLES [DIRECTORY]]

Another process appends without a pause meanwhile; its longest append is the wait. The table says of
no file that it is ended, as when another program, such as Java's, wrote all of them.
"""

from __future__ import annotations

import json
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import quire
from bench.task import START_MS

ROUNDS = 7
CYCLE_MS = 60_000
_FIRST = """
import json, sys, time
import quire
with quire.open(sys.argv[1], clock=quire.ManualClock(int(sys.argv[2]))) as queue:
    appender = queue.appender()
    began = time.perf_counter_ns()
    appender.write_bytes(b"first")
    print(json.dumps({"first": time.perf_counter_ns() - began}))
"""
_OTHER = """
import json, sys, threading, time
import quire
with quire.open(sys.argv[1], clock=quire.ManualClock(int(sys.argv[2]))) as queue:
    appender = queue.appender()
    appender.write_bytes(b"other")
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    print(flush=True)
    longest, before = 0, time.perf_counter_ns()
    while not ended.is_set():
        appender.write_bytes(b"other")
        now = time.perf_counter_ns()
        longest, before = max(longest, now - before), now
    print(json.dumps({"wait": longest}))
"""


def fill(path: Path, cycles: int) -> int:
    """Make a queue of many cycles; return when the last one begins."""
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="MINUTELY", clock=clock, block_bytes=1 << 16) as queue,
        queue.appender() as appender,
    ):
        for _ in range(cycles):
            appender.write_bytes(b"a message")
            clock.advance(CYCLE_MS)
    return clock.now_ms


def forget(path: Path) -> None:
    """Have the table say of no file that it is ended."""
    with quire.open(path, read_only=True) as queue:
        known = queue.table_value("normalisedEOFsTo")
    assert known is not None
    with (path / "metadata.cq4t").open("r+b") as table:
        data = table.read()
        table.seek(data.index(struct.pack("<q", known), data.index(b"normalisedEOFsTo")))
        table.write(struct.pack("<q", -1))


def measure(path: Path, now_ms: int) -> dict[str, int]:
    """Return the nanoseconds of one first append, and of the other process's longest."""
    arguments = [str(path), str(now_ms)]
    with subprocess.Popen(
        [sys.executable, "-c", _OTHER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        forget(path)
        first = subprocess.run(
            [sys.executable, "-c", _FIRST, *arguments], capture_output=True, text=True, check=True
        )
        said, _ = other.communicate()
    found: dict[str, int] = json.loads(first.stdout) | json.loads(said)
    return found


def main(arguments: list[str]) -> None:
    """Print the median and the longest of some rounds."""
    cycles = int(arguments[0]) if arguments else 4000
    within: Any = arguments[1] if len(arguments) > 1 else None
    with tempfile.TemporaryDirectory(dir=within) as directory:
        path = Path(directory) / "queue"
        now_ms = fill(path, cycles)
        rounds = [measure(path, now_ms) for _ in range(ROUNDS)]
    for name in ("first", "wait"):
        values = sorted(one[name] / 1e6 for one in rounds)
        print(f"{name}, ms: median {statistics.median(values):.2f}, longest {values[-1]:.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
