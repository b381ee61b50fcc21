"""
What the package asks about a format, and about an open queue of it.

Each format answers in a class of its own, so that nothing outside this package asks which format a
queue has. The handles of a format need not be those of files: what reads a queue somewhere else is
one more adapter.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    TypeAlias,
    TypeVar,
)

from quire.errors import UnsupportedError
from quire.formats.missing import article
from quire.formats.protocols import AnyQueue, AnyTailer

if TYPE_CHECKING:
    from quire.formats.columns import Columns
    from quire.formats.detection import Format
    from quire.formats.numbering import Numbering, Periods

Verified: TypeAlias = tuple[list[tuple[str, str, int | None, str, str]], int, int, int]
"""Findings, and how many files, messages and bytes were examined."""
Repaired: TypeAlias = tuple[str, str, int | None, str]
"""The kind of a finding, its file and position, and what was done about it."""
Explained: TypeAlias = tuple[str, list[Any]]
"""A file, and what the bytes of a message in it mean."""


class End(NamedTuple):
    """The end of a cycle's messages."""

    position: int
    past: int
    """The sequence after the last message."""
    ended: bool
    """Whether nothing can follow: there is an end-of-file marker, or a page is full."""


class Piece(NamedTuple):
    """
    A file of a queue, or the files of one cycle.

    Attributes:
        name: Its path below the queue.
        files: The file, or those of the cycle.
        cycle: The cycle whose messages it counts; None if it counts none.
        facts: What only its format knows of it, by names for programs.

    """

    name: str
    files: Sequence[Path]
    cycle: int | None
    facts: Mapping[str, Any] = MappingProxyType({})


class HeldLock(NamedTuple):
    """
    A lock that is held.

    Attributes:
        key: Its key in the queue's table.
        pid: The process that holds it.
        alive: Whether that process lives.
        since_ms: When it took the lock, in epoch milliseconds; None without a record of it.

    """

    key: str
    pid: int
    alive: bool
    since_ms: int | None


class Snapshot(NamedTuple):
    """
    What a consistent copy of a queue holds.

    Attributes:
        messages: How many messages.
        last_index: The index of the last one.
        files: The name of each file, how many of its bytes are in use, and its length.
        patches: Names of files, positions in them, and the bytes that the copy has there instead.

    """

    messages: int
    last_index: int | None
    files: list[tuple[str, int, int]]
    patches: list[tuple[str, int, bytes]]


_Q = TypeVar("_Q", bound=AnyQueue)


