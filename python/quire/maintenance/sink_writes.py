"""Writes of Spark that are not finished: their marks in the queue say how far they came."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

from quire._common.durable import SafeFolder
from quire.errors import UnsafePathError

FOLDER: Final = ".quire-sink"
"""In the queue's directory: a folder for each writer, and in it one for each batch."""
MANIFEST: Final = "manifest.json"
DONE: Final = "done.json"

WRONG: Final = (ValueError, TypeError, LookupError, RecursionError, UnsafePathError)
"""Errors of reading a record that no sink wrote."""


class SinkWrite(NamedTuple):
    """
    A batch that was begun and is not recorded as done.

    Attributes:
        name: Its writer and number.
        after: The queue's last index before it; None: there was no message, or it is not known.

    """

    name: str
    after: int | None


def unfinished_writes(path: str) -> list[SinkWrite]:
    """Return the unfinished writes to the queue in a directory; what does not read is one."""
    try:
        with SafeFolder.at(path) as around, around.sub(FOLDER) as root:
            return [write for writer in root.folders() for write in _of_writer(root, writer)]
    except FileNotFoundError:
        return []
    except UnsafePathError:
        return [SinkWrite(FOLDER, None)]


def _of_writer(root: SafeFolder, writer: str) -> Iterator[SinkWrite]:
    try:
        with root.sub(writer) as folder:
            done = done_in(folder)
            for batch in [it for it in folder.folders() if it.isdecimal()]:
                with suppress(FileNotFoundError), folder.sub(batch) as inside:
                    if inside.has(MANIFEST) and (done is None or int(batch) > done):
                        yield SinkWrite(f"{writer}/{batch}", _read(inside, MANIFEST, "after"))
    except FileNotFoundError:
        return
    except UnsafePathError:
        yield SinkWrite(writer, None)


def done_in(folder: SafeFolder) -> int | None:
    """Return the last batch that a writer's record calls done; -1: none; None: it is invalid."""
    return _read(folder, DONE, "batch", -1)


def _read(folder: SafeFolder, file: str, name: str, absent: int | None = None) -> int | None:
    """Return a number of a file; None if it holds no such number."""
    try:
        found: Any = json.loads(folder.read(file))[name]
    except FileNotFoundError:
        return absent
    except WRONG:
        return None
    return found if type(found) is int else None
