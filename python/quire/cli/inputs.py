"""What ``quire write`` reads: how a file falls into items, and an item becomes a message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Final, NamedTuple

import quire


class Item(NamedTuple):
    """The bytes that one message is made of, and the line they begin on."""

    line: int
    data: bytes


class Input(NamedTuple):
    """A format."""

    name: str
    items: Callable[[IO[bytes]], Iterator[Item]]
    put: Callable[[quire.Appender, str | None, bytes], object]
    takes_method: bool


def lines(stream: IO[bytes]) -> Iterator[Item]:
    """Yield each line, as soon as it is there, without its end."""
    for number, line in enumerate(stream, 1):
        yield Item(number, line.removesuffix(b"\n").removesuffix(b"\r"))


def filled_lines(stream: IO[bytes]) -> Iterator[Item]:
    """Yield each line that is not blank."""
    return (item for item in lines(stream) if item.data.strip())


def whole(stream: IO[bytes]) -> Iterator[Item]:
    """Yield all there is."""
    yield Item(1, stream.read())


def put_text(appender: quire.Appender, method: str | None, data: bytes) -> None:
    """Append a text value, or a call with a string."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 from byte {error.start} on") from None
    if method is None:
        appender.write_text(text)
    else:
        with appender.writing_document() as document:
            document.write(method, text)


def put_hex(appender: quire.Appender, _method: str | None, data: bytes) -> None:
    """Append the bytes that digits stand for."""
    try:
        payload = bytes.fromhex(data.decode("ascii"))
    except ValueError:
        raise ValueError("not pairs of hexadecimal digits") from None
    appender.write_bytes(payload)


def put_raw(appender: quire.Appender, _method: str | None, data: bytes) -> None:
    """Append the bytes."""
    appender.write_bytes(data)


INPUTS: Final = {
    it.name: it
    for it in (
        Input("text", lines, put_text, takes_method=True),
        Input("hex", filled_lines, put_hex, takes_method=False),
        Input("raw", whole, put_raw, takes_method=False),
    )
}
