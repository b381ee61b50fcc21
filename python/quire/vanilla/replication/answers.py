"""A source's answers to messages that remote appenders submit."""

from __future__ import annotations

from quire.errors import ReplicationError, UnsupportedError
from quire.vanilla.replication.wire_frames import Action, FrameReader, Mark, Marked, Run, request


def submitted(payload: bytes, *, is_answered: bool) -> bytes:
    """Return the bytes of a request to append a message."""
    action = Action.SUBMIT if is_answered else Action.SUBMIT_NO_ACK
    return request(action, len(payload), payload)


class Answers:
    """
    Parses the answers of a source, one for each message, from the bytes of its connection.

    Args:
        peer: The source's address, for errors.

    """

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self._frames = FrameReader()

    def feed(self, data: bytes) -> int | None:
        """
        Return the index of the message, once the answer is complete.

        Raises:
            UnsupportedError: The source does not accept messages.
            ReplicationError: The source sent a frame that is not an answer, or two answers.

        """
        found: list[Run | Marked] = [
            it for it in self._frames.feed(data) if it != Marked(Mark.IN_SYNC, 0)
        ]
        match found:
            case []:
                return None
            case [Marked(mark=Mark.ACK, index=index)]:
                return index
            case [Marked(mark=Mark.NACK)]:
                raise UnsupportedError(f"the source does not accept messages: peer={self._peer}")
            case _:
                text = "a source answered a submitted message unexpectedly"
                raise ReplicationError(f"{text}: found={found[0]!r:.80} peer={self._peer}")
