"""
Where the epochs of a queue began, in its file ``replication.epochs``.

A replica takes the list of its source once both hold the same messages. Two lists with a common
entry belong to queues that are the same up to the next entry that only one of them has: a message
before that differs only if one of the files was changed, and not because a source was replaced.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final, NamedTuple

from quire._common.durable import SafeFolder
from quire.errors import UnsafePathError
from quire.handles.journal.queue import JournalQueue
from quire.replication.own_folder import own_folder

NAME: Final = "replication.epochs"
_log = logging.getLogger("quire")
_MOST: Final = 32
_LIMIT: Final = 8 << 10
_PAST_ALL: Final = 1 << 63


class EpochStart(NamedTuple):
    """
    The start of an epoch.

    Attributes:
        epoch: Its number.
        next: The lowest index that a message of the epoch could get.

    """

    epoch: int
    next: int


EpochStarts = tuple[EpochStart, ...]


def parsed(found: Any) -> EpochStarts:  # noqa: ANN401 - of JSON
    """Return the list that a file or a peer describes, by epoch; an empty one if it is invalid."""
    try:
        starts = tuple(EpochStart(*each) for each in found)
    except TypeError:
        return ()
    is_of_numbers = all(type(it) is int and 0 <= it < _PAST_ALL for each in starts for it in each)
    is_sorted = is_of_numbers and all(one.epoch < other.epoch for one, other in pairwise(starts))
    return starts if is_sorted and len(starts) <= _MOST else ()


def starts_of(queue: JournalQueue) -> EpochStarts:
    """Return the list of a queue; an empty one if it has none, or if that is damaged."""
    with own_folder(queue) as folder:
        return _read(folder)


def begin(queue: JournalQueue, epoch: int) -> None:
    """
    Record that an epoch begins now, unless that is recorded; nobody may append meanwhile.

    Raises:
        TableLostError: Another directory is at the queue's path, or none.

    """
    with own_folder(queue) as folder:
        known = _read(folder)
        if not known or known[-1].epoch < epoch:
            _write(folder, (*known, _now(queue, epoch))[-_MOST:])


def ensure(queue: JournalQueue, epoch: int) -> None:
    """Begin a new list if the queue's does not end with its present epoch."""
    known = starts_of(queue)
    if not known or known[-1].epoch != epoch:
        adopt(queue, (_now(queue, epoch),))


def adopt(queue: JournalQueue, starts: EpochStarts) -> None:
    """Replace the list of a queue, by that of a source which holds the same messages."""
    try:
        with own_folder(queue) as folder:
            if _read(folder) != starts:
                _write(folder, starts)
    except OSError as error:  # such as a full disk: the older list stays
        _log.warning("%s cannot be stored: path=%s reason=%s", NAME, queue.path, error)


def same_until(own: EpochStarts, others: EpochStarts) -> int:
    """Return the index before which two queues must be the same; 0 if that is unknown."""
    common = set(own) & set(others)
    if not common:
        return 0
    newest = max(it.epoch for it in common)
    return min((it.next for it in (*own, *others) if it.epoch > newest), default=_PAST_ALL)


def _now(queue: JournalQueue, epoch: int) -> EpochStart:
    last = queue.last_index
    return EpochStart(epoch, 0 if last is None else last + 1)


def _read(folder: SafeFolder) -> EpochStarts:
    with suppress(OSError, UnsafePathError, ValueError, RecursionError):
        return parsed(json.loads(folder.read(NAME, _LIMIT)))
    return ()


def _write(folder: SafeFolder, starts: EpochStarts) -> None:
    folder.replace(NAME, json.dumps(starts).encode() + b"\n")