class Adapter(ABC, Generic[_Q]):
    """
    One format.

    Attributes:
        name: Its name, as `quire.open` takes it.
        title: Its name in words.
        handles: The native classes of its queues, tailers and appenders.
        is_written: Whether queues of it are appended to.
        is_wire: Whether messages are documents of BinaryWire, with metadata among them.
        has_calls: Whether messages may be calls of methods, with histories, that are read here.
        has_cycles: Whether a cycle is a period of time.
        has_tailer_names: Whether tailers can have names.
        is_folder: Whether a cycle is a directory.
        has_late_appends: Whether a slow writer may append to a cycle that was left.
        has_unfinished: Whether a living writer may have begun a message that readers wait for.
        leaves_path_free: Whether its files lie beside their path, where another queue may be, too.
        has_listed_end: Whether the end of a queue is found without listing its files.
        has_snapshots: Whether an index says what a consistent copy holds: see :meth:`snapshot`.
        why_no_groups: Why consumers cannot share a queue of it; None if they can.
        step: The distance from one index of a new queue to the next.
        block_option: The option of `quire.open` that says how large files are.
        roll_cycles: The roll cycle for cycles of a length in milliseconds.
        shortest: The length of the shortest message.

    """

    name: ClassVar[Format]
    title: ClassVar[str]
    handles: ClassVar[tuple[type, ...]]
    is_written: ClassVar[bool] = True
    is_wire: ClassVar[bool] = False
    has_calls: ClassVar[bool] = False
    has_cycles: ClassVar[bool] = False
    has_tailer_names: ClassVar[bool] = False
    is_folder: ClassVar[bool] = False
    has_late_appends: ClassVar[bool] = False
    has_unfinished: ClassVar[bool] = False
    leaves_path_free: ClassVar[bool] = False
    has_listed_end: ClassVar[bool] = False
    has_snapshots: ClassVar[bool] = False
    why_no_groups: ClassVar[str | None] = None
    step: ClassVar[int] = 1
    block_option: ClassVar[str] = ""
    roll_cycles: ClassVar[Mapping[int, str]] = {}
    shortest: ClassVar[int] = 1

    @abstractmethod
    def open(self, path: str, *, read_only: bool = True) -> _Q:
        """Open a queue without options; one that is not there is made, unless to read only."""

    @abstractmethod
    def appender(self, queue: _Q) -> Any:  # noqa: ANN401 - of the format
        """
        Return a new appender.

        Raises:
            UnsupportedError: Queues of the format are only read.

        """

    @abstractmethod
    def tailer(self, queue: _Q) -> AnyTailer:
        """Return a new tailer, at the first message."""

    @abstractmethod
    def numbering(self, queue: _Q) -> Numbering:
        """Return how the messages of a queue are numbered."""

    def periods(self, queue: _Q) -> Periods:
        """
        Return when the cycles of a queue start.

        Raises:
            UnsupportedError: The format has no cycles.

        """
        path: str = queue.path
        raise UnsupportedError(
            f"{article(self.title)} has no cycles, so no time is known without a field of the"
            f" messages: path={path} (give an index, or the field)"
        )

    @abstractmethod
    def cycles(self, queue: _Q) -> list[int]:
        """Return the cycles of a queue in order; without them, what its indexes are divided by."""

    @abstractmethod
    def count(self, queue: _Q, cycle: int) -> int:
        """Return the sequence after the last message of a cycle; 0 without the cycle."""

    @abstractmethod
    def first_index(self, queue: _Q) -> int | None:
        """Return the index of the oldest message; an error where damage hides it."""

    @abstractmethod
    def place(self, queue: _Q, cycle: int) -> Path:
        """Return the file of a cycle, or its directory."""

    def files(self, queue: _Q) -> list[Path]:
        """Return the files of a queue."""
        return [Path(at, name) for at, _, names in os.walk(queue.path) for name in names]

    @abstractmethod
    def pieces(self, queue: _Q) -> Iterator[Piece]:
        """Yield the files of a queue in order; a cycle that is a directory as one."""

    def reads_wire(self, handle: object) -> bool:
        """Return whether the messages of an open queue, or of its tailer, are BinaryWire."""
        del handle
        return self.is_wire

    def appends_late(self, queue: _Q) -> bool:
        """Return whether a slow writer may append to a cycle of this queue that was left."""
        del queue
        return self.has_late_appends

    def named_tailers(self, queue: _Q) -> list[tuple[str, int]]:
        """Return the name of each named tailer, with the index that it stored."""
        del queue
        return []

    def locks(self, queue: _Q) -> list[HeldLock]:
        """Return the locks that are held."""
        del queue
        return []

    def refresh(self, queue: _Q) -> None:
        """Look for new and deleted files; most formats do so all the time."""

    def check_end(self, queue: _Q, index: int) -> None:
        """
        Check that no messages lie after the index at which a reader found none.

        Raises:
            CorruptError: Messages follow *index*: one before them was lost.

        """
        del queue, index

    def found_end(self, queue: _Q, cycle: int) -> End | None:
        """
        Return where the messages of a cycle seem to end; None if its file is not ready.

        Raises:
            CorruptError: The file is damaged.

        """
        return End(0, self.count(queue, cycle), ended=False)

    def end(self, queue: _Q, cycle: int) -> End | None:
        """
        Return where a cycle ends; None if its file is not ready.

        Raises:
            CorruptError: The file is damaged, or ends before its last message.

        """
        return self.found_end(queue, cycle)

    def position(self, queue: _Q, index: int) -> int | None:
        """Return where a message begins in the file of its cycle; None unless it is one file."""
        del queue, index
        return None

    @abstractmethod
    def excerpt(self, queue: _Q, index: int, data: bytes) -> Any:  # noqa: ANN401 - of the format
        """Return a message as a tailer would."""

    def write(
        self,
        appender: Any,  # noqa: ANN401 - of the format
        columns: Columns,
        note: bytes | None = None,
    ) -> int | None:
        """
        Append messages as they are; return the index of the last.

        Args:
            appender: Where to.
            columns: The messages.
            note: A metadata document to write before them, where the format has such documents.

        """
        del note
        found: int | None = appender._write_column(  # noqa: SLF001
            columns.offsets, columns.data, count=len(columns), start=0, wide=False
        )
        return found

    def sync(self, appender: Any) -> None:  # noqa: ANN401 - of the format
        """Return when what was appended is on the medium."""
        appender.sync()

    def longest(self, block_bytes: int) -> int:
        """Return the length of the longest message of a queue with files of a size."""
        del block_bytes
        return 2**31 - 1

    @abstractmethod
    def options_like(self, queue: _Q) -> dict[str, Any]:
        """Return the settings with which a queue like this one is made, by their names."""

    @abstractmethod
    def identity(self, queue: _Q) -> dict[str, Any]:
        """Return what a queue was created with, as far as another in its place would differ."""

    def properties(self, queue: _Q) -> dict[str, Any]:
        """Return the facts about a queue as a whole, by names for programs."""
        return self.identity(queue)

    def verify(self, path: str) -> Verified:
        """
        Check a queue against the rules of the format.

        Raises:
            UnsupportedError: There is no check of this format.

        """
        raise self._refused("a check", path)

    def repair(self, path: str, *, timeout_ms: int, allow_network: bool) -> list[Repaired]:
        """
        Repair what :meth:`verify` finds, and return what was done.

        Raises:
            UnsupportedError: There is no repair of this format.

        """
        del timeout_ms, allow_network
        raise self._refused("a repair", path)

    def snapshot(self, queue: _Q) -> Snapshot:
        """
        Return what a consistent copy of a queue holds.

        Raises:
            UnsupportedError: The format has no index that says so, or the queue has odd names.

        """
        raise self._refused("a snapshot", queue.path)

    @abstractmethod
    def explain(self, queue: _Q, index: int) -> Explained | None:
        """
        Return what the bytes of a message mean; None if there is no such message.

        Raises:
            UnsupportedError: Messages of this format cannot be explained.

        """

    def _refused(self, what: str, path: str) -> UnsupportedError:
        return UnsupportedError(f"not supported in {article(self.title)}: {what} path={path}")
