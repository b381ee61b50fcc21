"""Calls of an interface that go to a server together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.remote import RemoteAppender

if TYPE_CHECKING:
    from quire.cli.reading.sent_batches import SentBatches
    from quire.handles.journal.acknowledging import Wait


class SentCalls(RemoteAppender):
    """
    An appender whose method writers hand their messages to a thread, which sends them.

    Args:
        appender: Of the same queue.
        sent: What sends them.

    """

    def __init__(self, appender: RemoteAppender, sent: SentBatches) -> None:
        super().__init__(appender._queue)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        self._sent = sent

    def _send(self, message: bytes, is_metadata: bool, wait: Wait | None) -> int:  # noqa: FBT001 - of the kernel
        """Have it sent; its index is not known."""
        del is_metadata, wait
        self._sent.write_bytes(message)
        return 0
