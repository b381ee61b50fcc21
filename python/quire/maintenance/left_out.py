"""Warnings about parts of a queue that its copies and exports leave out."""

from __future__ import annotations

import logging
from typing import Final

from quire.errors import QuireError
from quire.formats.adapters import adapter_at
from quire.groups import lowest_needed
from quire.maintenance.pending import ring_pending
from quire.sealed.key_file import is_encrypted

_LOG: Final = logging.getLogger("quire")


def warn_pending(path: str, what: str) -> int:
    """
    Log a warning if messages wait in a queue's ring, and return how many.

    Args:
        path: The queue, before anything of it is read.
        what: What is made of its files, and so lacks them.

    """
    adapter = adapter_at(path)
    if adapter is None or not adapter.is_wire:
        return 0
    try:
        messages, _ = ring_pending(path)
    except QuireError as error:
        _LOG.warning(
            "the ring cannot be examined: %s (the %s lacks messages that wait there)", error, what
        )
        return 0
    if messages:
        _LOG.warning(
            "messages wait in the ring of asynchronous appends, and the %s lacks those that are not"
            " appended in time: messages=%d path=%s (run `quire drain PATH --once` first)",
            what,
            messages,
            path,
        )
    return messages


def warn_left_out(path: str, what: str) -> None:
    """Log what the ring holds, that keys are left out, and the groups that stay with the queue."""
    warn_pending(path, what)
    warn_plain(path, what)
    if groups := lowest_needed(path):
        _LOG.warning(
            "the %s has no consumer groups, as its indexes are others: groups=%s path=%s",
            what,
            ",".join(sorted(groups)),
            path,
        )


def warn_plain(path: str, what: str) -> None:
    """Log a warning if the queue is encrypted, as what is made of its messages is not."""
    if is_encrypted(path):
        _LOG.warning(
            "the %s holds the messages as they are, not encrypted: path=%s (`quire copy` keeps"
            " them encrypted)",
            what,
            path,
        )
