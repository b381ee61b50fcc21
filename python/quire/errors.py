"""
Every exception Quire raises on purpose.

QuireError
├── ClosedError              the handle was closed
├── ReadOnlyError            the queue was opened read-only
├── NotAQueueError           the path holds no Chronicle Queue 5 files
│   └── TableLostError       metadata.cq4t was removed or replaced while the queue was open
├── RollCycleMismatchError   the caller named another roll cycle than the one the queue's data has
├── UnsupportedError         the files, the option or the file system are known and not supported
├── CorruptError             bytes break a rule of docs/format.md (file, position, found, expected)
├── MessageTooLargeError     also a ValueError
├── IndexOutOfRangeError     also a LookupError
├── IndexNotAvailableError   a buffered document has no index yet
├── CycleFullError           the roll cycle cannot number another message
├── WriteAfterEofError       the cycle was closed by an end-of-file marker
├── LockLostError            the write lock was taken away; nothing was published
├── UnsafePathError          a link, or another user's file, where one of Quire's own belongs
├── ArchiveError             an archive is not what the queue holds, or cannot be worked on
├── WireError                bytes that do not decode, or a value that has no encoding
├── DataLossError            messages were deleted before they were read
├── TailerInUseError         another tailer reads with this name (pid, since)
├── WriterInUseError         the queue has a writer, or the producer's name is used, elsewhere
├── ProducerDiedError        a producer died while it wrote a message (producer, index)
├── ConvertError             a conversion's result holds something else, or cannot hold a message
├── ReplayError              the queue to replay into holds something else, or others write it
├── ReplicationError         a peer broke the protocol, or a copy is not what its source holds
│   ├── PeerLostError        the connection to a peer failed or was closed; also a ConnectionError
│   └── PeerSilentError      a peer sent nothing, or took nothing, for too long; a TimeoutError
├── ForkedError              a handle was carried into a forked child
├── LockTimeoutError         also a TimeoutError
├── AppendLockedError        only a replication sink may write to the queue now
├── DocumentOpenError        this thread has a document open and would wait for itself
├── WaitTimeoutError         also a TimeoutError
├── LockHeldError            another process holds a lock file
├── MalformedInputError      text that does not parse; also a ValueError (`quire write`)
├── WhereError               an invalid condition of `quire read --where`; also a ValueError
├── OptionsError             invalid options or schema for Spark; also a ValueError
├── NoJavaError              no Java that Spark can use
├── UnfinishedWriteError     a batch of a sink is partly in the queue and cannot be completed
├── PipelineFileError        an invalid pipeline file; also a ValueError
├── PipelineError            a pipeline run failed
├── StepError                a step cannot be computed as declared; also a ValueError
└── StoppedError             a batch was not started because the run is stopping

Failures of the operating system stay ``OSError``. All of these pickle.
"""

from __future__ import annotations

from datetime import UTC, datetime
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

    Others may be writing under the lock of another table. Close the queue and open it again.

    Examples:
        >>> import os
        >>> os.remove("orders/metadata.cq4t")
        >>> appender.write_text("hello")
        Traceback (most recent call last):
        quire.errors.TableLostError: ...

    """


class RollCycleMismatchError(QuireError):
    """
    The caller named a roll cycle, and the queue already holds data of another one.

    Examples:
        >>> _ = appender.write_text("hello")
        >>> quire.open("orders", roll_cycle="HOURLY")
        Traceback (most recent call last):
        quire.errors.RollCycleMismatchError: ...

    """


class UnsupportedError(QuireError):
    """
    A known thing that Quire does not do, such as another wire type or a network file system.

    Examples:
        >>> quire.open("s3://bucket/orders")
        Traceback (most recent call last):
        quire.errors.UnsupportedError: ...

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
        ... except quire.CorruptError as error:
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
        ...     quire.open("buffered", double_buffer=True) as queue,
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
    """
    The roll cycle cannot number another message; nothing was written.

        except quire.CycleFullError as error:
            print("write again in the next cycle:", error)
    """


