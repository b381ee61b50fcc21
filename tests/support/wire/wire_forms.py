"""
Messages made by hand: each value in any of the forms that a reader has to take.

Written from docs/format.md alone and importing nothing of quire, so that the two can disagree.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from datetime import date, datetime, time
from uuid import UUID

NULL = b"\xbb"
INTS = {
    b"\xa1": "<B",
    b"\xa2": "<H",
    b"\xa3": "<I",
    b"\xa4": "<b",
    b"\xa5": "<h",
    b"\xa6": "<i",
    b"\xa7": "<q",
    b"\xaf": "<q",
}
STOP_FLOATS = {b"\x92": 100, b"\x94": 10_000, b"\x96": 1_000_000}


def stop_bit(value: int) -> bytes:
    rest, out = (~value if value < 0 else value), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest | 0x80, 0]) if value < 0 else bytes([*out, rest])


def int_forms(value: int) -> list[bytes]:
    """Every code that holds this integer, floats and a text among them."""
    forms = [bytes([value])] if 0 <= value < 128 else []
    for code, form in INTS.items():
        try:
            forms.append(code + struct.pack(form, value))
        except struct.error:
            continue
    for code, form in {b"\x90": "<f", b"\x91": "<d"}.items():
        bits = struct.pack(form, value)
        if struct.unpack(form, bits)[0] == value:
            forms.append(code + bits)
    return [*forms, text(str(value))]


def float_forms(value: float) -> list[bytes]:
    """Every code that holds this float."""
    forms = [b"\x91" + struct.pack("<d", value)]
    if math.isnan(value) or math.isinf(value):
        return [*forms, b"\x90" + struct.pack("<f", value)]
    for code, scale in STOP_FLOATS.items():
        if abs(scaled := round(value * scale)) < 2**52 and scaled / scale == value:
            forms.append(code + stop_bit(scaled))
    if value.is_integer() and abs(value) < 2**53:
        forms += int_forms(int(value))
    return [*forms, text(repr(value))]


def text(value: str) -> bytes:
    """Characters beyond the first plane as Java writes them: two surrogates, three bytes each."""
    units = value.encode("utf-16-le", "surrogatepass")
    data = b"".join(
        chr(unit).encode("utf-8", "surrogatepass")
        for unit in struct.unpack(f"<{len(units) // 2}H", units)
    )
    return bytes([0xE0 + len(data)]) + data if len(data) < 32 else long_text(data)


def long_text(data: bytes) -> bytes:
    return b"\xb8" + stop_bit(len(data)) + data


def block(content: bytes, width: int = 4) -> bytes:
    code = {1: b"\x80", 2: b"\x81", 4: b"\x82"}[width]
    return code + len(content).to_bytes(width, "little") + content


def blob(data: bytes) -> bytes:
    return block(b"\x8a" + data)


def typed(name: str, value: bytes) -> bytes:
    return b"\xb6" + stop_bit(len(name)) + name.encode() + value


def name_forms(name: str) -> list[bytes]:
    """As a field's and as an event's, short and long."""
    data = name.encode("latin-1")
    short = [bytes([0xC0 + len(data)]) + data] if len(data) < 32 else []
    number = [b"\xba" + stop_bit(int(name))] if name.isdecimal() else []
    return [
        *short,
        *number,
        b"\xb9" + stop_bit(len(data)) + data,
        b"\xb7" + stop_bit(len(data)) + data,
    ]


def field(name: str, value: bytes) -> bytes:
    return name_forms(name)[0] + value


def event(name: str, *arguments: bytes) -> bytes:
    """A call: no argument is an empty text, several are a list."""
    head = b"\xb9" + stop_bit(len(name)) + name.encode("latin-1")
    if len(arguments) > 1:
        return head + block(b"".join(arguments))
    return head + (arguments[0] if arguments else b"\xe0")


def fields(named: Iterable[tuple[str, bytes]]) -> bytes:
    return b"".join(field(name, value) for name, value in named)


def uuid(value: UUID) -> bytes:
    return b"\xa0" + struct.pack("<QQ", value.int >> 64, value.int & 2**64 - 1)


def temporal(value: date | time | datetime) -> bytes:
    data = value.isoformat().replace("+00:00", "Z").encode()
    if isinstance(value, datetime):
        code = b"\xb4" if value.tzinfo is None else b"\xb5"
    else:
        code = b"\xb2" if isinstance(value, time) else b"\xb3"
    return code + stop_bit(len(data)) + data
