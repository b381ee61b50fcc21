"""
Fixtures of the tests of queues, and Hypothesis profiles.

`HYPOTHESIS_PROFILE=slow` searches for minutes; without it the search fits into every test run.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import quire
import tally as counts
from cli_runs import Cli
from queues import START_MS

# A shell that starts pytest in the background has it, and its children, ignore interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "fast",
    max_examples=120,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "slow",
    max_examples=5000,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


@pytest.fixture
def clock() -> quire.ManualClock:
    """2024-01-15T10:30:00Z, until it is moved."""
    return quire.ManualClock(START_MS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The directory of the queue below."""
    return tmp_path / "queue"


@pytest.fixture
def queue(path: Path, clock: quire.ManualClock) -> Iterator[quire.Queue]:
    """An empty queue that rolls daily, of small files."""
    with quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**16) as queue:
        yield queue


@pytest.fixture
def appender(queue: quire.Queue) -> Iterator[quire.Appender]:
    """An appender of the queue above."""
    with queue.appender() as appender:
        yield appender


@pytest.fixture
def tailer(queue: quire.Queue) -> Iterator[quire.Tailer]:
    """A tailer of the queue above."""
    with queue.tailer() as tailer:
        yield tailer


@pytest.fixture
def cli(capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """The command, run in this process."""
    return Cli(capsysbinary)


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Callable[[str, int, str], None]:
    """Leave how often a promise was tried: `tally(promise, count, of_what)`."""
    test = f"{request.path.relative_to(counts.ROOT)}::{request.node.name}"
    return lambda promise, count, what: counts.leave(test, promise, count, what)
