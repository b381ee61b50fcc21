"""What is converted: the messages that a queue has now, in runs of consecutive indexes."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, Final, cast

from quire._formats import CHRONICLE, QUICK_QUEUE, VANILLA, Format
from quire.errors import ConvertError
from quire.queue import Queue
from quire.quick_queue import QuickQueue
from quire.ranges.range import Chunk, read_chunk
from quire.vanilla import VanillaQueue

_COUNT: Final = 65_536
STEPS: Final[dict[str, int]] = {CHRONICLE: 1, VANILLA: 1, QUICK_QUEUE: 16}
"""From one message to the next in its cycle."""


class Source:
    """
    The messages that a queue of any format has at the start of a conversion.

    Args:
        queue: The queue.

    """

    def __init__(self, queue: Queue) -> None:
        """Note the last message."""
        self.queue = queue
        self.format: Format = format_of_queue(queue)
        self.step = STEPS[self.format]
        self.messages = queue.entry_count
        self._last = queue.last_index

    def runs(self) -> Iterator[Chunk]:
        """
        Yield all messages, in chunks of consecutive indexes.

        Raises:
            ConvertError: A writer added to an earlier cycle, or messages cannot be reached.

        """
        last: int | None = None
        with self._tailer() as tailer:
            while self._last is not None and last != self._last:
                chunk = read_chunk(tailer, _COUNT).until(self._last + 1)
                for first, past in runs_of(chunk.indexes, self.step):
                    if last is not None and chunk.indexes[first] <= last:
                        raise self._unsteady(chunk.indexes[first], last)
                    last = chunk.indexes[past - 1]
                    yield part(chunk, first, past)
                if not len(chunk):
                    raise ConvertError(
                        "messages of the source cannot be reached:"
                        f" after={_hex(last)} last={self._last:#x} path={self.queue.path}"
                    )

    def time_ms(self, index: int) -> int | None:
        """Return when the cycle of a message starts; None in a format without cycles."""
        if self.format == QUICK_QUEUE:
            return None
        if self.format == VANILLA:
            queue = cast("VanillaQueue", self.queue)
            return index // queue.entries_per_cycle * queue.cycle_length_ms
        roll = self.queue.roll_cycle
        return self.queue.epoch_ms + roll.to_cycle(index) * roll.length_ms

    @property
    def cycle_length_ms(self) -> int | None:
        """How long a cycle is; None in a format without cycles."""
        if self.format == QUICK_QUEUE:
            return None
        if self.format == VANILLA:
            return cast("VanillaQueue", self.queue).cycle_length_ms
        return self.queue.roll_cycle.length_ms

    def _tailer(self) -> Any:  # noqa: ANN401 - of any format
        if self.format == CHRONICLE:
            return self.queue.tailer(on_missing="raise")
        return self.queue.tailer()

    def _unsteady(self, index: int, last: int) -> ConvertError:
        return ConvertError(
            "a writer appended to an earlier cycle of the source: stop its writers and repeat the"
            f" conversion: index={index:#x} after={last:#x} path={self.queue.path}"
        )


def format_of_queue(queue: Queue) -> Format:
    """Return the format of an open queue."""
    if isinstance(queue, VanillaQueue):
        return "vanilla"
    return "quick-queue" if isinstance(queue, QuickQueue) else "chronicle"


def runs_of(indexes: memoryview, step: int) -> Iterator[tuple[int, int]]:
    """Yield where each run of indexes that are *step* apart starts and ends."""
    numbers: list[int] = indexes.tolist()
    if not numbers:
        return
    if numbers == [*range(numbers[0], numbers[0] + step * len(numbers), step)]:
        yield 0, len(numbers)
        return
    first = 0
    for place in range(1, len(numbers)):
        if numbers[place] - numbers[place - 1] != step:
            yield first, place
            first = place
    yield first, len(numbers)


def part(chunk: Chunk, first: int, past: int) -> Chunk:
    """Return some messages of a chunk, with offsets that start at 0."""
    if (first, past) == (0, len(chunk)):
        return chunk
    offsets = chunk.offsets[first : past + 1]
    start, end = offsets[0], offsets[-1]
    if start:
        offsets = memoryview(array("i", [offset - start for offset in offsets]))
    return Chunk(chunk.indexes[first:past], offsets, chunk.data[start:end])


def _hex(index: int | None) -> str:
    return "-" if index is None else f"{index:#x}"
