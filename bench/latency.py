"""Latency between two processes: one appends at a fixed rate, the other tails without a pause."""

from __future__ import annotations

import subprocess
from array import array
from collections.abc import Generator
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

SHARES = {"min": 0.0, "p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


@contextmanager
def tailing_live(scenario: Scenario, rate: int) -> Generator[Measure]:
    """Each run has a fresh queue; numbers and times are checked."""

    def measure(one: Operation) -> Result:
        with fresh_directory(scenario.place, scenario.size, scenario.total) as directory:
            out = directory / "records"
            asked = replace(scenario.task(one, directory), rate=rate, out=str(out))
            with machine.observed() as surroundings:
                _run_both(asked)
            took = Path(_took(asked)).read_bytes()
            return result(surroundings, **_evaluate(out.read_bytes(), took, asked))

    yield measure


def _run_both(asked: Task) -> None:
    first, second = machine.two_cpus() or (None, None)
    with machine.pinned(first):
        tailer = _start_tailer(replace(asked, operation="tail"))
    try:
        assert tailer.stdout is not None
        if tailer.stdout.readline().strip() != "READY":
            raise Failed(f"the tailer does not start: task={asked}")
        with machine.pinned(second):
            run_to_end(replace(asked, operation="produce", out=_took(asked)))
        if tailer.wait(TIMEOUT_S):
            raise Failed(f"the tailer failed: task={asked}")
    finally:
        tailer.kill()
        tailer.communicate()


def _took(asked: Task) -> str:
    return f"{asked.out}-appends"


def _start_tailer(asked: Task) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(asked), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def _evaluate(records: bytes, took: bytes, asked: Task) -> Result:
    """Take records of number, due and had, and each append's begin and time; no warm-up."""
    appends = array("q")
    appends.frombytes(took)
    begin, took_ns = (appends[start::2] for start in range(2))
    values = array("q")
    values.frombytes(records)
    number, due, had = (values[start::3] for start in range(3))
    if number != array("q", range(asked.total)):
        raise Failed(f"other messages: task={asked} count={len(number)}")
    measured = slice(asked.warm_up, None)
    took_s = (begin[-1] - begin[asked.warm_up]) / 1e9
    return {
        "begin": _percentiles(begin[measured], had[measured]),
        "due": _percentiles(due[measured], had[measured]),
        "append": _percentiles(array("q", bytes(8 * asked.count)), took_ns[measured]),
        "rate": (asked.count - 1) / took_s,
    }


def _percentiles(starts: array[int], ends: array[int]) -> dict[str, float]:
    """Return microseconds from start to end."""
    found = sorted((end - start) / 1000 for start, end in zip(starts, ends, strict=True))
    if found[0] < 0:
        raise Failed(f"had before it was sent: microseconds={found[0]}")
    last = len(found) - 1
    return {name: found[min(last, int(share * len(found)))] for name, share in SHARES.items()}
