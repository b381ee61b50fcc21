"""What the facts of `quire stat` share in every format: sizes, times and aligned columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from quire._common.terminal import escape_line

_BLOCK: Final = 512  # what st_blocks counts in, on every system
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


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


def size_text(count: int) -> str:
    """Return a number of bytes in the largest unit that leaves digits before the point."""
    power = max(0, min(len(_UNITS) - 1, (count.bit_length() - 1) // 10))
    return f"{count} B" if power == 0 else f"{count / 2 ** (10 * power):.1f} {_UNITS[power]}"


def columns(*rows: Iterable[object]) -> Iterator[str]:
    """Yield the rows, each column as wide as its widest cell."""
    cells = [[escape_line(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield line.rstrip()
