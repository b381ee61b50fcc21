"""Tailers: waiting for messages, and Arrow batches, on top of the native one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from quire import _native
from quire._common import arguments
from quire._native import Excerpt
from quire.errors import UnsupportedError
from quire.handles.base import Tailer
from quire.handles.journal.subtopics import ROUTE
from quire.handles.wire_reading import WireReading

if TYPE_CHECKING:
    from datetime import date
    from os import PathLike

    from quire.calls.method_reader import DeadLetter, MethodReader
    from quire.calls.method_writer import Filter


class JournalTailer(_native.Tailer, WireReading, Tailer[Excerpt]):
    """
    Reads messages of a queue, from :meth:`quire.JournalQueue.tailer`.

    Examples:
        >>> _ = appender.write_many([b"one", b"two"])
        >>> with queue.tailer("risk") as tailer:
        ...     for message in tailer:
        ...         print(message.data)
        ...     tailer.name, tailer.closed, tailer.path == queue.path
        b'one'
        b'two'
        ('risk', False, True)
        >>> tailer.close()
        >>> tailer.closed
        True

    """

    _topics: tuple[Any, ...] = ()

    _queue: _native.Queue

    def __new__(
        cls,
        queue: _native.Queue,
        name: str | None = None,
        *,
        on_missing: str = "warn",
        shared: bool = False,
    ) -> Self:
        """Keep the queue."""
        given = cast("object", queue)
        if not isinstance(given, _native.Queue):
            raise arguments.refusal("queue", "a queue of quire.open", queue)
        if name is not None:
            arguments.text("name", name)
        arguments.text("on_missing", on_missing)
        arguments.flag("shared", shared)
        tailer = super().__new__(cls, queue, name, on_missing=on_missing, shared=shared)
        tailer._queue = queue
        return tailer

    def move_to_time(self, time: date | float | str, *, time_field: str | None = None) -> bool:
        """
        Go to the first message that is not earlier than a time; True if there is one.

        If there is none, the tailer is at the end. The search ignores sub-topics: the next read may
        return a later message, or none.

        With *time_field* a message's time is that of the field, and the place is found by binary
        search: if times are slightly out of order, the result is near it. Without the field, it is
        the time of the append, to the millisecond, if writers open the queue with
        ``time_index=True``; messages of other writers count as later. In cycles without that index,
        only their start can be found.

        Args:
            time: A datetime, a date or ISO 8601 text, in UTC if it has no zone; or seconds since
                1970.
            time_field: The field that holds a message's time, at its top level or below:
                ``trade.time`` is the field ``time`` of ``trade``. Numbers are seconds, milli-,
                micro- or nanoseconds since 1970, whichever lies between 1973 and 5138.

        Raises:
            TypeError: *time* is not a time, text or number.
            ValueError: *time* lies within a cycle that has messages and no index of times, and
                *time_field* is not given; or no message has that field.

        Examples:
            >>> for second in (0, 60, 120):
            ...     _ = appender.write_map({"at": 1_705_314_600 + second, "value": second})
            >>> tailer.move_to_time("2024-01-15T10:31:00", time_field="at")
            True
            >>> tailer.read_map()["value"]
            60

        """
        from quire.ranges.event_time import epoch_ns_of
        from quire.ranges.seek import first_at, move

        time_ns = epoch_ns_of(time)
        arguments.optional(arguments.text)("time_field", time_field)
        return move(self, self._queue, lambda: first_at(self._queue, time_ns, time_field))

    def move_to(self, key: Any, *, by: str | Callable[[Excerpt], Any]) -> bool:  # noqa: ANN401
        """
        Go to the first message whose key is not less than *key*; True if there is one.

        The messages must be in the order of their keys: the place is found by binary search. If no
        key is as great, the tailer is at the end. A message without a key is skipped. The search
        ignores sub-topics: the next read may return a later message, or none.

        Args:
            key: What to look for; it is compared with ``<``.
            by: The field that holds the key, at the top level of a message or below
                (``trade.id`` is the field ``id`` of ``trade``); or a function that returns the key
                of an excerpt, or None if it has none.

        Raises:
            TypeError: A message's key cannot be compared with *key*.
            ValueError: No message has a key, or none of 10,000 consecutive ones.

        Examples:
            >>> for number in (10, 20, 20, 30):
            ...     _ = appender.write_map({"order": number})
            >>> tailer.move_to(15, by="order")
            True
            >>> tailer.read_map()
            {'order': 20}
            >>> tailer.move_to(30, by=lambda excerpt: excerpt.to_dict()["order"])
            True
            >>> tailer.move_to(31, by="order")
            False

        """
        from quire.ranges.seek import first_by_key, move

        if not isinstance(by, str) and not callable(cast("object", by)):
            raise arguments.refusal("by", "the name of a field, or a function of an excerpt", by)
        return move(self, self._queue, lambda: first_by_key(self._queue, key, by))

    def after_last_written(self, output: _native.Queue | str | PathLike[str], /) -> None:
        """
        Go to the first message of this queue that is not yet reflected in *output*.

        From there on, no message has a result in *output* yet. Goes to the start if no message of
        *output* came from this queue.

        Args:
            output: A queue that a reader of this one writes, with history; or its path.

        Raises:
            ValueError: This queue has no source id, or *output* is this queue.
            IndexOutOfRangeError: The message was deleted.

        Examples:
            >>> with (
            ...     quire.open("input", source_id=1) as source,
            ...     quire.open("output") as output,
            ...     source.tailer() as tailer,
            ... ):
            ...     tailer.after_last_written(output)

        """
        from quire.opening.by_path import opened

        with opened(output, "output") as queue:
            if not isinstance(queue, _native.Queue):
                raise UnsupportedError(
                    f"messages of this format have no history: path={queue.path}"
                )
            super().after_last_written(queue)

    def topics(self, *keys: Any, event: str = ROUTE) -> Self:  # noqa: ANN401 - any value
        """
        Deliver only messages of the given sub-topics from now on, without their keys.

        Other messages are skipped in place. A message with history before its key is delivered
        whole. Without keys, everything is delivered again.

        Args:
            keys: As given to :meth:`JournalAppender.topic`, one by one or in one list, tuple or
                set. Numbers are equal whatever their width.
            event: The name before the key.

        Returns:
            This tailer.

        Examples:
            >>> _ = appender.topic("LDN").write_text("from London")
            >>> _ = appender.topic("NYC").write_text("from New York")
            >>> tailer.topics("NYC").read_text()
            'from New York'

        """
        if len(keys) == 1 and isinstance(keys[0], list | tuple | set | frozenset):
            keys = tuple(cast("Iterable[Any]", keys[0]))
        routes = [_native.entry_bytes(event, key) for key in keys]
        self._set_topics(routes or None)
        self._topics = keys
        return self

    @property
    def topic(self) -> Any:  # noqa: ANN401 - a key as it was given
        """
        The key of the message that was delivered last; None unless :meth:`topics` asks.

        Examples:
            >>> _ = appender.topic("LDN").write_text("hello")
            >>> _ = tailer.topics("LDN", "NYC").read_text()
            >>> tailer.topic
            'LDN'

        """
        number = self._topic_number
        return None if number is None else self._topics[number]

    def method_reader(  # noqa: PLR0913 - by keywords
        self,
        *handlers: object,
        interface: Callable[..., Any] | None = None,
        on_error: Literal["raise", "skip", "dead_letter"] = "raise",
        dead_letter: DeadLetter | None = None,
        default: Callable[[str | int, Any], object] | None = None,
        filter: Filter | None = None,  # noqa: A002 - its name as a keyword
        metadata_handler: object = None,
        scanning: bool = False,
        replay: Literal["all", "new", "missed"] | int | None = None,
        output: _native.Queue | str | PathLike[str] | None = None,
    ) -> MethodReader:
        """
        Return a reader that calls methods of *handlers* with the messages.

        An event, the name before a value, is the call of the method of that name, and the
        value its arguments. Their types come from the annotations of the handler's method, or of
        the class it derives from. If several handlers have a method, the first is called.

        While a handler runs, :meth:`MessageHistory.current` is the history of its message, and
        messages that its thread writes with history continue it.

        Args:
            handlers: Objects with public methods; method writers too.
            interface: Call only its methods, and take the types from it if a handler has none.
            on_error: What becomes of a message that does not decode or whose handler raises:
                ``raise`` goes back to it and raises, so that it is read again next time; ``skip``
                logs it and continues; ``dead_letter`` writes it to another queue and continues.
                Other events of the same document may have been handled before.
            dead_letter: A queue, its path, or an appender, for maps of ``index``, ``queue``,
                ``error`` and ``payload``. Not a path if this queue, or the one there, is encrypted.
            default: Called with name (or number) and value of each event that no handler handles.
            filter: Called with a method's name and a call's first argument (or None); if it returns
                a false value, the call is not made and its other arguments are not read.
            metadata_handler: An object whose methods are called with metadata documents; without
                one they are skipped.
            scanning: One read continues until a handler was called.
            replay: Where the tailer goes first: ``all``, to the first message; ``new``, after the
                last one; an index, to that message; ``missed``, to the first message without a
                result in *output*. None: it stays where it is.
            output: With ``replay="missed"``, a queue that the handlers write to with history, or
                its path: see :meth:`after_last_written`.

        Raises:
            TypeError: A handler has no method, or one that cannot be called with a message.
            ValueError: *on_error* and *dead_letter* do not go together, or *replay* and *output*.
            IndexOutOfRangeError: *replay* is not a possible index, or with ``missed`` the message
                was deleted.

        Examples:
            >>> class Printer:
            ...     def price(self, symbol: str, price: float) -> None:
            ...         print(symbol, price)
            >>> appender.method_writer(Printer).price("EURUSD", 1.1)
            >>> reader = tailer.method_reader(Printer())
            >>> reader.read_one()
            EURUSD 1.1
            True

        """
        from quire.calls.method_reader import method_reader, mover
        from quire.types import names_around

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
