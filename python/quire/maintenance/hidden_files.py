"""
Compressed files that nobody reads, since their cycle has a roll file, too.

Of a run of retention that was killed, or after ``zstd -d``, both hold the same messages. But a Java
writer whose clock is late does not see compressed cycles, and begins such a cycle again.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from quire._common.roll_file_names import COMPRESSED
from quire._native import cycle_digest, is_compressed_copy
from quire.errors import CorruptError, QuireError
from quire.handles.journal.queue import JournalQueue
from quire.maintenance.findings import Finding
from quire.opening.opener import open_without_key

HINT: Final = "move one of the two away"


def hidden_files(path: Path) -> Iterator[Finding]:
    """Yield a finding for each compressed file whose messages another file hides."""
    for compressed in sorted(path.glob(f"*.cq4{COMPRESSED}")):
        roll_file = compressed.with_name(compressed.name.removesuffix(COMPRESSED))
        if roll_file.is_file() and hides_messages(roll_file, compressed):
            found = f"other messages than in {roll_file.name}"
            expected = "one file of the cycle, or two of the same messages"
            yield Finding("hidden-messages", str(compressed), None, found, expected)


def hides_messages(roll_file: Path, compressed: Path) -> bool:
    """Return whether a compressed file holds other messages than the roll file that is read."""
    try:
        is_copy = is_compressed_copy(str(roll_file), str(compressed), lambda: None)
        return not is_copy and not _holds_same(roll_file, compressed)
    except FileNotFoundError:
        return False  # one of them is gone meanwhile
    except CorruptError:
        return True


def _holds_same(roll_file: Path, compressed: Path) -> bool:
    """Compare messages: Java may have added to the index, and to the length, of the roll file."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(compressed, folder)  # beside the roll file it is not read
        apart = Path(folder) / compressed.name
        try:
            with _opened(roll_file) as read, _opened(apart) as hidden:
                last = hidden.last_index
                if last is None or last != read.last_index:
                    return last is None
                end = (last + 1, 0, False)
                return cycle_digest(read, end) == cycle_digest(hidden, end)
        except QuireError:
            return False


def _opened(file: Path) -> JournalQueue:
    return cast("JournalQueue", open_without_key(str(file), read_only=True, create=False))
