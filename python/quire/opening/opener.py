"""``quire.open``: opens queues of every format."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from os import PathLike
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    cast,
    overload,
)

from quire._common import arguments
from quire._common.watching import Watcher
from quire._native import RollCycle
from quire.errors import UnsupportedError
from quire.formats.adapters import adapter_for
from quire.handles.base import Queue
from quire.handles.indexed import IndexedQueue
from quire.handles.journal.queue import JournalQueue
from quire.handles.quick_queue import QuickQueue
from quire.handles.vanilla import VanillaQueue
from quire.opening.options import (
    OF_CLASS,
    OPTIONS,
    PARTS,
    BufferMode,
    Clock,
    LayoutOptions,
    OpenOptions,
    RingOptions,
    RollOptions,
    WaitOptions,
)
from quire.opening.resolving import Opener
from quire.sealed.key_ring import KeyRing, structure_only

if TYPE_CHECKING:
    import ssl

_P = ParamSpec("_P")

QueueOrPath: TypeAlias = Queue | str | PathLike[str]
"""A queue, or its directory."""


class _ByFormat(Protocol[_P]):
    """The class of the queue by *format*; without it, a journal."""

    @overload
    def __call__(  # type: ignore[overload-overlap]  # *format* distinguishes them
        self,
        path: str | PathLike[str],
        *,
        format: Literal["quick-queue"],
        read_only: bool = False,
        create: bool = True,
        file_mode: int = 0o600,
        layout: LayoutOptions | None = None,
    ) -> QuickQueue: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        path: str | PathLike[str],
        *,
        format: Literal["vanilla"],
        read_only: bool = False,
        create: bool = True,
        roll_cycle: str | None = None,
        clock: Clock | None = None,
        file_mode: int = 0o600,
        layout: LayoutOptions | None = None,
    ) -> VanillaQueue: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        path: str | PathLike[str],
        *,
        format: Literal["indexed"],
        read_only: bool = False,
        create: bool = True,
    ) -> IndexedQueue: ...
    @overload
    def __call__(self, *args: _P.args, **given: _P.kwargs) -> JournalQueue: ...


SCHEME: Final = "quire://"
"""The scheme of a remote queue's address."""
_CLASSES: Final = (JournalQueue, VanillaQueue, QuickQueue, IndexedQueue)
_HANDLES: Final[Mapping[str, type[Any]]] = {adapter_for(it).name: it for it in _CLASSES}
_BY_SETTINGS: Final = Opener(_HANDLES, OPTIONS, {})


def _by_format(declared: Callable[_P, JournalQueue]) -> _ByFormat[_P]:
    opener: Any = Opener(_HANDLES, OF_CLASS[OpenOptions], PARTS)(declared)

    @wraps(declared)
    def opened(path: str | PathLike[str], **given: Any) -> Any:  # noqa: ANN401 - by format
        if isinstance(path, str) and path.startswith(SCHEME):
            from quire.remote.queue import open_remote

            return open_remote(path, given)
        for name in ("token", "tls"):
            if given.pop(name, None) is not None:
                raise UnsupportedError(
                    f"{name}= requires an address such as quire://HOST:PORT/QUEUE"
                )
        return opener(path, **given)

    return cast("_ByFormat[_P]", opened)