class WriteAfterEofError(QuireError):
    """
    The cycle to append to was closed by an end-of-file marker.

        except quire.WriteAfterEofError as error:
            print("write again in the next cycle:", error)
    """


class LockLostError(QuireError):
    """
    The write lock was taken away while this process was stopped; nothing was published.

        except quire.LockLostError as error:
            print("nothing was published, write again:", error)
    """


class UnsafePathError(QuireError):
    """
    A side file of a queue, an archive or a pipeline is not what Quire would have made there.

    A link, a pipe, a path instead of a name, or something that another user owns or can write to:
    nothing was followed, and nothing was changed.

    Examples:
        >>> import quire.archive
        >>> try:
        ...     report = quire.archive.archive("orders", "archive")
        ... except quire.UnsafePathError as error:
        ...     print("remove the link:", error)

    """


class ArchiveError(QuireError):
    """
    An archive is not what the queue holds or held, or it cannot be worked on.

    Examples:
        >>> import quire.archive
        >>> quire.archive.verify("nowhere")
        Traceback (most recent call last):
        quire.errors.ArchiveError: ...

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


class DataLossError(QuireError):
    """
    Messages that were to be read next were deleted.

    Examples:
        >>> with queue.tailer("risk", on_missing="raise") as tailer:
        ...     try:
        ...         message = tailer.read()
        ...     except quire.DataLossError as error:
        ...         print("messages were deleted unread:", error)

    """


class TailerInUseError(QuireError):
    """
    Another tailer reads with this name, in this process or another.

    Attributes:
        pid: Its process; 0 if that is not known.
        since: When it was opened; None if that is not known.

    Examples:
        >>> tailer = queue.tailer("risk")
        >>> try:
        ...     queue.tailer("risk")
        ... except quire.TailerInUseError as error:
        ...     print("in use by process", error.pid, "since", error.since)
        in use by process ... since ...

    """

    def __init__(self, message: str, pid: int = 0, since_s: int = 0) -> None:
        super().__init__(message, pid, since_s)
        self.pid = pid
        self.since = datetime.fromtimestamp(since_s, UTC) if since_s else None


class WriterInUseError(QuireError):
    """
    A writer is at work: the one of a Quick-Queue, a producer of this name, or the holder of a lock.

    Examples:
        >>> with quire.open("book", format="quick-queue") as book, book.appender() as writer:
        ...     book.appender()
        Traceback (most recent call last):
        quire.errors.WriterInUseError: ...

    """


class ProducerDiedError(QuireError):
    """
    A producer of a Quick-Queue died while it wrote a message, which cannot be recovered.

    It is reported once; the next read goes on after it.

    Attributes:
        producer: The producer's name.
        index: The index that the message would have had.

    Examples:
        >>> with quire.open("book", format="quick-queue") as book:
        ...     try:
        ...         message = book.tailer(on_dead="raise").read()
        ...     except quire.ProducerDiedError as error:
        ...         print(error.producer, error.index)

    """

    def __init__(self, message: str, producer: str = "", index: int = 0) -> None:
        super().__init__(message, producer, index)
        self.producer = producer
        self.index = index


class ConvertError(QuireError):
    """
    A conversion cannot begin, go on or be verified: the text says which message or file.

        quire.IndexMap("nowhere")
    """


class ReplayError(QuireError):
    """
    The queue to replay into does not hold the replay's beginning, or somebody else writes it.

    Examples:
        >>> _ = appender.write_text("hello")
        >>> with quire.open("other") as other, other.appender() as writer:
        ...     _ = writer.write_text("something else")
        >>> quire.replay(queue, "other")
        Traceback (most recent call last):
        quire.errors.ReplayError: ...

    """


class ReplicationError(QuireError):
    """
    A peer broke the protocol, or a copy does not hold what its source holds.

        try:
            await sink.run_forever()
        except quire.ReplicationError as error:
            print(error)
    """


class PeerLostError(ReplicationError, ConnectionError):
    """
    The connection to the peer of a replication failed, or the peer closed it.

        except quire.PeerLostError:
            print("whether the message was appended is not known")
    """


class PeerSilentError(ReplicationError, TimeoutError):
    """
    The peer of a replication sent nothing, or took nothing, for too long.

        except quire.PeerSilentError as error:
            print("not a source?", error)
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
    """
    The write lock, or a lock on a file, stayed taken by a living process.

        except quire.LockTimeoutError as error:
            print("another writer is stuck:", error)
    """


