"""Where messages begin and end in a stream of bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Protocol

from quire.errors import MalformedInputError

LENGTH_BYTES: Final = 4  # of a length, big-endian
_REQUEST_LINE: Final = re.compile(rb"[!-~]+ [!-~]+ HTTP/\d(\.\d)?")
_METHODS: Final = {b"GET ", b"HEAD", b"POST", b"PUT ", b"PATC", b"DELE", b"OPTI", b"CONN", b"TRAC"}


class Framing(Protocol):
    """Cuts the bytes of one stream into messages; keeps at most one unfinished message."""

    error: MalformedInputError | None
    """Why no messages can follow those returned so far; None: more may follow."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the messages that *chunk* completes, up to an error."""
        ...

    def end(self) -> list[bytes]:
        """Return the message that the end of the stream completes, if any."""
        ...

    @property
    def is_within_message(self) -> bool:
        """Whether a message has begun and not ended."""
        ...


class Lines:
    """
    A message is a line without its line end, LF or CR LF.

    Args:
        max_bytes: The length of the longest message.
        needs_end: Whether the last line too is a message only if it has a line end.

    """

    def __init__(self, max_bytes: int, *, needs_end: bool = False) -> None:
        self._max_bytes = max_bytes
        self._needs_end = needs_end
        self._rest = bytearray()
        self.error: MalformedInputError | None = None

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that end in *chunk*."""
        found: list[bytes] = []
        if b"\n" in chunk:
            *found, rest = (bytes(self._rest) + chunk).split(b"\n")
            self._rest = bytearray(rest)
            found = [line.removesuffix(b"\r") for line in found]
        else:
            self._rest += chunk
        if max(map(len, found), default=0) > self._max_bytes:
            fits = next(i for i, line in enumerate(found) if len(line) > self._max_bytes)
            self.error = _too_long(len(found[fits]), self._max_bytes)
            return found[:fits]
        if len(self._rest) > self._max_bytes + 1:  # a CR at its end may belong to the line end
            self.error = _too_long(len(self._rest), self._max_bytes)
        return found

    def end(self) -> list[bytes]:
        """Return the last line, if it has no line end and needs none."""
        if self._needs_end and self._rest:
            text = "the stream ends within a line, which may be cut off"
            self.error = MalformedInputError(f"{text}: bytes={len(self._rest)}")
            return []
        last = bytes(self._rest.removesuffix(b"\r"))
        if len(last) > self._max_bytes:
            self.error = _too_long(len(last), self._max_bytes)
            return []
        return [last] if last else []

    @property
    def is_within_message(self) -> bool:
        """Whether a line has begun."""
        return bool(self._rest)


class Lengths:
    """The length of each message precedes it, as four bytes, big-endian."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._rest = bytearray()
        self._needed = LENGTH_BYTES  # bytes in _rest before it can be examined further
        self.error: MalformedInputError | None = None

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the messages that end in *chunk*."""
        self._rest += chunk
        if len(self._rest) < self._needed:
            return []
        data, found, start = bytes(self._rest), list[bytes](), 0
        end = self._needed
        while end <= len(data):
            body = start + LENGTH_BYTES
            length = int.from_bytes(data[start:body], "big")
            if length > self._max_bytes:
                self.error = _too_long(length, self._max_bytes)
                return found
            end = body + length
            if end <= len(data):
                found.append(data[body:end])
                start, end = end, end + LENGTH_BYTES
        self._rest = bytearray(data[start:])
        self._needed = end - start
        return found

    def end(self) -> list[bytes]:
        """Return no message: an unfinished one is an error."""
        if self._rest:
            text = "the stream ends within a message"
            self.error = MalformedInputError(f"{text}: bytes={len(self._rest)}")
        return []

    @property
    def is_within_message(self) -> bool:
        """Whether a length or message has begun."""
        return bool(self._rest)


class OfClient:
    """
    The messages of a client of a port, unless the client sends an HTTP request.

    A page in a browser can send a request to any port of the machine; neither the request nor any
    of its lines is a message.

    Attributes:
        has_message: Whether a message has arrived.

    """

    def __init__(self, framing: Framing) -> None:
        self._framing = framing
        self._start = bytearray()
        self.error: MalformedInputError | None = None
        self.has_message = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the messages that *chunk* completes, up to an error; none of an HTTP request."""
        if len(self._start) < LENGTH_BYTES:
            self._start += chunk[: LENGTH_BYTES - len(self._start)]
        found = self._framing.feed(chunk)
        self.error = self._framing.error
        if not self.has_message and self._is_request(found):
            self.error = MalformedInputError("the client sent an HTTP request, not a message")
            return []
        self.has_message |= bool(found)
        return found

    def _is_request(self, found: list[bytes]) -> bool:
        if isinstance(self._framing, Lines):
            return bool(found) and _REQUEST_LINE.fullmatch(found[0]) is not None
        return bytes(self._start) in _METHODS

    def end(self) -> list[bytes]:
        """Return the message that the end of the stream completes, if any."""
        found = self._framing.end()
        self.error = self._framing.error
        return found

    @property
    def is_within_message(self) -> bool:
        """Whether a message has begun and not ended."""
        return self._framing.is_within_message


def _too_long(length: int, limit: int) -> MalformedInputError:
    return MalformedInputError(f"a message is too long: length={length} limit={limit}")


FRAMINGS: Final[dict[str, Callable[[int], Framing]]] = {"lines": Lines, "length": Lengths}
"""The factory of each framing, by its name; the argument is the length of the longest message."""
