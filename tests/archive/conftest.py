"""The queue that is archived, and where to."""

from pathlib import Path

import pytest

from archives import fill


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A queue of four days; the last is still written to."""
    path = tmp_path / "queues" / "orders"
    fill(path, range(4))
    return path


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "archive"
