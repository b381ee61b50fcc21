"""Messages for a remote queue as bytes, and as the commands that append them."""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from quire import _native
from quire._common import arguments
from quire.errors import MessageTooLargeError, WireError
from quire.remote.connection import Word, packed

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from quire._native import Value
    from quire.remote.link import RemoteLink

_CLIENT_BYTES: Final = 16


def of_bytes(queue: RemoteLink, payload: Buffer) -> bytes:
    """
    Return the bytes of a message, checked.

    Raises:
        ValueError: The message is empty.
        MessageTooLargeError: The message is longer than the server accepts.

    """
    try:
        view = memoryview(payload)
    except TypeError:
        raise arguments.refusal("payload", "bytes", payload) from None
    data = bytes(view.cast("B"))
    if not data and queue.is_wire:
        raise ValueError("a message holds at least one byte: length=0")
    check_length(queue, len(data))
    return data


def check_length(queue: RemoteLink, length: int) -> None:
    """
    Check that the server accepts a message of this length, or it would close the connection.

    Raises:
        MessageTooLargeError: The message is too long.

    """
    if length > (limit := queue.facts["longest"]):
        raise MessageTooLargeError(
            f"message too large: length={length} limit={limit} queue={queue.url}"
        )


def of_text(queue: RemoteLink, text: str) -> bytes:
    """Return the bytes of a text."""
    arguments.text("text", text)
    return _native.text_bytes(text) if queue.is_wire else text.encode()


def of_map(queue: RemoteLink, values: Mapping[str, Value]) -> bytes:
    """
    Return the bytes of named values.

    Raises:
        ValueError: The map is empty.

    """
    queue.need_wire("write_map")
    if not values:
        raise ValueError("a message holds at least one value: count=0")
    return _native.map_bytes(values)


def of_message(queue: RemoteLink, message: object, cls: type | None, *, typed: bool) -> bytes:
    """Return the bytes of an object."""
    queue.need_wire("write_message")
    return _native.message_bytes(message, cls, typed=typed, fieldless=queue.is_fieldless)


def text_of(queue: RemoteLink, excerpt: Any) -> str | None:  # noqa: ANN401 - of the format
    """
    Return the text of a text message; None: another message, or a text in another encoding.

    Raises:
        WireError: The messages of the format are raw bytes, and these are not UTF-8.

    """
    if queue.is_wire:
        # An excerpt shows other bytes as text, too.
        with suppress(WireError):
            shown: str = excerpt.to_text()
            return shown if _native.text_bytes(shown) == excerpt.data else None
        return None
    try:
        return str(excerpt.data, "utf-8")
    except UnicodeDecodeError:
        raise WireError(f"no text: index={excerpt.index:#x}") from None


def pack_of(message: bytes) -> tuple[bytes, bytes]:
    """Return a message as the offsets and bytes of a batch."""
    return array("i", (0, len(message))).tobytes(), message


def count_of(offsets: bytes) -> int:
    """Return how many messages a batch has."""
    return len(offsets) // 4 - 1


class Numbers:
    """Numbers messages under a random client id, by which the server recognises retries."""

    client: bytes
    """The client id."""

    def __init__(self) -> None:
        self.start_again()

    def start_again(self) -> None:
        """Take another client id: the messages that follow are not retries of failed ones."""
        self.client, self._next, self._process = os.urandom(_CLIENT_BYTES), 1, os.getpid()

    @property
    def are_inherited(self) -> bool:
        """Whether the numbers are those of a parent process."""
        return self._process != os.getpid()

    def take(self, count: int = 1) -> int:
        """Return the number of the next message, and reserve *count* numbers."""
        first, self._next = self._next, self._next + count
        return first


class Batch:
    """
    Messages that are sent together.

    Args:
        number: The number of the first.
        offsets: Where each message begins, and where the last ends.
        data: The bytes of the messages.

    """

    def __init__(self, number: int, offsets: bytes, data: bytes) -> None:
        self.number, self.count = number, count_of(offsets)
        self._parts = offsets, data

    def command(self, topic: str, client: bytes, waits: tuple[str, ...] = ()) -> bytes:
        """Return the command that appends them."""
        words: list[Word] = ["QUIRE.APPEND", topic, "ID", client, self.number, *waits]
        return packed([*words, "PACKED", *self._parts])
