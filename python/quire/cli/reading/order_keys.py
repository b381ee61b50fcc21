"""What `quire merge` orders by and `quire split` splits by: keys of messages."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Any

import click

from quire._common.roll_file_names import uncompressed
from quire._common.units import duration_us
from quire._native import Plan
from quire.cli.reading.fields import compared_values_in
from quire.cli.where.conditions import holds
from quire.formats.adapters import adapter_of, numbering_of
from quire.formats.protocols import AnyQueue
from quire.handles.journal.subtopics import ROUTE
from quire.maintenance.results import CycleTimes
from quire.ranges.event_time import Field, TimeField, datetime_of

Key = Callable[[Any], Any]


def period_ns(value: str) -> int:
    """
    Return the nanoseconds of a duration of whole seconds, such as ``15m``.

    Raises:
        click.BadParameter: The value is not a duration.

    """
    try:
        seconds, rest = divmod(duration_us(value), 1_000_000)
    except ValueError:
        seconds, rest = 0, 0
    if rest or not seconds:
        raise click.BadParameter(
            f"{value!r} is not a duration of whole seconds: 30s, 15m, 1h or 1d"
        )
    return seconds * 10**9


def by_order(field: Field) -> Key:
    """
    Return a key that orders messages by a field.

    Raises:
        click.ClickException: The key function raises this: a message lacks the field, or its value
            has another type than in earlier messages.

    """
    kinds = set[bool]()

    def key(excerpt: Any) -> Any:  # noqa: ANN401 - of any format
        value = _value(field, excerpt)
        kinds.add(isinstance(value, str))
        if len(kinds) > 1 or not isinstance(value, str | int | float):
            raise click.ClickException(
                "values that cannot be ordered:"
                f" field={field.name} index={excerpt.index:#x} value={value!r:.80}"
            )
        return value

    return key


def by_field(name: str) -> Key:
    """Return a key that is the text of a field."""
    field = Field(name)

    def key(excerpt: Any) -> str:  # noqa: ANN401 - of any format
        value = _value(field, excerpt)
        return value if isinstance(value, str) else json.dumps(value)

    return key


def by_topic() -> Key:
    """Return a key that is the key of a message's sub-topic."""
    plan = Plan("fields", [])

    def key(excerpt: Any) -> str:  # noqa: ANN401 - of any format
        ends = array("i", [0, len(excerpt.data)])
        keys = plan.decode(array("Q", [0]), ends, excerpt.data, topic=ROUTE)[-1]
        if keys is None or keys[1]:
            raise click.ClickException(f"a message has no sub-topic: index={excerpt.index:#x}")
        return bytes(keys[2][-1] or b"").decode()

    return key


def by_cycle(queue: AnyQueue) -> Key:
    """Return a key that is the name of a message's file, without its suffix, or of its page."""
    adapter, numbering, names = adapter_of(queue), numbering_of(queue), dict[int, str]()

    def key(excerpt: Any) -> str:  # noqa: ANN401 - of any format
        cycle = numbering.to_cycle(excerpt.index)
        if cycle not in names:
            place = adapter.place(queue, cycle)
            names[cycle] = Path(uncompressed(place.name)).stem if adapter.is_written else str(cycle)
        return names[cycle]

    return key


def by_time(queue: AnyQueue, every_ns: int, field: str | None) -> Key:
    """Return a key that is the start of a period: of the event time, or of the cycle's start."""
    times, event = CycleTimes(queue), None if field is None else TimeField(field)

    def key(excerpt: Any) -> str:  # noqa: ANN401 - of any format
        time_ns = times.of(excerpt.index) * 1_000_000 if event is None else _value(event, excerpt)
        start = datetime_of(time_ns // every_ns * every_ns).astimezone(UTC)
        return start.strftime("%Y%m%dT%H%M%SZ")

    return key


def by_condition(expression: str) -> Key:
    """Return a key that is ``matching`` or ``other``."""
    from quire.cli.where.language import parse_where  # its parser loads when one is needed

    condition = parse_where(expression)

    def key(excerpt: Any) -> str:  # noqa: ANN401 - of any format
        values = compared_values_in(excerpt.data, excerpt.index)
        return "matching" if holds(condition, values) else "other"

    return key


def _value(field: Field, excerpt: Any) -> Any:  # noqa: ANN401 - of any format
    """Return the value of a field; an error where the message lacks it."""
    value = field.of(excerpt.data)
    if value is None:
        raise click.ClickException(
            f"a message lacks the field: field={field.name} index={excerpt.index:#x}"
        )
    return value
