"""
Quick-Queues: an index of fixed-size entries over raw messages, from ``quire.open``.

A message is any bytes, or fields packed one after the other. Its index is its place in the queue's
index: a multiple of 16 that only grows.
"""

from __future__ import annotations

from os import PathLike
from typing import Literal

from quire import _native
from quire._common import arguments
from quire._native import QuickExcerpt
from quire.errors import UnsupportedError
from quire.formats.missing import Handle, reasons, refuse_options
from quire.formats.quick_queue import QUICK_QUEUE
from quire.handles.base import Queue
from quire.handles.raw import RawAppender, RawTailer
from quire.opening.options import QuickQueueOptions
from quire.opening.resolving import Opener, keywords

_FORMAT = "Quick-Queue"
_NO_WIRE = "messages are raw bytes, not BinaryWire: write_bytes, new_message"
_NO_ROLLING = "there are no cycles: index pages follow one another"
_NO_TABLE = "nothing is stored about readers: keep tailer.index and open queue.tailer(start=...)"
_NO_WAIT = "appends never wait"
_REASONS = reasons(
    {
        "write_map write_message write_yaml write_json awrite_map awrite_message awrite_yaml "
        "awrite_json method_writer topic topics writing_document read_map read_message "
        "read_messages follow_messages afollow_messages aread_map aread_message "
        "read_batches method_reader "
        "reading_document history after_last_written": _NO_WIRE,
        "roll_cycle epoch_ms cycles current_cycle current_file file_for_cycle end_of_cycle "
        "cycle_at cycle_start_ms roll_time_zone "
        "move_to_time normalise_eofs count_excerpts block_bytes": _NO_ROLLING,
        "table_value table_entries named_tailers delete_tailer rename_tailer "
        "lock_holder commit name last_read_index": _NO_TABLE,
        "dump wire_type source_id": _NO_WIRE,
        "pretoucher": "an append allocates the space that it needs",
        "move_to": "move_to_index goes to any place",
        "direction state striding": "messages are read forward: move_to_index goes anywhere",
        "write_lock": "the lock of its one writer ends with that process",
        "awrite_bytes awrite_text awrite_many awrite_batch": _NO_WAIT,
        "last_index_appended": "write_bytes returns the index",
        "last_acknowledged_index replicas acknowledged aacknowledged when_acknowledged in_flight": (
            "no replica follows a Quick-Queue"
        ),
        "last_index_synced": "force() covers all messages before it",
        "metrics": "counters are kept for Chronicle Queues only",
        "ring": "appends go straight to the mapped files: there is no buffer",
        "sync": "force() writes the queue to the medium",
        "refresh release_resources": "pages are opened as they are needed: close the handle",
    }
)


class QuickAppender(_native.QuickAppender, RawAppender):
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

    _format, _missing = _FORMAT, _REASONS


class QuickTailer(_native.QuickTailer, RawTailer[QuickExcerpt]):
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

    _format, _missing = _FORMAT, _REASONS


class QuickQueue(_native.QuickQueue, Queue, Handle):
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

    _format, _missing = _FORMAT, _REASONS

    def appender(self, producer: str | None = None, **named: object) -> QuickAppender:
        """
        Return the queue's one writer, or the producer of a name.

        Args:
            producer: Three ASCII letters or digits. Producers write at once without a lock, from
                any number of processes; each name belongs to one appender at a time.
            **named: Options of a journal's appenders. Not supported: limit, wait.

        Raises:
            ReadOnlyError: The queue was opened read-only.
            WriterInUseError: The queue has a writer, or the producer is in use.
            UnsupportedError: The queue is written by the other kind of appender, or an option
                was given: appends to this format never wait.
            ValueError: The producer's name is not valid.

        """
        refuse_options(self, "appender", named, ("limit", "wait"), _NO_WAIT)
        return QuickAppender(self, arguments.optional(arguments.text)("producer", producer))

    def tailer(
        self,
        name: str | None = None,
        *,
        start: int | None = None,
        on_dead: Literal["skip", "raise"] = "skip",
        **named: object,
    ) -> QuickTailer:
        """
        Return a new tailer, at the first message.

        Args:
            name: Not supported: a Quick-Queue stores nothing about its readers.
            start: The index of the first message to read.
            on_dead: What happens at the entry of a producer that died while it wrote, if the
                message cannot be recovered: ``skip`` it with a line in the log ``quire``, or
                ``raise`` once and continue after it.
            named: Not supported: ``on_missing`` and ``shared`` are for named tailers.

        Raises:
            ValueError: *start* is not a multiple of 16.
            UnsupportedError: A name, or an option of named tailers, was given: this format has no
                named tailers.

        """
        refuse_options(self, "tailer", named, ("on_missing", "shared"), _NO_TABLE)
        if name is not None:
            raise UnsupportedError(f"not supported in a Quick-Queue: named tailers ({_NO_TABLE})")
        return QuickTailer(self, start=start, on_dead=arguments.text("on_dead", on_dead))

    @property
    def entry_count(self) -> int:
        """The number of index entries, including skipped ones."""
        return self.end_index // 16


@Opener({QUICK_QUEUE.name: QuickQueue}, keywords(QUICK_QUEUE.name, QuickQueueOptions), {})
def open(  # noqa: A001, PLR0913 - called as quire.quick_queue.open
    path: str | PathLike[str],
    *,
    read_only: bool = False,
    create: bool = True,
    page_bytes: int | None = None,
    file_mode: int = 0o600,
    allow_network: bool = False,
) -> QuickQueue:
    """
    Open the Quick-Queue in a directory, or create it there.

    :func:`quire.open` opens one too, with what all formats share. Options that are not given may
    come from the environment and from ``quire.toml``, as those of :func:`quire.open`.

    Args:
        path: The queue's directory.
        read_only: Change no byte of the directory; it may lie on read-only media.
        create: Make the directory and the queue when there is none.
        page_bytes: How long the files of a new queue are: a power of two from 16 bytes to 1 GiB,
            the default.
        file_mode: Permission bits of new files; their directory can be searched by the same people.
        allow_network: Write on a network file system, where only one host may use the queue.

    Raises:
        NotAQueueError: *path* holds files of another format; or nothing, and *create* is False.
        UnsupportedError: The file system is not supported.
        CorruptError: The files break a rule of the format.
        ValueError: The size is no power of two.
        OSError: The system refused, for example for lack of permission or of disk space.

    Examples:
        >>> with quire.quick_queue.open("book", page_bytes=65536) as book:
        ...     book.page_bytes
        65536

    """
    raise NotImplementedError  # the decorator opens the queue, with the given keywords
