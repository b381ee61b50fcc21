"""
Latency between two processes: one appends at a fixed rate, the other tails without a pause.

Beside the percentiles of all messages stand those of windows of 64 KiB: the median over the windows
shows what recurs in each, and hides the machine's rare stalls, which the raw values show.
"""

from __future__ import annotations

import statistics
import subprocess
from array import array
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench import machine
from bench.harness import (
    ROOT,
    TIMEOUT_S,
    Failed,
    Measure,
    Result,
    Scenario,
    command,
    fresh_directory,
    result,
    run_to_end,
)
from bench.scenarios import Operation
from bench.task import Task

SHARES = {
    "min": 0.0,
    "p50": 0.5,
    "p90": 0.9,
    "p98": 0.98,
    "p99": 0.99,
    "p99.9": 0.999,
    "max": 1.0,
}
WINDOW_BYTES = 64 << 10
"""What a tailer maps at once: costs of pages recur in each window."""


_HEADER_BYTES = 4
_MS_US = 1000.0
_TAILS = {"latency": "tail"}
_WOKEN = "wake_"
"""Operations of readers for which messages come so seldom that the writer sleeps, too."""


@contextmanager
def tailing_live(scenario: Scenario, rate: int) -> Generator[Measure]:
    """Each run has a fresh queue; numbers and times are checked."""

    def measure(one: Operation) -> Result:
        with fresh_directory(scenario.place, scenario.size, scenario.total) as directory:
            out = directory / "records"
            asked = replace(scenario.task(one, directory), rate=rate, out=str(out))
            with machine.observed() as surroundings:
                run_both(asked, machine.two_cpus())
            return result(surroundings, **evaluate(asked))

    yield measure


def run_both(asked: Task, cpus: tuple[int, int] | None) -> None:
    """Run a tailer, and what appends for it until it has all; each on a CPU, if there are two."""
    first, second = cpus or (None, None)
    with machine.pinned(first):
        tailer = _start_tailer(
            replace(asked, operation=_TAILS.get(asked.operation, asked.operation))
        )
    try:
        assert tailer.stdout is not None
        if tailer.stdout.readline().strip() != "READY":
            raise Failed(f"the tailer does not start: task={asked}")
        with machine.pinned(second):
            run_to_end(replace(asked, operation=_producer(asked), out=_took(asked)))
        if tailer.wait(TIMEOUT_S):
            raise Failed(f"the tailer failed: task={asked}")
    finally:
        tailer.kill()
        tailer.communicate()


def _producer(asked: Task) -> str:
    if not asked.operation.startswith(_WOKEN):
        return "produce"
    return "produce_seldom@ring" if asked.operation.endswith("@ring") else "produce_seldom"


def _took(asked: Task) -> str:
    return f"{asked.out}-appends"


def _start_tailer(asked: Task) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(asked), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def evaluate(asked: Task) -> Result:
    """Take records of number, due and had, and each append's begin and time; no warm-up."""
    appends = array("q")
    appends.frombytes(Path(_took(asked)).read_bytes())
    begin, took_ns = (appends[start::2] for start in range(2))
    values = array("q")
    values.frombytes(Path(asked.out).read_bytes())
    number, due, had = (values[start::3] for start in range(3))
    if number != array("q", range(asked.total)):
        raise Failed(f"other messages: task={asked} count={len(number)}")
    measured = slice(asked.warm_up, None)
    took_s = (begin[-1] - begin[asked.warm_up]) / 1e9
    seen_us = _microseconds(begin[measured], had[measured])
    return {
        "begin": percentiles(seen_us),
        "below_ms": sum(it < _MS_US for it in seen_us) / asked.count,
        "due": percentiles(_microseconds(due[measured], had[measured])),
        "windows": of_windows(seen_us, WINDOW_BYTES // (asked.size + _HEADER_BYTES)),
        "append": percentiles([nanos / 1000 for nanos in took_ns[measured]]),
        "rate": (asked.count - 1) / took_s,
    }


def _microseconds(starts: array[int], ends: array[int]) -> list[float]:
    found = [(end - start) / 1000 for start, end in zip(starts, ends, strict=True)]
    if min(found) < 0:
        raise Failed(f"had before it was sent: microseconds={min(found)}")
    return found


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return the percentiles of at least one value."""
    found = sorted(values)
    last = len(found) - 1
    return {name: found[min(last, int(share * len(found)))] for name, share in SHARES.items()}


def of_windows(values: Sequence[float], length: int) -> dict[str, float]:
    """Return the median over the windows of each percentile within a window."""
    starts = range(0, max(len(values) - length, 0) + 1, length)
    windows = [percentiles(values[start : start + length]) for start in starts]
    return {name: statistics.median(one[name] for one in windows) for name in SHARES}
