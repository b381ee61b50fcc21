"""Reading on after damage: what is lost, and where the next message is that can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias

from quire._native import Queue
from quire.errors import CorruptError
from quire.formats.adapters import adapter_of, count_of, journal_of

ON_DAMAGE: Final = ("stop", "skip")
_MOST_TRIES: Final = 4_096  # indexes after the known end of a cycle


class Lost(NamedTuple):
    """
    Messages that cannot be read.

    Attributes:
        first: The index of the first.
        past: The index at which reading goes on; None if nothing after them can be read.
        error: Why.

    """

    first: int
    past: int | None
    error: str

    def __str__(self) -> str:
        """Return the range in words."""
        past = "the end" if self.past is None else f"{self.past:#x}"
        return f"messages from {self.first:#x} to before {past} cannot be read: {self.error}"


Skipped: TypeAlias = Callable[[Lost], object]
"""Called with each range of messages that cannot be read and is skipped."""


class Skipper:
    """
    Moves tailers of a queue on over damage, and notes what is lost.

    Args:
        queue: The queue.
        skipped: Called with what is lost.

    """

    def __init__(self, queue: object, skipped: Skipped | None = None) -> None:
        """Note nothing yet."""
        self._queue = queue
        self._journal = journal_of(queue)
        self._skipped = skipped
        self.lost: list[Lost] = []

    def skip(self, tailer: Any, error: CorruptError, at: int | None = None) -> bool:  # noqa: ANN401
        """
        Move a tailer to the next message that can be read by its index; False if there is none.

        Args:
            tailer: The tailer, of any format.
            error: What it met.
            at: The index that it was to read; None: its own.

        Raises:
            CorruptError: The queue's format has no index to continue by.

        """
        if self._journal is None:
            raise error
        first = _place(self._journal, tailer) if at is None else at
        past = next(_readable(self._journal, tailer, first), None)
        # A reader that comes back, or backward, may meet the same damage again.
        if all(lost.past != past for lost in self.lost):
            self.lost.append(Lost(first, past, str(error)))
            if self._skipped is not None:
                self._skipped(self.lost[-1])
        return past is not None

    def check_end(self, index: int) -> None:
        """
        Check that no messages lie after the index at which a reader found none.

        Raises:
            CorruptError: Messages follow *index*: one before them was lost.

        """
        adapter_of(self._queue).check_end(self._queue, index)

    def go_to(self, tailer: Any, index: int) -> bool:  # noqa: ANN401 - of any format
        """Move a tailer to an index, or the next that can be read; False if there is none."""
        try:
            if not tailer.move_to_index(index) and self._journal is not None:
                count_of(self._journal, self._journal.roll_cycle.to_cycle(index))
        except CorruptError as error:
            return self.skip(tailer, error, index)
        return True


def go_to(tailer: Any, index: int, skipper: Skipper | None) -> bool:  # noqa: ANN401
    """
    Move a tailer to an index; False where nothing from there on can be read.

    Raises:
        CorruptError: A file is damaged, and there is no *skipper*.

    """
    if skipper is not None:
        return skipper.go_to(tailer, index)
    tailer.move_to_index(index)
    return True


def messages_of(
    queue: object,
    tailer: Any,  # noqa: ANN401 - of any format
    skipped: Skipped | None = None,
) -> Iterator[Any]:
    """
    Yield what a tailer reads to the end.

    Args:
        queue: Its queue.
        tailer: The tailer.
        skipped: Called with each range that cannot be read and is skipped; None: that is an error.

    Raises:
        CorruptError: Messages cannot be read, and *skipped* is None.

    """
    skipper = None if skipped is None else Skipper(queue, skipped)
    while True:
        try:
            yield from tailer
            adapter_of(queue).check_end(queue, tailer.index)
        except CorruptError as error:
            if skipper is None:
                raise
            if skipper.skip(tailer, error):
                continue
        return


def _place(queue: Queue, tailer: Any) -> int:  # noqa: ANN401
    """Return the index that a tailer is to read, which may not have begun."""
    try:
        return int(tailer.index)
    except CorruptError:
        return queue.roll_cycle.to_index(queue.cycles[0], 0)


def _readable(queue: Queue, tailer: Any, after: int) -> Iterator[int]:  # noqa: ANN401
    """Yield indexes after one, each of which the tailer was moved to."""
    roll = queue.roll_cycle
    damaged, sequence = roll.to_cycle(after), roll.to_sequence(after)
    for cycle in queue.cycles:
        if cycle < damaged:
            continue
        first = sequence + 1 if cycle == damaged else 0
        for index in _entries(queue, cycle, first):
            try:
                if tailer.move_to_index(index):
                    yield index
                    return
            except CorruptError:
                continue


def _entries(queue: Queue, cycle: int, first: int) -> Iterator[int]:
    """Yield the indexes of a cycle from a sequence on that the index of its file may have."""
    roll = queue.roll_cycle
    try:
        spacing = queue._index_spacing(cycle)  # noqa: SLF001 - the package's own
    except CorruptError:
        return  # no index is left
    count = first + _MOST_TRIES * spacing
    with suppress(CorruptError):
        count = max(count, count_of(queue, cycle))  # damage may hide the end
    start = -(-first // spacing) * spacing
    yield from (roll.to_index(cycle, number) for number in range(start, count, spacing))
