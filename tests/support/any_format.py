"""
Queues of a format that a test chooses, with all the options of that format.

    with open_as("vanilla", path, linger_s=1) as queue: ...
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import quire

OPENERS: dict[str, Callable[..., Any]] = {
    "chronicle": quire.open,
    "vanilla": quire.vanilla.open,
    "quick-queue": quire.quick_queue.open,
}


def open_as(kind: str, path: Path, **options: Any) -> Any:  # noqa: ANN401
    """Open a queue, or create it."""
    return OPENERS[kind](path, **options)
