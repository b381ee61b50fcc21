"""
Latency between two processes: one appends at a fixed rate, the other tails without a pause.

Beside the percentiles of all messages stand those of windows of 64 KiB: the median over the windows
shows what recurs in each, and hides the machine's rare stalls, which the raw values show.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

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

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    _Whole: TypeAlias = npt.NDArray[np.int64]
    _Real: TypeAlias = npt.NDArray[np.float64]

SETTLE_S = 1.2
"""How long a reader polls before the writer starts: the system moves other threads meanwhile."""
SHARES = {
    "min": 0.0,
    "p50": 0.5,
    "p90": 0.9,
    "p98": 0.98,
    "p99": 0.99,
    "p99.7": 0.997,
    "p99.9": 0.999,
    "max": 1.0,
}
WINDOW_BYTES = 64 << 10
"""What a tailer maps at once: costs of pages recur in each window."""
_HEADER_BYTES = 4
LIMITS_US = (20, 30, 40, 60, 1000)
"""The report says which share of the messages was seen within each."""
_TAILS = {"latency": "tail", "batches": "tail_many"}
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
        time.sleep(SETTLE_S)
        with machine.pinned(second):
            run_to_end(replace(asked, operation=_producer(asked), out=_took(asked)))
        if tailer.wait(TIMEOUT_S):
            raise Failed(f"the tailer failed: task={asked}")
    finally:
        tailer.kill()
        tailer.communicate()


def _producer(asked: Task) -> str:
    if asked.operation == "batches":
        return "produce_many"
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
    import numpy as np

    begin, took_ns = _columns(_took(asked), 2)[asked.warm_up :].T
    records = _columns(asked.out, 3)
    if not np.array_equal(records[:, 0], np.arange(asked.total)):
        raise Failed(f"other messages: task={asked} count={len(records)}")
    _, due, had = records[asked.warm_up :].T
    measured_ns = int(begin[-1] - begin[0])
    seen_us = _microseconds(begin, had)
    return {
        "begin": percentiles(seen_us),
        "below": below(seen_us),
        "due": percentiles(_microseconds(due, had)),
        "windows": of_windows(seen_us, WINDOW_BYTES // (asked.size + _HEADER_BYTES)),
        "append": percentiles(took_ns / 1000),
        "at_once": asked.count / (1 + int(np.count_nonzero(np.diff(begin)))),
        "rate": (asked.count - 1) / measured_ns * 1e9,
        "run_delay": {
            role: int(path.read_text("ascii")) / measured_ns
            for role, path in _run_delays(asked).items()
            if path.exists()
        },
    }


def of_writers(asked: Task, writers: int) -> list[dict[str, float]]:
    """Return the percentiles of how long each writer's appends took, in microseconds."""
    import numpy as np

    took_ns = [np.fromfile(f"{asked.out}-{writer}", np.int64) for writer in range(writers)]
    return [percentiles(one / 1000) for one in took_ns]


def _columns(path: str, width: int) -> _Whole:
    import numpy as np

    return np.fromfile(path, np.int64).reshape(-1, width)


def _run_delays(asked: Task) -> dict[str, Path]:
    """Return where each thread keeps how long it was ready to run but had no CPU."""
    return {"reader": Path(f"{asked.out}-delay"), "writer": Path(f"{_took(asked)}-delay")}


def _microseconds(starts: _Whole, ends: _Whole) -> _Real:
    found: _Real = (ends - starts) / 1000
    if found.min() < 0:
        raise Failed(f"had before it was sent: microseconds={found.min()}")
    return found


def percentiles(values: npt.ArrayLike) -> dict[str, float]:
    """Return the percentiles of at least one value."""
    return {name: float(value) for name, value in _percentiles(values).items()}


def below(values_us: npt.ArrayLike) -> dict[str, float]:
    """Return which share of the values is below each limit."""
    import numpy as np

    return {str(limit): float(np.mean(np.asarray(values_us) < limit)) for limit in LIMITS_US}


def of_windows(values: npt.ArrayLike, length: int) -> dict[str, float]:
    """Return the median over the windows of each percentile within a window."""
    import numpy as np

    every = np.asarray(values)
    windows = every[: len(every) // length * length].reshape(-1, length)
    found = _percentiles(windows if len(windows) else every)
    return {name: float(np.median(value)) for name, value in found.items()}


def _percentiles(values: npt.ArrayLike) -> dict[str, _Real]:
    """Return each percentile along the last axis."""
    import numpy as np

    found = np.sort(values)
    count = found.shape[-1]
    places = {name: min(count - 1, int(share * count)) for name, share in SHARES.items()}
    return {name: found[..., place] for name, place in places.items()}
