"""Which queues can have groups."""

from __future__ import annotations

from typing import Final, TypeAlias

from quire._native import IndexedQueue, Queue, QuickQueue, VanillaQueue
from quire.errors import UnsupportedError

GroupedQueue: TypeAlias = Queue | QuickQueue

_WHY_NOT: Final = (
    (
        VanillaQueue,
        (
            "slow writers of a Vanilla Chronicle add to cycles that readers have left:"
            " consumption='queue' has a claim in each message, see VanillaTailer.claim"
        ),
    ),
    (IndexedQueue, "an Indexed Chronicle is only read: convert it"),
)


def grouped(queue: object) -> GroupedQueue:
    """
    Check that a queue can have groups.

    Raises:
        UnsupportedError: Queues of this format cannot have consumer groups.

    """
    if isinstance(queue, Queue | QuickQueue):
        return queue
    reasons = (why for kind, why in _WHY_NOT if isinstance(queue, kind))
    raise UnsupportedError(
        f"not supported: consumer groups ({next(reasons, 'not a queue of quire.open')})"
    )
