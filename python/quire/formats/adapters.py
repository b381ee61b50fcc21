"""The adapters of all formats, and the one of an open queue."""

from __future__ import annotations

import os
from os import PathLike
from typing import Any, Final, TypeGuard

from quire._native import Queue, Tailer
from quire.errors import UnsupportedError
from quire.formats.adapter import Adapter
from quire.formats.detection import format_of
from quire.formats.indexed import INDEXED
from quire.formats.journal import JOURNAL
from quire.formats.numbering import Numbering, Periods
from quire.formats.protocols import AnyQueue, AnyTailer
from quire.formats.quick_queue import QUICK_QUEUE
from quire.formats.remote import REMOTE
from quire.formats.vanilla import VANILLA

ADAPTERS: Final[tuple[Adapter[Any], ...]] = (JOURNAL, VANILLA, QUICK_QUEUE, INDEXED)
_BY_NAME: Final[dict[str, Adapter[Any]]] = {it.name: it for it in ADAPTERS}


def adapter_of(handle: object) -> Adapter[Any]:
    """
    Return the adapter of the format that an open queue has, a tailer or an appender.

    Raises:
        TypeError: *handle* is not a queue, tailer or appender.

    """
    found = _found(handle)
    if found is None:
        raise TypeError(f"not a queue of quire.open: found={type(handle).__name__}")
    return found


def adapter_for(queues: type) -> Adapter[Any]:
    """Return the adapter of the format whose queues have this class."""
    return next(it for it in ADAPTERS if issubclass(queues, it.handles[0]))


def is_queue(given: object) -> TypeGuard[AnyQueue]:
    """Return whether something is an open queue of any format."""
    found = _found(given)
    return found is not None and isinstance(given, found.handles[0])


def adapter_named(name: str | None) -> Adapter[Any]:
    """Return the adapter of a format by its name; without one, that of a new queue."""
    return _BY_NAME[name or JOURNAL.name]


def numbering_of(queue: AnyQueue) -> Numbering:
    """Return how the messages of a queue are numbered."""
    return adapter_of(queue).numbering(queue)


def periods_of(queue: AnyQueue) -> Periods:
    """
    Return when the cycles of a queue start.

    Raises:
        UnsupportedError: The format has no cycles.

    """
    return adapter_of(queue).periods(queue)


def cycles_of(queue: AnyQueue) -> list[int]:
    """Return the cycles of a queue in order; of a Quick-Queue, the pages with messages."""
    return adapter_of(queue).cycles(queue)


def count_of(queue: AnyQueue, cycle: int) -> int:
    """
    Return the sequence after the last message of a cycle; 0 where it is missing or being made.

    Raises:
        CorruptError: The file is damaged, or not ready although a later one has messages.

    """
    return adapter_of(queue).count(queue, cycle)


def end_index_of(queue: AnyQueue) -> int:
    """Return the index after the last message; 0 if there is none."""
    last = queue.last_index
    return 0 if last is None else last + numbering_of(queue).step


def tailer_of(queue: AnyQueue) -> AnyTailer:
    """Return a new tailer, at the first message."""
    return adapter_of(queue).tailer(queue)


def _found(handle: object) -> Adapter[Any] | None:
    return next((it for it in (*ADAPTERS, REMOTE) if isinstance(handle, it.handles)), None)


def journal_of(queue: object) -> Queue | None:
    """Return a queue as what only Chronicle Queue 5 has; None if it has another format."""
    return queue if isinstance(queue, Queue) else None


def journal_tailer_of(tailer: object) -> Tailer | None:
    """Return a tailer as what only Chronicle Queue 5 has; None if it has another format."""
    return tailer if isinstance(tailer, Tailer) else None


def require_journal(path: str | PathLike[str], what: str, hint: str = "") -> None:
    """
    Check that a path holds no queue of another format.

    Raises:
        UnsupportedError: The path holds a queue of another format, which has no *what*.

    """
    found = format_of(os.fspath(path))
    if found not in {None, JOURNAL.name}:
        raise UnsupportedError(
            f"only a Chronicle Queue has {what}: format={found} path={path}{hint}"
        )


def adapter_at(path: str | PathLike[str]) -> Adapter[Any] | None:
    """
    Return the adapter of the queue at a path; None where there is none.

    Raises:
        NotAQueueError: There are files of two formats.

    """
    found = format_of(os.fspath(path))
    return None if found is None else adapter_named(found)
