"""
Reading ranges whose indexes need not all have messages, as in the older formats.

A power cut can leave free index entries in a Vanilla Chronicle, and a dead producer an unfinished
message in a Quick-Queue. Readers skip both, so indexes count here, and not messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, TypeVar

from quire.errors import WaitTimeoutError
from quire.formats.adapters import adapter_of
from quire.formats.numbering import Numbering
from quire.formats.protocols import AnyTailer
from quire.ranges.cycles import CycleRange

UNFINISHED_S: Final = 10.0
"""How long to wait for a message that a living producer has begun."""

_SKIPPED: Final = 65_536
_T = TypeVar("_T", bound="tuple[Any, ...]")


class _Tailer(AnyTailer, Protocol):
    """A tailer that waits."""

    def wait(self, timeout_s: float, /) -> object: ...


def sparse_batches(
    tailer: _Tailer, run: CycleRange, numbering: Numbering, read: Callable[[int], _T]
) -> Iterator[tuple[int, _T]]:
    """
    Yield how many indexes of a range were covered, and what *read* returned for them.

    The indexes are fewer than those of the range if messages that were there are gone.

    Args:
        tailer: The tailer that *read* uses.
        run: The range.
        numbering: That of the queue.
        read: Reads up to a number of messages of the range; their count comes first.

    """
    left = run if _go_to(tailer, run.first_index, numbering) else run.until(0)
    while left.count:
        found = read(left.count)
        if not found[0] and tailer.index < run.end_index and not _is_coming(tailer):
            return
        passed = left.until(tailer.index).count
        yield passed, found
        left = left.split(passed)[1]


def _go_to(tailer: _Tailer, index: int, numbering: Numbering) -> bool:
    """Go to an index, also where it has no message; False if its cycle is gone."""
    if tailer.move_to_index(index) or tailer.index == index:
        return True
    first = numbering.to_index(numbering.to_cycle(index), 0)
    if not tailer.move_to_index(first) and tailer.index != first:
        return False
    skip: Any = tailer._read_columns  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    while tailer.index < index and skip(_SKIPPED, end=index)[0]:
        pass
    return True


def _is_coming(tailer: _Tailer) -> bool:
    """Wait for a message that a producer of a Quick-Queue has begun."""
    if not adapter_of(tailer).has_unfinished:
        return False
    try:
        tailer.wait(UNFINISHED_S)
    except WaitTimeoutError:
        return False
    return True
