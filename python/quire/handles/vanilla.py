"""The handles of Vanilla Chronicles."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Literal

from quire import _native
from quire._common import arguments
from quire._native import VanillaExcerpt
from quire.formats.missing import Handle, reasons, refuse_options
from quire.formats.vanilla import VANILLA, WHY_NO_GROUPS
from quire.handles.base import Queue
from quire.handles.raw import RawAppender, RawTailer
from quire.opening.options import VANILLA_PARTS, Clock, CycleOptions, FileOptions, VanillaOptions
from quire.opening.resolving import Opener, keywords

_FORMAT = "Vanilla Chronicle"
_NO_WIRE = "messages are raw bytes, not BinaryWire: write_bytes, writing_excerpt"
_NO_TABLE = "a Vanilla Chronicle has no table: only named tailers store anything"
_NO_WAIT = "appends never wait"
_NO_TAILER_NAMES = "remove its file, .tailer-*, while no tailer uses it"
_REASONS = reasons(
    {
        "write_map write_message write_yaml write_json awrite_map awrite_message awrite_yaml "
        "awrite_json method_writer topic topics writing_document read_map read_message "
        "read_messages follow_messages afollow_messages aread_map aread_message "
        "read_batches method_reader "
        "reading_document history after_last_written dump wire_type source_id": _NO_WIRE,
        "table_value table_entries lock_holder": _NO_TABLE,
        "delete_tailer rename_tailer": _NO_TAILER_NAMES,
        "awrite_bytes awrite_text awrite_many awrite_batch": _NO_WAIT,
        "pretoucher": "an append allocates the space that it needs",
        "write_lock": "writers take no lock",
        "normalise_eofs end_of_cycle": "cycles have no end-of-file marker",
        "current_file file_for_cycle": "a cycle is a directory: directory_for_cycle",
        "roll_cycle epoch_ms block_bytes": "see cycle_format and cycle_length_ms",
        "roll_time_zone": "cycles start in UTC; cycle_time_zone chooses the dates in names",
        "state": "it is Chronicle Queue's: see index and last_read_index",
        "striding": "an index names every message: there is nothing to stride over",
        "move_to": "move_to_index goes to any place",
        "move_to_time": "move_to_index goes to the first message of a cycle",
        "last_acknowledged_index": "quire.vanilla.replication.Source says what its sinks have",
        "replicas acknowledged aacknowledged when_acknowledged in_flight": (
            "quire.vanilla.replication.Source says what its sinks have"
        ),
        "last_index_synced": "open the queue with synchronous=True, or call sync() of the appender",
        "metrics": "counters are kept for Chronicle Queues only",
        "group groups": WHY_NO_GROUPS,
        "ring": "appends go straight to the mapped files: there is no buffer",
        "refresh": "directories are listed again when they change",
        "release_resources": "at most 33 files are open: close the tailer",
    }
)


class VanillaAppender(_native.VanillaAppender, RawAppender):
    """
    Writes messages at the end of a Vanilla Chronicle, from :meth:`VanillaQueue.appender`.

    It owns its data files; others write at the same time without waiting.

    Examples:
        >>> with quire.open("book", format="vanilla") as book, book.appender() as appender:
        ...     index = appender.write_text("hello")

    """

    _format, _missing = _FORMAT, _REASONS


class VanillaTailer(_native.VanillaTailer, RawTailer[VanillaExcerpt]):
    """
    Reads messages of a Vanilla Chronicle, from :meth:`quire.vanilla.VanillaQueue.tailer`.

    If a slow writer appends to a cycle that the tailer has left, the message is still delivered for
    the queue's ``linger_s``: indexes then go back. A named tailer resumes where it stopped and
    delivers at least once.

    Examples:
        >>> with quire.open("book", format="vanilla") as book, book.tailer() as tailer:
        ...     _ = book.appender().write_text("hello")
        ...     tailer.read_text()
        'hello'

    """

    _format, _missing = _FORMAT, _REASONS


class VanillaQueue(_native.VanillaQueue, Queue, Handle):
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
    if not TYPE_CHECKING:  # what every other format has: `_missing` says why it is not here
        group = groups = property()

    def appender(self, *, thread_id: int | None = None, **named: object) -> VanillaAppender:
        """
        Return a new appender, with data files of its own.

        Args:
            thread_id: The number in the names of its data files. None: the system's id of the
                thread that begins a cycle, as in Java; of a program's first thread it is the id of
                the process.
            **named: Options of a journal's appenders. Not supported: limit, wait.

        Raises:
            ReadOnlyError: The queue was opened read-only.
            UnsupportedError: A limit or *wait* was given: appends to this format never wait.
            ValueError: *thread_id* needs more bits than the index has for it.

        """
        refuse_options(self, "appender", named, ("limit", "wait"), _NO_WAIT)
        return VanillaAppender(self, thread_id)

    def tailer(
        self,
        name: str | None = None,
        *,
        on_missing: Literal["raise", "warn", "skip"] = "warn",
        shared: bool = False,
    ) -> VanillaTailer:
        """
        Return a new tailer, at the first message.

        Args:
            name: Keep the position in the queue's directory under this name, and resume there.
                Only one tailer at a time may use a name. Java skips these files.
            on_missing: What happens when the cycle to read next was deleted: ``raise``; ``warn``,
                through the logger ``quire``, and go on with the next cycle; or ``skip`` to it.
            shared: Use the name even while other tailers do. Each stores its own position.

        Raises:
            ReadOnlyError: A name was given and the queue was opened read-only.
            TailerInUseError: Another tailer uses the name.
            DataLossError: The cycle to read next was deleted, with ``on_missing="raise"``.

        """
        return VanillaTailer(
            self,
            arguments.optional(arguments.text)("name", name),
            on_missing=arguments.text("on_missing", on_missing),
            shared=arguments.flag("shared", shared),
        )

    def named_tailers(self) -> list[tuple[str, int]]:
        """
        Return the name of each named tailer with the index that it reads next.

        That is the lowest index it still needs, which may be that of a slow writer's message in an
        earlier cycle; 0 for a tailer that has not read.

        Examples:
            >>> with quire.open("book", format="vanilla") as book:
            ...     _ = book.appender().write_text("hello")
            ...     book.tailer("risk").close()
            ...     book.named_tailers()
            [('risk', 0)]

        """
        return [(name, index or 0) for name, index in self._named_positions()]


@Opener({VANILLA.name: VanillaQueue}, keywords(VANILLA.name, VanillaOptions), VANILLA_PARTS)
def open(  # noqa: A001, PLR0913 - called as quire.vanilla.open, by keywords
    path: str | PathLike[str],
    *,
    read_only: bool = False,
    create: bool = True,
    roll_cycle: str | None = None,
    cycles: CycleOptions | None = None,
    files: FileOptions | None = None,
    clock: Clock | None = None,
    synchronous: bool = False,
    consumption: Literal["topic", "queue"] = "topic",
    linger_s: float = 10.0,
    file_mode: int = 0o600,
    allow_network: bool = False,
) -> VanillaQueue:
    """
    Open the Vanilla Chronicle in a directory, or create it there.

    :func:`quire.open` opens one too, with what all formats share. Options that are not given may
    come from the environment and from ``quire.toml``, as those of :func:`quire.open`.

    Args:
        path: The queue's directory.
        read_only: Change no byte of the directory; it may lie on read-only media.
        create: Create the directory and the queue if they do not exist.
        roll_cycle: How long a cycle is and how its directory is named: Java's ``DAYS``, ``HOURS``,
            ``MINUTES`` and ``SECONDS``, and ``WEEKS``.
        cycles: Lengths and names of cycles that no *roll_cycle* has, as
            :class:`quire.vanilla.CycleOptions`.
        files: The sizes of new files, as :class:`quire.vanilla.FileOptions`.
        clock: Gives the time that chooses the cycle, in epoch milliseconds: a
            :class:`quire.ManualClock`, a callable, or None for the machine's clock.
        synchronous: An append returns when its message is on the medium.
        consumption: ``queue`` has every message begin with a claim word, for
            :meth:`VanillaTailer.claim`.
        linger_s: Seconds to keep polling a cycle that the tailer has left, for messages of slow
            writers.
        file_mode: Permission bits of new files; the same users can search their directory.
        allow_network: Write on a network file system, where only one host may use the queue.

    Raises:
        NotAQueueError: *path* holds files of another format; or nothing, and *create* is False.
        UnsupportedError: The zone, or the file system, is not supported.
        CorruptError: The files break a rule of the format.
        ValueError: The roll cycle does not exist, or a size is not a power of two.
        OSError: The system refused, for example for lack of permission or of disk space.

    Examples:
        >>> with quire.vanilla.open("book", consumption="queue", linger_s=1) as book:
        ...     index = book.appender().write_text("hello")
        ...     book.tailer().claim(7).data
        b'hello'

    """
    raise NotImplementedError  # the decorator opens the queue, with the given keywords
