"""
The options of queues, each declared once: in a field of the class that it belongs to.

A field's metadata is its :class:`~quire.opening.declaring.Option`. Checks, ``quire.toml``, the
environment, ``quire stat --config`` and the reference follow from the fields.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self, TypeAlias, cast

from quire._common import arguments
from quire._common.file_listener import FileListener
from quire._common.watching import Watcher
from quire._native import ManualClock, RollCycle
from quire.opening.declaring import (
    EVERY,
    JOURNAL,
    LISTENER,
    QUICK_QUEUE,
    RECORDED,
    RING_MODE,
    SIZE,
    TEXT,
    UNSIGNED,
    VANILLA,
    WRITTEN,
    Option,
    check_clock,
    check_commit,
    check_mode,
    check_roll_cycle,
    check_rules,
    option,
    parse_flag,
    parse_octal,
    parse_seconds,
    parse_whole,
    to_ms,
    to_us,
)
from quire.sealed.key_ring import KeyRing, check_key

BufferMode: TypeAlias = Literal["none", "async", "copy"]
Clock: TypeAlias = ManualClock | Callable[[], int]


class Options:
    """
    Options that belong together.

    Raises:
        TypeError: A keyword is not an option of this class; the text says where it belongs.

    """

    _given: frozenset[str]

    def __new__(cls, *_: object, **given: object) -> Self:
        """Remember what was given: it holds over what is set from outside."""
        refuse_unknown(cls.__name__, given, OF_CLASS[cls])
        made = super().__new__(cls)
        object.__setattr__(made, "_given", frozenset(given))
        return made

    def __post_init__(self) -> None:
        """Check every value that is not the default."""
        for name, declared in OF_CLASS[type(self)].items():
            value = getattr(self, name)
            if value is not declared.default:
                object.__setattr__(self, name, declared.check(name, value))


@dataclass(frozen=True, kw_only=True)
class RollOptions(Options):
    """
    When a queue's cycles start, and listeners for their files: *roll* of :func:`quire.open`.

    The cycle's length and its zone, *roll_cycle* and *time_zone*, are given to ``open`` itself.

    Examples:
        >>> late = quire.RollOptions(roll_time="17:00")
        >>> with quire.open("late", roll=late, time_zone="America/New_York") as late_queue:
        ...     late_queue.roll_time_zone
        'America/New_York'

    Attributes:
        roll_time: Time of day at which a cycle starts, ``HH:MM``. Cycles shorter than a day start
            at this time too, and at multiples of their length from it.
        on_file_acquired: Called with the cycle and the path when the queue opens a roll file, which
            its handles then share. A thread calls, so no handle waits; an exception is logged.
        on_file_released: Called when the last handle has left that file: once for each call of
            *on_file_acquired*, at the latest while the queue is closed, which waits for it. Neither
            is part of a pickled queue.

    """

    roll_time: str | None = field(
        default=None,
        metadata=option(TEXT, JOURNAL, parse=str, **RECORDED),
    )
    on_file_acquired: FileListener | None = field(default=None, metadata=option(LISTENER, JOURNAL))
    on_file_released: FileListener | None = field(default=None, metadata=option(LISTENER, JOURNAL))


@dataclass(frozen=True, kw_only=True)
class LayoutOptions(Options):
    """
    How a queue's files are laid out, and on which disk: *layout* of :func:`quire.open`.

    Examples:
        >>> layout = quire.LayoutOptions(index_count=8, index_spacing=2)
        >>> quire.open("small", layout=layout).close()

    Attributes:
        index_count: Slots of an index array; rounded up to a power of two.
        index_spacing: Every n-th message is indexed; rounded up to a power of two.
        allow_network: Allow writing on a network file system, where only one host may use the
            queue.
        low_space_percent: Warn, through the logger ``quire``, when less than this share of the disk
            is free: at most once a minute; 0: never.
        low_space_bytes: Also warn when fewer bytes than this are free: 200 MiB by default; with a
            percentage of 0 the default is 0, never.

    """

    index_count: int | None = field(
        default=None,
        metadata=option(UNSIGNED, JOURNAL, parse=parse_whole, **RECORDED),
    )
    index_spacing: int | None = field(
        default=None,
        metadata=option(UNSIGNED, JOURNAL, parse=parse_whole, **RECORDED),
    )
    allow_network: bool = field(
        default=False, metadata=option(arguments.flag, WRITTEN, parse=parse_flag)
    )
    low_space_percent: int = field(
        default=5, metadata=option(arguments.whole(0, 255), JOURNAL, parse=parse_whole)
    )
    low_space_bytes: int | None = field(
        default=None, metadata=option(SIZE, JOURNAL, parse=parse_whole)
    )


@dataclass(frozen=True, kw_only=True)
class WaitOptions(Options):
    """
    What a queue's handles wait for, and for how long: *wait* of :func:`quire.open`.

    How long to wait for other processes, *timeout_s*, is given to ``open`` itself.

    Examples:
        >>> patient = quire.WaitOptions(group_commit_s=60, eof_grace_s=None)
        >>> quire.open("synced", durability="batch", wait=patient).close()

    Attributes:
        eof_grace_s: A tailer leaves a file without an end-of-file marker once a later file has data
            and nothing came for this many seconds; a read waits for that. None: it stays there, as
            Java's does.
        group_commit_s: How long messages are collected for one sync: 0.1 with ``batch``; 0 with
            ``each``, as threads that append during a sync share the next one anyway.
        max_clock_ahead_s: If the clock is wrong: refuse an append that would begin a cycle more
            than this after the newest one ended, with a :class:`quire.errors.ClockAheadError`.
            None: no limit.
        double_buffer: Build a document in memory while another writer holds the write lock.

    """

    eof_grace_s: float | None = field(
        default=1.0,
        metadata=option(
            arguments.optional(arguments.seconds),
            JOURNAL,
            parse=parse_seconds,
            native="eof_grace_ms",
            converted=to_ms,
        ),
    )
    group_commit_s: float | None = field(
        default=None,
        metadata=option(
            arguments.optional(check_commit),
            JOURNAL,
            parse=parse_seconds,
            native="group_commit_us",
            converted=to_us,
        ),
    )
    max_clock_ahead_s: float | None = field(
        default=None,
        metadata=option(
            arguments.optional(arguments.seconds),
            JOURNAL,
            parse=parse_seconds,
            native="max_clock_ahead_ms",
            converted=to_ms,
        ),
    )
    double_buffer: bool = field(
        default=False,
        metadata=option(arguments.flag, JOURNAL, parse=parse_flag, harmless=True),
    )


@dataclass(frozen=True, kw_only=True)
class RingOptions(Options):
    """
    The ring of a queue with ``buffer_mode="async"``: *ring* of :func:`quire.open`.

    The open queue's ring, a :class:`quire.Ring`, is ``queue.ring``.

    Examples:
        >>> ring = quire.RingOptions(capacity_bytes=65536, on_full="raise")
        >>> with quire.open("busy", buffer_mode="async", ring=ring) as busy:
        ...     busy.ring.capacity_bytes
        65536

    Attributes:
        capacity_bytes: The size of a new ring, and of its longest message; rounded up to a power of
            two from 64 KiB to 1 GiB. Default 8 MiB.
        on_full: What an append does when the ring is full: ``block`` waits, then raises a
            :class:`quire.errors.RingFullError`; ``raise`` does so at once; ``grow`` doubles the
            ring.
        read_buffer_mode: ``async``: tailers read through the ring: at the end of the queue, they
            append its messages themselves, unless another process is draining. Not implied by
            *buffer_mode*.
        write_buffer_mode: Overrides *buffer_mode* for appends.

    """

    capacity_bytes: int | None = field(
        default=None,
        metadata=option(
            arguments.optional(arguments.whole(1, 2**30)),
            JOURNAL,
            parse=parse_whole,
            setting="buffer_capacity_bytes",
            native="buffer_capacity_bytes",
        ),
    )
    on_full: Literal["block", "raise", "grow"] = field(
        default="block",
        metadata=option(arguments.one_of("block", "raise", "grow"), JOURNAL, parse=str),
    )
    read_buffer_mode: BufferMode | None = field(
        default=None, metadata=option(arguments.optional(check_mode), JOURNAL, **RING_MODE)
    )
    write_buffer_mode: BufferMode | None = field(
        default=None, metadata=option(arguments.optional(check_mode), JOURNAL, **RING_MODE)
    )


@dataclass(frozen=True, kw_only=True)
class OpenOptions(Options):
    """The keywords of :func:`quire.open` itself, which documents them."""

    read_only: bool = field(default=False, metadata=option(arguments.flag, EVERY))
    create: bool = field(default=True, metadata=option(arguments.flag, EVERY))
    roll_cycle: str | RollCycle | None = field(
        default=None,
        metadata=option(
            arguments.optional(check_roll_cycle),
            JOURNAL | VANILLA,
            parse=str,
            **RECORDED,
        ),
    )
    time_zone: str | None = field(
        default=None,
        metadata=option(
            TEXT,
            JOURNAL,
            parse=str,
            native="roll_time_zone",
            **RECORDED,
        ),
    )
    epoch_ms: int | None = field(
        default=None,
        metadata=option(
            arguments.optional(arguments.whole(-(2**63), 2**63 - 1)),
            JOURNAL,
            parse=parse_whole,
            **RECORDED,
        ),
    )
    clock: Clock | None = field(default=None, metadata=option(check_clock, JOURNAL | VANILLA))
    durability: Literal["process", "batch", "each"] = field(
        default="process",
        metadata=option(
            arguments.one_of("process", "batch", "each"), JOURNAL, parse=str, harmless=True
        ),
    )
    metrics: bool | None = field(
        default=None,
        metadata=option(
            arguments.optional(arguments.flag),
            JOURNAL,
            parse=parse_flag,
            converted=bool,
            harmless=True,
        ),
    )
    retention: Watcher | Sequence[Watcher] | None = field(
        default=None, metadata=option(arguments.optional(check_rules), JOURNAL)
    )
    key: bytes | KeyRing | None = field(
        default=None, repr=False, metadata=option(arguments.optional(check_key), JOURNAL)
    )
    allow_plain: bool = field(default=False, metadata=option(arguments.flag, JOURNAL))
    compression: Literal["zstd", "lz4", "snappy", "gzip", "lzw"] | None = field(
        default=None,
        metadata=option(
            arguments.optional(arguments.one_of("zstd", "lz4", "snappy", "gzip", "lzw")),
            JOURNAL,
            parse=str,
            harmless=True,
        ),
    )
    integrity: bool = field(
        default=False, metadata=option(arguments.flag, JOURNAL, parse=parse_flag, harmless=True)
    )
    timeout_s: float = field(
        default=10.0,
        metadata=option(
            arguments.seconds,
            JOURNAL,
            parse=parse_seconds,
            native="timeout_ms",
            converted=to_ms,
            harmless=True,
        ),
    )
    force_unlock: Literal["dead", "never", "always"] = field(
        default="dead",
        metadata=option(arguments.one_of("dead", "never", "always"), JOURNAL, parse=str),
    )
    wire_type: str | None = field(
        default=None,
        metadata=option(TEXT, JOURNAL, parse=str, **RECORDED),
    )
    source_id: int = field(
        default=0,
        metadata=option(
            arguments.whole(-(2**31), 2**31 - 1),
            JOURNAL,
            parse=parse_whole,
            **RECORDED,
        ),
    )
    block_bytes: int | None = field(default=None, metadata=option(SIZE, JOURNAL, parse=parse_whole))
    pretouch: bool = field(
        default=True, metadata=option(arguments.flag, JOURNAL, parse=parse_flag, harmless=True)
    )
    time_index: bool = field(
        default=False, metadata=option(arguments.flag, JOURNAL, parse=parse_flag, harmless=True)
    )
    read_after_replica_acknowledged: bool = field(
        default=False, metadata=option(arguments.flag, JOURNAL, parse=parse_flag, harmless=True)
    )
    file_mode: int = field(
        default=0o600, metadata=option(arguments.whole(0, 0o7777), WRITTEN, parse=parse_octal)
    )
    buffer_mode: BufferMode | None = field(
        default=None, metadata=option(arguments.optional(check_mode), JOURNAL, **RING_MODE)
    )


@dataclass(frozen=True, kw_only=True)
class CycleOptions(Options):
    """
    The cycles of a new Vanilla Chronicle: *cycles* of :func:`quire.vanilla.open`.

    An existing queue shows them by its directories.

    Examples:
        >>> halves = quire.vanilla.CycleOptions(
        ...     cycle_format="yyyyMMdd-HH", cycle_length_ms=43_200_000
        ... )
        >>> with quire.vanilla.open("book", cycles=halves) as book:
        ...     book.cycle_length_ms
        43200000

    Attributes:
        cycle_format: The pattern of the cycles' directories, such as ``yyyy/MM/dd``.
        cycle_length_ms: The length of a cycle, if *roll_cycle* of ``open`` does not give it.
        cycle_time_zone: The zone of the dates in names; ``GMT`` by default.
        entries_per_cycle: The most messages that a cycle can number, a power of two.

    """

    cycle_format: str | None = field(
        default=None,
        metadata=option(TEXT, VANILLA, parse=str, **RECORDED),
    )
    cycle_length_ms: int | None = field(
        default=None,
        metadata=option(
            arguments.optional(arguments.whole(1, 2**31 - 1)),
            VANILLA,
            parse=parse_whole,
            **RECORDED,
        ),
    )
    cycle_time_zone: str | None = field(
        default=None,
        metadata=option(TEXT, VANILLA, parse=str, **RECORDED),
    )
    entries_per_cycle: int | None = field(
        default=None, metadata=option(SIZE, VANILLA, parse=parse_whole, at_creation=True)
    )


@dataclass(frozen=True, kw_only=True)
class FileOptions(Options):
    """
    The files of a new Vanilla Chronicle: *files* of :func:`quire.vanilla.open`.

    They are detected where there are messages, and Java's defaults otherwise.

    Examples:
        >>> files = quire.vanilla.FileOptions(index_block_bytes=4096, data_block_bytes=65536)
        >>> quire.vanilla.open("book", files=files).close()

    Attributes:
        tid_bits: Bits of the thread id in an index entry, 15 to 24.
        index_block_bytes: How long an index file is, a power of two.
        data_block_bytes: How long a data file is, a power of two.

    """

    tid_bits: int | None = field(
        default=None,
        metadata=option(UNSIGNED, VANILLA, parse=parse_whole, **RECORDED),
    )
    index_block_bytes: int | None = field(
        default=None, metadata=option(SIZE, VANILLA, parse=parse_whole, at_creation=True)
    )
    data_block_bytes: int | None = field(
        default=None, metadata=option(SIZE, VANILLA, parse=parse_whole, at_creation=True)
    )


@dataclass(frozen=True, kw_only=True)
class VanillaOptions(Options):
    """The keywords of :func:`quire.vanilla.open` that no other format has; it documents them."""

    synchronous: bool = field(
        default=False, metadata=option(arguments.flag, VANILLA, parse=parse_flag, harmless=True)
    )
    consumption: Literal["topic", "queue"] = field(
        default="topic",
        metadata=option(arguments.one_of("topic", "queue"), VANILLA, parse=str, harmless=True),
    )
    linger_s: float = field(
        default=10.0,
        metadata=option(
            arguments.seconds, VANILLA, parse=parse_seconds, native="linger_ms", converted=to_ms
        ),
    )


@dataclass(frozen=True, kw_only=True)
class QuickQueueOptions(Options):
    """The keyword of :func:`quire.quick_queue.open` that no other format has."""

    page_bytes: int | None = field(
        default=None, metadata=option(SIZE, QUICK_QUEUE, parse=parse_whole, at_creation=True)
    )


@dataclass(frozen=True, kw_only=True)
class PretoucherOptions(Options):
    """The keywords of ``queue.pretoucher()``, which documents them."""

    early_acquire_next_cycle: bool = field(
        default=False, metadata=option(arguments.flag, JOURNAL, parse=parse_flag, opens=False)
    )
    preroll_time_s: float = field(
        default=2.0,
        metadata=option(
            arguments.seconds, JOURNAL, parse=parse_seconds, harmless=True, opens=False
        ),
    )
    dont_write: bool = field(
        default=False,
        metadata=option(arguments.flag, JOURNAL, parse=parse_flag, harmless=True, opens=False),
    )


def _declared(owner: type[Options], place: str) -> dict[str, Option]:
    """Return the options of a class by the names of their fields; *place* is of each of them."""
    found: dict[str, Option] = {}
    for it in dataclasses.fields(cast("Any", owner)):
        declared = cast("Option", it.metadata["option"])
        found[it.name] = declared._replace(
            setting=declared.setting or it.name,
            native=declared.native or it.name,
            name=it.name,
            default=it.default,
            place=place.format(f"{it.name}=..."),
        )
    return found


def _parts(place: str, parts: Parts) -> dict[type[Options], dict[str, Option]]:
    """Return the options of classes that a call takes whole; *place* is the call."""
    return {
        part: _declared(part, place.format(keyword, part.__name__))
        for keyword, part in parts.items()
    }


Parts: TypeAlias = Mapping[str, type[Options]]
"""Classes of options that a call takes whole, by its keywords for them."""

PARTS: Final[Parts] = {
    "roll": RollOptions,
    "layout": LayoutOptions,
    "wait": WaitOptions,
    "ring": RingOptions,
}
"""Those of :func:`quire.open`."""
VANILLA_PARTS: Final[Parts] = {"cycles": CycleOptions, "files": FileOptions}
"""Those of :func:`quire.vanilla.open`."""
OF_CLASS: Final[Mapping[type[Options], Mapping[str, Option]]] = {
    **_parts("quire.open({}=quire.{}({{}}))", PARTS),
    **_parts("quire.vanilla.open({}=quire.vanilla.{}({{}}))", VANILLA_PARTS),
    OpenOptions: _declared(OpenOptions, "quire.open({})"),
    VanillaOptions: _declared(VanillaOptions, "quire.vanilla.open({})"),
    QuickQueueOptions: _declared(QuickQueueOptions, "quire.quick_queue.open({})"),
    PretoucherOptions: _declared(PretoucherOptions, "queue.pretoucher({})"),
}
OPTIONS: Final[Mapping[str, Option]] = {
    it.setting: it for options in OF_CLASS.values() for it in options.values()
}
"""Every option by its name in settings: that of its field, unless that is too short alone."""
MODES: Final = frozenset({"buffer_mode", "read_buffer_mode", "write_buffer_mode"})
"""The settings any of which, if it is ``async``, has a queue use a ring."""
OF_RINGS: Final = ("buffer_capacity_bytes", "on_full")
"""The settings of a ring, which have no effect without one."""


def place_of(part: type[Options]) -> str:
    """Return the public name of a class of options."""
    room = "quire.vanilla" if part in VANILLA_PARTS.values() else "quire"
    return f"{room}.{part.__name__}"


def refuse_unknown(call: str, given: Mapping[str, object], known: Mapping[str, object]) -> None:
    """
    Refuse keywords that a call does not have, and say where they belong.

    Raises:
        TypeError: The call does not have a keyword.

    """
    for name in given.keys() - known.keys():
        said = f"{call}() got an unexpected keyword argument '{name}'"
        for it in OPTIONS.values():
            if name in {it.name, it.setting, it.native}:
                raise TypeError(f"{said}: it belongs to {it.place}")
        raise TypeError(said)


def given_of(options: Options) -> dict[str, object]:
    """Return the options that were given, by their names in settings."""
    known = OF_CLASS[type(options)]
    given = cast("frozenset[str]", vars(options)["_given"])
    return {known[name].setting: getattr(options, name) for name in given}
