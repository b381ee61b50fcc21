"""The wire type that the files of a queue have."""

from __future__ import annotations

import os
from typing import Final

from quire._common.durable import SafeFolder
from quire.opening.opener import open_without_key

FIELDLESS: Final = "FIELDLESS_BINARY"
_HEADER_BYTES: Final = 256


def stored_wire_type(path: str) -> str | None:
    """Return ``FIELDLESS_BINARY`` if the newest file of a queue is so, else None."""
    with open_without_key(path, read_only=True, create=False) as queue:
        for cycle in reversed(queue.cycles):
            folder, name = os.path.split(queue.file_for_cycle(cycle))
            with SafeFolder.at(folder) as safe, safe.open(name) as file:
                header = file.read(_HEADER_BYTES)
            if b"SCQStore" in header:  # else it is just being made
                return None if b"writePosition" in header else FIELDLESS
    return None
