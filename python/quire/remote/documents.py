"""What a remote tailer does with single documents: calls of handlers, values, history."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, cast

from quire import _native
from quire.errors import IndexOutOfRangeError, UnsupportedError
from quire.formats.adapters import adapter_of
from quire.formats.remote import FarTailer
from quire.opening.by_path import opened
from quire.remote.address import is_remote
from quire.remote.lacking import FORMAT

if TYPE_CHECKING:
    from quire._native import MessageHistory, ReadDocument
    from quire.calls.method_reader import DeadLetter, MethodReader, OnError
    from quire.calls.method_writer import Filter
    from quire.formats.protocols import AnyQueue
    from quire.remote.link import RemoteLink

_NO_METADATA = f"not supported in a {FORMAT}: metadata (it is read where the queue is)"


class DocumentReading(FarTailer, ABC):
    """Documents, on top of a tailer that has their bytes."""

    _queue: RemoteLink
    _handle: Any

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

    def _open_next(self) -> tuple[int, bytes] | None:
        """Return the next message, which stays the next one."""
        found = self._next()
        if found is not None:
            self._return_to(found[0])
        return found

    def _step_over(self, index: int) -> None:
        """Step over a message that was opened, unless the tailer was moved meanwhile."""
        if self.index == index:
            self._next()

    def reading_document(self, *, include_metadata: bool = False) -> ReadDocument:
        """
        Open the next message, to be read value by value, as at home.

        Raises:
            UnsupportedError: Metadata was asked for.

        """
        self._queue.need_wire("reading_document")
        if include_metadata:
            raise UnsupportedError(_NO_METADATA)
        return _native.received_document(self)

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

        An address of the same server as *dead_letter* is opened with the token of this queue.

        Raises:
            UnsupportedError: *metadata_handler* was given.

        """
        from quire.calls.method_reader import method_reader, mover
        from quire.types import names_around

        self._queue.need_wire("method_reader")
        if metadata_handler is not None:
            raise UnsupportedError(_NO_METADATA)
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
            metadata_handler=None,
            scanning=scanning,
            names=names_around(),
        )
        move()
        return reader

    @property
    def history(self) -> MessageHistory | None:
        """The history of the message that was read last; None where there is none."""
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
        Go to the first message that is not yet reflected in *output*, as at home.

        Args:
            output: A queue of this machine or of a server, or its path.

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
                    "the queue that was written is needed, not the one that is read:"
                    f" path={self.path}"
                )
            found = _last_source(queue, self._source_id)
        if found is None:
            self.to_start()
        elif not self.move_to_index(found[0]) or self._next() is None:
            raise IndexOutOfRangeError(
                f"a history names a message that is not there: index={found[0]:#x}"
                f" path={self.path} named_by={found[1]:#x} output={queue.path}"
            )


def _last_source(output: AnyQueue, source_id: int) -> tuple[int, int] | None:
    """Return the message that the newest one of an output came from, and the index of that one."""
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
