"""
Where a write's messages wait until all of its tasks are done.

A task puts its messages into a file of its own, `<folder>/<writer>/<batch>/part-….arrow`: an Arrow
file with one column. The folder is `.quire-sink` in the queue's directory, or one of its own
in another place, which tasks on other machines see too. Only the files that the driver is told of
count; those of attempts that failed are swept.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from quire.durable import make_folder, sync
from quire.errors import MessageTooLargeError

FOLDER: Final = ".quire-sink"

_DIGITS: Final = 16
_MESSAGE: Final = "message"
_SCHEMA: Final = pa.schema([pa.field(_MESSAGE, pa.large_binary(), nullable=False)])


class Part(NamedTuple):
    """The messages of one task, in their order."""

    file: str
    partition: int
    rows: int


class Staging(NamedTuple):
    """The folder that the messages of writes to a queue wait in."""

    folder: str

    @classmethod
    def of(cls, queue: str, location: str | None = None) -> Staging:
        """Return the folder for a queue: in its directory, unless there is another *location*."""
        if location is None:
            return cls(str(Path(queue, FOLDER)))
        path = Path(queue).absolute()
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:_DIGITS]
        return cls(str(Path(location, f"{path.name}-{digest}")))

    def batch(self, writer: str, batch: int) -> Path:
        """Return the folder of one batch."""
        return Path(self.folder, writer, str(batch))


class PartWriter:
    """Puts the messages of a task into its file; the file goes if the task fails."""

    def __init__(self, folder: Path, partition: int, limit: int | None = None) -> None:
        """Make a file with a name of its own; a message has *limit* bytes at most."""
        make_folder(folder)
        self._partition: Final = partition
        self._limit: Final = limit
        self._path: Final = folder / f"part-{partition:05}-{uuid4().hex}.arrow"
        self._file: Final = self._path.open("xb")
        self._arrow: Final = pa.ipc.new_file(self._file, _SCHEMA)
        self._rows = 0

    def write(self, messages: pa.Array[Any]) -> None:
        """
        Add messages behind the others.

        Raises:
            MessageTooLargeError: One does not go into the queue; there it would be in the way.

        """
        self._check(messages)
        self._arrow.write_batch(pa.RecordBatch.from_arrays([messages], schema=_SCHEMA))
        self._rows += len(messages)

    def _check(self, messages: pa.Array[Any]) -> None:
        compute: Any = pc  # its stubs leave the results open
        lengths = compute.binary_length(messages)
        longest: int = compute.max(lengths).as_py() or 0
        if self._limit is not None and longest > self._limit:
            row = self._rows + compute.index(lengths, longest).as_py()
            raise MessageTooLargeError(
                f"message too large: partition={self._partition} row={row} length={longest}"
                f" limit={self._limit} (set blockBytes to at least four times its length)"
            )

    def finish(self) -> Part | None:
        """Have the file on the medium; None, and no file, if there was nothing to write."""
        if not self._rows:
            return None
        self._arrow.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        sync(self._path.parent)
        return Part(str(self._path), self._partition, self._rows)

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file, and remove it if it does not count."""
        self._file.close()
        if kind is not None or not self._rows:
            self._path.unlink(missing_ok=True)


def messages_of(part: Part) -> Iterator[Any]:
    """
    Yield the messages of a part as ``large_binary`` arrays.

    Raises:
        FileNotFoundError: The file is gone.

    """
    try:
        mapped = pa.memory_map(part.file)
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, "what was staged is gone", part.file) from None
    with mapped as source, pa.ipc.open_file(source) as arrow:
        for number in range(arrow.num_record_batches):
            yield arrow.get_batch(number).column(0)


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it, if it is there; a later sweep takes what stays."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder, ignore_errors=True)
