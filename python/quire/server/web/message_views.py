"""A message as a page shows it: as YAML, JSON, fields or bytes, cut if it is long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from quire._common.terminal import escape_controls
from quire._native import Excerpt
from quire.errors import QuireError
from quire.server.entry_fields import fields_of

View: TypeAlias = Literal["yaml", "json", "fields", "bytes"]
VIEWS: Final[tuple[View, ...]] = get_args(View)
DECODED: Final = 1 << 20
"""Longer messages are shown as bytes: decoding them takes too long for a page."""
_ROW: Final = 16
_PRINTABLE: Final = range(32, 127)


@dataclass(frozen=True, slots=True)
class Shown:
    """
    A message on a page.

    Attributes:
        index: Its index.
        size: Its length in bytes.
        view: How it is shown.
        text: Its text, unless it is shown as fields.
        fields: Its fields, if it is shown as fields.
        is_cut: Whether only its beginning is shown.
        note: Why it is not shown in the requested form; otherwise empty.

    """

    index: int
    size: int
    view: View
    text: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    is_cut: bool = False
    note: str = ""


def text_of(index: int, data: bytes, view: View) -> str:
    """
    Return a message as text.

    Raises:
        QuireError: The message cannot be decoded.

    """
    match view:
        case "yaml":
            return Excerpt(index, data).to_yaml()
        case "json":
            return Excerpt(index, data).to_json()
        case "fields":
            return "\n".join(f"{name}: {value}" for name, value in _fields(index, data))
        case "bytes":
            return "\n".join(dump(data))


def shown(index: int, data: bytes, view: View, most: int) -> Shown:
    """
    Return a message as a page shows it.

    Args:
        index: Its index.
        data: Its bytes.
        view: The form in which it is shown.
        most: The most characters to show.

    """
    note = ""
    if view != "bytes" and len(data) > DECODED:
        note = "too long to be decoded here"
    elif view != "bytes":
        try:
            return _decoded(index, data, view, most)
        except (QuireError, ValueError, TypeError, RecursionError) as error:
            note = f"shown as bytes: {error}"
    rows = max(1, most // 80)
    text = "\n".join(dump(data[: rows * _ROW]))
    return Shown(index, len(data), "bytes", text, (), len(data) > rows * _ROW, note)


def _decoded(index: int, data: bytes, view: View, most: int) -> Shown:
    if view != "fields":
        text = text_of(index, data, view)
        return Shown(index, len(data), view, _cut(text, most), (), len(text) > most)
    fields: list[tuple[str, str]] = []
    left, is_cut = most, False
    for name, value in _fields(index, data):
        if left <= 0:
            is_cut = True
            break
        is_cut = is_cut or len(value) > left or len(name) > left
        fields.append((_cut(name, left), _cut(value, left)))
        left -= len(name) + len(value) + 10
    return Shown(index, len(data), view, "", tuple(fields), is_cut)


def _cut(text: str, most: int) -> str:
    return escape_controls(text if len(text) <= most else text[:most] + "\N{HORIZONTAL ELLIPSIS}")


def _fields(index: int, data: bytes) -> Iterator[tuple[str, str]]:
    found = [it.decode("utf-8", "backslashreplace") for it in fields_of(index, data)]
    return zip(found[::2], found[1::2], strict=True)


def dump(data: bytes) -> Iterator[str]:
    """Yield bytes as lines of hexadecimal digits, with their offset and as ASCII."""
    for start in range(0, len(data), _ROW):
        row = data[start : start + _ROW]
        digits = row.hex(" ")
        letters = "".join(chr(it) if it in _PRINTABLE else "." for it in row)
        yield f"{start:08x}  {digits:<{3 * _ROW - 1}}  {letters}"