class AppendLockedError(QuireError):
    """
    The append lock is held, as by a replication sink: only its holder may write.

        except quire.AppendLockedError as error:
            print("this queue is a replica:", error)
    """


class DocumentOpenError(QuireError):
    """
    The calling thread has a document open, which an append would wait for: close it first.

    Examples:
        >>> with appender.writing_document() as document:
        ...     appender.write_text("hello")
        Traceback (most recent call last):
        quire.errors.DocumentOpenError: ...

    """


class WaitTimeoutError(QuireError, TimeoutError):
    """
    Nothing arrived within the time given.

    Examples:
        >>> tailer.wait(timeout_s=0.001)
        Traceback (most recent call last):
        quire.errors.WaitTimeoutError: ...

    """


class LockHeldError(QuireError):
    """
    Another process holds a lock file.

    Attributes:
        path: The lock file.
        holder: The process id of its holder, or ``unknown``.

    """

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(path, holder)
        self.path = path
        self.holder = holder

    def __str__(self) -> str:
        return f"the lock is held: lock={self.path} pid={self.holder}"


class MalformedInputError(QuireError, ValueError):
    """
    Text that does not parse.

    Attributes:
        line: How many lines precede the error.
        column: Its column.

    """

    def __init__(self, message: str, line: int = 0, column: int = 1) -> None:
        super().__init__(message, line, column)
        self.line = line
        self.column = column


class WhereError(QuireError, ValueError):
    """A condition of ``quire read --where`` is malformed, or does not fit the fields it names."""


class OptionsError(QuireError, ValueError):
    """Invalid options or an invalid schema for Spark; the text lists every problem."""


class NoJavaError(QuireError):
    """
    Spark needs Java 17 or newer and none was found; the text says what was.

        except quire.spark.NoJavaError as error:
            print("install Java 17:", error)
    """


class UnfinishedWriteError(QuireError):
    """
    A batch is partly in the queue and the rest cannot be appended.

    Examples:
        >>> import quire.spark
        >>> try:
        ...     count = quire.spark.finish("orders")
        ... except quire.spark.UnfinishedWriteError as error:
        ...     print(error)

    """


class PipelineFileError(QuireError, ValueError):
    """
    A pipeline file is invalid; the text has one line for each problem.

    Attributes:
        file: The file.
        problems: What is wrong, each with its line number first.

    Examples:
        >>> import quire.pipeline
        >>> from pathlib import Path
        >>> _ = Path("empty.yaml").write_text("pipeline: trades")
        >>> try:
        ...     quire.pipeline.load("empty.yaml")
        ... except quire.pipeline.PipelineFileError as error:
        ...     print(len(error.problems) > 0)
        True

    """

    def __init__(self, file: str, problems: tuple[str, ...]) -> None:
        super().__init__(file, problems)
        self.file = file
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(f"{self.file}:{problem}" for problem in self.problems)


class PipelineError(QuireError):
    """
    A pipeline run failed; the text names pipeline, step, file and line.

        except quire.pipeline.PipelineError as error:
            print(error)
    """


class StepError(QuireError, ValueError):
    """A step of a pipeline cannot be computed as its file asks."""


class StoppedError(QuireError):
    """A batch was not started because the run is stopping."""
