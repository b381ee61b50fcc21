"""The list of queues: the number of messages of each, their rate, and their size on disk."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from quire.errors import QuireError
from quire.formats.adapters import adapter_of, count_of, cycles_of, numbering_of
from quire.formats.protocols import AnyQueue
from quire.metrics.queue_state import disk_used
from quire.server.errors_for_clients import ErrorsForClients
from quire.server.web.queue_details import lag_of

FRESH_S: Final = 1.5
"""The greatest age of a queue's numbers when they are shown."""
_SIZES_S: Final = 15.0
_LAG_S: Final = 4.0
_RATE_S: Final = 10.0
_MOST: Final = 5000


@dataclass(frozen=True, slots=True)
class Listed:
    """
    A queue in the list.

    Attributes:
        topic: Its name.
        format: The name of its format.
        messages: The number of its messages.
        rate: The recent number of new messages a second; None for the first sample.
        size: The bytes that its files take on disk.
        cycles: The number of its cycles.
        last_index: The index of the last message; None if there are no messages.
        lag: The lag of the slowest named tailer or group; None if there are none.
        error: Why it cannot be read; otherwise empty.

    """

    topic: str
    format: str = ""
    messages: int = 0
    rate: float | None = None
    size: int = 0
    cycles: int = 0
    last_index: int | None = None
    lag: int | None = None
    error: str = ""


class _Look(NamedTuple):
    at_s: float
    messages: int


class Sampler:
    """
    Counts the messages of one queue at intervals.

    Args:
        topic: Its name.
        queue: Its handle.

    """

    def __init__(self, topic: str, queue: AnyQueue) -> None:
        self.queue, self._topic = queue, topic
        self._counts: dict[int, int] = {}
        self._listed: Listed | None = None
        self._listed_s = self._sized_s = float("-inf")
        self._size = 0
        self._looks: list[_Look] = []
        self._last: int | None = None
        self._lag: int | None = None
        self._lagged_s = float("-inf")
        self._lagged: int | None = None

    def listed(self) -> Listed:
        """
        Return the row of the queue in the list, at most :data:`FRESH_S` old.

        Raises:
            QuireError: The queue is damaged, or was removed.
            OSError: The queue cannot be read.

        """
        now_s = time.monotonic()
        if self._listed is not None and now_s - self._listed_s < FRESH_S:
            return self._listed
        self._count(now_s)
        self._find_lag(now_s)
        adapter, messages = adapter_of(self.queue), sum(self._counts.values())
        found = Listed(
            self._topic,
            adapter.name,
            messages,
            self._rate(now_s, messages),
            self._size,
            len(self._counts),
            self._last,
            self._lag,
        )
        self._listed, self._listed_s = found, now_s
        return found

    def _count(self, now_s: float) -> None:
        last, is_due = self.queue.last_index, now_s - self._sized_s > _SIZES_S
        if is_due:
            self._size, self._sized_s = disk_used(self.queue), now_s
        if last == self._last and not is_due:
            return
        known = -1 if self._last is None else numbering_of(self.queue).to_cycle(self._last)
        cycles = cycles_of(self.queue)
        self._counts = {
            it: self._counts[it] if it in self._counts and it < known else count_of(self.queue, it)
            for it in cycles
        }
        self._last = last

    def _find_lag(self, now_s: float) -> None:
        """Find the greatest lag: soon after new messages, otherwise less often."""
        pause_s = _LAG_S if self._last != self._lagged else _SIZES_S
        if now_s - self._lagged_s > pause_s:
            self._lag, self._lagged, self._lagged_s = None, self._last, now_s
            with suppress(QuireError, OSError):  # the page of the queue shows the reason
                self._lag = lag_of(self.queue)

    def _rate(self, now_s: float, messages: int) -> float | None:
        """Return the messages a second over the last seconds."""
        looks = self._looks
        while len(looks) > 1 and now_s - looks[1].at_s > _RATE_S:
            looks.pop(0)
        looks.append(_Look(now_s, messages))
        if len(looks) == 1:
            return None
        return max(0, messages - looks[0].messages) / (now_s - looks[0].at_s)


class Listing:
    """
    The samplers of the queues that are shown.

    Args:
        errors: Gives the texts of errors as visitors see them.

    """

    def __init__(self, errors: ErrorsForClients) -> None:
        self._errors = errors
        self._samplers: dict[str, Sampler] = {}

    def listed(self, topic: str, queue: AnyQueue) -> Listed:
        """Return the row of a queue in the list; if the queue cannot be read, with the reason."""
        found = self._samplers.get(topic)
        if found is None or found.queue is not queue:
            if len(self._samplers) >= _MOST:
                self._samplers.clear()
            found = self._samplers[topic] = Sampler(topic, queue)
        try:
            return found.listed()
        except (QuireError, OSError) as error:
            self._samplers.pop(topic, None)
            return Listed(topic, error=self._errors.text(error))


class Row(NamedTuple):
    """
    A row of the tree of queues.

    Attributes:
        name: The last part of the name.
        depth: The number of parts before it.
        queue: The queue; None for a folder of queues.

    """

    name: str
    depth: int
    queue: Listed | None


def tree(found: Sequence[Listed]) -> Iterator[Row]:
    """Yield queues in the order of their names, each after the folders that contain it."""
    above: list[str] = []
    for queue in sorted(found, key=lambda it: it.topic.split("/")):
        *folders, name = queue.topic.split("/")
        same = 0
        while same < min(len(above), len(folders)) and above[same] == folders[same]:
            same += 1
        for depth in range(same, len(folders)):
            yield Row(folders[depth] + "/", depth, None)
        above = folders
        yield Row(name, len(folders), queue)
