"""
Where the messages of a write are staged until all of its tasks are done.

Each task writes its messages to its own file, `<folder>/<writer>/<batch>/part-….arrow`: an Arrow
file with one column. The folder is `.quire-sink` in the queue's directory, or a folder in a staging
location that tasks on other machines can access too. Only files that tasks report to the driver
count; those of failed attempts are removed. The reports name files without a path, so that a copied
or moved queue can use the files staged in it.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from quire._common.durable import PRIVATE, Access, SafeFolder, flush_and_sync
from quire.errors import MessageTooLargeError
from quire.maintenance.sink_writes import FOLDER
from quire.sealed.key_ring import KeyRing
from quire.staged.sealed_parts import PartSealer, SealedPart

WRITER: Final = re.compile(r"(?!(?i:lock)$)[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
"""The name of a writer, which is also the name of a folder."""
_DIGITS: Final = 16
_MESSAGE: Final = "message"
_SCHEMA: Final = pa.schema([pa.field(_MESSAGE, pa.large_binary(), nullable=False)])


class Part(NamedTuple):
    """The file of one task's messages, without a path, and the number of messages in it."""

    file: str
    partition: int
    rows: int


class Staging(NamedTuple):
    """
    The folder where writes to a queue are staged.

    Attributes:
        around: The directory that has the folder: the queue's, or the staging location.
        name: The folder's name in that directory.
        access: The permissions of the queue, which staged files get too.

    """

    around: str
    name: str = FOLDER
    access: Access = PRIVATE

    @classmethod
    def of(cls, queue: str, location: str | None = None) -> Staging:
        """Return the folder for a queue: in its directory, or in *location* if given."""
        access = Access.of(queue)
        if location is None:
            return cls(queue, FOLDER, access)
        path = Path(queue).absolute()
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:_DIGITS]
        return cls(location, f"{path.name}-{digest}", access)

    @property
    def path(self) -> Path:
        """The path of the folder."""
        return Path(self.around, self.name)

    @contextmanager
    def opened(self) -> Generator[SafeFolder]:
        """
        Open the folder.

        Raises:
            FileNotFoundError: The folder does not exist.

        """
        with SafeFolder.at(self.around) as around, around.sub(self.name) as folder:
            yield folder

    @contextmanager
    def made(self) -> Generator[SafeFolder]:
        """Open the folder; create it if it does not exist."""
        access = self.access
        with SafeFolder.at(self.around, access) as around, around.made(self.name, access) as made:
            yield made

    def batch(self, writer: str, batch: int) -> StagedBatch:
        """Return the folder of one batch."""
        return StagedBatch(self, writer, batch)


class StagedBatch(NamedTuple):
    """The folder where one batch of a writer is staged."""

    staging: Staging
    writer: str
    batch: int

    @property
    def path(self) -> Path:
        """The path of the folder."""
        return self.staging.path / self.writer / str(self.batch)

    @contextmanager
    def opened(self) -> Generator[SafeFolder]:
        """
        Open the folder.

        Raises:
            FileNotFoundError: The folder does not exist.

        """
        with (
            self.staging.opened() as root,
            root.sub(self.writer) as writer,
            writer.sub(str(self.batch)) as folder,
        ):
            yield folder

    @contextmanager
    def made(self) -> Generator[SafeFolder]:
        """Open the folder; create it if it does not exist."""
        with (
            self.staging.made() as root,
            root.made(self.writer) as writer,
            writer.made(str(self.batch)) as folder,
        ):
            yield folder


class PartWriter:
    """
    Writes the messages of a task to its file, which is removed if the task fails.

    Args:
        batch: The folder where the file is created, with a unique name.
        partition: The number of the task.
        limit: The length of the longest message that the queue can hold; None: no limit.
        ring: The keys of an encrypted queue, with which the file is encrypted.

    """

    def __init__(
        self,
        batch: StagedBatch,
        partition: int,
        limit: int | None = None,
        ring: KeyRing | None = None,
    ) -> None:
        """Create the file."""
        number = uuid4()
        self._sealer: Final = None if ring is None else PartSealer(number.bytes, ring)
        self._partition: Final = partition
        overhead = 0 if self._sealer is None else self._sealer.overhead
        self._limit: Final = None if limit is None else limit - overhead
        self._name: Final = f"part-{partition:05}-{number.hex}.arrow"
        self._rows = 0
        with ExitStack() as stack:
            self._folder: Final = stack.enter_context(batch.made())
            self._file: Final = stack.enter_context(self._folder.create(self._name))
            schema = _SCHEMA if self._sealer is None else self._sealer.schema
            self._arrow: Final = pa.ipc.new_file(self._file, schema)
            self._opened: Final = stack.pop_all()

    def write(self, messages: pa.Array[Any]) -> None:
        """
        Append messages.

        Raises:
            MessageTooLargeError: A message is longer than the queue can hold, so the batch could
                not be committed.

        """
        self._check(messages)
        batch = pa.RecordBatch.from_arrays([messages], schema=_SCHEMA)
        self._arrow.write_batch(batch if self._sealer is None else self._sealer.sealed(batch))
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
        """Sync the file; return None, and leave no file, if there was no message."""
        if not self._rows:
            return None
        if self._sealer is not None:
            self._arrow.write_batch(self._sealer.end())
        self._arrow.close()
        flush_and_sync(self._file)
        self._folder.sync()
        return Part(self._name, self._partition, self._rows)

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file; remove it if the task failed or wrote no message."""
        with self._opened:
            if kind is not None or not self._rows:
                self._folder.remove(self._name)


def messages_of(folder: SafeFolder, part: Part, ring: KeyRing | None = None) -> Iterator[Any]:
    """
    Yield the messages of a part as ``large_binary`` arrays.

    Raises:
        EncryptionError: No key of *ring* opens the part of an encrypted queue.
        FileNotFoundError: The file was removed.
        UnsafePathError: The entry is a link or not a regular file.
        ValueError: The file is not a staged part.

    """
    with _arrow_of(folder, part) as arrow:
        if ring is None:
            batches = _plain(arrow, folder, part)
        else:
            batches = _sealed(arrow, folder, part, ring).batches(_SCHEMA)
        for batch in batches:
            batch.validate(full=True)
            yield batch.column(0)


def check_key(folder: SafeFolder, part: Part, ring: KeyRing) -> None:
    """
    Check that a key opens a part.

    Raises:
        EncryptionError: No key of *ring* opens the part.
        FileNotFoundError: The file was removed.
        ValueError: The file is not a staged part.

    """
    with _arrow_of(folder, part) as arrow:
        _sealed(arrow, folder, part, ring)


@contextmanager
def _arrow_of(folder: SafeFolder, part: Part) -> Generator[Any]:
    with folder.open(part.file) as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    with pa.BufferReader(pa.py_buffer(mapped)) as source, pa.ipc.open_file(source) as arrow:
        yield arrow


def _plain(arrow: Any, folder: SafeFolder, part: Part) -> Iterator[pa.RecordBatch]:  # noqa: ANN401
    if not arrow.schema.equals(_SCHEMA):
        raise ValueError(f"not a file that a task staged: file={folder.path / part.file}")
    return map(arrow.get_batch, range(arrow.num_record_batches))


def _sealed(arrow: Any, folder: SafeFolder, part: Part, ring: KeyRing) -> SealedPart:  # noqa: ANN401
    number = bytes.fromhex(Path(part.file).stem.rpartition("-")[2])
    return SealedPart(arrow, folder.path / part.file, number, ring)
