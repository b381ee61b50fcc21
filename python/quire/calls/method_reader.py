"""Method readers: handlers called with messages, from :meth:`quire.JournalTailer.method_reader`."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias

from quire import _native, pausers
from quire._common import arguments
from quire._common.known_attributes import KnownAttributes
from quire._native import Appender, AwaitedDocument, Queue, Tailer
from quire._waiting.async_reading import AsyncClosing
from quire._waiting.sleeping import pauser_at
from quire.calls.interfaces import check_ids, handlers_of
from quire.calls.method_writer import Filter
from quire.errors import ClosedError, NotAQueueError
from quire.formats.detection import CHRONICLE, format_of
from quire.formats.remote import AnyRemoteAppender, AnyRemoteQueue, AnyRemoteTailer
from quire.pausers import TURN_S, Pauser
from quire.sealed.key_file import check_letters

if TYPE_CHECKING:
    from quire._waiting.async_reading import RemoteReading

_READ_AT_ONCE = 1000

OnError: TypeAlias = Literal["raise", "skip", "dead_letter"]
DeadLetter: TypeAlias = Appender | Queue | AnyRemoteAppender | AnyRemoteQueue | str | PathLike[str]


class MethodReader(_native.MethodReader, AsyncClosing, KnownAttributes):
    """
    Calls handlers with the messages of a tailer, from :meth:`quire.JournalTailer.method_reader`.

    A document's events are handled in their order. What a handler's method returns handles the next
    event of the same document, if the method's annotation says that it is an interface, a Protocol
    or an ABC, and that has a method for it: chained calls. Other results are ignored. An
    event without a handler is skipped. An event may lack arguments that have a default, and have
    more than the method takes.

    Examples:
        >>> class Printer:
        ...     def halt(self, symbol: str) -> None:
        ...         print("halted", symbol)
        >>> writer = appender.method_writer(Printer)
        >>> for symbol in ("EURUSD", "GBPUSD", "USDJPY"):
        ...     writer.halt(symbol)
        >>> reader = tailer.method_reader(Printer())
        >>> reader.read_one()
        halted EURUSD
        True
        >>> reader.read_many(1)
        halted GBPUSD
        1
        >>> reader.run(until=lambda: True)  # until there is no more
        halted USDJPY
        >>> reader.close()
        >>> reader.closed, reader.tailer.closed
        (True, False)

    """

    _pauser: Pauser | None = None
    _has_metadata = False  # tailers that sleep wake for messages alone

    def run(
        self, pauser: Pauser | None = None, *, until: Callable[[], object] | None = None
    ) -> None:
        """
        Read messages as they come, until the reader is closed.

        Args:
            pauser: How to wait, from :mod:`quire.pausers`; by default asleep until there is a
                message, or balanced with *until* or a handler of metadata.
            until: Called when there is no message; a true result ends the loop.

        Raises:
            WaitTimeoutError: The pauser has a timeout, and no message arrived within that time.

        """
        pauser = self._begin(pauser, polls=until is not None)
        while not self.closed:
            if self._read_some():
                pauser.reset()
            elif until is not None and until():
                return
            else:
                pauser.pause()

    async def aread_one(self) -> bool:
        """
        Read one message and await its handlers: see :meth:`read_one`.

        Handlers may be coroutine functions, also beside others. They run one after the other, in
        the order of the events. The message of a handler that is cancelled is read again.

        Raises:
            RuntimeError: Another task awaits a handler of this reader.

        Examples:
            >>> import asyncio
            >>> class Printer:
            ...     async def halt(self, symbol: str) -> None:
            ...         await asyncio.sleep(0)
            ...         print("halted", symbol)
            >>> appender.method_writer(Printer).halt("EURUSD")
            >>> asyncio.run(tailer.method_reader(Printer()).aread_one())
            halted EURUSD
            True

        """
        if (remote := self._remote) is not None:
            await remote._prepared()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        found = self._read_awaiting(1)
        if not isinstance(found, AwaitedDocument):
            return found > 0
        await found
        return True

    async def arun(
        self, pauser: Pauser | None = None, *, until: Callable[[], object] | None = None
    ) -> None:
        """
        Read messages until the reader is closed, without blocking the event loop.

        Handlers run on the event loop. Those that are coroutine functions are awaited; others block
        the loop while they run. Other tasks run every few milliseconds, even during a backlog.

        Args:
            pauser: How to wait, from :mod:`quire.pausers`.
            until: Called when there is no message; a true result ends the loop.

        Raises:
            RuntimeError: Another task awaits a handler of this reader.

        Examples:
            >>> import asyncio
            >>> class Printer:
            ...     async def halt(self, symbol: str) -> None:
            ...         print("halted", symbol)
            >>> appender.method_writer(Printer).halt("EURUSD")
            >>> asyncio.run(tailer.method_reader(Printer()).arun(until=lambda: True))
            halted EURUSD

        """
        import asyncio

        pauser = self._begin(pauser, polls=until is not None)
        turn_ends = monotonic() + TURN_S
        while not self.closed:
            if await self._aread_some():
                pauser.reset()
                if monotonic() >= turn_ends:
                    await asyncio.sleep(0)
                    turn_ends = monotonic() + TURN_S
            elif until is not None and until():
                return
            else:
                await pauser.apause()

    def close(self) -> None:
        """End :meth:`run`, from any thread; reading raises then. The tailer stays open."""
        super().close()
        if self._pauser is not None:
            self._pauser.unpause()

    def __enter__(self) -> Self:
        """Return the reader."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close the reader."""
        self.close()

    @property
    def _remote(self) -> RemoteReading | None:
        """The remote tailer, whose server may be away; metadata is read by other means."""
        return None if self._has_metadata else getattr(self.tailer, "_remote", None)

    def _begin(self, pauser: Pauser | None, *, polls: bool) -> Pauser:
        if pauser is None and (polls or self._has_metadata):
            pauser = pausers.balanced()
        else:
            pauser = pauser_at(self.tailer, pauser)
        self._pauser = pauser
        return pauser

    async def _aread_some(self) -> bool:
        try:
            if (remote := self._remote) is not None:
                await remote._prepared()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            found = self._read_awaiting(_READ_AT_ONCE)
            if not isinstance(found, AwaitedDocument):
                return found > 0
            await found
        except ClosedError:
            if not self.closed:
                raise
        return True

    def _read_some(self) -> int:
        try:
            return self.read_many(_READ_AT_ONCE)
        except ClosedError:
            if not self.closed:
                raise
            return 0


