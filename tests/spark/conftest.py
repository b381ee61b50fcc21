"""What tests of the sink's files begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from staged_writes import OPTIONS, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def received(path: Path) -> Path:
    """A queue from elsewhere, with a message."""
    with quire.open(path, format="chronicle", **OPTIONS) as queue, queue.appender() as appender:
        appender.write_bytes(b"there")
    return path
