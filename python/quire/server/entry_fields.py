"""Conversion of messages to the fields of Redis Streams entries, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from quire._native import Excerpt, entry_bytes, to_json
from quire.errors import QuireError, RefusedError

PAYLOAD: Final = b"payload"
"""The only field of a message that is not a map."""
_TEXT_CODES: Final = 0xE0
_LONG_TEXT: Final = 0xB8


def message_of(fields: Sequence[bytes]) -> bytes:
    """
    Return the message of an entry: a map of texts, or of bytes where they are not UTF-8.

    Args:
        fields: Names and values, alternating.

    Raises:
        RefusedError: A name is not UTF-8, or occurs twice.

    """
    names = fields[::2]
    if len(set(names)) < len(names):
        raise RefusedError(
            "a field is given twice: a message is a map, in which each name is unique"
        )
    try:
        return b"".join(
            entry_bytes(name.decode(), _value(value))
            for name, value in zip(names, fields[1::2], strict=True)
        )
    except UnicodeDecodeError:
        raise RefusedError("the name of a field is not UTF-8") from None
    except QuireError as error:
        raise RefusedError(str(error)) from None


def _value(text: bytes) -> str | bytes:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text


def fields_of(index: int, data: bytes) -> list[bytes]:
    """Return the names and values of a message, alternating; if it is not a map, its payload."""
    excerpt = Excerpt(index, data)
    try:
        found = excerpt.to_dict()
    except (QuireError, ValueError, TypeError):
        return [PAYLOAD, _payload(excerpt, data)]
    fields: list[bytes] = []
    for name, value in found.items():
        fields += _text(name), _text(value)
    return fields or [PAYLOAD, data]


def _payload(excerpt: Excerpt, data: bytes) -> bytes:
    """Return the text of a text message, and the bytes of any other."""
    if data[:1] and (data[0] >= _TEXT_CODES or data[0] == _LONG_TEXT):
        try:
            text = excerpt.to_text().encode()
        except (QuireError, ValueError):
            return data
        return text if data.endswith(text) else data
    return data


def _text(value: Any) -> bytes:  # noqa: ANN401 - whatever messages hold
    match value:
        case str():
            return value.encode("utf-8", "surrogatepass")
        case bytes():
            return value
        case bool():
            return b"true" if value else b"false"
        case None:
            return b""
        case int() | float():
            return repr(value).encode()
        case _:
            return _json(value)


def _json(value: Any) -> bytes:  # noqa: ANN401 - whatever messages hold
    try:
        line = to_json(entry_bytes("v", value))
        return line.removeprefix('{"v":').removesuffix("}").encode()
    except (QuireError, ValueError, TypeError):
        return str(value).encode("utf-8", "replace")
