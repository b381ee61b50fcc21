"""Waiting for the replicas of a remote queue."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from quire.errors import RefusedError, ReplicationError, WaitTimeoutError
from quire.remote.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from quire.handles.journal.acknowledgement import History
    from quire.handles.journal.acknowledging import Wait
    from quire.remote.link import RemoteLink

SLICE_S: Final = 0.25
"""The longest wait that one request asks the server for."""


class RemoteStates:
    """
    The server's knowledge of a queue's replicas, on a connection of its own.

    Args:
        queue: The open queue.

    """

    def __init__(self, queue: RemoteLink) -> None:
        self._queue = queue
        self._connection = Connection(queue.server)

    def close(self) -> None:
        """Close the connection. Idempotent."""
        self._connection.close()

    def wait(self, index: int, quorum: Wait, /, *, timeout_s: float | None = None) -> bool:
        """Return whether n replicas acknowledge the message of an index within a time."""
        block_ms = round(1000 * (SLICE_S if timeout_s is None else max(0.0, timeout_s)))
        words = ("QUIRE.WAIT", self._queue.topic, replicas_word(quorum), index, "BLOCK", block_ms)
        found: int | None = self._connection.call(*words, more_s=block_ms / 1000)
        return found is not None and found >= index

    def reached(self, quorum: Wait, /) -> tuple[int | None, History]:
        """Return the last index that n replicas have, or None, and its history."""
        return reached(self._connection.call, self._queue.topic, replicas_word(quorum))

    def wait_until(
        self,
        index: int,
        quorum: Wait,
        timeout_s: float,
        history: History | None,
        waited_s: float = 0.0,
    ) -> None:
        """
        Wait until n replicas have acknowledged the message that had an index in a history.

        The error of a wait that fails adds *waited_s*.

        Raises:
            WaitTimeoutError: Replicas did not acknowledge the message in time.
            ReplicationError: Another message may have the index now.

        """
        ends, then = monotonic() + timeout_s, history
        while True:
            up_to, now = self.reached(quorum)
            if then is not None and now != then:
                raise self._void(index)
            if up_to is not None and up_to >= index:
                return
            if monotonic() >= ends:
                raise self._late(index, quorum, timeout_s + waited_s)
            then = now
            self.wait(index, quorum, timeout_s=min(SLICE_S, ends - monotonic()))

    def _void(self, index: int) -> ReplicationError:
        return ReplicationError(
            "it is unknown whether replicas have the message: since it was appended another epoch"
            " has begun, or messages were cut off the queue's end, and it may have been removed"
            " of the queue (look for it, and append it again if it is gone):"
            f" index={index:#x} path={self._queue.url}"
        )

    def _late(self, index: int, quorum: Wait, timeout_s: float) -> WaitTimeoutError:
        members = {it.name: it.acknowledged_index for it in self._queue.replicas() if it.in_sync}
        error = WaitTimeoutError(
            "replicas did not acknowledge in time; the message stays in the queue:"
            f" index={index:#x} waited_s={timeout_s} wait={quorum} in_sync={[*members]}"
            f" path={self._queue.url}"
        )
        error.index, error.acknowledged = index, members
        return error


def reached(ask: Callable[..., Any], topic: str, replicas: str) -> tuple[int | None, History]:
    """Return the last index that replicas have, or None, and its history; does not wait."""
    try:
        up_to, epoch, cuts = ask("QUIRE.WAIT", topic, replicas, "HISTORY")
    except RefusedError:  # an older server, which knows of none
        return ask("QUIRE.WAIT", topic, replicas, 0, "BLOCK", 0), (0, 0)
    return up_to, (epoch, cuts)


def replicas_word(wait: object) -> str:
    """
    Return how many replicas to wait for, as a word of the protocol.

    Raises:
        ValueError: *wait* is text other than ``any`` and ``all``, or a number below 1.
        TypeError: *wait* is neither text nor a number.

    """
    what = 'wait must be "any", "all" or a number of replicas'
    if isinstance(wait, str) and wait in {"any", "all"}:
        return wait.upper()
    if not isinstance(wait, str | int) or isinstance(wait, bool):
        raise TypeError(f"{what}: found={wait!r}")
    if isinstance(wait, str) or wait < 1:
        raise ValueError(f"{what}: found={wait!r}")
    return str(wait)
