"""Input formats of ``quire write``: splitting a file into items, and encoding each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from textwrap import indent
from typing import IO, Final, NamedTuple, Protocol

import quire
from quire._native import entry_bytes
from quire.errors import MalformedInputError

_INDENT: Final = "  "
_SHORT: Final = 32  # bytes of a name whose length is part of its code
_FIELD_0, _FIELD_ANY = 0xC0, 0xB7
_MARK: Final = re.compile(rb"(?:---|\.\.\.)(?:[ \t]+(.*)|[ \t]*)\r?\n?\Z", re.DOTALL)
_PLACE: Final = re.compile(r"(?: at)? line[ =](\d+) column[ =](\d+)")
_OF_DUMP: Final = re.compile(r"!!(?:not-ready-)?(?:meta-)?data\b")


class Item(NamedTuple):
    """The bytes that one message is made of, and the line they begin on."""

    line: int
    data: bytes


class Target(Protocol):
    """What messages are written to."""

    def write_bytes(self, data: bytes, /) -> object:
        """Append a message."""
        ...

    def write_text(self, text: str, /) -> object:
        """Append a text value."""
        ...


class Input(NamedTuple):
    """A format."""

    name: str
    items: Callable[[IO[bytes]], Iterator[Item]]
    put: Callable[[Target, str | None, bytes], object]
    takes_method: bool


def lines(stream: IO[bytes]) -> Iterator[Item]:
    """Yield each line as it arrives, without its line end."""
    for number, line in enumerate(stream, 1):
        yield Item(number, line.removesuffix(b"\n").removesuffix(b"\r"))


def filled_lines(stream: IO[bytes]) -> Iterator[Item]:
    """Yield each line that is not blank."""
    return (item for item in lines(stream) if item.data.strip())


def whole(stream: IO[bytes]) -> Iterator[Item]:
    """Yield the whole input."""
    yield Item(1, stream.read())


def documents(stream: IO[bytes]) -> Iterator[Item]:
    """Yield each YAML document, as soon as a line with ``---`` or ``...`` ends it."""
    start, found = 1, list[bytes]()
    for number, line in enumerate(stream, 1):
        mark = _MARK.match(line)
        if mark is None:
            found.append(line)
            continue
        if _has_content(found):
            yield Item(start, b"".join(found))
        start, found = (number, [mark[1]]) if mark[1] else (number + 1, [])
    if _has_content(found):
        yield Item(start, b"".join(found))


def _has_content(found: list[bytes]) -> bool:
    return any(line.strip() and not line.lstrip().startswith(b"#") for line in found)


def put_yaml(appender: Target, method: str | None, data: bytes) -> None:
    """Append what a YAML document stands for, or a call with it."""
    text = _utf8(data)
    if text.startswith("!!") and _OF_DUMP.match(text):
        raise ValueError("a dump cannot be written: use the output of read --no-index")
    if method is None:
        payload = _parsed(quire.types.parse_yaml, text)
    else:
        as_value = f"{_quoted(method)}:\n" + indent(text, _INDENT)
        payload = _parsed(quire.types.parse_yaml, as_value, lines=1, columns=len(_INDENT))
        payload = as_field(payload, method)
    appender.write_bytes(payload)


def put_json(appender: Target, method: str | None, data: bytes) -> None:
    """Append what a line of JSON stands for, or a call with it."""
    text = _utf8(data)
    payload = _parsed(quire.types.parse_json, text)
    if method is not None:
        payload = as_field(quire.types.parse_json(f"{{{_quoted(method)}: {text}}}"), method)
    appender.write_bytes(payload)


def _parsed(parse: Callable[[str], bytes], text: str, *, lines: int = 0, columns: int = 0) -> bytes:
    try:
        return parse(text)
    except quire.errors.WireError as error:
        raise _malformed(error, lines=lines, columns=columns) from error


def _malformed(error: quire.errors.WireError, *, lines: int, columns: int) -> MalformedInputError:
    """Move the position out of the text; *lines* and *columns* before it were added here."""
    text = str(error)
    place = _PLACE.search(text)
    if place is None:
        return MalformedInputError(text)
    words = text[: place.start()] + text[place.end() :]
    return MalformedInputError(words, int(place[1]) - 1 - lines, max(1, int(place[2]) - columns))


def as_field(payload: bytes, method: str) -> bytes:
    """Return a call with its name as a field, as Java's ``ChronicleWriterMain`` writes it."""
    name = method.encode()
    if len(name) < _SHORT:
        return bytes([_FIELD_0 + len(name)]) + payload[2:]
    return bytes([_FIELD_ANY]) + payload[1:]


def put_text(appender: Target, method: str | None, data: bytes) -> None:
    """Append a text value, or a call with a string."""
    text = _utf8(data)
    if method is None:
        appender.write_text(text)
    else:
        appender.write_bytes(as_field(entry_bytes(method, text), method))


def put_hex(appender: Target, _method: str | None, data: bytes) -> None:
    """Append the bytes that digits stand for."""
    try:
        payload = bytes.fromhex(data.decode("ascii"))
    except ValueError:
        raise ValueError("not pairs of hexadecimal digits") from None
    appender.write_bytes(payload)


def put_raw(appender: Target, _method: str | None, data: bytes) -> None:
    """Append the bytes."""
    appender.write_bytes(data)


def _quoted(name: str) -> str:
    """Return a name as JSON and YAML have it in quotes."""
    from json import dumps

    return dumps(name)


def _utf8(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 from byte {error.start} on") from None


INPUTS: Final = {
    it.name: it
    for it in (
        Input("yaml", documents, put_yaml, takes_method=True),
        Input("jsonl", filled_lines, put_json, takes_method=True),
        Input("text", lines, put_text, takes_method=True),
        Input("hex", filled_lines, put_hex, takes_method=False),
        Input("raw", whole, put_raw, takes_method=False),
    )
}
