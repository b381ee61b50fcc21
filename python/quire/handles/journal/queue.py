"""The handle of a queue in the files of Chronicle Queue 5."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, cast, overload

from quire import _native
from quire._common import arguments
from quire._common.file_listener import FileListener, FileListening
from quire._common.watching import Watch, Watcher
from quire._native import Dump, Pretoucher
from quire.errors import ReadOnlyError, UnsupportedError
from quire.handles.base import Queue
from quire.handles.journal.appender import JournalAppender
from quire.handles.journal.tailer import JournalTailer
from quire.opening import settings
from quire.opening.discovery import lost
from quire.opening.options import MODES, OF_RINGS
from quire.sealed.key_file import options_for
from quire.write_lock import WriteLock

if TYPE_CHECKING:
    from quire._native import FileEvents
    from quire.handles.journal.replicas import Replica
    from quire.metrics.snapshot import Metrics
    from quire.sealed.key_ring import KeyRing

# Options that run code in this process alone.
_NOT_PICKLED = (
    "retention",
    "integrity",
    "key",
    "allow_plain",
    "on_file_acquired",
    "on_file_released",
)


class _Writable(Protocol):
    def write(self, text: str, /) -> object: ...


class JournalQueue(_native.Queue, Queue):
    """
    An open queue in the files of Chronicle Queue 5, from :func:`quire.open`.

    It creates any number of appenders and tailers, and closes them when it is closed. It pickles by
    path and options, and is reopened when unpickled.

    Examples:
        >>> with quire.open("trades", roll_cycle="FAST_DAILY", source_id=3) as queue:
        ...     queue.first_index, queue.last_index, queue.entry_count, queue.cycles
        ...     queue.roll_cycle, queue.epoch_ms, queue.roll_time_zone
        ...     queue.source_id, queue.wire_type
        ...     queue.block_bytes, queue.read_only, queue.closed
        ...     queue.path, queue.current_file == queue.file_for_cycle(queue.current_cycle)
        (None, None, 0, [])
        (RollCycle("FAST_DAILY"), 0, 'UTC')
        (3, 'BINARY_LIGHT')
        (67108864, False, False)
        ('.../trades', True)
        >>> queue.close()
        >>> queue.closed
        True

    """

    _decrypted_by: Mapping[str, Any] = MappingProxyType({})
    _watches: Sequence[Watch] = ()
    _listening: FileListening | None = None

    @classmethod
    def _reopen(cls, path: str | PathLike[str], options: dict[str, Any]) -> Self:
        """Open with options as they were kept by another one, and start what watches the queue."""
        kept = {name: given for name, given in options.items() if name not in _NOT_PICKLED}
        started = {name: options[name] for name in _NOT_PICKLED if options.get(name) is not None}
        if started.get("key") and any(it.reads_messages for it in started.get("retention", ())):
            raise UnsupportedError(
                "a rule that archives has no key of the queue, and the archive would be plain:"
                f" path={path} (run `quire prune PATH --archive DIR --key-file FILE`, or give the"
                ' rule action="compress")'
            )
        key, allow_plain = started.pop("key", None), bool(started.pop("allow_plain", False))
        encryption = cls._encryption(path, kept, key=key, allow_plain=allow_plain)
        if started:
            return cls._started(path, kept, encryption, **started)
        queue = super()._reopen(path, kept | encryption)
        queue._options, queue._decrypted_by = kept, encryption  # noqa: SLF001
        return queue

    @classmethod
    def _encryption(
        cls,
        path: str | PathLike[str],
        kept: dict[str, Any],
        *,
        key: KeyRing | None,
        allow_plain: bool,
    ) -> dict[str, Any]:
        """Return the native options of an encrypted queue, which is made if it is not there."""

        def make() -> None:
            cls(path, **kept).close()

        reads = bool(kept.get("read_only"))
        made = options_for(
            path,
            key=key,
            allow_plain=allow_plain,
            may_write=not reads,
            make=None if reads else make,
        )
        return cast("dict[str, Any]", made)

    @classmethod
    def _started(  # noqa: PLR0913, PLR0917 - options of `open` by their names
        cls,
        path: str | PathLike[str],
        kept: dict[str, Any],
        encryption: dict[str, Any],
        retention: Sequence[Watcher] = (),
        integrity: bool = False,  # noqa: FBT001, FBT002
        on_file_acquired: FileListener | None = None,
        on_file_released: FileListener | None = None,
    ) -> Self:
        if retention and kept.get("read_only"):
            raise ReadOnlyError(f"retention removes files of the queue: path={path} read_only=True")
        if integrity and kept.get("read_only"):
            raise ReadOnlyError(f"integrity=True seals the queue: path={path} read_only=True")
        listens = on_file_acquired is not None or on_file_released is not None
        own = {"file_events": listens, "append_checksums": integrity}
        queue = super()._reopen(path, kept | encryption | own)
        queue._options, queue._decrypted_by = kept, encryption  # noqa: SLF001
        if listens:
            events = cast("FileEvents", queue._file_events)  # noqa: SLF001
            queue._listening = FileListening(events, on_file_acquired, on_file_released)  # noqa: SLF001
        watchers = [*retention]
        if integrity:
            from quire.sealed.auto_seal import Integrity

            watchers.append(Integrity())
        queue._watches = [it.watch(queue, kept) for it in watchers]  # noqa: SLF001
        return queue

    def close(self) -> None:
        """Close the queue and all its appenders and tailers. Idempotent."""
        for watch in self._watches:
            watch.close()
        super().close()
        self._decrypted_by = {}
        if self._listening is not None:
            self._listening.close()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close the queue."""
        self.close()

    @contextmanager
    def _whole(self) -> Generator[JournalQueue]:
        """
        Yield the queue to read all its messages, also those that no replica has acknowledged.

        Raises:
            TableLostError: Another directory is at the queue's path, where it is opened again.

        """
        if not self._options.get("read_after_replica_acknowledged"):
            yield self
            return
        without = MODES.union(OF_RINGS)
        options = {name: it for name, it in self._options.items() if name not in without}
        options |= {"read_after_replica_acknowledged": False, "read_only": True}
        with super()._reopen(self.path, {**options, **self._decrypted_by}) as whole:
            if whole._table_identity() != self._table_identity():  # noqa: SLF001
                raise lost(self.path)
            yield whole

    def appender(
        self, *, limit: int | None = None, wait: Literal["any", "all"] | int | None = None
    ) -> JournalAppender:
        """
        Return a new appender.

        Args:
            limit: How many asynchronous appends, as :meth:`JournalAppender.awrite_bytes`, may be
                under way at once in an event loop. Further ones wait in the order of their calls,
                so that with a limit of 1 this is the order of their messages. None: any number.
            wait: How many replicas have to acknowledge each message before its append returns:
                ``"any"`` member of the in-sync set, ``"all"`` of them, or a number of them. None:
                none, unless an append says otherwise.

        Raises:
            ReadOnlyError: The queue was opened read-only.

        Examples:
            >>> with queue.appender() as appender:
            ...     index = appender.write_text("hello")

        """
        return JournalAppender(self, limit=limit, wait=wait)

    def tailer(
        self,
        name: str | None = None,
        *,
        on_missing: Literal["raise", "warn", "skip"] = "warn",
        shared: bool = False,
    ) -> JournalTailer:
        """
        Return a new tailer, at the first message.

        Args:
            name: Keep the position in the queue under this name and resume there. Only one tailer
                at a time may use a name; those of Java are not noticed. Names are case-insensitive,
                and a name that differs from a known one only in case is refused.
            on_missing: What happens when the messages to read next were deleted: ``raise``, here or
                once in the read that begins there, after which reading continues with the first
                remaining message; ``warn`` once through the logger ``quire``, and continue with it;
                or ``skip`` to it silently.
            shared: Read with the name even while other tailers do, as Java's tailers may. Each
                stores its own position, so the last one to store wins.

        Raises:
            ReadOnlyError: A name was given and the queue was opened read-only.
            TailerInUseError: Another tailer uses the name.
            DataLossError: The messages to read next were deleted, with ``on_missing="raise"``.
            ValueError: The name is not valid, or differs only in case from another tailer's.

        Examples:
            >>> _ = appender.write_text("hello")
            >>> with queue.tailer("risk") as tailer:
            ...     tailer.read_text()
            'hello'

        """
        return JournalTailer(self, name, on_missing=on_missing, shared=shared)

    def pretoucher(
        self,
        *,
        early_acquire_next_cycle: bool | None = None,
        preroll_time_s: float | None = None,
        dont_write: bool | None = None,
    ) -> Pretoucher:
        """
        Return a pretoucher, which prepares the queue's files ahead of appenders.

        Call its ``execute()`` regularly, or ``start()`` its thread. ``quire pretouch`` runs one in
        a process of its own. Options that are not given can be set from outside, for example by
        ``QUIRE_EARLY_ACQUIRE_NEXT_CYCLE=1``.

        Args:
            early_acquire_next_cycle: Create the next cycle's file before its time, and prepare it;
                by default it is not.
            preroll_time_s: How long before, in seconds: 2 by default.
            dont_write: Create no file, not even that of the current cycle; by default it does.

        Raises:
            ReadOnlyError: The queue was opened read-only.
            SettingError: An option that is set from outside is not valid.

        Examples:
            >>> with queue.pretoucher(early_acquire_next_cycle=True) as pretoucher:
            ...     pretoucher.execute()

        """
        options: dict[str, Any] = settings.for_pretoucher(
            {
                "early_acquire_next_cycle": early_acquire_next_cycle,
                "preroll_time_s": preroll_time_s,
                "dont_write": dont_write,
            },
            settings.settings(),
        )
        preroll_ms = arguments.milliseconds("preroll_time_s", options.pop("preroll_time_s"))
        return Pretoucher(self, preroll_ms=preroll_ms, **options)

    @property
    def write_lock(self) -> WriteLock:
        """
        The write lock: its holder, and how to free the lock of a dead process.

        Examples:
            >>> queue.write_lock.locked
            False

        """
        return WriteLock(self)

    @property
    def replicas(self) -> list[Replica]:
        """
        The queue's replicas, and what each has acknowledged, as the source's process stores it.

        Any process can read it. The list is empty if no source ever ran.

        Examples:
            >>> queue.replicas
            []

        """
        from quire.handles.journal.replicas import replicas_of

        return replicas_of(self)

    def metrics(self) -> Metrics:
        """
        Return the counts of all processes of the queue, including processes that have ended.

        A process counts if it opens the queue for writing with ``metrics=True``, or while the
        environment variable ``QUIRE_METRICS`` is 1. Any process can read them, even with a queue
        that was opened read-only.

        Examples:
            >>> with quire.open("busy", metrics=True) as busy:
            ...     index = busy.appender().write_text("hello")
            ...     busy.metrics().messages_appended
            1

        """
        from quire.metrics.snapshot import metrics_of

        return metrics_of(self)

    @overload
    def dump(self) -> str: ...
    @overload
    def dump(self, out: _Writable) -> None: ...
    def dump(self, out: _Writable | None = None) -> str | None:
        """
        Return every document of every file as text, as Java's ``DumpMain`` shows them.

        Args:
            out: Write the text there piece by piece instead, so that a queue of any size needs
                little memory.

        Examples:
            >>> _ = appender.write_text("hello")
            >>> print(queue.dump())
            ## 20240115F.cq4
            ...
            hello
            ...

        """
        if out is None:
            return super().dump()
        if not hasattr(out, "write"):
            raise arguments.refusal("out", "an open text file", out)
        files = [Path(self.file_for_cycle(cycle)) for cycle in self.cycles]
        for file in [*files, Path(self.path, "metadata.cq4t")]:
            if file.exists():
                out.write(f"## {file.name}\n")
                for piece in Dump(file):
                    out.write(piece.decode())
        return None
