"""Where a read begins and ends in each topic: offsets and times as users give them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

import quire
from quire.formats.adapters import adapter_of, end_index_of
from quire.ranges import seek
from quire.ranges.event_time import TimeField, epoch_ns_of

EARLIEST: Final = "earliest"
LATEST: Final = "latest"

Offset: TypeAlias = int | str
"""An index, ``earliest`` or ``latest``."""


class Bound(NamedTuple):
    """
    One end of a read.

    Attributes:
        offset: The offset of every topic that is not in *by_topic*.
        by_topic: The offsets of single topics.
        time_ns: A time instead of offsets, in nanoseconds since 1970.

    """

    offset: Offset
    by_topic: Mapping[str, Offset] = {}
    time_ns: int | None = None

    def of(self, topic: str) -> Offset:
        """Return the offset of a topic."""
        return self.by_topic.get(topic, self.offset)

    def check(self, topics: Iterable[str], name: str, report: Callable[[str], None]) -> None:
        """Report topics that do not exist."""
        known = [*topics]
        for topic in self.by_topic:
            if topic not in known:
                report(f"no such topic in {name}: topic={topic} known={', '.join(known)}")


def parse_offsets(
    text: str, name: str, default: Offset, report: Callable[[str], None]
) -> Bound | None:
    """Parse an offset, or JSON with offsets by topic; all other topics get *default*."""
    bound: Bound | None = None
    if text.lstrip().startswith("{"):
        try:
            items = json.loads(text).items()
        except (ValueError, AttributeError):
            report(f"{name} is not a JSON object: {name}={text!r:.80}")
            return None
        found = {topic: _offset(str(value)) for topic, value in items}
        wrong = [topic for topic, value in found.items() if value is None]
        if not wrong:
            given = {topic: value for topic, value in found.items() if value is not None}
            return Bound(default, given)
        text = f"{text!r:.80} (topic {wrong[0]})"
    elif (offset := _offset(text)) is not None:
        bound = Bound(offset)
    if bound is None:
        report(
            f"{name} must be earliest, latest, an index (decimal, or hexadecimal with 0x), or a"
            f" JSON object of these by topic: {name}={text}"
        )
    return bound


def parse_time(text: str, name: str, report: Callable[[str], None]) -> int | None:
    """Parse epoch milliseconds, or a time in ISO 8601 (UTC without a zone), to nanoseconds."""
    text = text.strip()
    if re.fullmatch(r"-?\d{9,}", text):  # shorter ones are dates, as 2024 and 20240115
        return int(text) * 1_000_000
    try:
        return epoch_ns_of(text)
    except ValueError:
        report(
            f"{name} must be epoch milliseconds, or a time such as 2024-01-15T10:30:00Z:"
            f" {name}={text!r:.80}"
        )
        return None


def resolved(
    queue: quire.Queue,
    topic: str,
    bound: Bound,
    time_field: TimeField | None,
    *,
    is_end: bool = False,
) -> int:
    """
    Return the index in a queue that a bound stands for.

    Raises:
        ValueError: An ending time lies within a cycle without an index of append times, and there
            is no event time field.

    """
    if bound.time_ns is not None:
        return _at_time(queue, bound.time_ns, time_field, is_end=is_end)
    offset = bound.of(topic)
    if isinstance(offset, int):
        return offset
    return end_index_of(queue) if offset == LATEST else adapter_of(queue).first_index(queue) or 0


def _at_time(
    queue: quire.Queue, time_ns: int, time_field: TimeField | None, *, is_end: bool
) -> int:
    if time_field is not None:
        return seek.index_at_time(queue, time_ns, time_field)
    if is_end:
        return seek.first_at(queue, time_ns)
    found = seek.by_append_time(queue, time_ns)
    return seek.index_at_time(queue, time_ns) if found is None else found


def _offset(text: str) -> Offset | None:
    text = text.strip().lower()
    if text in {EARLIEST, LATEST}:
        return text
    try:
        index = int(text, 16 if text.startswith("0x") else 10)
    except ValueError:
        return None
    return index if 0 <= index < 2**63 else None
