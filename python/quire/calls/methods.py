"""
Calls as messages: method writers and method readers.

    class Market(Protocol):
        def trade(self, trade: Trade) -> None: ...

    market = queue.appender().method_writer(Market)
    market.trade(Trade("EURUSD", 1.1))                      # one message

    reader = queue.tailer().method_reader(Book())           # Book has a method trade
    while reader.read_one(): ...                            # calls it
"""

from __future__ import annotations

import logging
import types
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from quire import _arguments as arguments
from quire import _native
from quire._native import Method
from quire.calls.interfaces import METHODS, Interface, check_ids, handlers_of, methods_of
from quire.errors import ClosedError

if TYPE_CHECKING:
    from os import PathLike

    from quire._native import WriteDocument
    from quire.appender import Appender
    from quire.pausers import Pauser
    from quire.queue import Queue
    from quire.tailer import Tailer

    DeadLetter: TypeAlias = Appender | Queue | str | PathLike[str]

_T = TypeVar("_T")
_READ_AT_ONCE = 1000

Filter: TypeAlias = Callable[[str, Any], object]
"""Called with a method's name and a call's first argument, or None; true: the call is made."""

OnError: TypeAlias = Literal["raise", "skip", "dead_letter"]


def method_writer(  # noqa: PLR0913 - the options of Appender.method_writer
    appender: Appender,
    interface: Callable[..., _T],
    more: Sequence[Callable[..., Any]],
    *,
    record_history: bool | None,
    history_form: Literal["packed", "fields"],
    metadata: bool,
    document: WriteDocument | None,
    filter: Filter | None,  # noqa: A002 - its name in the call
    names: Mapping[str, Any],
) -> _T:
    """Make the object behind :meth:`quire.Appender.method_writer`."""
    interfaces = (interface, *more)
    found: dict[str, Method] = {}
    for each in reversed(interfaces):
        found |= methods_of(each, names)
    check_ids(found.values())
    writer = _native.MethodWriter(
        appender,
        record_history=record_history,
        history_form=history_form,
        metadata=metadata,
        document=document,
        filter=filter,
    )
    members: dict[str, object] = {name: writer.method(it) for name, it in found.items()}
    bases = _bases([Interface.of(each).cls for each in interfaces])
    name = f"{bases[0].__name__}Writer"

    def shown(_: object) -> str:
        return f"{name}({appender!r})"

    members["__repr__"] = shown
    members |= {METHODS: found, "__module__": bases[0].__module__, "__slots__": ()}
    cls: Any = types.new_class(name, bases, {}, lambda namespace: namespace.update(members))
    cls.__abstractmethods__ = frozenset[str]()
    written: _T = object.__new__(cls)
    return written


def _bases(classes: list[type]) -> tuple[type, ...]:
    """Leave out the classes that others derive from."""
    return tuple(
        cls
        for number, cls in enumerate(classes)
        if cls not in classes[:number]
        and not any(other is not cls and cls in other.__mro__ for other in classes)
    )


class MethodReader(_native.MethodReader):
    """
    Calls handlers with the messages of a tailer, from :meth:`quire.Tailer.method_reader`.

    A document's events are handled in their order. What a handler's method returns handles the next
    event of the same document, if the method's annotation says that it is an interface, a Protocol
    or an ABC, and that has a method for it: chained calls. Other results are of no concern. An
    event nobody handles is passed over. An event may lack arguments that have a default, and have
    more than the method takes.
    """

    _pauser: Pauser | None = None

    def run(
        self, pauser: Pauser | None = None, *, until: Callable[[], object] | None = None
    ) -> None:
        """
        Read messages as they come, until the reader is closed.

        Args:
            pauser: What to do when there is none, see :mod:`quire.pausers`; balanced by default.
            until: Called when there is none; true ends it.

        Raises:
            WaitTimeoutError: The pauser has a timeout, and nothing came for so long.

        """
        pauser = self._begin(pauser)
        while not self.closed:
            if self._read_some():
                pauser.reset()
            elif until is not None and until():
                return
            else:
                pauser.pause()

    async def run_async(
        self, pauser: Pauser | None = None, *, until: Callable[[], object] | None = None
    ) -> None:
        """
        As :meth:`run`, while the event loop runs on.

        Handlers are called between two steps of the loop, and hold it up as long as they take; its
        other tasks run every few milliseconds, also while there is a backlog.
        """
        import asyncio

        from quire.pausers import TURN_S

        pauser, turn_ends = self._begin(pauser), monotonic() + TURN_S
        while not self.closed:
            if self._read_some():
                pauser.reset()
                if monotonic() >= turn_ends:
                    await asyncio.sleep(0)
                    turn_ends = monotonic() + TURN_S
            elif until is not None and until():
                return
            else:
                await pauser.pause_async()

    def close(self) -> None:
        """End :meth:`run`, from any thread; reading raises then. The tailer stays open."""
        super().close()
        if self._pauser is not None:
            self._pauser.unpause()

    def _begin(self, pauser: Pauser | None) -> Pauser:
        if pauser is None:
            from quire import pausers

            pauser = pausers.balanced()
        self._pauser = pauser
        return pauser

    def _read_some(self) -> int:
        try:
            return self.read_many(_READ_AT_ONCE)
        except ClosedError:
            if not self.closed:
                raise
            return 0


def method_reader(  # noqa: PLR0913 - the options of Tailer.method_reader
    tailer: Tailer,
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
    """Make the object behind :meth:`quire.Tailer.method_reader`."""
    found = [pair for handler in handlers for pair in handlers_of(handler, interface, names)]
    if not found and default is None and metadata_handler is None:
        raise TypeError("a method reader needs a handler: handlers=()")
    check_ids([method for method, _ in found])
    return MethodReader(
        tailer,
        found,
        metadata=None if metadata_handler is None else handlers_of(metadata_handler, None, names),
        default=default,
        filter=filter,
        on_failure=_on_failure(tailer, on_error, dead_letter),
        scanning=scanning,
    )


def _on_failure(
    tailer: Tailer, on_error: OnError, dead_letter: DeadLetter | None
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
        raise ValueError(f"no such way: on_error={on_error} known=raise, skip, dead_letter")
    return _DeadLetters(tailer, dead_letter)


def _skip(index: int, payload: bytes, error: Exception) -> None:
    del payload
    _warn("a message that failed is skipped", index, error)


class _DeadLetters:
    """Writes messages that failed to another queue."""

    def __init__(self, tailer: Tailer, to: DeadLetter) -> None:
        self._tailer = tailer
        self._appender = _appender_of(to)

    def __call__(self, index: int, payload: bytes, error: Exception) -> None:
        """Write the message, where it was, and what was wrong."""
        self._appender.write_map(
            {
                "index": index,
                "queue": self._tailer.path,
                "error": f"{type(error).__name__}: {error}",
                "payload": payload,
            }
        )
        _warn("a message that failed went to the dead letters", index, error)


def _appender_of(to: DeadLetter) -> Appender:
    """Return an appender; of a queue that is opened here, one that is closed with the process."""
    from quire.queue import Queue
    from quire.queue import open as open_queue

    if isinstance(to, _native.Appender):
        return to
    if isinstance(to, Queue):
        return to.appender()
    try:
        path = arguments.path("dead_letter", to)
    except TypeError:
        expected = "a queue, its path, or an appender"
        raise arguments.refusal("dead_letter", expected, to) from None
    return open_queue(path).appender()


def _warn(what: str, index: int, error: Exception) -> None:
    text = f"{what}: index={index:#x} error={type(error).__name__}: {error}"
    logging.getLogger("quire").warning(text, exc_info=error)
