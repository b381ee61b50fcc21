"""Files with holes: where their data is, and copies that have the same holes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator
from io import BufferedReader, BufferedWriter
from typing import Final

_CHUNK: Final = 1 << 20


def data_ranges(handle: int, start: int, end: int) -> Generator[tuple[int, int]]:
    """Yield the start and the end of each extent of data in a range of a file."""
    while start < end:
        try:
            first = os.lseek(handle, start, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole is left
                return
            raise
        start = min(os.lseek(handle, first, os.SEEK_HOLE), end)
        if first < start:
            yield first, start


def copy_sparse(
    source: BufferedReader, target: BufferedWriter, check: Callable[[], object]
) -> None:
    """
    Copy a file, leaving its holes as holes.

    Args:
        source: The file.
        target: A new one.
        check: Called now and then; what it raises ends the copy.

    """
    size = os.fstat(source.fileno()).st_size
    for start, end in data_ranges(source.fileno(), 0, size):
        source.seek(start)
        target.seek(start)
        for at in range(start, end, _CHUNK):
            check()
            target.write(source.read(min(_CHUNK, end - at)))
    target.flush()
    os.ftruncate(target.fileno(), size)
