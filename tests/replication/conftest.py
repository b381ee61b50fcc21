"""What tests of replication begin with, unless a module has its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """The queue of a source, with two messages."""
    path = tmp_path / "orders"
    with quire.open(path, roll_cycle="FAST_DAILY", block_bytes=1 << 16) as queue:
        queue.appender().write_many([b"one", b"two"])
    return path
