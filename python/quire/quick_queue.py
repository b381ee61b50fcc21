"""
Quick-Queues: an index of fixed-size entries over raw messages, from ``quire.open``.

A message is whatever bytes it is given, or fields packed one after the other. Its index is its
place in the index: a multiple of 16 that only grows.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self

from quire import _arguments as arguments
from quire import _formats, _native
from quire._arrow import payload_column
from quire._following import Following
from quire._native import QuickExcerpt
from quire.errors import UnsupportedError

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_COUNT = 65_536
_BATCH_BYTES = 256 * 2**20

_NO_WIRE = "messages are raw bytes, not BinaryWire: write_bytes, new_message"
_NO_ROLLING = "there are no cycles: index pages follow one another"
_NO_TABLE = "nothing is stored about readers: keep tailer.index and open queue.tailer(start=...)"
_REASONS = _formats.reasons(
    {
        "write_map write_message write_yaml write_json awrite_map awrite_message awrite_yaml "
        "awrite_json method_writer topic topics writing_document read_map read_message "
        "read_messages follow_messages follow_messages_async read_batches method_reader "
        "reading_document history after_last_written": _NO_WIRE,
        "roll_cycle epoch_ms cycles current_cycle current_file file_for_cycle end_of_cycle "
        "move_to_time normalise_eofs count_excerpts block_bytes": _NO_ROLLING,
        "table_value table_entries named_tailers lock_holder commit name "
        "last_read_index": _NO_TABLE,
        "dump wire_type source_id": _NO_WIRE,
        "direction state": "messages are read forward: move_to_index goes anywhere",
    }
)


class QuickAppender(_native.QuickAppender):
    """
    Writes messages at the end of a Quick-Queue, from :meth:`QuickQueue.appender`.

    Examples:
        >>> with quire.open("book", format="quick-queue") as book, book.appender("AA0") as appender:
        ...     index = appender.write_bytes(b"an order")
        ...     appender.producer, appender.closed, appender.path == book.path
        ('AA0', False, True)
        >>> appender.close()
        >>> appender.closed
        True

    """

    def write_batch(self, batch: Any) -> int | None:  # noqa: ANN401 - of pyarrow
        """
        Append a message for each element of a binary or string column; the last index.

        No Python object is made per message. Strings are written as UTF-8.

            appender.write_batch(pa.array([b"one", b"two"]))

        Args:
            batch: A binary or string array of pyarrow, 32 or 64 bits wide, chunked or not; or a
                batch or table with one such column, or one called ``payload``.

        Raises:
            TypeError: The column holds something else.
            ValueError: It holds nulls or empty elements; nothing was written.
            UnsupportedError: There are several columns, and none is called ``payload``.

        """
        column = payload_column(batch, _NO_WIRE)
        chunks: list[Any] = getattr(column, "chunks", None) or [column]
        last: int | None = None
        for chunk in filter(len, chunks):
            _, offsets, data = chunk.buffers()
            last = self._write_column(
                offsets or b"",
                data or b"",
                count=len(chunk),
                start=chunk.offset,
                wide=str(chunk.type).startswith("large_"),
            )
        return last

    def __getattr__(self, name: str) -> NoReturn:
        """Say why a method of the journal's appender is missing."""
        _formats.unsupported(self, name, "Quick-Queue", _REASONS)


class QuickTailer(Following[QuickExcerpt], _native.QuickTailer):
    """
    Reads messages of a Quick-Queue, from :meth:`QuickQueue.tailer`.

    Examples:
        >>> with quire.open("book", format="quick-queue") as book, book.tailer() as tailer:
        ...     _ = book.appender().write_bytes(b"an order")
        ...     tailer.read_bytes()
        ...     tailer.closed, tailer.path == book.path
        b'an order'
        (False, True)
        >>> tailer.close()
        >>> tailer.closed
        True

    """

    def read_batch(
        self, count: int = _BATCH_COUNT, *, max_bytes: int = _BATCH_BYTES
    ) -> pa.RecordBatch:
        """
        Return at most *count* messages as the columns ``index`` (uint64) and ``payload`` (binary).

        No Python object is made per message. The batch is empty when nothing is there yet.

            tailer.read_batch(1_000).column("payload")

        Args:
            count: Rows, at most.
            max_bytes: End the batch before its messages have more bytes than this in all.

        """
        return self._payload_batch(count, max_bytes)

    def __getattr__(self, name: str) -> NoReturn:
        """Say why a method of the journal's tailer is missing."""
        _formats.unsupported(self, name, "Quick-Queue", _REASONS)


class QuickQueue(_native.QuickQueue):
    """
    An open Quick-Queue, from ``quire.open(path, format="quick-queue")``.

    One process writes it through :meth:`appender`, or named producers share it, each with an
    appender of its own. Readers need no lock. It pickles by path and options.

    Examples:
        >>> with quire.open("book", format="quick-queue") as book:
        ...     offset = book.appender().new_message().pack_int(1).pack_string("A").write_message()
        ...     for excerpt in book.tailer():
        ...         message = excerpt.unpack()
        ...         print(excerpt.index, message.unpack_int(), message.unpack_string())
        ...     book.entry_count, book.read_only, book.closed
        ...     book.path
        0 1 A
        (1, False, False)
        '.../book'
        >>> book.close()
        >>> book.closed
        True

    """

    _options: dict[str, Any]

    @classmethod
    def _reopen(cls, path: str | PathLike[str], options: dict[str, Any]) -> Self:
        """Open with options as they were kept by another one, as when unpickled."""
        queue = cls(path, **options)
        queue._options = options
        return queue

    def appender(self, producer: str | None = None) -> QuickAppender:
        """
        Return the queue's one writer, or the producer of a name.

            with queue.appender("AA0") as appender:
                appender.write_bytes(b"an order")

        Args:
            producer: Three ASCII letters or digits. Producers write at once without a lock, from
                any number of processes; each name belongs to one appender at a time.

        Raises:
            ReadOnlyError: The queue was opened read-only.
            WriterInUseError: The queue has a writer, or the producer is in use.
            UnsupportedError: The queue is written by the other kind of appender.
            ValueError: No such name is possible.

        """
        return QuickAppender(self, arguments.optional(arguments.text)("producer", producer))

    def tailer(
        self,
        name: str | None = None,
        *,
        start: int | None = None,
        on_dead: Literal["skip", "raise"] = "skip",
    ) -> QuickTailer:
        """
        Return a new tailer, at the first message.

            tailer = queue.tailer(start=offset)

        Args:
            name: Not supported: a Quick-Queue stores nothing about its readers.
            start: The index of the first message to read.
            on_dead: What happens at the entry of a producer that died while it wrote, if the
                message cannot be recovered: ``skip`` it with a line in the log ``quire``, or
                ``raise`` once and go on behind it.

        Raises:
            ValueError: *start* is not a multiple of 16.
            UnsupportedError: A name was given.

        """
        if name is not None:
            raise UnsupportedError(f"not supported in a Quick-Queue: named tailers ({_NO_TABLE})")
        return QuickTailer(self, start=start, on_dead=arguments.text("on_dead", on_dead))

    @property
    def entry_count(self) -> int:
        """The number of index entries, also of those that were passed over."""
        return self.end_index // 16

    def __reduce__(self) -> tuple[Callable[..., QuickQueue], tuple[str, dict[str, Any]]]:
        """Pickle by path and options."""
        return QuickQueue._reopen, (self.path, self._options)

    def __getattr__(self, name: str) -> NoReturn:
        """Say why an attribute of the journal's queue is missing."""
        _formats.unsupported(self, name, "Quick-Queue", _REASONS)
