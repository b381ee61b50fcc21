"""The base classes of queues, appenders and tailers of every format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from quire._common.known_attributes import KnownAttributes
from quire._native import Excerpt, QuickExcerpt, VanillaExcerpt
from quire._waiting.async_reading import AsyncClosing
from quire._waiting.following import Following
from quire.dataframes.framed import DataFrameMethods
from quire.groups.shared import GroupMethods
from quire.opening.by_path import PickledByPath

AnyExcerpt: TypeAlias = Excerpt | VanillaExcerpt | QuickExcerpt

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Buffer, TypeVar

    _E_co = TypeVar("_E_co", default=AnyExcerpt, covariant=True)
else:
    from typing import TypeVar

    _E_co = TypeVar("_E_co", covariant=True)

BATCH_COUNT = 65_536
BATCH_BYTES = 256 * 2**20


class _Handle(AsyncClosing, KnownAttributes, ABC):
    """A handle that is open until it is closed."""

    @property
    @abstractmethod
    def path(self) -> str:
        """The path of the queue."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether the handle was closed."""

    @abstractmethod
    def close(self) -> None:
        """Close it. Idempotent."""

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close it."""
        self.close()


class Queue(_Handle, PickledByPath, DataFrameMethods, GroupMethods):
    """
    An open queue of any format, from :func:`quire.open`.

    It creates any number of appenders and tailers, and closes them when it is closed. It pickles by
    path and options, and is reopened when unpickled. Features of one format are in its own class:
    :class:`quire.JournalQueue`, :class:`quire.vanilla.VanillaQueue`,
    :class:`quire.quick_queue.QuickQueue` and :class:`quire.indexed.IndexedQueue`.

    Examples:
        >>> for kind in ("chronicle", "vanilla", "quick-queue"):
        ...     with quire.open(f"any-{kind}", format=kind) as queue:
        ...         isinstance(queue, quire.Queue), queue.path, queue.read_only, queue.closed
        ...         with queue.appender() as appender:
        ...             index = appender.write_text("hello")
        ...         queue.first_index == queue.last_index == index, queue.entry_count
        ...         with queue.tailer() as tailer:
        ...             tailer.read_text()
        ...     queue.close()
        (True, '.../any-chronicle', False, False)
        (True, 1)
        'hello'
        (True, '.../any-vanilla', False, False)
        (True, 1)
        'hello'
        (True, '.../any-quick-queue', False, False)
        (True, 1)
        'hello'

    """

    @property
    @abstractmethod
    def read_only(self) -> bool:
        """Whether the queue was opened read-only."""

    @property
    @abstractmethod
    def first_index(self) -> int | None:
        """The index of the first message; None if there is none."""

    @property
    @abstractmethod
    def last_index(self) -> int | None:
        """The index of the last message; None if there is none."""

    @property
    @abstractmethod
    def entry_count(self) -> int:
        """The number of messages, by the queue's own index."""

    @abstractmethod
    def appender(self) -> Appender:
        """
        Return a new appender.

        Raises:
            ReadOnlyError: The queue was opened read-only.
            UnsupportedError: The format is only read.

        """

    @abstractmethod
    def tailer(self, name: str | None = None) -> Tailer:
        """
        Return a new tailer, at the first message.

        Args:
            name: Keep the position under this name and resume there.

        Raises:
            UnsupportedError: A name was given, and the format stores nothing about its readers.

        """


class Appender(_Handle):
    """
    Writes messages at the end of a queue of any format, from :meth:`quire.Queue.appender`.

    Examples:
        >>> import pyarrow as pa
        >>> with quire.open("book", format="vanilla") as book, book.appender() as appender:
        ...     isinstance(appender, quire.Appender), appender.path == book.path, appender.closed
        ...     indexes = [appender.write_bytes(b"one"), appender.write_text("two")]
        ...     last = appender.write_many([b"three", b"four"])
        ...     last = appender.write_batch(pa.array([b"five"]))
        ...     appender.close()
        (True, True, False)

    """

    @abstractmethod
    def write_bytes(self, payload: Buffer, /) -> int:
        """Append a message of these bytes; return its index."""

    @abstractmethod
    def write_text(self, text: str, /) -> int:
        """Append a message of this text; return its index."""

    @abstractmethod
    def write_many(self, payloads: Iterable[Buffer], /) -> int | None:
        """Append a message for each payload; return the index of the last."""

    @abstractmethod
    def write_batch(self, batch: Any) -> int | None:  # noqa: ANN401 - of pyarrow
        """Append a message for each element of a binary or string column; return the last index."""


class Tailer(Following[_E_co], _Handle):
    """
    Reads the messages of a queue of any format, from :meth:`quire.Queue.tailer`.

    Examples:
        >>> with quire.open("book", format="vanilla") as book, book.tailer() as tailer:
        ...     last = book.appender().write_many([b"one", b"two", b"three", b"four", b"five"])
        ...     isinstance(tailer, quire.Tailer), tailer.path == book.path, tailer.closed
        ...     tailer.read().data, tailer.read_bytes(), tailer.read_text(), tailer.index
        ...     tailer.read_many(1), [*tailer.payloads()], tailer.spin(timeout_s=0)
        ...     tailer.to_start()
        ...     tailer.read_batch(2).num_rows
        ...     tailer.move_to_index(last)
        ...     tailer.to_end()
        ...     tailer.close()
        (True, True, False)
        (b'one', b'two', 'three', ...)
        ([b'four'], [b'five'], False)
        2
        True

    """

    @property
    @abstractmethod
    def index(self) -> int:
        """The index of the next message."""

    @abstractmethod
    def __iter__(self) -> Self:
        """Iterate over the messages that are there."""

    @abstractmethod
    def __next__(self) -> _E_co:
        """Return the next message."""

    @abstractmethod
    def read(self) -> _E_co | None:
        """Return the next message with its index; None if there is none yet."""

    @abstractmethod
    def read_bytes(self) -> bytes | None:
        """Return the bytes of the next message; None if there is none yet."""

    @abstractmethod
    def read_text(self) -> str | None:
        """Return the next message as text; None if there is none yet."""

    @abstractmethod
    def read_many(self, count: int, /) -> list[bytes]:
        """Return the bytes of at most *count* messages."""

    @abstractmethod
    def payloads(self) -> Iterator[bytes]:
        """Iterate over the bytes of the existing messages."""

    @abstractmethod
    def read_batch(
        self, count: int = BATCH_COUNT, *, max_bytes: int = BATCH_BYTES
    ) -> pa.RecordBatch:
        """Return at most *count* messages as the columns ``index`` and ``payload``."""

    @abstractmethod
    def spin(self, timeout_s: float | None = None) -> bool:
        """Wait for a message without giving up the processor; False if none came."""

    @abstractmethod
    def move_to_index(self, index: int, /) -> bool:
        """Go to a message by its index; False if there is none."""

    @abstractmethod
    def to_start(self) -> None:
        """Go to the first message."""

    @abstractmethod
    def to_end(self) -> None:
        """Go to the end, after the last message."""
