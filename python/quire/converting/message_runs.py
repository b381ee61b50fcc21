"""The messages to convert: those that a queue has at the start, in runs of consecutive indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quire.errors import ConvertError, CorruptError
from quire.formats.adapters import adapter_of, numbering_of, periods_of
from quire.formats.columns import Columns
from quire.formats.protocols import AnyTailer
from quire.handles.base import Queue
from quire.handles.journal.queue import JournalQueue
from quire.ranges.damage import Lost, Skipper
from quire.ranges.range import read_chunk
from quire.ranges.seek import NO_INDEX

_COUNT: Final = 65_536


class Source:
    """
    The messages that a queue of any format has at the start of a conversion.

    Args:
        queue: The queue.
        skips: Continue after damage, as far as later messages can be reached.

    """

    def __init__(self, queue: Queue, *, skips: bool = False) -> None:
        """Record which message is the last one."""
        self.queue = queue
        self.adapter: Final = adapter_of(queue)
        self._numbering = numbering_of(queue)
        self._periods = periods_of(queue) if self.adapter.has_cycles else None
        self.step = self._numbering.step
        self._skips = skips
        self._skipper = Skipper(queue)
        self.messages = 0 if skips else queue.entry_count
        self._last = NO_INDEX - 1 if skips else queue.last_index

    @property
    def lost(self) -> tuple[Lost, ...]:
        """What the last run over the messages could not read."""
        return tuple(self._skipper.lost)

    def runs(self) -> Iterator[Columns]:
        """
        Yield all messages, in chunks of consecutive indexes.

        Raises:
            ConvertError: A writer added to an earlier cycle, or messages cannot be reached.

        """
        last: int | None = None
        self._skipper = Skipper(self.queue)
        with self._tailer() as tailer:
            while self._last is not None and last != self._last:
                chunk = self._chunk(tailer)
                if chunk is None:
                    return
                for first, past in runs_of(chunk.indexes, self.step):
                    if last is not None and chunk.indexes[first] <= last:
                        raise self._late_append(chunk.indexes[first], last)
                    last = chunk.indexes[past - 1]
                    yield chunk.part(first, past)
                if not len(chunk):
                    raise ConvertError(
                        "messages of the source cannot be reached:"
                        f" after={_hex(last)} last={self._last:#x} path={self.queue.path}"
                    )

    def _chunk(self, tailer: AnyTailer) -> Columns | None:
        """Return the next messages; None after skipped damage if there are no more."""
        past = NO_INDEX if self._last is None else self._last + 1
        while True:
            try:
                chunk = read_chunk(tailer, _COUNT).until(past)
                if self._skips and not len(chunk):
                    self.adapter.check_end(self.queue, tailer.index)
            except CorruptError as error:
                if not self._skips:
                    raise
                if not self._skipper.skip(tailer, error):
                    return None
                continue
            return chunk if len(chunk) or not self._skips else None

    def time_ms(self, index: int) -> int | None:
        """Return when the cycle of a message starts; None in a format without cycles."""
        if self._periods is None:
            return None
        return self._periods.start_ms(self._numbering.to_cycle(index))

    @property
    def cycle_length_ms(self) -> int | None:
        """The length of a cycle in milliseconds; None in a format without cycles."""
        return None if self._periods is None else self._periods.length_ms

    def _tailer(self) -> AnyTailer:
        if isinstance(self.queue, JournalQueue) and not self._skips:
            return self.queue.tailer(on_missing="raise")
        return self.queue.tailer()

    def _late_append(self, index: int, last: int) -> ConvertError:
        return ConvertError(
            f"a writer appended to an earlier cycle of the source: index={index:#x}"
            f" after={last:#x} path={self.queue.path} (stop its writers and repeat the conversion)"
        )


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


def _hex(index: int | None) -> str:
    return "-" if index is None else f"{index:#x}"
