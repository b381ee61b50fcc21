"""Incoming requests: RESP arrays of bulk strings, parsed by the kernel within limits."""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from quire._native import RequestReader
from quire.errors import RefusedError

if TYPE_CHECKING:
    from quire._native import PackedEntries

Request: TypeAlias = "list[bytes] | PackedEntries"
"""A command and its arguments, or plain XADD commands for one queue as their messages."""


class RequestLimits(NamedTuple):
    """
    How large a request may be.

    Attributes:
        size: Its length in bytes.
        arguments: How many arguments it may have, including the command's name.

    """

    size: int
    arguments: int


BEFORE_AUTHENTICATION: Final = RequestLimits(16 << 10, 64)


class Requests:
    """
    Turns bytes into requests. Announced lengths allocate nothing.

    Args:
        limits: The limits of a request; they can be changed between two requests.

    """

    def __init__(self, limits: RequestLimits) -> None:
        self.limits = limits
        self._reader = RequestReader()

    @property
    def pending(self) -> int:
        """How many bytes of an incomplete request there are."""
        return self._reader.pending

    def feed(self, data: bytes, found: MutableSequence[Request]) -> None:
        """
        Append the requests that are now complete to *found*.

        Raises:
            RefusedError: The bytes are not a request, or exceed a limit: close the connection.

        """
        requests, wrong = self._reader.feed(data, *self.limits)
        found += requests
        if wrong is not None:
            raise RefusedError(f"Protocol error: {wrong}")
