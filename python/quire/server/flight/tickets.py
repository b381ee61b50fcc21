"""Tickets and descriptors of Flight clients: JSON that cannot be trusted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, cast

import pyarrow as pa
from pyarrow import flight

from quire.arrow.encoder import FORMS, Form
from quire.arrow.schema import Schema
from quire.errors import QuireError, RefusedError
from quire.server.topic_names import topic_of

Point: TypeAlias = int | float | str | None

LONGEST: Final = 1 << 20
_LARGEST: Final = 2**63 - 1
_DEEPEST: Final = 32
_MOST_COLUMNS: Final = 4096
_TICKET: Final = frozenset(
    (
        *("queue", "from", "to", "schema", "columns", "time_field", "errors"),
        *("method", "payload", "subtopic"),
    )
)
_PUT: Final = frozenset(("queue", "schema", "form", "type", "method", "omit_nulls"))


@dataclass(frozen=True, slots=True)
class Wanted:
    """
    The messages that a client asks for.

    Attributes:
        queue: The queue's name.
        start: The index of the first message, or a time; None: the first one.
        end: The index or time after the last; None: the end as it is when reading starts.
        schema: What the messages look like; None: their bytes, as the column ``payload``.
        columns: The columns that are wanted; None: all of them.
        time_field: The field that holds the time of a message.
        errors: ``raise``, or ``column`` for rows that are null and say why.
        method: The one method whose calls are rows; None: all of them, as a tagged union.
        payload: Whether the bytes of the messages are a column besides those of the schema.
        subtopic: Whether the topic in a message's route is a column.

    """

    queue: str
    start: Point = None
    end: Point = None
    schema: Schema | None = None
    columns: tuple[str, ...] | None = None
    time_field: str | None = None
    errors: Literal["raise", "column"] = "raise"
    method: str | None = None
    payload: bool = False
    subtopic: bool = False

    def ticket(self, start: int, end: int) -> flight.Ticket:
        """Return the ticket of a part of the messages."""
        asked = replace(self, start=start, end=end)
        values: dict[str, object] = {
            "queue": asked.queue,
            "from": asked.start,
            "to": asked.end,
            "schema": None if asked.schema is None else asked.schema.to_text(),
            "columns": None if asked.columns is None else list(asked.columns),
            "errors": asked.errors,
            "method": asked.method,
            "payload": asked.payload,
            "subtopic": asked.subtopic,
        }
        defaults = (None, False, "raise")
        return flight.Ticket(json.dumps({k: v for k, v in values.items() if v not in defaults}))


@dataclass(frozen=True, slots=True)
class Put:
    """
    What a client appends to, and how its rows become messages.

    Attributes:
        queue: The queue's name.
        options: Those of :meth:`Appender.write_batch`.

    """

    queue: str
    options: Mapping[str, Any]


def wanted_by(ticket: bytes) -> Wanted:
    """
    Return what a ticket asks for.

    Raises:
        RefusedError: The ticket is not JSON, or asks for what there is not.

    """
    values = _values(ticket, _TICKET)
    schema = _schema(values)
    errors = _one_of(values, "errors", ("raise", "column")) or "raise"
    wanted = Wanted(
        _queue(values),
        _point(values, "from"),
        _point(values, "to"),
        schema,
        _columns(values),
        _text(values, "time_field"),
        cast("Any", errors),
        _text(values, "method"),
        payload=_flag(values, "payload"),
        subtopic=_flag(values, "subtopic"),
    )
    if schema is None and (errors == "column" or wanted.method or wanted.subtopic):
        raise RefusedError("invalid ticket: errors, method and subtopic need a schema")
    if wanted.method is not None and (schema is None or wanted.method not in schema.methods):
        raise RefusedError(f"invalid ticket: no such method: method={wanted.method!r:.80}")
    return wanted


def wanted_of(descriptor: flight.FlightDescriptor) -> Wanted:
    """
    Return what a descriptor asks for: its path is the queue, or its command is a ticket.

    Raises:
        RefusedError: The descriptor is neither the name of a queue nor a ticket.

    """
    if descriptor.descriptor_type == flight.DescriptorType.CMD:
        return wanted_by(cast("bytes", descriptor.command))
    return Wanted(_name_of(descriptor))


def put_of(descriptor: flight.FlightDescriptor) -> Put:
    """
    Return what a client appends to: the path is the queue, or the command is JSON.

    Raises:
        RefusedError: The descriptor is neither the name of a queue nor such JSON.

    """
    if descriptor.descriptor_type != flight.DescriptorType.CMD:
        return Put(_name_of(descriptor), {})
    values = _values(cast("bytes", descriptor.command), _PUT)
    form = cast("Form | None", _one_of(values, "form", FORMS))
    options = {
        "schema": _schema(values),
        "form": form,
        "type": _text(values, "type"),
        "method": _text(values, "method"),
        "omit_nulls": _flag(values, "omit_nulls"),
    }
    return Put(_queue(values), {name: it for name, it in options.items() if it})


def _name_of(descriptor: flight.FlightDescriptor) -> str:
    if descriptor.descriptor_type != flight.DescriptorType.PATH:
        raise RefusedError("invalid descriptor: neither a path nor a command")
    parts = cast("Sequence[bytes]", descriptor.path)
    if sum(map(len, parts)) > LONGEST:
        raise RefusedError(f"the path is too long: limit={LONGEST}")
    return topic_of(b"/".join(parts))


def _values(text: bytes, known: frozenset[str]) -> dict[str, Any]:
    """Return the fields of a JSON object."""
    if len(text) > LONGEST:
        raise RefusedError(f"the ticket is too long: length={len(text)} limit={LONGEST}")
    try:
        found: Any = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise RefusedError(f"invalid ticket: not JSON: ticket={text[:80]!r}") from None
    if not isinstance(found, dict):
        raise RefusedError(f"invalid ticket: no JSON object: ticket={text[:80]!r}")
    values = cast("dict[str, Any]", found)
    if unknown := sorted(values.keys() - known):
        raise RefusedError(
            f"invalid ticket: unknown field: field={unknown[0]!r:.80}"
            f" known={', '.join(sorted(known))}"
        )
    return values


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field is there twice")
    return found


def _queue(values: Mapping[str, Any]) -> str:
    name = _text(values, "queue")
    if name is None:
        raise RefusedError("invalid ticket: `queue` is missing")
    return topic_of(name.encode("utf-8", "surrogatepass"))


def _text(values: Mapping[str, Any], name: str) -> str | None:
    return cast("str | None", _of(values, name, "text", lambda it: isinstance(it, str)))


def _flag(values: Mapping[str, Any], name: str) -> bool:
    return bool(_of(values, name, "true or false", lambda it: isinstance(it, bool)))


def _one_of(values: Mapping[str, Any], name: str, words: Sequence[str]) -> str | None:
    found = _of(values, name, " or ".join(words), lambda it: isinstance(it, str) and it in words)
    return cast("str | None", found)


def _point(values: Mapping[str, Any], name: str) -> Point:
    def is_point(found: Any) -> bool:  # noqa: ANN401 - of JSON
        if isinstance(found, bool):
            return False
        if isinstance(found, int):
            return 0 <= found <= _LARGEST
        return isinstance(found, str | float)

    return cast("Point", _of(values, name, "an index or a time", is_point))


def _columns(values: Mapping[str, Any]) -> tuple[str, ...] | None:
    def are_names(found: Any) -> bool:  # noqa: ANN401 - of JSON
        if not isinstance(found, list):
            return False
        names = cast("list[object]", found)
        return 0 < len(names) <= _MOST_COLUMNS and all(isinstance(it, str) for it in names)

    found = _of(values, "columns", "a list of names", are_names)
    return None if found is None else tuple(cast("list[str]", found))


def _of(values: Mapping[str, Any], name: str, expected: str, fits: Callable[[Any], bool]) -> object:
    found: object = values.get(name)
    if found is not None and not fits(found):
        shown = json.dumps(found)[:80]
        raise RefusedError(f"invalid ticket: expected {expected}: field={name} found={shown}")
    return found


def _schema(values: Mapping[str, Any]) -> Schema | None:
    """Return a schema: columns by name, or the text of a schema. No class is ever imported."""
    found: Any = values.get("schema")
    if found is None:
        return None
    try:
        if isinstance(found, str):
            return Schema.from_text(found)
        if isinstance(found, dict) and _is_small(columns := cast("dict[str, Any]", found)):
            return Schema(columns)
    except (ValueError, TypeError, RecursionError, QuireError, pa.ArrowException) as error:
        raise RefusedError(f"invalid ticket: not a schema: {error!s:.400}") from None
    raise RefusedError(
        f"invalid ticket: expected up to {_MOST_COLUMNS} columns by name, up to {_DEEPEST} levels"
        " deep, or the text of a schema: field=schema"
    )


def _is_small(found: object, levels: int = _DEEPEST) -> bool:
    """Return whether types are names, or such inside of others, to a limited depth."""
    if isinstance(found, str):
        return True
    if levels == 0 or not isinstance(found, dict | list):
        return False
    several = cast("dict[str, object] | list[object]", found)
    inside = several.values() if isinstance(several, dict) else several
    return len(inside) <= _MOST_COLUMNS and all(_is_small(it, levels - 1) for it in inside)
