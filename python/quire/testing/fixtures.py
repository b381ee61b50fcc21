"""
Fixtures for pytest, enabled in ``conftest.py`` at the root of the tests.

    pytest_plugins = ["quire.testing.fixtures"]

``quire_clock`` is a clock that stands still until the test moves it, ``quire_queue`` an empty queue
with this clock in a temporary directory, and ``quire_peer`` runs functions in other processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from quire._native import ManualClock
from quire.handles.journal.queue import JournalQueue
from quire.opening.opener import open as open_queue
from quire.testing.peer import Peer

__all__ = ["quire_clock", "quire_peer", "quire_queue"]

_START_MS = 1_705_314_600_000
_BLOCK_BYTES = 2**20


@pytest.fixture
def quire_clock() -> ManualClock:
    """Return a clock at 2024-01-15T10:30:00Z, until ``advance`` or ``set`` moves it."""
    return ManualClock(_START_MS)


@pytest.fixture
def quire_queue(tmp_path: Path, quire_clock: ManualClock) -> Iterator[JournalQueue]:
    """Open an empty queue with ``quire_clock`` that rolls daily and has small files."""
    with open_queue(tmp_path / "queue", clock=quire_clock, block_bytes=_BLOCK_BYTES) as queue:
        yield queue


@pytest.fixture
def quire_peer() -> Iterator[Callable[..., Peer]]:
    """Return ``quire_peer(function, *arguments)``: its processes are killed after the test."""
    with ExitStack() as peers:

        def start(work: Callable[..., Any], /, *arguments: Any) -> Peer:  # noqa: ANN401
            return peers.enter_context(Peer(work, *arguments))

        yield start
