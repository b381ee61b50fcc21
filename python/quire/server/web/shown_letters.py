"""Dead letters on the pages: their number, their groups, and the reason of each."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from quire._native import Tailer
from quire.errors import QuireError
from quire.groups.undelivered import DeadLetter, letters_after
from quire.server.served_queue import ServedQueue
from quire.server.web.message_pages import start_before

NEIGHBOURS: Final = 100
"""The most queues in which dead letters of one queue are searched for."""
_LOOK_S: Final = 0.5
_MOST_KINDS: Final = 1000
_LONGEST: Final = 4096
_MOST_QUEUES: Final = 5000


class LettersOf(NamedTuple):
    """
    Dead letters of one group, in one queue.

    Attributes:
        topic: The queue that contains them.
        source: The path of their original queue, as they state it.
        group: The group.
        messages: Their number so far.
        is_all: Whether all of them have been counted.

    """

    topic: str
    source: str
    group: str
    messages: int
    is_all: bool


def letters_among(queue: ServedQueue, indexes: Sequence[int]) -> dict[int, DeadLetter]:
    """Return the dead letters among messages, by index; *indexes* are ascending."""
    if queue.journal is None:
        return {}
    found: dict[int, DeadLetter] = {}
    with queue.new_tailer() as tailer:
        if not isinstance(tailer, Tailer):
            return {}
        following = -1
        for index in indexes:
            if index != following:
                _go_before(queue, tailer, index)
            letter = next((it for it in letters_after(tailer) if it.letter_index >= index), None)
            if letter is not None and letter.letter_index == index and letter.group:
                found[index] = letter
            following = index + queue.numbering.step
    return found


def _go_before(queue: ServedQueue, tailer: Tailer, index: int) -> None:
    """Move a tailer to the metadata before a message; ``move_to_index`` would skip it."""
    before = start_before(queue, index, 1)
    if before:
        tailer.move_to_index(before)
    else:
        tailer.to_start()


class _Count:
    """The dead letters of one queue, counted as they arrive."""

    def __init__(self, queue: ServedQueue) -> None:
        self.queue = queue
        self.kinds: Counter[tuple[str, str]] = Counter()
        self.is_all = False
        self.first = queue.queue.first_index
        self._holds: bool | None = None  # None while there is no message
        self._last: int | None = None

    def look(self, ends_s: float) -> None:
        """Count the dead letters since the last call, until the time *ends_s*."""
        last = self.queue.queue.last_index
        if self._holds is False or last is None or last == self._last:
            return
        with self.queue.new_tailer() as tailer:
            if not isinstance(tailer, Tailer):
                self._holds = False
                return
            if self._last is not None:
                tailer.move_to_index(self._last)
            self.is_all = self._count(tailer, ends_s)

    def _count(self, tailer: Tailer, ends_s: float) -> bool:
        """Return whether all were counted."""
        for letter in letters_after(tailer):
            if self._last is not None and letter.letter_index <= self._last:
                continue
            self._last = letter.letter_index
            if self._holds is None:
                self._holds = bool(letter.group)
            kind = letter.source[:_LONGEST], letter.group[:_LONGEST]
            if letter.group and (kind in self.kinds or len(self.kinds) < _MOST_KINDS):
                self.kinds[kind] += 1
            if not self._holds or time.monotonic() > ends_s:
                return False
        return True


class LetterCounts:
    """Counts dead letters in queues whose first message is a dead letter."""

    def __init__(self) -> None:
        self._counts: dict[str, _Count] = {}
        self._turn = threading.Lock()

    def of(self, queues: Sequence[ServedQueue]) -> list[LettersOf]:
        """Return the numbers of dead letters in queues; what takes too long is counted later."""
        if self._turn.acquire(blocking=False):  # another page is counting: use the known numbers
            try:
                ends_s = time.monotonic() + _LOOK_S
                for queue in queues:
                    self._look(queue, ends_s)
            finally:
                self._turn.release()
        counts = [it for queue in queues if (it := self._counts.get(queue.topic)) is not None]
        return [
            LettersOf(it.queue.topic, source, group, count, it.is_all)
            for it in counts
            for (source, group), count in sorted(it.kinds.items())
        ]

    def _look(self, queue: ServedQueue, ends_s: float) -> None:
        try:
            known = self._counts.get(queue.topic)
            if known is None or known.queue is not queue or known.first != queue.queue.first_index:
                if len(self._counts) >= _MOST_QUEUES:
                    self._counts.clear()
                known = self._counts[queue.topic] = _Count(queue)
            known.look(ends_s)
        except (QuireError, OSError):  # its own page shows the reason
            self._counts.pop(queue.topic, None)
