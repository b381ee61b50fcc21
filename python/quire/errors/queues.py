"""Exceptions of queues, their handles and their locks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class QuireError(Exception):
    """
    The base of all errors of this package.

    Examples:
        >>> try:
        ...     quire.open("nowhere", create=False)
        ... except quire.QuireError as error:
        ...     print(type(error).__name__)
        NotAQueueError

    """

    def __str__(self) -> str:
        """Return the text, which is the first argument of most errors."""
        return str(self.args[0]) if self.args else ""


class ClosedError(QuireError):
    """
    The queue, appender, tailer or document was closed.

    Examples:
        >>> tailer.close()
        >>> tailer.read()
        Traceback (most recent call last):
        quire.errors.ClosedError: ...

    """


class ReadOnlyError(QuireError):
    """
    The operation writes, and the queue was opened read-only.

    Examples:
        >>> with quire.open("orders", read_only=True) as reader:
        ...     reader.appender()
        Traceback (most recent call last):
        quire.errors.ReadOnlyError: ...

    """


class NotAQueueError(QuireError):
    """
    The path holds no Chronicle Queue 5 files, or a file there is of another kind.

    Examples:
        >>> quire.open("nowhere", create=False)
        Traceback (most recent call last):
        quire.errors.NotAQueueError: ...

    """


class TableLostError(NotAQueueError):
    """
    ``metadata.cq4t`` was removed or replaced while the queue was open; nothing was written.

    Other processes may be writing under the lock of another table. Close the queue and open it
    again.

    Examples:
        >>> import os
        >>> os.remove("orders/metadata.cq4t")
        >>> appender.write_text("hello")
        Traceback (most recent call last):
        quire.errors.TableLostError: ...

    """


class RingLostError(NotAQueueError):
    """
    The ring of asynchronous appends was removed or replaced while it was in use.

    It is noticed within a second, and no message is put in from then on. Processes that still have
    the ring open append messages put in before; if these processes are killed first, the messages
    are lost. Close the queue, which appends them, and open it again.

    Attributes:
        accepted: The same as in :class:`RingFullError`.

    """

    accepted: int = 0


class RollCycleMismatchError(QuireError):
    """
    The caller named a roll cycle, and the queue already holds data of another one.

    Examples:
        >>> _ = appender.write_text("hello")
        >>> quire.open("orders", roll_cycle="HOURLY")
        Traceback (most recent call last):
        quire.errors.RollCycleMismatchError: ...

    """


class SettingError(QuireError, ValueError):
    """
    An option that the environment or a ``quire.toml`` sets is not valid, or that file is not.

    Examples:
        >>> import os
        >>> os.environ["QUIRE_TIMEOUT_S"] = "soon"
        >>> quire.open("orders")
        Traceback (most recent call last):
        quire.errors.SettingError: ...
        >>> del os.environ["QUIRE_TIMEOUT_S"]

    """


class UnsupportedError(QuireError):
    """
    Something that Quire does not support, such as a wire type or a network file system.

    Examples:
        >>> quire.open("s3://bucket/orders")
        Traceback (most recent call last):
        quire.errors.UnsupportedError: ...

    """


class UnsupportedAttributeError(UnsupportedError, AttributeError):
    """
    An attribute that this format's handles lack and those of others have; the text says why.

    Examples:
        >>> with quire.open("book", format="vanilla") as book:
        ...     hasattr(book, "roll_cycle"), getattr(book, "roll_cycle", None)
        ...     book.roll_cycle
        Traceback (most recent call last):
        quire.errors.UnsupportedAttributeError: ...

    """


class CorruptError(QuireError):
    """
    Bytes that break a rule of ``docs/format.md``.

    Attributes:
        file: Path of the file, or None.
        position: Byte position in the file, or None.
        found: What was there, or None.
        expected: What the format asks for, or None.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("20240115F.cq4").write_bytes(b"not a roll file")
        >>> try:
        ...     quire.open("20240115F.cq4", read_only=True)
        ... except quire.errors.CorruptError as error:
        ...     print("damaged:", error.file, error.position, error.found, error.expected)
        damaged: ...20240115F.cq4 ...

    """

    def __init__(
        self,
        message: str,
        file: str | None = None,
        position: int | None = None,
        found: str | None = None,
        expected: str | None = None,
    ) -> None:
        super().__init__(message, file, position, found, expected)
        self.file = file
        self.position = position
        self.found = found
        self.expected = expected


class MessageTooLargeError(QuireError, ValueError):
    """
    A message is longer than the queue's blocks allow; nothing was written.

    Examples:
        >>> appender.write_bytes(bytes(queue.block_bytes))
        Traceback (most recent call last):
        quire.errors.MessageTooLargeError: ...

    """


class IndexOutOfRangeError(QuireError, LookupError):
    """
    An index, cycle or sequence lies outside what the roll cycle can number.

    Examples:
        >>> queue.roll_cycle.to_index(-1, 0)
        Traceback (most recent call last):
        quire.errors.IndexOutOfRangeError: ...

    """


class IndexNotAvailableError(QuireError):
    """
    A double-buffered document gets its index when it is closed.

    Examples:
        >>> with (
        ...     quire.open("buffered", wait=quire.WaitOptions(double_buffer=True)) as queue,
        ...     queue.appender() as first,
        ...     queue.appender() as second,
        ...     first.writing_document() as held,
        ...     second.writing_document() as document,
        ... ):
        ...     document.index
        Traceback (most recent call last):
        quire.errors.IndexNotAvailableError: ...

    """


class CycleFullError(QuireError):
    """The cycle can hold no more messages; nothing was written. Write again in the next cycle."""


class WriteAfterEofError(QuireError):
    """An end-of-file marker closed the cycle to append to. Write again in the next cycle."""


class LockLostError(QuireError):
    """The write lock was taken away while this process was stopped; nothing was published."""


class UnsafePathError(QuireError):
    """
    A side file of a queue, an archive or a pipeline is not what Quire would have made there.

    A link, a pipe, a path instead of a name, or something that another user owns or can write to:
    nothing was followed, and nothing was changed.

    Examples:
        >>> import quire.archive
        >>> try:
        ...     report = quire.archive.archive("orders", "archive")
        ... except quire.errors.UnsafePathError as error:
        ...     print("remove the link:", error)

    """


class WireError(QuireError):
    """
    Bytes that do not decode as asked, or a value that has no encoding.

    Examples:
        >>> _ = appender.write_map({"symbol": "EURUSD"})
        >>> tailer.read_text()
        Traceback (most recent call last):
        quire.errors.WireError: ...

    """


class EncryptionError(QuireError):
    """
    The queue is encrypted, or its keys are missing, wrong or damaged.

    Examples:
        >>> quire.open("locked", key=bytes(32)).close()
        >>> quire.open("locked")
        Traceback (most recent call last):
        quire.errors.EncryptionError: the queue is encrypted: path=...

    """


class ForgedMessageError(EncryptionError):
    """An encrypted message was changed, or moved from another place."""


class PlainMessageError(EncryptionError):
    """A message in an encrypted queue is not encrypted: ``allow_plain=True`` reads it."""


class DictionaryError(QuireError):
    """
    A dictionary that messages are compressed with is missing or damaged.

    It lies in the queue's directory, as ``<number>.dictionary.quire``: see ``docs/compression.md``.
    """


class DataLossError(QuireError):
    """
    Messages that were to be read next were deleted.

    A tailer or consumer that was open raises it once; its next read continues with the first
    remaining message.

    Examples:
        >>> with queue.tailer("risk", on_missing="raise") as tailer:
        ...     try:
        ...         message = tailer.read()
        ...     except quire.errors.DataLossError as error:
        ...         print("messages were deleted unread:", error)

    """


class TailerInUseError(QuireError):
    """
    Another tailer reads with this name, in this process or another.

    Attributes:
        pid: The process of that tailer; 0 if it is not known.
        since: When that tailer was opened; None if it is not known.

    Examples:
        >>> tailer = queue.tailer("risk")
        >>> try:
        ...     queue.tailer("risk")
        ... except quire.errors.TailerInUseError as error:
        ...     print("in use by process", error.pid, "since", error.since)
        in use by process ... since ...

    """

    def __init__(self, message: str, pid: int = 0, since_s: int = 0) -> None:
        super().__init__(message, pid, since_s)
        self.pid = pid
        self.since = datetime.fromtimestamp(since_s, UTC) if since_s else None


class WriterInUseError(QuireError):
    """
    Another writer is active: of a Quick-Queue, with a producer's name, or holding a lock.

    Examples:
        >>> with quire.open("book", format="quick-queue") as book, book.appender() as writer:
        ...     book.appender()
        Traceback (most recent call last):
        quire.errors.WriterInUseError: ...

    """


class ProducerDiedError(QuireError):
    """
    A producer of a Quick-Queue died while it wrote a message, which cannot be recovered.

    It is raised once; the next read continues after the message.

    Attributes:
        producer: The producer's name.
        index: The index that the message would have had.

    Examples:
        >>> with quire.open("book", format="quick-queue") as book:
        ...     try:
        ...         message = book.tailer(on_dead="raise").read()
        ...     except quire.errors.ProducerDiedError as error:
        ...         print(error.producer, error.index)

    """

    def __init__(self, message: str, producer: str = "", index: int = 0) -> None:
        super().__init__(message, producer, index)
        self.producer = producer
        self.index = index


class GroupError(QuireError):
    """
    The consumer group was reset, has members, or has another key.

    Examples:
        >>> with queue.group("billing").consumer("c1"):
        ...     queue.group("billing").reset()
        Traceback (most recent call last):
        quire.errors.GroupError: ...

    """


class GroupLostError(GroupError):
    """
    The side file of a group was removed or replaced while consumers used it.

    Consumers that join the group now may get the same messages. Close the consumer and open it
    again; to remove a group, use :meth:`Group.delete`.

    Examples:
        >>> import pathlib
        >>> consumer = queue.group("billing").consumer()
        >>> pathlib.Path(queue.path, "billing.qgroup").unlink()
        >>> try:
        ...     for message in consumer.follow(timeout_s=10):
        ...         message.ack()
        ... except quire.errors.GroupLostError as error:
        ...     print("open the consumer again:", error)
        open the consumer again: ...

    """


class ForkedError(QuireError):
    """
    A handle was carried into a forked child; open the queue again there.

    Examples:
        >>> import multiprocessing
        >>> def child():
        ...     with quire.open("orders") as queue:  # not the handle of the parent
        ...         print(queue.entry_count)
        >>> process = multiprocessing.get_context("fork").Process(target=child)

    """


class LockTimeoutError(QuireError, TimeoutError):
    """The write lock, or a lock on a file, stayed taken by a living process."""


class AppendLockedError(QuireError):
    """The append lock is held, as by a replication sink: only its holder may write."""


class LeaseExpiredError(AppendLockedError):
    """
    The lease of the source is over: nothing was appended, as another machine may be the source.

    Examples:
        >>> from quire._native import ReplicaStates
        >>> with quire.open("leased") as queue:
        ...     ReplicaStates.open_or_create("leased").set_lease_end(1)  # long ago
        ...     queue.appender().write_text("hello")
        Traceback (most recent call last):
        quire.errors.LeaseExpiredError: ...

    """


class DocumentOpenError(QuireError):
    """
    The calling thread has a document open that an append would wait for: close it first.

    Examples:
        >>> with appender.writing_document() as document:
        ...     appender.write_text("hello")
        Traceback (most recent call last):
        quire.errors.DocumentOpenError: ...

    """


class WaitTimeoutError(QuireError, TimeoutError):
    """
    Nothing arrived within the time given; or replicas did not acknowledge a message in time.

    The message stays in the queue: if you append it once more, it is there twice.

    Attributes:
        index: The index of the message; None if no append waited.
        acknowledged: What each member of the in-sync set has acknowledged, by its name: an index,
            or None.

    Examples:
        >>> tailer.wait(timeout_s=0.001)
        Traceback (most recent call last):
        quire.errors.WaitTimeoutError: ...

    """

    index: int | None = None
    acknowledged: Mapping[str, int | None] = MappingProxyType({})


class LockHeldError(QuireError):
    """
    Another process holds a lock file.

    Attributes:
        path: The lock file; None if it is not known.
        holder: The process id of its holder, or ``unknown``.

    """

    def __init__(self, message: str, path: Path | None = None, holder: str = "unknown") -> None:
        super().__init__(message, path, holder)
        self.path = path
        self.holder = holder

    def __str__(self) -> str:
        return str(self.args[0])

    @classmethod
    def of(cls, path: Path, holder: str = "unknown") -> LockHeldError:
        """Return the error for a lock file, and the process that holds it."""
        return cls(f"the lock is held: lock={path} pid={holder}", path, holder)


class ClockAheadError(QuireError):
    """
    The clock is further ahead of the newest cycle than ``max_clock_ahead_s``; nothing was appended.

    Examples:
        >>> clock = quire.ManualClock(1_705_314_600_000)
        >>> week = quire.WaitOptions(max_clock_ahead_s=7 * 86400)
        >>> with quire.open("late", clock=clock, wait=week) as queue:
        ...     appender = queue.appender()
        ...     index = appender.write_text("hello")
        ...     ms = clock.advance(14 * 365 * 86_400_000)
        ...     appender.write_text("in 2038")
        Traceback (most recent call last):
        quire.errors.ClockAheadError: ...

    """


class RingFullError(QuireError):
    """
    There was no room in the ring of asynchronous appends; the message was not put in.

    Raised at once with ``on_full="raise"``, otherwise after waiting as long as for the write lock.
    With ``on_full="grow"`` it means that the ring cannot grow: it has reached 1 GiB, or the disk is
    full.

    Attributes:
        accepted: How many messages of a ``write_many`` or ``write_batch`` were put in before: they
            will be appended. Repeat only the others, from this number on.

    """

    accepted: int = 0
