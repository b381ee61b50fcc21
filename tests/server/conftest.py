"""Fixtures of tests of the page, where a module has queues for all its tests as `root`."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from browsing import Visit, showing


@pytest.fixture(scope="module")
def port(root: Path) -> Generator[int]:
    """The port of a server that shows the queues of the module."""
    with showing(root) as port:
        yield port


@pytest.fixture
def visit(port: int) -> Visit:
    """A visitor of that page."""
    return Visit(port)
