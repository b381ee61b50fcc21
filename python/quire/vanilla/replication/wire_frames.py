"""
Requests to a source and frames to a sink, all little-endian.

A request is an action and an argument of 8 bytes each; SUBMIT has a payload. A frame is the length
of a payload (int32), an index (int64) and the payload; a negative length is a mark without one.
Nothing says which version a peer speaks.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Final, NamedTuple

from quire.errors import ReplicationError

FROM_START: Final = -1
TO_END: Final = -2

HEARTBEAT_S: Final = 2.5
PAYLOAD_MAX: Final = 128 << 20
"""Java's sinks refuse longer messages."""

JAVA_READS_FROM: Final = 20
"""Java's sinks do not process the next frame before they have this many bytes."""

UNSUPPORTED: Final = -4
"""The index in a NACK of a source that does not accept messages."""

_ACTION: Final = struct.Struct("<q")
_REQUEST: Final = struct.Struct("<qq")
_FRAME: Final = struct.Struct("<iq")
FRAME_BYTES: Final = _FRAME.size


class Action(IntEnum):
    """The requests of a sink to a source."""

    SUBSCRIBE = 1  # the last index the sink has, FROM_START or TO_END
    UNSUBSCRIBE = 2
    QUERY = 10  # which message follows this index?
    SUBMIT = 20  # append a message of this length; answer with its index
    SUBMIT_NO_ACK = 21
    WITH_MAPPING = 30  # a serialised Java function follows
    ACKNOWLEDGE = 0x51414B  # between Quire peers only: this message and those before it are stored


class Mark(IntEnum):
    """Lengths with a special meaning."""

    SYNC_INDEX = -126
    PADDED = -127  # of Indexed Chronicles
    IN_SYNC = -128
    ACK = -129
    NACK = -130


@dataclass(frozen=True, slots=True)
class Marked:
    """A frame that is a mark."""

    mark: Mark
    index: int


class Run(NamedTuple):
    """Messages with consecutive indexes."""

    first: int
    payloads: list[bytes]

    @property
    def last(self) -> int:
        """The index of the last one."""
        return self.first + len(self.payloads) - 1


def request(action: Action, argument: int, payload: bytes = b"") -> bytes:
    """Return the bytes of a request."""
    return _REQUEST.pack(action, argument) + payload


def marked(mark: Mark, index: int) -> bytes:
    """Return the bytes of a frame that carries a mark."""
    return _FRAME.pack(mark, index)


def messages(indexes: Sequence[int], offsets: Sequence[int], data: memoryview) -> bytes:
    """Return the frames of messages, whose payloads are *data* cut at the *offsets*."""
    parts: list[bytes | memoryview] = []
    for index, (start, end) in zip(indexes, pairwise(offsets), strict=True):
        parts += (_FRAME.pack(end - start, index), data[start:end])
    return b"".join(parts)


class Request(NamedTuple):
    """A request of a sink."""

    action: Action
    argument: int
    payload: bytes = b""


