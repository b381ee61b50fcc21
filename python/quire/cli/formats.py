"""How a message is shown: one function a format, and what stands around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from quire import ReadDocument, WireError, to_json, to_yaml
from quire._terminal import escape_controls, escape_json, escape_line

Render: TypeAlias = Callable[[ReadDocument], str]

_WIDTH: Final = 16


def as_text(document: ReadDocument) -> str:
    """Return a text value, or else the bytes as UTF-8, on one line."""
    try:
        text = document.text()
    except WireError:
        text = bytes(document.bytes).decode("utf-8", "backslashreplace")
    return escape_line(text)


def as_hex(document: ReadDocument) -> str:
    """Return the bytes, two digits each."""
    return document.bytes.hex()


def as_yaml(document: ReadDocument) -> str:
    """Return the YAML of Java's tools; bytes that hold no values as they are, or in digits."""
    return yaml_of(document.bytes)


def yaml_of(data: bytes | memoryview) -> str:
    """Return what :func:`as_yaml` does, of bytes."""
    try:
        return escape_controls(to_yaml(data))
    except WireError:
        return as_it_reads(bytes(data))


def as_json(document: ReadDocument) -> str:
    """Return JSON on one line; of bytes that hold no values, an object with their digits."""
    return json_of(document.bytes)


def json_of(data: bytes | memoryview) -> str:
    """Return what :func:`as_json` does, of bytes."""
    try:
        return escape_json(to_json(data))
    except WireError:
        return f'{{"bytes": "{data.hex()}"}}'


def as_it_reads(data: bytes) -> str:
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


FORMATS: Final[dict[str, Render]] = {
    "yaml": as_yaml,
    "json": as_json,
    "jsonl": as_json,
    "text": as_text,
    "hex": as_hex,
    "raw": as_text,  # what a pattern is looked for in; the bytes themselves are written
}


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


def as_it_is(text: str) -> bytes:
    """Return the bytes of a text for a terminal or a file; a lone surrogate as its escape."""
    return text.encode("utf-8", "backslashreplace")