@_by_format
def open(  # noqa: A001, PLR0913 - called as quire.open, by keywords
    path: str | PathLike[str],
    *,
    format: Literal["chronicle"] | None = None,  # noqa: A002 - its name as a keyword
    roll_cycle: str | RollCycle | None = None,
    time_zone: str | None = None,
    epoch_ms: int | None = None,
    read_only: bool = False,
    create: bool = True,
    clock: Clock | None = None,
    timeout_s: float = 10.0,
    force_unlock: Literal["dead", "never", "always"] = "dead",
    durability: Literal["process", "batch", "each"] = "process",
    metrics: bool | None = None,
    retention: Watcher | Sequence[Watcher] | None = None,
    key: bytes | KeyRing | None = None,
    allow_plain: bool = False,
    compression: Literal["zstd", "lz4", "snappy", "gzip", "lzw"] | None = None,
    integrity: bool = False,
    wire_type: str | None = None,
    source_id: int = 0,
    block_bytes: int | None = None,
    pretouch: bool = True,
    time_index: bool = False,
    read_after_replica_acknowledged: bool = False,
    file_mode: int = 0o600,
    buffer_mode: BufferMode | None = None,
    roll: RollOptions | None = None,
    layout: LayoutOptions | None = None,
    wait: WaitOptions | None = None,
    ring: RingOptions | None = None,
    token: str | None = None,
    tls: ssl.SSLContext | str | PathLike[str] | bytes | bool | None = None,
) -> JournalQueue:
    """
    Open or create the queue in a directory, or open a queue of a server by its address.

    The settings with which an existing queue was created (roll cycle, epoch, wire type, source id)
    override these arguments, as in Java; only a roll cycle that contradicts existing data is
    refused. Options that are not given may come from environment variables, such as
    ``QUIRE_TIMEOUT_S``, and from the table ``[open]`` of a ``quire.toml``: see
    ``docs/operations.md``.

    Args:
        path: The queue's directory; with *read_only* also one ``*.cq4`` or ``*.cq4.zst`` file. A
            relative path is resolved now, so that it stays valid if the process changes its
            working directory.
        format: ``chronicle`` for Chronicle Queue 5, the default for a new queue; ``vanilla`` for
            Vanilla Chronicle; or ``quick-queue``. For an existing queue it is detected, also for an
            Indexed Chronicle (``indexed``), whose files are *path* with ``.index`` and ``.data``
            appended.
        roll_cycle: How the queue is divided into files; ``FAST_DAILY`` for a new queue. See
            :meth:`RollCycle.all`.
        time_zone: The zone of *roll_time*, by its IANA name, such as ``America/New_York``; ``UTC``
            by default. Cycles start at the same local times in summer and winter.
        epoch_ms: The start of cycle 0 in epoch milliseconds; with *roll_time*, that of its day.
        read_only: Change nothing in the directory, which may be on read-only media.
        create: Create the directory and the queue if they do not exist. If False, a table or a roll
            file must exist.
        clock: Gives the time that determines the cycle, in epoch milliseconds: a
            :class:`ManualClock`, a callable, or None for the machine's clock. Waits do not use it.
        timeout_s: How long to wait for other processes, in seconds. An append waits half as long
            again for the write lock.
        force_unlock: When the write lock may be taken from its holder: if the holder is ``dead``,
            ``never``, or ``always`` after the timeout.
        durability: What a message survives without a call of ``sync()``. ``process``: the end of
            its process. ``batch``: also a power cut, once a thread has synced it, at the latest
            when the queue is closed. ``each``: also a power cut, as soon as the append has
            returned.
        metrics: Count and time the appends and reads of this process: see `JournalQueue.metrics`.
            None: only if the environment variable ``QUIRE_METRICS`` or ``quire.toml`` enables it.
        retention: :class:`quire.Retention` rules that remove old cycles at each roll; None keeps
            all cycles. Not part of a pickled queue.
        key: The key that encrypts and decrypts messages: 32 random bytes, or a
            :class:`quire.KeyRing`. See ``docs/encryption.md``. Not part of a pickled queue.
        allow_plain: With *key*, also read messages that are not encrypted.
        compression: Compress each message if that makes it shorter; see ``docs/compression.md``.
            Reading needs no option.
        integrity: Store a checksum of each appended message, and let a thread seal the queue at
            each roll and when it is closed, so that :func:`quire.verify` detects changes: see
            ``docs/integrity.md``. Not part of a pickled queue.
        wire_type: ``BINARY_LIGHT``, or another binary wire type of Java's queues. With
            ``DELTA_BINARY`` and ``DEFAULT_ZERO_BINARY`` messages are stored as differences, which
            Java cannot read: see ``docs/compression.md``.
        source_id: The id of a new queue in message history; an existing queue keeps its own.
        block_bytes: The bytes by which (sparse) files grow. A message may be as long as a quarter
            of it. Default 64 MiB.
        pretouch: Let a thread populate file space ahead of an appender that writes more than 64
            bytes a microsecond, if there is a second processor.
        time_index: Store the times of appends in a side file of each cycle, so that
            :meth:`JournalTailer.move_to_time` finds a time within a cycle. All writers should set
            it.
        read_after_replica_acknowledged: Tailers and groups see only messages that a replica has
            acknowledged; none until a replica has acknowledged one.
        file_mode: The permission bits of new files; the same users can search their directory.
        buffer_mode: ``async``: appends go to a ring in shared memory and return -1 instead of an
            index; a thread appends them to the queue. See ``docs/ring.md``.
        roll: When cycles start, and listeners for their files, as :class:`quire.RollOptions`.
        layout: The layout of the files, and the file systems they may be on, as
            :class:`quire.LayoutOptions`.
        wait: How handles wait, as :class:`quire.WaitOptions`.
        ring: The ring of ``buffer_mode="async"``, as :class:`quire.RingOptions`.
        token: With an address like ``quire://HOST:PORT/QUEUE``, the token for its server. A remote
            queue accepts *timeout_s*, *read_only*, *create* and the options of a new queue; for
            features that its handles lack they raise an error with the reason: see
            ``docs/remote.md``.
        tls: With an address, the servers to trust: the PEM file of the authority that signed the
            certificate, or its text as bytes; True for the system's authorities; or a context.
            None: no TLS.

    Raises:
        NotAQueueError: *path* contains other files, or a queue of another format than *format*; or
            there is no queue and *create* is False.
        RollCycleMismatchError: *roll_cycle* differs from that of the queue, which has data.
        UnsupportedError: The path is a URL; or the wire type, time zone, file system or an option
            is not supported.
        ReadOnlyError: *read_only* is combined with ``read_buffer_mode="async"``, *retention* or
            *integrity*.
        EncryptionError: The queue is encrypted and *key* is missing or wrong; or *key* is given,
            and the queue has plain messages or is opened read-only and not encrypted.
        DictionaryError: With ``compression="zstd"``, the queue's dictionary is missing or damaged.
        CorruptError: The files break a rule of ``docs/format.md``.
        ValueError: A roll cycle, mode or other argument is invalid.
        OSError: The system refused, for example for lack of permission or disk space.

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
    raise NotImplementedError  # the decorator opens the queue, with the given keywords


def open_without_key(path: str | PathLike[str], **options: Any) -> Any:  # noqa: ANN401 - its handle
    """Open a queue without access to its messages, so that an encrypted one needs no key."""
    with structure_only():
        return cast("Any", open)(path, **options)


def open_as(kind: str, path: str | PathLike[str], **options: Any) -> Any:  # noqa: ANN401 - its handle
    """Open a queue of a format; options have their names in settings, such as *roll_time*."""
    return _BY_SETTINGS.open("open_as", path, {"format": kind, **options})


OF_RESULTS: Final[Mapping[str, Any]] = {
    "buffer_mode": "none",
    "max_clock_ahead_s": None,
    "read_after_replica_acknowledged": False,
    "time_index": False,
}
"""
Options of a queue that is made from others, by their names in settings.

Its clock is set for each message, so settings for the times of new appends do not apply to it.
"""


def open_whole(path: str | PathLike[str], **options: Any) -> Any:  # noqa: ANN401 - its handle
    """Open a queue to read all its messages, also those that no replica has acknowledged."""
    found = cast("Any", open)
    return found(
        path, read_only=True, create=False, read_after_replica_acknowledged=False, **options
    )


@contextmanager
def opened_source(source: QueueOrPath, name: str = "source") -> Generator[Queue]:
    """Open a queue read-only, or use an open one and leave it open; *name* is for errors."""
    if isinstance(source, Queue):
        yield source
        return
    with open(arguments.queue_path(name, source), read_only=True, create=False) as queue:
        yield queue


@contextmanager
def opened_whole(source: QueueOrPath, name: str = "source") -> Generator[Queue]:
    """Open a queue as :func:`open_whole` does, or use an open one; *name* is for errors."""
    if isinstance(source, Queue):
        yield source
        return
    with open_whole(arguments.queue_path(name, source)) as queue:
        yield queue