class RequestReader:
    """
    Parses requests from the bytes of a connection, however they are split.

    Args:
        submit_limit: The longest message that may be submitted; None: no messages are accepted, and
            the payloads of those that expect an answer are dropped.

    """

    def __init__(self, submit_limit: int | None) -> None:
        self._submit_limit = submit_limit
        self._buffer = bytearray()
        self._dropped: Request | None = None
        self._to_drop = 0

    @property
    def is_between_requests(self) -> bool:
        """Whether the last request was complete."""
        return not self._buffer and self._dropped is None

    def feed(self, data: bytes) -> Iterator[Request]:
        """
        Yield the requests that are complete with these bytes. Take all of them.

        Raises:
            ReplicationError: The bytes break the protocol; requests before the error have been
                yielded.

        """
        self._buffer += data
        while (found := self._next()) is not None:
            yield found

    def _next(self) -> Request | None:
        if self._dropped is not None:
            return self._drop()
        if len(self._buffer) >= _ACTION.size:
            action = _action(*_ACTION.unpack_from(self._buffer))
            if len(self._buffer) >= _REQUEST.size:
                _, argument = _REQUEST.unpack_from(self._buffer)
                return self._whole(action, argument)
        return None

    def _whole(self, action: Action, argument: int) -> Request | None:
        """Return the request that begins the buffer; None if it is not whole."""
        is_submit = action in {Action.SUBMIT, Action.SUBMIT_NO_ACK}
        if is_submit:
            self._check_submit(action, argument)
            if self._submit_limit is None:
                del self._buffer[: _REQUEST.size]
                self._dropped, self._to_drop = Request(action, argument), argument
                return self._drop()
        end = _REQUEST.size + (argument if is_submit else 0)
        if len(self._buffer) < end:
            return None
        payload = bytes(memoryview(self._buffer)[_REQUEST.size : end])
        del self._buffer[:end]
        return Request(action, argument, payload)

    def _drop(self) -> Request | None:
        """Drop the payload of a message that is not accepted; return its request at the end."""
        count = min(self._to_drop, len(self._buffer))
        del self._buffer[:count]
        self._to_drop -= count
        if self._to_drop:
            return None
        found, self._dropped = self._dropped, None
        return found

    def _check_submit(self, action: Action, length: int) -> None:
        limit = self._submit_limit
        if length < 0 or (limit is not None and length > limit):
            text = "a sink submitted a message of invalid length"
            raise ReplicationError(f"{text}: found={length} limit={limit or 0}")
        if limit is None and action == Action.SUBMIT_NO_ACK:
            # Only the end of the connection says that the message is not stored.
            text = "a sink submitted a message, but this source does not accept any"
            raise ReplicationError(f"{text}: length={length}")


def _action(code: int) -> Action:
    if code == Action.WITH_MAPPING:
        text = "a sink asked for a mapping, a serialised Java function: not supported"
        raise ReplicationError(text)
    try:
        return Action(code)
    except ValueError:
        raise ReplicationError(f"a sink sent an unknown action: found={code}") from None


class FrameReader:
    """Parses frames from the bytes of a connection, however they are split."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._wanted = FRAME_BYTES

    def feed(self, chunk: bytes) -> Iterator[Run | Marked]:
        """
        Yield the frames that are complete with these bytes; messages in runs. Take all of them.

        Raises:
            ReplicationError: The bytes break the protocol; frames before the error have been
                yielded.

        """
        self._buffer += chunk
        if len(self._buffer) < self._wanted:
            return
        data = bytes(self._buffer)
        at = 0
        while len(data) - at >= FRAME_BYTES:
            length, index = _FRAME.unpack_from(data, at)
            if length < 0:
                yield Marked(_mark(length), index)
                at += FRAME_BYTES
                continue
            run, at = _run_at(data, at, index)
            if not run.payloads:
                break
            yield run
        del self._buffer[:at]
        self._wanted = FRAME_BYTES + self._next_length()

    def _next_length(self) -> int:
        if len(self._buffer) < FRAME_BYTES:
            return 0
        length = int(_FRAME.unpack_from(self._buffer)[0])
        if length > PAYLOAD_MAX:
            text = "the source announced a message that is too long"
            raise ReplicationError(f"{text}: length={length} limit={PAYLOAD_MAX}")
        return max(length, 0)


def _run_at(data: bytes, at: int, first: int) -> tuple[Run, int]:
    """Return the consecutive complete messages from a place on, and where they end."""
    payloads: list[bytes] = []
    unpack, expected, end = _FRAME.unpack_from, first, len(data) - FRAME_BYTES
    while at <= end:
        length, index = unpack(data, at)
        start = at + FRAME_BYTES
        stop = start + length
        if length < 0 or index != expected or stop > len(data):
            break
        payloads.append(data[start:stop])
        at, expected = stop, expected + 1
    return Run(first, payloads), at


def _mark(length: int) -> Mark:
    try:
        return Mark(length)
    except ValueError:
        raise ReplicationError(f"a source sent an unknown mark: found={length}") from None
