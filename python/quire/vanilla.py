"""
Vanilla Chronicles: the directories of Java Chronicle 3, from ``quire.open``.

Any number of writers append at once without a lock, each to data files of its own; they share an
index. Messages are raw bytes or fields, may be changed in place and claimed by one consumer.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

from quire import _arguments as arguments
from quire import _formats, _native
from quire._arrow import payload_column
from quire._following import Following
from quire._native import VanillaExcerpt

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_COUNT = 65_536
_BATCH_BYTES = 256 * 2**20

_NO_WIRE = "messages are raw bytes, not BinaryWire: write_bytes, writing_excerpt"
_NO_TABLE = "a Vanilla Chronicle has no table: only named tailers store anything"
_REASONS = _formats.reasons(
    {
        "write_map write_message write_yaml write_json awrite_map awrite_message awrite_yaml "
        "awrite_json method_writer topic topics writing_document read_map read_message "
        "read_messages follow_messages follow_messages_async read_batches method_reader "
        "reading_document history after_last_written dump wire_type source_id": _NO_WIRE,
        "table_value table_entries named_tailers lock_holder": _NO_TABLE,
        "awrite_bytes awrite_text awrite_many awrite_batch": "an append waits for nobody",
        "normalise_eofs end_of_cycle": "cycles have no end-of-file marker",
        "current_file file_for_cycle": "a cycle is a directory: directory_for_cycle",
        "roll_cycle epoch_ms block_bytes": "see cycle_format and cycle_length_ms",
        "direction state": "messages are read forward: move_to_index goes anywhere",
        "move_to_time": "move_to_index goes to the first message of a cycle",
        "count_excerpts spin refresh release_resources": "it is not there yet for this format",
    }
)


class RebuiltCycle(NamedTuple):
    """
    What :func:`rebuild_index` did to a cycle.

        changed = [it for it in quire.vanilla.rebuild_index(path) if it.recovered or it.dropped]

    Attributes:
        cycle: The number of the cycle.
        directory: Its directory.
        messages: How many messages it has now.
        recovered: Those that the index did not name.
        dropped: Entries that named no message.
        moved: Whether messages have another index than before.

    """

    cycle: int
    directory: str
    messages: int
    recovered: int
    dropped: int
    moved: bool


def rebuild_index(path: str | PathLike[str], **options: Any) -> list[RebuiltCycle]:  # noqa: ANN401
    """
    Make lost or damaged index files of a Vanilla Chronicle again from its data files.

    Entries that name a message keep their places. Messages that no entry names fill the free ones,
    thread by thread: the order between threads is not in the data files. The old index files
    stay as ``.before-rebuild-index-{n}``. Nobody may write to the queue meanwhile; appenders of
    Quire are noticed.

        for cycle in quire.vanilla.rebuild_index("trades"):
            print(cycle.directory, cycle.recovered)

    Args:
        path: The queue's directory.
        options: Those of :class:`quire.VanillaQueue`, as block sizes that files do not show.

    Raises:
        WriterInUseError: An appender writes to a cycle.

    """
    with VanillaQueue(path, create=False, **options) as queue:
        return [
            RebuiltCycle(
                cycle, queue.directory_for_cycle(cycle), messages, recovered, dropped, moved
            )
            for cycle, messages, recovered, dropped, moved in queue._rebuild_index()  # noqa: SLF001
        ]


class VanillaAppender(_native.VanillaAppender):
    """
    Writes messages at the end of a Vanilla Chronicle, from :meth:`VanillaQueue.appender`.

    It owns its data files; others write at the same time without waiting.

    Examples:
        >>> with quire.open("book", format="vanilla") as book, book.appender() as appender:
        ...     index = appender.write_text("hello")

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
            ValueError: It holds nulls; nothing was written.
            UnsupportedError: There are several columns, and none is called ``payload``.

        """
        column = payload_column(batch, _NO_WIRE)
        last: int | None = None
        for chunk in filter(len, getattr(column, "chunks", None) or [column]):
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
        _formats.unsupported(self, name, "Vanilla Chronicle", _REASONS)


class VanillaTailer(Following[VanillaExcerpt], _native.VanillaTailer):
    """
    Reads messages of a Vanilla Chronicle, from :meth:`VanillaQueue.tailer`.

    A message of a slow writer that lands in a cycle that was left is delivered when it comes, for
    the queue's ``linger_s``: then indexes go back. A named tailer resumes where it stopped and
    delivers at least once.

    Examples:
        >>> with quire.open("book", format="vanilla") as book, book.tailer() as tailer:
        ...     _ = book.appender().write_text("hello")
        ...     tailer.read_text()
        'hello'

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
        _formats.unsupported(self, name, "Vanilla Chronicle", _REASONS)


class VanillaQueue(_native.VanillaQueue):
    """
    An open Vanilla Chronicle, from ``quire.open(path, format="vanilla")``.

    It pickles by path and options.

        with quire.open("trades", format="vanilla") as queue:
            with queue.appender() as appender, appender.writing_excerpt() as excerpt:
                excerpt.write_int32(7)
                excerpt.write_utf("EURUSD")
            for excerpt in queue.tailer():
                print(excerpt.index, excerpt.read_int32(), excerpt.read_utf())
    """

    _options: dict[str, Any]

    @classmethod
    def _reopen(cls, path: str | PathLike[str], options: dict[str, Any]) -> Self:
        """Open with options as they were kept by another one, as when unpickled."""
        queue = cls(path, **options)
        queue._options = options
        return queue

    def appender(self, *, thread_id: int | None = None) -> VanillaAppender:
        """
        Return a new appender, with data files of its own.

            with queue.appender() as appender:
                appender.write_bytes(b"an order")

        Args:
            thread_id: The number in the names of its data files, where Java puts the id of the
                thread. None: the greatest there is, which hardly a Java thread has.

        Raises:
            ReadOnlyError: The queue was opened read-only.
            ValueError: The number needs more bits than the index has for it.

        """
        return VanillaAppender(self, thread_id)

    def tailer(self, name: str | None = None) -> VanillaTailer:
        """
        Return a new tailer, at the first message.

            tailer = queue.tailer("risk")

        Args:
            name: Keep the position in the queue's directory under this name, and resume there.
                Only one tailer at a time may use a name. Java passes over these files.

        Raises:
            ReadOnlyError: A name was given and the queue was opened read-only.
            TailerInUseError: Another tailer uses the name.

        """
        return VanillaTailer(self, arguments.optional(arguments.text)("name", name))

    def __reduce__(self) -> tuple[Callable[..., VanillaQueue], tuple[str, dict[str, Any]]]:
        """Pickle by path and options."""
        return VanillaQueue._reopen, (self.path, self._options)

    def __getattr__(self, name: str) -> NoReturn:
        """Say why an attribute of the journal's queue is missing."""
        _formats.unsupported(self, name, "Vanilla Chronicle", _REASONS)
