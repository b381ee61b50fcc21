"""Which queues can have groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.errors import UnsupportedError
from quire.formats.adapters import adapter_of, is_queue

if TYPE_CHECKING:
    from quire.formats.protocols import AnyQueue


def grouped(queue: object) -> AnyQueue:
    """
    Check that a queue can have groups.

    Raises:
        UnsupportedError: Queues of this format cannot have consumer groups.

    """
    if not is_queue(queue):
        raise UnsupportedError("not supported: consumer groups (not a queue of quire.open)")
    why = adapter_of(queue).why_no_groups
    if why is not None:
        raise UnsupportedError(f"not supported: consumer groups ({why})")
    return queue
