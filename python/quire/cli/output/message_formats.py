"""How a message is shown, and what stands around it."""

from __future__ import annotations

from typing import Final

from quire._common.terminal import escape_controls, escape_json, escape_line
from quire._native import render_rows
from quire.errors import WireError
from quire.formats.columns import Columns
from quire.types import to_json, to_yaml

_WIDTH: Final = 16


def yaml_of(data: bytes | memoryview) -> str:
    """Return the YAML of Java's tools; bytes that hold no values as they are, or in digits."""
    try:
        return escape_controls(to_yaml(data))
    except WireError:
        return readable_text(bytes(data))


def json_of(data: bytes | memoryview) -> str:
    """Return JSON on one line; of bytes that hold no values, an object with their digits."""
    try:
        return escape_json(to_json(data))
    except WireError:
        return f'{{"bytes": "{data.hex()}"}}'


def readable_text(data: bytes) -> str:
    """Return bytes that are text as such, others in digits."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if text != escape_controls(text):
        return "".join(_in_digits(data, start) for start in range(0, len(data), _WIDTH))
    return text if text.endswith("\n") else f"{text}\n"


def _in_digits(data: bytes, start: int) -> str:
    line = data[start : start + _WIDTH]
    shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "·" for byte in line)  # noqa: PLR2004
    return f"{start:08x}  {line.hex(' ').ljust(3 * _WIDTH)} {shown}\n"


def framed(style: str, text: str, index: int | None, *, is_metadata: bool) -> str:
    """Return a message as it stands in the output, with its index unless that is None."""
    mark = " # metadata" if is_metadata else ""
    if style in {"json", "jsonl"}:
        if index is None:
            return f"{text}\n"
        kind = ', "metadata": true' if is_metadata else ""
        return f'{{"index": "{index:#x}"{kind}, "message": {text}}}\n'
    if style == "yaml":
        if index is None:
            return f"---{mark}\n{text}"
        return f"{index:#x}:{mark}\n{text}" + ("\n" if text else "")
    return f"{text}\n" if index is None else f"{index:#x}: {text}{mark}\n"


def encoded(text: str) -> bytes:
    """Return the bytes of a text for a terminal or a file; a lone surrogate as its escape."""
    return text.encode("utf-8", "backslashreplace")


def in_utf8(text: str) -> str:
    """Return a text that UTF-8 has: the bytes of a name that are not are shown as escapes."""
    return encoded(text).decode()


def text_of(columns: Columns, style: str, row: int) -> str:
    """Return one message as text, without its index."""
    data = columns.payload(row)
    if style == "hex":
        return data.hex()
    if not columns.is_wire and (plain := _plain(data)) is not None:
        return _as_style(style, plain)
    text, stopped, _ = render_rows(style, (None, columns.offsets, columns.data), row, row + 1)
    if stopped == row:
        return _unreadable(style, bytes(data))
    found = text.decode()
    if style == "yaml":
        return escape_controls(found.removeprefix("---\n"))
    if style == "jsonl":
        return escape_json(found.removesuffix("\n"))
    return found.removesuffix("\n") if style == "text" else escape_controls(found)


def _plain(data: memoryview) -> str | None:
    """Return bytes that are printable text as such."""
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError:
        return None
    return text if text == escape_controls(text) else None


def _as_style(style: str, text: str) -> str:
    import json

    if style == "jsonl":
        return escape_json(json.dumps(text, ensure_ascii=False))
    return escape_line(text) if style == "text" else text if text.endswith("\n") else f"{text}\n"


def _unreadable(style: str, data: bytes) -> str:
    """Return bytes that hold no values."""
    if style == "jsonl":
        return f'{{"bytes": "{data.hex()}"}}'
    return readable_text(data)
