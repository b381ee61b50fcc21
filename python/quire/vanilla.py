"""
Vanilla Chronicles: the directories of Java Chronicle 3, from ``quire.open``.

Any number of writers append at once without a lock, each to data files of its own; they share an
index. Messages are raw bytes or fields, may be changed in place and claimed by one consumer.
"""

from __future__ import annotations

from os import PathLike
from typing import Any, NamedTuple

from quire import _arguments as arguments
from quire import _formats, _native
from quire._native import VanillaExcerpt
from quire._opening import Reopened
from quire._raw import Handle, RawAppender, RawTailer

_FORMAT = "Vanilla Chronicle"
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


class VanillaAppender(RawAppender, _native.VanillaAppender):
    """
    Writes messages at the end of a Vanilla Chronicle, from :meth:`VanillaQueue.appender`.

    It owns its data files; others write at the same time without waiting.

    Examples:
        >>> with quire.open("book", format="vanilla") as book, book.appender() as appender:
        ...     index = appender.write_text("hello")

    """

    _format, _missing = _FORMAT, _REASONS


class VanillaTailer(RawTailer[VanillaExcerpt], _native.VanillaTailer):
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

    _format, _missing = _FORMAT, _REASONS


class VanillaQueue(_native.VanillaQueue, Reopened, Handle):
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

    _format, _missing = _FORMAT, _REASONS

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
                Only one tailer at a time may use a name. Java skips these files.

        Raises:
            ReadOnlyError: A name was given and the queue was opened read-only.
            TailerInUseError: Another tailer uses the name.

        """
        return VanillaTailer(self, arguments.optional(arguments.text)("name", name))
