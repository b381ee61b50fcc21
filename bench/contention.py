"""Writers that append to one queue at the same time: how much together, and how evenly."""

from __future__ import annotations

import json
import subprocess
import threading
import time
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
)
from bench.scenarios import Operation
from bench.task import Task

_HEAD_START_NS = 100_000_000


@contextmanager
def contending(scenario: Scenario, writers: int, duration_ms: int) -> Generator[Measure]:
    """Each run has a fresh queue; every message of every writer is looked for afterwards."""
    from bench.adapters import quire_contending

    def measure(one: Operation) -> Result:
        with fresh_directory(scenario.place, scenario.size, scenario.total) as directory:
            asked = replace(scenario.task(one, directory), duration_ms=duration_ms)
            with machine.observed() as surroundings:
                found = run(asked, writers)
            counts = [int(one["count"]) for one in found]
            expected = [asked.warm_up + count for count in counts]
            quire_contending.verify(asked.queue, asked.size, expected)
            cpu_nanos = sum(one["cpu_nanos"] for one in found) / sum(counts)
            return result(
                surroundings,
                nanos=max(one["nanos"] for one in found) / sum(counts),
                cpu_nanos=cpu_nanos,
                least_share=min(counts) / max(counts),
                fairness=sum(counts) ** 2 / (writers * sum(count * count for count in counts)),
            )

    yield measure


def run(asked: Task, writers: int) -> list[Result]:
    """Let the first writer create the queue, then all of them begin at the same moment."""
    tasks = [
        replace(asked, writer=writer, out=asked.out and f"{asked.out}-{writer}")
        for writer in range(writers)
    ]
    started: list[subprocess.Popen[str]] = []
    watchdog = threading.Timer(TIMEOUT_S, _kill, [started])
    watchdog.start()
    try:
        for task in tasks:
            started.append(_start(task))
            if task.writer == 0:
                _expect_ready(started[0], task)
        for one, task in zip(started[1:], tasks[1:], strict=True):
            _expect_ready(one, task)
        begin = time.monotonic_ns() + _HEAD_START_NS
        for one in started:
            assert one.stdin is not None
            one.stdin.write(f"{begin}\n")
            one.stdin.flush()
        return [_outcome(one, task) for one, task in zip(started, tasks, strict=True)]
    finally:
        watchdog.cancel()
        _kill(started)
        for one in started:
            one.communicate()


def _kill(started: list[subprocess.Popen[str]]) -> None:
    for one in started:
        one.kill()


def _start(asked: Task) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    with _complaints(asked).open("w") as stderr:
        return subprocess.Popen(
            command(asked), cwd=ROOT, stdin=pipe, stdout=pipe, stderr=stderr, text=True
        )


def _complaints(asked: Task) -> Path:
    return Path(asked.directory) / f"stderr-{asked.writer}"


def _expect_ready(one: subprocess.Popen[str], asked: Task) -> None:
    assert one.stdout is not None
    if one.stdout.readline().strip() != "READY":
        said = _complaints(asked).read_text("utf-8")
        raise Failed(f"a writer does not start: task={asked}\n{said[-3000:]}")


def _outcome(one: subprocess.Popen[str], asked: Task) -> Result:
    said, _ = one.communicate(timeout=TIMEOUT_S)
    if one.returncode:
        complaints = _complaints(asked).read_text("utf-8")
        raise Failed(f"a writer failed: task={asked} exit={one.returncode}\n{complaints[-3000:]}")
    outcome: Result = json.loads(said.splitlines()[-1])
    outcome.setdefault("cpu_nanos", outcome.get("cpuNanos"))
    return outcome
