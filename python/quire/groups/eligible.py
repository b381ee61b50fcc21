"""Which queues can have groups, and whether an open one is still the queue at its path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.errors import UnsupportedError
from quire.formats.adapters import adapter_of, is_queue, journal_of
from quire.opening.discovery import check_at_path, check_directory

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


def check_at_its_path(queue: AnyQueue) -> None:
    """
    Check that the groups at a queue's path are its own, not those of one that is there by now.

    Raises:
        TableLostError: Another queue, or none, is at the path.

    """
    journal = journal_of(queue)
    if journal is not None:
        check_at_path(journal.path, journal._table_identity())  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    else:
        check_directory(queue.path, getattr(queue, "_place", None))
