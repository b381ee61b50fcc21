"""Pages of messages: from an index or a time on, before an index, or those that match a search."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Final

from quire._common.units import relative_time
from quire.errors import QuireError, RefusedError
from quire.formats.adapters import count_of, cycles_of
from quire.formats.columns import Columns
from quire.ranges.event_time import TimeField
from quire.ranges.seek import NO_INDEX, by_append_time, first_by, first_from, index_at_time
from quire.server.entry_fields import fields_of
from quire.server.served_queue import ServedQueue
from quire.server.web.message_views import DECODED, View, text_of

_re2: Any = import_module("re2")  # it has no types
PAGE: Final = 50
MOST: Final = 200
_BYTES: Final = 8 << 20
_BATCH: Final = 1000
_SEARCH_S: Final = 2.0
_INDEX: Final = re.compile(r"[0-9]{1,20}|0x[0-9a-f]{1,16}")
_PATTERN: Final = 1000
_PATTERN_MEMORY: Final = 4 << 20
_PAST_INDEXES: Final = 2**63


@dataclass(frozen=True, slots=True)
class Asked:
    """
    A request for messages of a queue.

    Attributes:
        start: Where to start: an index, a time, or ``start``; if empty, with the newest messages.
        before: Only the nearest messages before this index; None: from *start* on.
        count: The most messages to return.
        view: The form in which messages are shown, and in which a pattern is applied to them.
        field: Only messages that have a field of this name.
        value: Only messages in which *field* has this value; ignored without *field*.
        regex: Only messages that match this regular expression.
        time_field: The field that contains the time of a message; empty if there is none.

    """

    start: str = ""
    before: int | None = None
    count: int = PAGE
    view: View = "yaml"
    field: str = ""
    value: str = ""
    regex: str = ""
    time_field: str = ""

    @property
    def is_search(self) -> bool:
        """Whether only some messages are wanted."""
        return bool(self.field or self.regex)


@dataclass(frozen=True, slots=True)
class MessagePage:
    """
    A page of messages.

    Attributes:
        messages: The index and the bytes of each message.
        before: The index at which the preceding page ends; None: there is no such page.
        following: The index at which the next page starts; None: there is no such page yet.
        searched: The number of messages that were examined.
        is_through: Whether the page reaches the end of the queue.

    """

    messages: list[tuple[int, bytes]]
    before: int | None
    following: int | None
    searched: int
    is_through: bool


def index_of(text: str) -> int:
    """
    Return an index that is given in decimal digits or, after ``0x``, in hexadecimal digits.

    Raises:
        RefusedError: The text is not an index.

    """
    digits = text.strip().lower()
    is_hex = digits.startswith("0x")
    try:
        found = int(digits if _INDEX.fullmatch(digits) else "?", 16 if is_hex else 10)
    except ValueError:
        raise RefusedError(f"not an index: {text!r:.60}") from None
    if found >= _PAST_INDEXES:
        raise RefusedError(f"not an index: {text!r:.60} (too large: expected less than 2^63)")
    return found


def page_of(queue: ServedQueue, asked: Asked) -> MessagePage:
    """
    Return a page of messages, in the order of their indexes.

    Raises:
        RefusedError: The index, the time or the regular expression is invalid.
        QuireError: The queue is damaged, or was removed.

    """
    if asked.is_search:
        start = _start_of(queue, asked.start or "start", asked.time_field)
        return _searched(queue, start, asked.count, matcher(asked))
    past = _PAST_INDEXES - 1 if asked.before is None else asked.before
    if asked.before is not None or not asked.start:
        start = start_before(queue, past, asked.count)
    else:
        start = _start_of(queue, asked.start, asked.time_field)
    return _read(queue, start, past, asked.count)


def message_at(queue: ServedQueue, index: int) -> bytes | None:
    """Return the bytes of the message at an index; None if there is no such message."""
    found = _read(queue, index, index + 1, 1).messages
    return found[0][1] if found and found[0][0] == index else None


def _start_of(queue: ServedQueue, text: str, time_field: str) -> int:
    """Return the index of the first message from an index or a time on."""
    text = text.strip()
    if text == "start":
        return 0
    if text.isdecimal() or text[:2].lower() == "0x":
        return index_of(text)
    moment = _time_of(text)
    try:
        time_ns = int(moment.timestamp() * 1_000_000) * 1000
        if time_field:
            return _at_field(queue, time_ns, time_field)
        found = by_append_time(queue.queue, time_ns)
        return index_at_time(queue.queue, time_ns) if found is None else found
    except (ValueError, OverflowError):
        raise RefusedError(f"the time is out of range: {text!r:.60}") from None


def _at_field(queue: ServedQueue, time_ns: int, name: str) -> int:
    """Return the index of the first message whose time in a field is not earlier."""
    field, ends_s = TimeField(name), time.monotonic() + _SEARCH_S

    def is_reached(excerpt: Any) -> bool | None:  # noqa: ANN401 - of any format
        if time.monotonic() > ends_s:
            raise RefusedError(f"too few messages have a time in the field: {name!r:.60}")
        found = None if len(excerpt.data) > DECODED else field.of(excerpt.data)
        return None if found is None else found >= time_ns

    try:
        return first_by(queue.queue, is_reached)
    except ValueError:
        raise RefusedError(f"no message has a time in the field: {name!r:.60}") from None


def _time_of(text: str) -> datetime:
    try:
        if (found := relative_time(text, datetime.now(UTC))) is not None:
            return found
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise RefusedError(
            f"neither an index nor a time: {text!r:.60} (such as 89262305312768, 0x512f00000000,"
            " 2026-01-31T12:00 in UTC, or -5m for five minutes ago)"
        ) from None


def start_before(queue: ServedQueue, past: int, count: int) -> int:
    """Return the index from which there are *count* messages before the index *past*."""
    handle, numbering, left = queue.queue, queue.numbering, count
    for cycle in reversed(cycles_of(handle)):
        base = numbering.to_index(cycle, 0)
        end = min(past, numbering.to_index(cycle, count_of(handle, cycle)))
        there = (end - base) // numbering.step
        if there >= left:
            return end - left * numbering.step
        left -= max(0, there)
    return 0


def _read(queue: ServedQueue, start: int, past: int, count: int) -> MessagePage:
    tailer = _tailer_at(queue, start)
    if tailer is None:
        end = queue.end_index
        return MessagePage([], end or None, None, 0, is_through=True)
    with tailer:
        columns = Columns.read(tailer, count, max_bytes=_BYTES, end=past)
    found = [(columns.indexes[it], bytes(columns.payload(it))) for it in range(len(columns))]
    found = [it for it in found if it[0] >= start]
    last = queue.queue.last_index
    first = queue.queue.first_index
    before = found[0][0] if found and first is not None and found[0][0] > first else None
    is_last = not found or last is None or found[-1][0] >= last
    following = None if is_last else found[-1][0] + queue.numbering.step
    return MessagePage(found, before, following, len(found), is_through=is_last)


def _tailer_at(queue: ServedQueue, start: int) -> Any:  # noqa: ANN401 - of the format
    """Return a new tailer at the first message from an index on; None if there is no message."""
    index = first_from(queue.queue, start)
    if index == NO_INDEX:
        return None
    tailer = queue.new_tailer()
    if index:
        tailer.move_to_index(index)
    return tailer


def _searched(
    queue: ServedQueue, start: int, count: int, matches: Callable[[int, bytes], bool]
) -> MessagePage:
    """Return the messages that match, as far as they are found within the time limit."""
    found: list[tuple[int, bytes]] = []
    searched, following, size, ends_s = 0, start, 0, time.monotonic() + _SEARCH_S
    tailer = _tailer_at(queue, start)
    if tailer is None:
        return MessagePage([], None, None, 0, is_through=True)
    with tailer:
        while True:
            columns = Columns.read(tailer, _BATCH, max_bytes=_BYTES)
            if not len(columns):
                return MessagePage(found, None, None, searched, is_through=True)
            for place in range(len(columns)):
                index, data = columns.indexes[place], bytes(columns.payload(place))
                searched, following = searched + 1, index + queue.numbering.step
                if index >= start and matches(index, data):
                    found.append((index, data))
                    size += len(data)
                if len(found) >= count or size > _BYTES or time.monotonic() > ends_s:
                    return MessagePage(found, None, following, searched, is_through=False)


def matcher(asked: Asked) -> Callable[[int, bytes], bool]:
    """
    Return a function of a message's index and bytes: whether the message matches the search.

    Raises:
        RefusedError: The text is not a regular expression.

    """
    pattern = None if not asked.regex else _pattern(asked.regex, asked.view)
    name, value = asked.field.encode("utf-8", "replace"), asked.value.encode("utf-8", "replace")

    def matches(index: int, data: bytes) -> bool:
        if name:
            fields = fields_of(index, data) if len(data) <= DECODED else []
            pairs = zip(fields[::2], fields[1::2], strict=True)
            if not any(key == name and (not value or value == it) for key, it in pairs):
                return False
        return pattern is None or pattern(index, data)

    return matches


def _pattern(regex: str, view: View) -> Callable[[int, bytes], bool]:
    """Return whether RE2, whose time is linear in the length, finds a pattern in a message."""
    options = _re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_MEMORY
    is_bytes = view == "bytes"
    if is_bytes:
        options.encoding = _re2.Options.Encoding.LATIN1
    if len(regex) > _PATTERN:
        raise RefusedError(f"the regular expression is too long: limit={_PATTERN}")
    try:
        source = b"(?m)" + regex.encode("utf-8" if not is_bytes else "latin-1")
        compiled = _re2.compile(source, options=options)
    except UnicodeEncodeError:
        raise RefusedError("a regular expression for bytes has only Latin-1 characters") from None
    except _re2.error as error:
        reason = error.args[0] if error.args else error
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise RefusedError(f"not a valid RE2 regular expression: {text:.200}") from None

    def is_found(index: int, data: bytes) -> bool:
        if is_bytes or len(data) > DECODED:
            return compiled.search(data) is not None
        try:
            text = text_of(index, data, view)
        except (QuireError, ValueError, TypeError, RecursionError):
            return compiled.search(data) is not None
        return compiled.search(text.encode("utf-8", "replace")) is not None

    return is_found
