"""Requests as they come: arrays of bulk strings of RESP, parsed by hiredis within limits."""

from __future__ import annotations

import re
from collections.abc import MutableSequence
from typing import Any, Final, NamedTuple, cast

import hiredis

from quire.errors import RefusedError

_HELD: Final = re.compile(rb"[*%~>|$]\d*\r?\Z")
_HEADER: Final = re.compile(rb"([*%~>|])(\d+)|(\$)(\d{5,})")
_ANSWER_TYPES: Final = "an array of bulk strings"


class RequestLimits(NamedTuple):
    """
    How large a request may be.

    Attributes:
        size: Its length in bytes.
        arguments: How many arguments it has, with the command's name.

    """

    size: int
    arguments: int


BEFORE_AUTHENTICATION: Final = RequestLimits(16 << 10, 64)


class Requests:
    """
    Takes bytes, gives requests. What hiredis would allocate before it is sent is refused here.

    Args:
        limits: What a request may have; can be changed between two requests.

    """

    def __init__(self, limits: RequestLimits) -> None:
        self.limits = limits
        self._reader = hiredis.Reader()
        self._held = b""
        self._pending = 0

    @property
    def pending(self) -> int:
        """How many bytes of an incomplete request there are, at most."""
        return self._pending + len(self._held)

    def feed(self, data: bytes, found: MutableSequence[list[bytes]]) -> None:
        """
        Add the requests that are complete now to those that were found before.

        Raises:
            RefusedError: The bytes are no request, or exceed a limit: close the connection.

        """
        data = self._held + data
        self._held = b""
        if (held := _HELD.search(data)) is not None:
            self._held, data = data[held.start() :], data[: held.start()]
        start = 0
        for match in _HEADER.finditer(data):
            self._take(data[start : match.start()], found)
            start = match.start()
            if not self._reader.has_data():
                self._check(match)
        self._take(data[start:], found)
        if self._pending > self.limits.size:
            raise _refused(f"the request is too long: limit={self.limits.size} bytes")

    def _check(self, header: re.Match[bytes]) -> None:
        """Check a number that an array or a bulk string begins with."""
        kind, count, bulk, length = header.groups()
        if bulk:
            if int(length[:20]) > self.limits.size:
                raise _refused(f"invalid bulk length: limit={self.limits.size} bytes")
        elif self._pending or kind != b"*":
            raise _refused(f"expected {_ANSWER_TYPES}")
        elif int(count[:20]) > self.limits.arguments:
            raise _refused(f"invalid multibulk length: limit={self.limits.arguments}")

    def _take(self, data: bytes, found: MutableSequence[list[bytes]]) -> None:
        if not data:
            return
        if not self._pending and not data.startswith(b"*"):
            raise _refused(f"expected '*', got {chr(data[0])!a}")
        self._pending += len(data)
        try:
            self._reader.feed(data)
            while (request := self._reader.gets()) is not False:
                self._pending = len(data) if self._reader.has_data() else 0
                if request:
                    found.append(_checked(request))
                elif request is not None and request != []:
                    raise _refused(f"expected {_ANSWER_TYPES}")
        except hiredis.ProtocolError as error:
            raise _refused(str(error).removeprefix("Protocol error, ")) from None


def _checked(request: Any) -> list[bytes]:  # noqa: ANN401 - whatever RESP can say
    if type(request) is list:
        words = cast("list[bytes]", request)
        if all(type(it) is bytes for it in words):
            return words
    raise _refused(f"expected {_ANSWER_TYPES}")


def _refused(text: str) -> RefusedError:
    return RefusedError(f"Protocol error: {text}")
