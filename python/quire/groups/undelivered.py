"""Dead letters: where each comes from, and why it is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from quire import _native
from quire.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Iterator

WHY: Final = "deadLetter"
"""The event name in the metadata document before a dead letter."""


class DeadLetter(NamedTuple):
    """
    A message in a queue for dead letters, and where it came from.

    Examples:
        >>> _ = appender.write_text("no order")
        >>> failed = quire.open("failures")
        >>> billing = queue.group("billing", dead_letter=failed, max_deliveries=2)
        >>> with billing.consumer() as consumer:
        ...     for message in consumer:
        ...         _ = message.nack()
        >>> letter = next(quire.groups.dead_letters(failed))
        >>> letter.letter_index == failed.first_index, letter.delivery_count
        (True, 2)

    """

    letter_index: int
    """Its index in the queue for dead letters."""
    data: bytes
    source: str
    """The path of the queue that it came from; empty if unknown."""
    source_index: int
    """Its index there."""
    group: str
    delivery_count: int
    """How often it was delivered."""
    reason: str
    """``refused``, lost at work, or the error of ``key=``."""


def dead_letters(queue: _native.Queue) -> Iterator[DeadLetter]:
    """
    Yield the dead letters of a queue, with the reason of each.

    Messages that others appended, or that came from a Quick-Queue's dead letters, have none.

    Args:
        queue: The queue that was given as ``dead_letter=``.

    Examples:
        >>> _ = appender.write_text("no order")
        >>> failed = quire.open("failed")
        >>> billing = queue.group("billing", dead_letter=failed, max_deliveries=1)
        >>> with billing.consumer() as consumer:
        ...     for message in consumer:
        ...         _ = message.nack()
        >>> for letter in quire.groups.dead_letters(failed):
        ...     print(letter.group, letter.source_index == queue.first_index, letter.reason)
        billing True refused

    """
    with _native.Tailer(queue) as tailer:
        yield from letters_after(tailer)


def letters_after(tailer: _native.Tailer) -> Iterator[DeadLetter]:
    """Yield the messages after the place of a tailer, each with why it is a dead letter, if so."""
    why: dict[str, Any] = {}
    while True:
        with tailer.reading_document(include_metadata=True) as document:
            if not document.is_present:
                return
            if document.is_metadata:
                why = _why(document)
                continue
            index, data = document.index, bytes(document.bytes)
        yield DeadLetter(
            index,
            data,
            str(why.get("source", "")),
            _whole(why.get("index")),
            str(why.get("group", "")),
            _whole(why.get("count")),
            str(why.get("reason", "")),
        )
        why = {}


def _whole(value: Any) -> int:  # noqa: ANN401 - whatever another writer left there
    return value if isinstance(value, int) else 0


def _why(document: _native.ReadDocument) -> dict[str, Any]:
    try:
        found = document.map()
    except WireError:
        return {}
    why = found.get(WHY)
    return cast("dict[str, Any]", why) if isinstance(why, dict) else {}
