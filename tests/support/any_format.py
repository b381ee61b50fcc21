"""
Queues of a format that a test chooses, with all the options of that format.

    with open_as("vanilla", path, linger_s=1) as queue: ...
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quire.opening.opener import open_as
from quire.vanilla import VanillaQueue

__all__ = ["open_as", "open_vanilla"]


def open_vanilla(path: Path | str, **options: Any) -> VanillaQueue:  # noqa: ANN401
    """Open a Vanilla Chronicle, or create it, with options by their names in settings."""
    queue: VanillaQueue = open_as("vanilla", path, **options)
    return queue
