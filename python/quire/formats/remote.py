"""A queue on another machine, of any format, as the rest of the package uses it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from quire.errors import UnsupportedError
from quire.formats.adapter import Adapter, Explained, Piece
from quire.formats.detection import CHRONICLE
from quire.formats.numbering import Numbering, Periods

if TYPE_CHECKING:
    from quire.formats.columns import Columns


class AnyRemoteQueue(ABC):
    """A queue on another machine."""

    @property
    @abstractmethod
    def path(self) -> str:
        """Its address."""

    @property
    @abstractmethod
    def first_index(self) -> int | None:
        """The index of the first message."""

    @abstractmethod
    def appender(self) -> Any:  # noqa: ANN401 - of the room above
        """Return a new appender."""

    @abstractmethod
    def tailer(self) -> Any:  # noqa: ANN401 - of the room above
        """Return a new tailer."""

    @abstractmethod
    def _numbering(self) -> Numbering: ...
    @abstractmethod
    def _periods(self) -> Periods: ...
    @abstractmethod
    def _cycle_counts(self) -> dict[int, int]: ...
    @abstractmethod
    def _count(self, cycle: int) -> int: ...
    @abstractmethod
    def _range(self, start: int, past: int) -> Columns | None: ...
    @abstractmethod
    def _range_tailer(self, past: int) -> Any: ...  # noqa: ANN401 - of the room above
    @property
    @abstractmethod
    def _is_wire(self) -> bool: ...
    @property
    @abstractmethod
    def _appends_late(self) -> bool: ...
    @abstractmethod
    def _excerpt(self, index: int, data: bytes) -> Any: ...  # noqa: ANN401 - of the format
    @abstractmethod
    def named_tailers(self) -> list[tuple[str, int]]:
        """Return the name of each named tailer, with the index that it stored."""


class _AnyRemoteHandle(ABC):
    """A handle of a queue on another machine, which the kernel reads or writes by."""

    @property
    @abstractmethod
    def path(self) -> str:
        """The address of the queue."""

    @property
    @abstractmethod
    def _source_id(self) -> int: ...
    @property
    @abstractmethod
    def _is_fieldless(self) -> bool: ...


Row: TypeAlias = tuple[int, bytes, bool]
"""A document: its index, its bytes, and whether it is metadata."""


class AnyRemoteTailer(_AnyRemoteHandle):
    """A tailer of a queue on another machine; the kernel reads its messages as documents."""

    @property
    @abstractmethod
    def index(self) -> int:
        """The index of the next message."""

    @property
    @abstractmethod
    def _is_wire(self) -> bool: ...
    @abstractmethod
    def spin(self, timeout_s: float | None = None) -> bool:
        """Wait for a message; the server is not asked more often for it. False if none came."""

    @abstractmethod
    def move_to_index(self, index: int, /) -> bool:
        """Go to a message by its index; False if there is none."""

    @abstractmethod
    def to_start(self) -> None:
        """Go to the first message."""

    @abstractmethod
    def to_end(self) -> None:
        """Go after the last message."""

    @abstractmethod
    def after_last_written(self, output: Any, /) -> None:  # noqa: ANN401 - a queue, or its path
        """Go to the first message that is not yet reflected in *output*."""

    @abstractmethod
    def _take_document(self, include_metadata: bool, /) -> Row | None: ...  # noqa: FBT001 - of the kernel
    @abstractmethod
    def _open_document(self, include_metadata: bool, /) -> Row | None: ...  # noqa: FBT001 - of the kernel
    @abstractmethod
    def _step_over(self, index: int, is_metadata: bool, /) -> None: ...  # noqa: FBT001 - of the kernel
    @abstractmethod
    def _return_to(self, index: int, is_metadata: bool = False, /) -> None: ...  # noqa: FBT001, FBT002 - of the kernel


class AnyRemoteAppender(_AnyRemoteHandle):
    """An appender of a queue on another machine; the kernel hands it documents."""

    @property
    @abstractmethod
    def _limits(self) -> tuple[int, int]: ...
    @abstractmethod
    def write_map(self, values: Any, /) -> int:  # noqa: ANN401 - named values
        """Append named values."""

    @abstractmethod
    def _send(self, message: bytes, is_metadata: bool, wait: Any) -> int: ...  # noqa: ANN401, FBT001 - of the kernel


class RemoteAdapter(Adapter[Any]):
    """A queue on another machine."""

    name = CHRONICLE
    title = "remote queue"
    handles = (AnyRemoteQueue, AnyRemoteTailer, AnyRemoteAppender)
    is_wire = has_cycles = has_tailer_names = True

    def open(self, path: str, *, read_only: bool = True) -> NoReturn:
        """Refuse: :func:`quire.open` opens addresses."""
        del read_only
        raise UnsupportedError(f"open it by quire.open: queue={path}")

    def appender(self, queue: AnyRemoteQueue) -> Any:  # noqa: ANN401 - of the room above
        """Return a new appender."""
        return queue.appender()

    def tailer(self, queue: AnyRemoteQueue) -> Any:  # noqa: ANN401 - of the room above
        """Return a new tailer, at the first message."""
        return queue.tailer()

    def numbering(self, queue: AnyRemoteQueue) -> Numbering:
        """Return how messages are numbered."""
        return queue._numbering()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def periods(self, queue: AnyRemoteQueue) -> Periods:
        """Return when cycles start."""
        return queue._periods()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def reads_wire(self, handle: object) -> bool:
        """Return whether messages are BinaryWire, as the server says."""
        if isinstance(handle, AnyRemoteQueue | AnyRemoteTailer):
            return handle._is_wire  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        return self.is_wire

    def appends_late(self, queue: AnyRemoteQueue) -> bool:
        """Return whether a slow writer may append to a cycle that was left, as in its format."""
        return queue._appends_late  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def cycles(self, queue: AnyRemoteQueue) -> list[int]:
        """Return the cycles."""
        return [*queue._cycle_counts()]  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def count(self, queue: AnyRemoteQueue, cycle: int) -> int:
        """Return the sequence after the last message of a cycle."""
        return queue._count(cycle)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def first_index(self, queue: AnyRemoteQueue) -> int | None:
        """Return the index of the oldest message."""
        return queue.first_index

    def place(self, queue: AnyRemoteQueue, cycle: int) -> Path:
        """Refuse: files are where the server is."""
        raise self._refused(f"the file of cycle {cycle}", queue.path)

    def files(self, queue: AnyRemoteQueue) -> list[Path]:
        """Return no files: they are where the server is."""
        del queue
        return []

    def pieces(self, queue: AnyRemoteQueue) -> Iterator[Piece]:
        """Yield no files: they are where the server is."""
        del queue
        return iter(())

    def named_tailers(self, queue: AnyRemoteQueue) -> list[tuple[str, int]]:
        """Return the named tailers."""
        return queue.named_tailers()

    def excerpt(self, queue: AnyRemoteQueue, index: int, data: bytes) -> Any:  # noqa: ANN401 - of the format
        """Return a message as a tailer would."""
        return queue._excerpt(index, data)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def options_like(self, queue: AnyRemoteQueue) -> dict[str, Any]:
        """Refuse: the server knows them."""
        raise self._refused("its options", queue.path)

    def identity(self, queue: AnyRemoteQueue) -> dict[str, Any]:
        """Return what is known of it."""
        return {"format": "remote", "queue": queue.path}

    def explain(self, queue: AnyRemoteQueue, index: int) -> Explained | None:
        """Refuse: the bytes are where the server is."""
        raise self._refused(f"an explanation of message {index}", queue.path)


REMOTE = RemoteAdapter()
