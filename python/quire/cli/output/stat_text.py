"""What the facts of `quire stat` share in every format: times, files and aligned columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from quire._common.terminal import escape_line

_BLOCK: Final = 512  # what st_blocks counts in, on every system


def hex_text(index: int) -> str:
    """Return an index as it is shown."""
    return f"{index:#x}"


def sizes_of(path: Path) -> dict[str, int]:
    """Return the length of a file, and the space that it occupies."""
    found = path.stat()
    return {"size": found.st_size, "on_disk": found.st_blocks * _BLOCK}


def time_text(time_ms: int) -> str:
    """Return a time in ISO 8601; what no date can hold in milliseconds."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):
        return f"{time_ms} ms"


def columns(*rows: Iterable[object]) -> Iterator[str]:
    """Yield the rows, each column as wide as its widest cell."""
    cells = [[escape_line(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield line.rstrip()
