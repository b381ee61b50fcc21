"""How a message is shown: one function a format, and what stands around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from quire import ReadDocument, WireError

Render: TypeAlias = Callable[[ReadDocument], str]

# A message must not move the cursor of the terminal it is shown on. Tabs do no harm.
_CONTROLS: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\t",
}


def as_text(document: ReadDocument) -> str:
    """Return a text value, or else the bytes as UTF-8, on one line."""
    try:
        text = document.text()
    except WireError:
        text = bytes(document.bytes).decode("utf-8", "backslashreplace")
    return text.translate(_CONTROLS)


def as_hex(document: ReadDocument) -> str:
    """Return the bytes, two digits each."""
    return document.bytes.hex()


FORMATS: Final[dict[str, Render]] = {
    "text": as_text,
    "hex": as_hex,
    "raw": as_text,  # what a pattern is looked for in; the bytes themselves are written
}


def framed(style: str, text: str, index: int | None, *, is_metadata: bool) -> str:
    """Return a message as it stands in the output, with its index unless that is None."""
    if style in {"json", "jsonl"}:
        return _object(text, index, is_metadata=is_metadata)
    mark = " # metadata" if is_metadata else ""
    if style == "yaml":
        head = "---" if index is None else f"{index:#x}:"
        return f"{head}{mark}\n{text}\n" + ("" if index is None else "\n")
    return f"{text}\n" if index is None else f"{index:#x}: {text}{mark}\n"


def _object(text: str, index: int | None, *, is_metadata: bool) -> str:
    if index is None:
        return f"{text}\n"
    mark = ', "metadata": true' if is_metadata else ""
    return f'{{"index": "{index:#x}"{mark}, "message": {text}}}\n'


def as_it_is(text: str) -> bytes:
    """Return the bytes of a text for a terminal or a file; a lone surrogate as its escape."""
    return text.encode("utf-8", "backslashreplace")
