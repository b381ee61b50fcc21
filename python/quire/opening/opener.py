"""``quire.open``: one front door for the queues of every format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias, cast, overload

from quire._common import arguments
from quire._common.file_listener import FileListener
from quire._common.watching import Watcher
from quire._native import ManualClock, RollCycle
from quire.errors import UnsupportedError
from quire.formats import detection
from quire.formats.detection import Format
from quire.formats.indexed_handles import IndexedQueue
from quire.formats.journal.queue import JournalQueue
from quire.formats.missing import article
from quire.formats.quick_handles import QuickQueue
from quire.opening import options as _options
from quire.opening import settings as _settings
from quire.vanilla import VanillaQueue

BufferMode: TypeAlias = Literal["none", "async", "copy"]


@overload
def open(  # noqa: A001 - as below
    path: str | PathLike[str],
    *,
    format: Literal["quick-queue"],
    read_only: bool = False,
    create: bool = True,
    page_bytes: int | None = None,
    file_mode: int = 0o600,
    allow_network: bool = False,
) -> QuickQueue: ...
@overload
def open(  # noqa: A001
    path: str | PathLike[str],
    *,
    format: Literal["vanilla"],
    roll_cycle: str | None = None,
    read_only: bool = False,
    create: bool = True,
    clock: ManualClock | Callable[[], int] | None = None,
    cycle_format: str | None = None,
    cycle_length_ms: int | None = None,
    cycle_time_zone: str | None = None,
    entries_per_cycle: int | None = None,
    tid_bits: int | None = None,
    index_block_bytes: int | None = None,
    data_block_bytes: int | None = None,
    synchronous: bool = False,
    consumption: Literal["topic", "queue"] = "topic",
    linger_s: float = 10.0,
    file_mode: int = 0o600,
    allow_network: bool = False,
) -> VanillaQueue: ...
@overload
def open(  # noqa: A001
    path: str | PathLike[str],
    *,
    format: Literal["indexed"],
    read_only: bool = False,
    create: bool = True,
) -> IndexedQueue: ...
@overload
def open(  # noqa: A001
    path: str | PathLike[str],
    *,
    format: Literal["chronicle"] | None = None,
    roll_cycle: str | RollCycle | None = None,
    read_only: bool = False,
    create: bool = True,
    clock: ManualClock | Callable[[], int] | None = None,
    block_bytes: int | None = None,
    timeout_s: float = 10.0,
    force_unlock: Literal["dead", "never", "always"] = "dead",
    double_buffer: bool = False,
    eof_grace_s: float | None = 1.0,
    epoch_ms: int | None = None,
    roll_time: str | None = None,
    time_zone: str | None = None,
    roll_time_zone: str | None = None,
    index_count: int | None = None,
    index_spacing: int | None = None,
    wire_type: str | None = None,
    source_id: int = 0,
    file_mode: int = 0o600,
    allow_network: bool = False,
    pretouch: bool = True,
    low_space_percent: int = 5,
    retention: Watcher | Sequence[Watcher] | None = None,
    on_file_acquired: FileListener | None = None,
    on_file_released: FileListener | None = None,
    durability: Literal["process", "batch", "each"] = "process",
    group_commit_s: float | None = None,
    metrics: bool | None = None,
    time_index: bool = False,
    max_clock_ahead_s: float | None = None,
    buffer_mode: BufferMode | None = None,
    read_buffer_mode: BufferMode | None = None,
    write_buffer_mode: BufferMode | None = None,
    buffer_capacity_bytes: int | None = None,
    on_full: Literal["block", "raise", "grow"] = "block",
) -> JournalQueue: ...
@_settings.configured
def open(  # noqa: A001, PLR0913 - called as quire.open, by keywords
    path: str | PathLike[str],
    *,
    format: Format | None = None,  # noqa: A002 - its name as a keyword
    roll_cycle: str | RollCycle | None = None,
    read_only: bool = False,
    create: bool = True,
    clock: ManualClock | Callable[[], int] | None = None,
    block_bytes: int | None = None,
    timeout_s: float = 10.0,
    force_unlock: Literal["dead", "never", "always"] = "dead",
    double_buffer: bool = False,
    eof_grace_s: float | None = 1.0,
    epoch_ms: int | None = None,
    roll_time: str | None = None,
    time_zone: str | None = None,
    roll_time_zone: str | None = None,
    index_count: int | None = None,
    index_spacing: int | None = None,
    wire_type: str | None = None,
    source_id: int = 0,
    file_mode: int = 0o600,
    allow_network: bool = False,
    pretouch: bool = True,
    low_space_percent: int = 5,
    retention: Watcher | Sequence[Watcher] | None = None,
    on_file_acquired: FileListener | None = None,
    on_file_released: FileListener | None = None,
    durability: Literal["process", "batch", "each"] = "process",
    group_commit_s: float | None = None,
    metrics: bool | None = None,
    time_index: bool = False,
    max_clock_ahead_s: float | None = None,
    buffer_mode: BufferMode | None = None,
    read_buffer_mode: BufferMode | None = None,
    write_buffer_mode: BufferMode | None = None,
    buffer_capacity_bytes: int | None = None,
    on_full: Literal["block", "raise", "grow"] = "block",
    page_bytes: int | None = None,
    cycle_format: str | None = None,
    cycle_length_ms: int | None = None,
    cycle_time_zone: str | None = None,
    entries_per_cycle: int | None = None,
    tid_bits: int | None = None,
    index_block_bytes: int | None = None,
    data_block_bytes: int | None = None,
    synchronous: bool = False,
    consumption: Literal["topic", "queue"] = "topic",
    linger_s: float = 10.0,
) -> JournalQueue | QuickQueue | VanillaQueue | IndexedQueue:
    """
    Open the queue in a directory, or create it there.

    What an existing queue was created with (roll cycle, epoch, wire type, source id) holds over
    what is asked for here, as in Java; only a roll cycle that contradicts recorded data is refused.
    Options that are not given may come from environment variables, such as ``QUIRE_TIMEOUT_S``, and
    from the table ``[open]`` of a ``quire.toml``: see ``docs/operations.md``.

    Args:
        path: The queue's directory; with *read_only* also one ``*.cq4`` or
            ``*.cq4.zst`` file. A relative one is resolved now, so that it stays the same when the
            process changes its directory.
        format: ``chronicle`` for Chronicle Queue 5, the default of a new queue, ``vanilla`` for
            Vanilla Chronicle, or ``quick-queue``. An existing queue has its own; so has an Indexed
            Chronicle, ``indexed``, whose files are *path* with ``.index`` and ``.data`` added.
        roll_cycle: How the queue is cut into files, ``FAST_DAILY`` for a new one. See
            :meth:`RollCycle.all`.
        read_only: Change no byte of the directory; it may lie on read-only media.
        create: Make the directory and the queue when there is none. Without it there has to be a
            table or a roll file.
        clock: Gives the time that chooses the cycle, in epoch milliseconds: a
            :class:`ManualClock`, a callable, or None for the machine's clock. Waits do not use it.
        block_bytes: Files grow by this much (sparse). A message may be as long as a quarter of it;
            keep four messages in a block. Default 64 MiB.
        timeout_s: How long, in seconds, others are waited for. An append waits half as long again
            for the write lock.
        force_unlock: When the write lock may be taken from its holder: once it is ``dead``,
            ``never``, or ``always`` after the timeout.
        double_buffer: Build a document in memory while somebody else holds the write lock.
        eof_grace_s: A tailer leaves a file that lacks its end-of-file marker when a later one has
            data and nothing came for this many seconds, and a read waits for that; None: it stays
            there, as Java's does.
        epoch_ms: Start of cycle 0 in epoch milliseconds; with *roll_time*, of its day.
        roll_time: Time of day at which a cycle starts, ``HH:MM``. Cycles shorter than a day start
            at this time too, and at the others that their length gives.
        time_zone: The zone of *roll_time*, by its IANA name, such as ``America/New_York``; ``UTC``
            by default. Cycles start at the same local times in summer and winter.
        roll_time_zone: Another name of *time_zone*, that of Java.
        index_count: Slots of an index array; rounded up to a power of two.
        index_spacing: Every n-th message is indexed; rounded up to a power of two.
        wire_type: ``BINARY_LIGHT``, or another binary one that Java's queues take.
        source_id: The queue's id in message history.
        file_mode: Permission bits of new files; their directory can be searched by the same people.
        allow_network: Write on a network file system, where only one host may use the queue.
        low_space_percent: Warn, through the logger ``quire``, when less of the disk is free than
            this, or less than 200 MiB: at most once a minute, and 0 for never.
        retention: Rules, of :class:`quire.Retention`, by which old cycles are removed at each roll;
            None: all are kept. Not part of a pickled queue.
        on_file_acquired: Called with the cycle and the path when the queue opens a roll file, which
            its handles then share. A thread calls, so no handle waits; an exception is logged.
        on_file_released: Called when the last handle has left that file: once for each call of
            *on_file_acquired*, at the latest while the queue is closed, which waits for it. Not
            part of a pickled queue, as little as the other.
        durability: What a message survives without a call of ``sync()``: ``process``, the end of
            its process; ``batch``, a power cut too, once a thread has synced it, at the latest when
            the queue is closed; ``each``, a power cut as soon as the append has returned.
        group_commit_s: How long messages are collected for one sync: 0.1 with ``batch``; 0 with
            ``each``, where threads that append meanwhile share the next sync anyway.
        metrics: Count and time what this process appends and reads: see `JournalQueue.metrics`.
            None: if the environment variable ``QUIRE_METRICS`` is 1, or ``quire.toml`` says so.
        time_index: Keep the times of appends in a side file of each cycle, so that
            :meth:`JournalTailer.move_to_time` finds a time within a cycle. Have all writers do so.
        max_clock_ahead_s: Refuse an append that would begin a cycle more than this after the newest
            one ended, with a :class:`quire.errors.ClockAheadError`: the clock is wrong. None: no
            limit.
        buffer_mode: ``async``: appends go to a ring in shared memory and return -1 instead of an
            index; a thread appends them to the queue. See ``docs/asynchronous.md``.
        read_buffer_mode: ``async``: tailers read through the ring: at the end of the queue, they
            append what is in it themselves, unless another process does. Not implied by
            *buffer_mode*.
        write_buffer_mode: Overrides *buffer_mode* for appends.
        buffer_capacity_bytes: How much a new ring holds, and its longest message; rounded up to a
            power of two from 64 KiB to 1 GiB. Default 8 MiB.
        on_full: What an append does when the ring is full: ``block`` waits, then raises a
            :class:`quire.errors.RingFullError`; ``raise`` does so at once; ``grow`` doubles the
            ring.
        page_bytes: How long the files of a new Quick-Queue are: a power of two from 16 bytes to
            1 GiB, the default.
        cycle_format: Vanilla Chronicle: the pattern of the cycles' directories, such as
            ``yyyy/MM/dd``. Java's ``DAYS``, ``HOURS``, ``MINUTES`` and ``SECONDS``, and ``WEEKS``,
            are given as *roll_cycle* instead.
        cycle_length_ms: Vanilla Chronicle: how long a cycle is, if *roll_cycle* does not say it.
        cycle_time_zone: Vanilla Chronicle: the zone of the dates in names; ``GMT`` by default.
        entries_per_cycle: Vanilla Chronicle: where an index is split, a power of two.
        tid_bits: Vanilla Chronicle: bits of the thread id in an index entry, 15 to 24.
        index_block_bytes: Vanilla Chronicle: how long an index file is, a power of two.
        data_block_bytes: Vanilla Chronicle: how long a data file is, a power of two. These three
            are detected where there are messages, and Java's defaults otherwise.
        synchronous: Vanilla Chronicle: an append returns when its message is on the medium.
        consumption: Vanilla Chronicle: ``queue`` has every message begin with a claim word, for
            :meth:`VanillaTailer.claim`.
        linger_s: Vanilla Chronicle: how long a cycle that was left is looked at for messages of
            slow writers.
        pretouch: Have a thread of the kernel make file space present ahead of an appender that
            writes more than 64 bytes a microsecond, where there is a second processor.

    Raises:
        NotAQueueError: *path* holds something other than a queue, or a queue of another format than
            *format*; or nothing, and *create* is False.
        RollCycleMismatchError: *roll_cycle* is not that of the queue, and the queue holds data.
        UnsupportedError: The path is a URL; or the wire type, time zone, file system or an option
            is not supported.
        ReadOnlyError: ``read_buffer_mode="async"`` or *retention* with *read_only*.
        CorruptError: The files break a rule of ``docs/format.md``.
        ValueError: The roll cycle or mode does not exist.
        OSError: The system refused, for example for lack of permission or of disk space.

    Examples:
        >>> with quire.open("orders", roll_cycle="FAST_DAILY") as queue:
        ...     with queue.appender() as appender:
        ...         index = appender.write_text("hello")
        ...     with queue.tailer() as tailer:
        ...         tailer.read_text()
        'hello'
        >>> with quire.open("orders", read_only=True) as queue:
        ...     queue.entry_count
        1

    """
    options: dict[str, Any] = {
        "roll_cycle": roll_cycle,
        "read_only": read_only,
        "create": create,
        "clock": clock,
        "block_bytes": block_bytes,
        "force_unlock": force_unlock,
        "double_buffer": double_buffer,
        "epoch_ms": epoch_ms,
        "roll_time": roll_time,
        "roll_time_zone": _options.one_zone(time_zone, roll_time_zone),
        "index_count": index_count,
        "index_spacing": index_spacing,
        "wire_type": wire_type,
        "source_id": source_id,
        "file_mode": file_mode,
        "allow_network": allow_network,
        "pretouch": pretouch,
        "low_space_percent": low_space_percent,
        "retention": retention,
        "on_file_acquired": on_file_acquired,
        "on_file_released": on_file_released,
        "durability": durability,
        "metrics": metrics,
        "time_index": time_index,
        "buffer_capacity_bytes": buffer_capacity_bytes,
        "on_full": on_full,
        "page_bytes": page_bytes,
        "cycle_format": cycle_format,
        "cycle_length_ms": cycle_length_ms,
        "cycle_time_zone": cycle_time_zone,
        "entries_per_cycle": entries_per_cycle,
        "tid_bits": tid_bits,
        "index_block_bytes": index_block_bytes,
        "data_block_bytes": data_block_bytes,
        "synchronous": synchronous,
        "consumption": consumption,
    }
    options = {name: _options.CHECKS[name](name, given) for name, given in options.items()}
    options["timeout_ms"] = arguments.milliseconds("timeout_s", timeout_s)
    grace = arguments.optional(arguments.milliseconds)
    options["eof_grace_ms"] = grace("eof_grace_s", eof_grace_s)
    options["group_commit_us"] = arguments.optional(_options.microseconds)(
        "group_commit_s", group_commit_s
    )
    options |= _options.buffering(buffer_mode, read_buffer_mode, write_buffer_mode)
    options["max_clock_ahead_ms"] = arguments.optional(arguments.milliseconds)(
        "max_clock_ahead_s", max_clock_ahead_s
    )
    options["linger_ms"] = arguments.milliseconds("linger_s", linger_s)
    path = arguments.path("path", path)
    may_create = bool(options["create"]) and not options["read_only"]
    kind = _options.format_to_open(path, format, may_create=may_create)
    if kind == detection.VANILLA:
        options = _only(options, _options.VANILLA, "Vanilla Chronicle")
        return VanillaQueue._reopen(path, options)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    if kind == detection.QUICK_QUEUE:
        options = _only(options, _options.QUICK_QUEUE, "Quick-Queue")
        return QuickQueue._reopen(path, options)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    if kind == detection.INDEXED:
        options = _only(options, _options.INDEXED, "Indexed Chronicle")
        return IndexedQueue._reopen(path, options)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    del options["buffer_mode"]  # the other two say what it means
    options = _only(options, _options.CHRONICLE, "Chronicle Queue")
    _options.refuse_idle(options)
    options["metrics"] = bool(metrics)
    return JournalQueue._reopen(path, options)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


def _only(options: dict[str, Any], allowed: set[str], name: str) -> dict[str, Any]:
    """Return the options that a format has; an error if another one was given."""
    durations = {"timeout_ms": 10_000, "eof_grace_ms": 1_000, "linger_ms": 10_000}
    defaults_of_open: dict[str, Any] = cast("Any", open).__wrapped__.__kwdefaults__
    defaults = {**defaults_of_open, **durations, "group_commit_us": None}
    defaults["max_clock_ahead_ms"] = None
    for option in sorted(options.keys() - allowed):
        if options[option] != defaults[option]:
            what = option if option in defaults_of_open else f"{option[:-3]}_s"
            raise UnsupportedError(
                f"not an option of {article(name)}: {what}={options[option]!r:.80}"
            )
    return {option: given for option, given in options.items() if option in allowed}
