"""Single documents of a remote tailer: calls of handlers, values, history."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, cast

from quire import _native
from quire.errors import IndexOutOfRangeError, UnsupportedError
from quire.formats.adapters import adapter_of
from quire.formats.remote import AnyRemoteTailer
from quire.opening.by_path import opened
from quire.remote.address import is_remote
from quire.remote.metadata import Documents

if TYPE_CHECKING:
    from threading import RLock

    from quire._native import MessageHistory, ReadDocument
    from quire.calls.method_reader import DeadLetter, MethodReader, OnError
    from quire.calls.method_writer import Filter
    from quire.formats.protocols import AnyQueue
    from quire.formats.remote import Row
    from quire.remote.link import RemoteLink


class DocumentReading(AnyRemoteTailer, ABC):
    """Reading documents, on top of a tailer that has their bytes."""

    _queue: RemoteLink
    _handle: Any
    _lock: RLock
    _documents: Documents | None
    _at: int
    _count: int
    _position: int
    _last_read: int | None
    _unfinished: int | None

    @property
    @abstractmethod
    def _read_before(self) -> int | None: ...
    @property
    @abstractmethod
    def direction(self) -> Literal["forward", "backward", "none"]:
        """The direction of reads."""

    @abstractmethod
    def _next(self) -> tuple[int, bytes] | None: ...
    @abstractmethod
    def _go(self, index: int) -> None: ...
    @abstractmethod
    def _store(self) -> None: ...
    @abstractmethod
    def _ask(self, *words: bytes | str | int) -> Any: ...  # noqa: ANN401 - whatever the server says
    @abstractmethod
    def _return_to_message(self, index: int) -> None: ...

    @property
    @abstractmethod
    def last_read_index(self) -> int | None:
        """The index of the message that was read last."""

    @property
    def _source_id(self) -> int:
        return self._queue.source_id

    @property
    def _is_fieldless(self) -> bool:
        found: bool = self._queue.is_fieldless
        return found

    def _take_document(self, include_metadata: bool, /) -> Row | None:  # noqa: FBT001 - of the kernel
        """Return the next document, and move past it."""
        if not self._has_documents(include_metadata):
            message = self._next()
            return None if message is None else (*message, False)
        with self._lock:
            found = self._open_document(True)  # noqa: FBT003 - of the kernel
            if found is not None:
                self._step_over(found[0], found[2])
            return found

    def _has_documents(self, include_metadata: bool) -> bool:  # noqa: FBT001 - of the kernel
        return include_metadata and self.direction == "forward"

    def _open_document(self, include_metadata: bool, /) -> Row | None:  # noqa: FBT001 - of the kernel
        """Return the next document, which stays the next one."""
        with self._lock:
            if self._has_documents(include_metadata):
                return self._documents_here().next()
            found = self._next()
            if found is None:
                return None
            self._return_to(found[0])
            return (*found, False)

    def _documents_here(self) -> Documents:
        """Return the documents from here on, with the metadata after the last read message."""
        found = self._documents
        if found is None or self._at:
            before = self._read_before
            place = self.index if self._at < self._count else self._position
            start = place if before is None else before
            self._go(place)
            found = Documents(self._ask, self._queue.topic, start, is_read=before is not None)
            self._documents = found
        self._at = self._count = 0
        self._position = found.position
        if found.is_through:
            self._store()
        return found

    def _step_over(self, index: int, is_metadata: bool, /) -> None:  # noqa: FBT001 - of the kernel
        """Move past an opened document, unless the tailer was moved meanwhile."""
        with self._lock:
            documents = self._documents
            if documents is None or self._at:
                if not is_metadata and self.index == index:
                    self._next()
                    self._unfinished = None
                return
            documents.step()
            self._position = documents.position
            if not is_metadata:
                self._last_read = index

    def _return_to(self, index: int, is_metadata: bool = False, /) -> None:  # noqa: FBT001, FBT002 - of the kernel
        """Go back to a document that was read."""
        with self._lock:
            documents = self._documents
            if documents is not None and not self._at:
                documents.step_back(index)
                self._position = documents.position
            elif not is_metadata:
                self._return_to_message(index)

    def reading_document(self, *, include_metadata: bool = False) -> ReadDocument:
        """
        Open the next document, to be read value by value, as in a local queue.

        A wait for metadata polls the server. As in a local queue, there is no metadata backward.
        """
        self._queue.need_wire("reading_document")
        return _native.received_document(self, include_metadata=include_metadata)

    def method_reader(  # noqa: PLR0913 - by keywords
        self,
        *handlers: object,
        interface: Callable[..., Any] | None = None,
        on_error: OnError = "raise",
        dead_letter: DeadLetter | None = None,
        default: Callable[[str | int, Any], object] | None = None,
        filter: Filter | None = None,  # noqa: A002 - its name as a keyword
        metadata_handler: object = None,
        scanning: bool = False,
        replay: Literal["all", "new", "missed"] | int | None = None,
        output: AnyQueue | str | PathLike[str] | None = None,
    ) -> MethodReader:
        """
        Return a reader that calls handlers: see :meth:`quire.JournalTailer.method_reader`.

        If *dead_letter* is an address on the same server, it is opened with the token of this
        queue.
        """
        from quire.calls.method_reader import method_reader, mover
        from quire.types import names_around

        self._queue.need_wire("method_reader")
        if is_remote(dead_letter):
            dead_letter = self._handle._beside(dead_letter)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        move = mover(self, replay, output)
        reader = method_reader(
            self,
            handlers,
            interface=interface,
            on_error=on_error,
            dead_letter=dead_letter,
            default=default,
            filter=filter,
            metadata_handler=metadata_handler,
            scanning=scanning,
            names=names_around(),
        )
        move()
        return reader

    @property
    def history(self) -> MessageHistory | None:
        """The history of the message that was read last; None if it has none."""
        index = self.last_read_index
        if index is None:
            return None
        with self._handle.tailer() as look:
            if not look.move_to_index(index):
                return None
            with look.reading_document() as document:
                found: MessageHistory | None = document.history
        return found

    def after_last_written(self, output: AnyQueue | str | PathLike[str], /) -> None:
        """
        Go to the first message that is not yet reflected in *output*.

        Args:
            output: A local or remote queue, or its path.

        Raises:
            ValueError: This queue has no source id, or *output* is this queue.
            IndexOutOfRangeError: The message was deleted.

        """
        if not self._source_id:
            raise ValueError(
                "history names a queue by its source id: source_id=0"
                f" path={self.path} (create the queue with a source_id of its own)"
            )
        if is_remote(output):
            output = cast("AnyQueue", self._handle._beside(output, read_only=True))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        with opened(output, "output") as queue:
            if str(queue.path) == self.path:
                raise ValueError(
                    "expected the queue that was written, not the one that is read:"
                    f" path={self.path}"
                )
            found = _last_source(queue, self._source_id)
        if found is None:
            self.to_start()
        elif not self.move_to_index(found[0]) or self._next() is None:
            raise IndexOutOfRangeError(
                f"a history names a missing message: index={found[0]:#x}"
                f" path={self.path} named_by={found[1]:#x} output={queue.path}"
            )


def _last_source(output: AnyQueue, source_id: int) -> tuple[int, int] | None:
    """Return the source of an output's newest message, and the index of that message."""
    made: Any = adapter_of(output).tailer(output)
    with made as tailer:
        if not hasattr(tailer, "reading_document"):
            raise UnsupportedError(f"messages of this format have no history: path={output.path}")
        tailer.direction = "backward"
        tailer.to_end()
        while True:
            with tailer.reading_document() as document:
                if not document.is_present:
                    return None
                history = document.history
                if history is not None and history.sources and history.sources[-1][0] == source_id:
                    return history.sources[-1][1], document.index
