"""What messages pass on their way to the output: patterns, limiters, interfaces."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, cast

import quire
from quire._native import Method, entry_bytes
from quire.cli.output.message_formats import text_of
from quire.cli.parameters import methods_of_interface
from quire.cli.reading.selection import Rows
from quire.formats.columns import Columns

if TYPE_CHECKING:
    from quire.calls.method_reader import MethodReader
    from quire.cli.parameters import Zone

_SHOWN_AS: Final = {"json": "jsonl", "csv": "yaml", "arrow": "yaml", "raw": "text"}


class Patterns:
    """Lets through messages whose text matches every pattern of one list, and none of another."""

    def __init__(
        self, style: str, include: Sequence[re.Pattern[str]], exclude: Sequence[re.Pattern[str]]
    ) -> None:
        """Take the text of messages in this style."""
        self._style = _SHOWN_AS.get(style, style)
        self._include = include
        self._exclude = exclude

    def __call__(self, batch: Columns, rows: Rows) -> tuple[Columns, Rows]:
        """Return the rows that pass."""
        return batch, [row for row in rows if self._passes(text_of(batch, self._style, row))]

    def _passes(self, text: str) -> bool:
        return all(it.search(text) for it in self._include) and not any(
            it.search(text) for it in self._exclude
        )


class Limiter:
    """
    Ends the output before the first message for which a function is true.

    Args:
        function: Called with each message as an excerpt.

    """

    def __init__(self, function: Callable[[quire.Excerpt], object]) -> None:
        """Begin with nothing seen."""
        self._function = function
        self.has_stopped = False

    def __call__(self, batch: Columns, rows: Rows) -> tuple[Columns, Rows]:
        """Return the rows before that message."""
        for number, row in enumerate(rows):
            if self.has_stopped or self._function(batch.excerpt(row)):
                self.has_stopped = True
                return batch, rows[:number]
        return batch, rows


class Calls:
    """
    Turns messages into the calls of an interface that they are; lets no others through.

    Args:
        queue: Where the messages are from.
        interface: Declares the methods and the types of their arguments.
        with_history: Put the history of a message before its calls.
        zone: Moves the times among the arguments.

    """

    def __init__(
        self,
        queue: Any,  # noqa: ANN401 - of a format that has calls
        interface: Callable[..., Any],
        *,
        with_history: bool,
        zone: Zone | None = None,
    ) -> None:
        """Make a reader of its own."""
        from quire.calls.described import described_methods_of
        from quire.types import names_around

        self._found: list[bytes] = []
        self._zone = zone
        methods = methods_of_interface(interface)
        shown = described_methods_of(interface, names_around())
        calls = {name: self._call(it, b"") for name, it in shown.items()}
        self._tailer = queue.tailer()
        self._reader: MethodReader = self._tailer.method_reader(
            _implementation(interface, methods, calls), interface=interface
        )
        self._with_history = with_history

    def __call__(self, batch: Columns, rows: Rows) -> tuple[Columns, Rows]:
        """Return the calls as a batch of their own."""
        indexes, payloads = list[int](), list[bytes]()
        for row in rows:
            self._found.clear()
            index = batch.indexes[row]
            if self._tailer.move_to_index(index):
                self._reader.read_one()
            if self._found:
                indexes.append(index)
                payloads.append(self._history() + b"".join(self._found))
        return Columns.of_payloads(indexes, payloads), range(len(indexes))

    def _call(self, method: Method, before: bytes) -> Any:  # noqa: ANN401 - a method
        def call(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the method has them
            if self._zone is not None:
                given, named = _moved((given, named), self._zone)
            encoded = before + method.event_bytes(*given, **named)
            if method.next is None:
                self._found.append(encoded)
                return None
            following = {name: self._call(it, encoded) for name, it in method.next.items()}
            return type("Calls", (), following)()

        return staticmethod(call)

    def _history(self) -> bytes:
        history = self._tailer.history if self._with_history else None
        if history is None:
            return b""
        sources = [[source, index] for source, index in history.sources]
        return entry_bytes("history", {"sources": sources, "timings": [*history.timings]})


def _moved(value: Any, zone: Zone) -> Any:  # noqa: ANN401 - any argument of a call
    """Return a value whose times are those of a zone, also inside collections and dataclasses."""
    if isinstance(value, datetime):
        return value if value.tzinfo is None else zone(value)
    if isinstance(value, dict):
        return {key: _moved(it, zone) for key, it in cast("Any", value).items()}
    if type(value) in {list, tuple}:
        return type(value)(_moved(it, zone) for it in value)
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            found = getattr(value, field.name)
            if (moved := _moved(found, zone)) is not found:
                object.__setattr__(value, field.name, moved)
    return value


def _implementation(
    interface: Callable[..., Any], methods: dict[str, Method], calls: dict[str, Any]
) -> object:
    """Return an object of an interface, whose methods are known by what it declares."""
    from types import new_class

    from quire.calls.interfaces import METHODS, Interface

    cls = Interface.of(interface).cls
    members = calls | {METHODS: methods, "__module__": cls.__module__, "__slots__": ()}
    made: Any = new_class(f"{cls.__name__}Calls", (cls,), {}, lambda space: space.update(members))
    made.__abstractmethods__ = frozenset[str]()
    return object.__new__(made)


def made(reference: Any, argument: str | None) -> Callable[..., Any]:  # noqa: ANN401
    """Return a function, or an instance of a class, made with an argument if one was given."""
    if isinstance(reference, type):
        found: Any = reference() if argument is None else reference(argument)
        return cast("Callable[..., Any]", found)
    return cast("Callable[..., Any]", reference)