def mover(tailer: Tailer | AnyRemoteTailer, replay: object, output: Any) -> Callable[[], object]:  # noqa: ANN401
    """Return what moves a tailer to the messages that *replay* asks for."""
    if (replay == "missed") != (output is not None):
        raise ValueError(
            f"replay='missed' and output go together: replay={replay!r:.80} "
            f"output={'not given' if output is None else 'given'}"
        )
    if replay is None:
        return lambda: None
    if not isinstance(replay, str):
        return partial(tailer.move_to_index, _INDEX("replay", replay))
    moves: dict[str, Callable[[], object]] = {
        "all": tailer.to_start,
        "new": tailer.to_end,
        "missed": partial(tailer.after_last_written, output),
    }
    return moves[_REPLAYS("replay", replay)]


_REPLAYS: Final = arguments.one_of("all", "new", "missed")
_INDEX: Final = arguments.whole(0, 2**63 - 1)


def method_reader(  # noqa: PLR0913 - the options of Tailer.method_reader
    tailer: Tailer | AnyRemoteTailer,
    handlers: Sequence[object],
    *,
    interface: object,
    on_error: OnError,
    dead_letter: DeadLetter | None,
    default: Callable[[str | int, Any], object] | None,
    filter: Filter | None,  # noqa: A002 - its name in the call
    metadata_handler: object,
    scanning: bool,
    names: Mapping[str, Any],
) -> MethodReader:
    """Implement :meth:`quire.JournalTailer.method_reader`."""
    found = [pair for handler in handlers for pair in handlers_of(handler, interface, names)]
    if inspect.iscoroutinefunction(filter):
        raise TypeError("a filter is asked before a call, so it cannot be a coroutine function")
    if not found and default is None and metadata_handler is None:
        raise TypeError("a method reader needs a handler: handlers=()")
    check_ids([method for method, _ in found])
    reader = MethodReader(
        tailer,
        found,
        metadata=None if metadata_handler is None else handlers_of(metadata_handler, None, names),
        default=default,
        filter=filter,
        on_failure=_on_failure(tailer, on_error, dead_letter),
        scanning=scanning,
    )
    reader._has_metadata = metadata_handler is not None  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    return reader


def _on_failure(
    tailer: Tailer | AnyRemoteTailer, on_error: OnError, dead_letter: DeadLetter | None
) -> Callable[[int, bytes, Exception], None] | None:
    if (on_error == "dead_letter") != (dead_letter is not None):
        raise ValueError(
            f"dead letters need a queue, and a queue is for dead letters: "
            f"on_error={on_error} dead_letter={dead_letter}"
        )
    if on_error == "raise":
        return None
    if on_error == "skip":
        return _skip
    if dead_letter is None:
        raise ValueError(
            f"invalid on_error={on_error!r}: expected 'raise', 'skip' or 'dead_letter'"
        )
    return _DeadLetters(tailer, dead_letter)


def _skip(index: int, payload: bytes, error: Exception) -> None:
    del payload
    _warn("a message that failed is skipped", index, error)


class _DeadLetters:
    """Writes messages that failed to another queue."""

    def __init__(self, tailer: Tailer | AnyRemoteTailer, to: DeadLetter) -> None:
        self._tailer = tailer
        self._appender = _appender_of(to, tailer.path)

    def __call__(self, index: int, payload: bytes, error: Exception) -> None:
        """Write the message, its index and queue, and the error."""
        self._appender.write_map(
            {
                "index": index,
                "queue": _encodable(self._tailer.path),
                "error": _encodable(f"{type(error).__name__}: {error}"),
                "payload": payload,
            }
        )
        _warn("a message that failed went to the dead letters", index, error)


def _encodable(text: str) -> str:
    """Return a text with what is no character, as in paths that are not UTF-8, escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def _appender_of(to: DeadLetter, source: str) -> Appender | AnyRemoteAppender:
    """
    Return an appender; a queue that is opened here closes with the process.

    Raises:
        EncryptionError: *to* is a path, and *source* is encrypted, or the queue at the path.
        NotAQueueError: There is a queue of another format at the path.

    """
    if isinstance(to, Appender | AnyRemoteAppender):
        return to
    if isinstance(to, AnyRemoteQueue):
        found: AnyRemoteAppender = to.appender()
        return found
    if isinstance(to, Queue):
        return Appender(to)
    try:
        path = arguments.path("dead_letter", to)
    except TypeError:
        expected = "a queue, its path, or an appender"
        raise arguments.refusal("dead_letter", expected, to) from None
    check_letters(source, path)
    if (found_format := format_of(path)) not in {None, CHRONICLE}:
        raise NotAQueueError(
            "dead letters go to a Chronicle Queue, and another format is there:"
            f" format={found_format} dead_letter={path} (give another path)"
        )
    return Appender(Queue(path))


def _warn(what: str, index: int, error: Exception) -> None:
    text = f"{what}: index={index:#x} error={type(error).__name__}: {error}"
    logging.getLogger("quire").warning(text, exc_info=error)
