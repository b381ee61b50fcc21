"""Reads messages that are stored as differences, from the words of docs/format.md §1.14 alone."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

START: Final = b"\xb6\x03qz1"
DELTA, DEFAULT_ZERO = 4, 5
_LENGTHS: Final = {0x80: 1, 0x81: 2, 0x82: 4}
_FIXED: Final = {
    **dict.fromkeys((0xA1, 0xA4, 0xA8), 1),
    **dict.fromkeys((0xA2, 0xA5, 0xA9), 2),
    **dict.fromkeys((0x90, 0xA3, 0xA6), 4),
    **dict.fromkeys((0x91, 0xA7, 0xAF), 8),
    **dict.fromkeys((0xB0, 0xB1, 0xBB), 0),
    0xA0: 16,
}
_STOP_BIT: Final = (0x92, 0x94, 0x96)
_TEXTS: Final = (0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBC)


class Stored(NamedTuple):
    """A stored difference: its method, how far its base is, the base's CRC-32, and the rest."""

    method: int
    distance: int
    sum: int
    body: bytes


def parse(message: bytes) -> Stored | None:
    """Return what a stored message says, or None if it is stored in full."""
    if not message.startswith(START):
        return None
    width = _LENGTHS[message[5]]
    at = 6 + width
    length = int.from_bytes(message[6:at], "little")
    assert message[at] == 0x8A
    assert length == len(message) - at
    method, distance, *sum_bytes = message[at + 1 : at + 7]
    if method not in (DELTA, DEFAULT_ZERO):
        return None
    return Stored(method, distance, int.from_bytes(sum_bytes, "little"), message[at + 7 :])


def restored(messages: Sequence[bytes]) -> list[bytes]:
    """Return the messages of a cycle, from what is stored."""
    found: list[bytes] = []
    for number, message in enumerate(messages):
        stored = parse(message)
        if stored is None:
            found.append(message)
            continue
        assert 1 <= stored.distance <= min(63, number)
        assert parse(messages[number - stored.distance]) is None, "a base is stored in full"
        base = found[number - stored.distance]
        assert zlib.crc32(base) == stored.sum
        of = _of_delta if stored.method == DELTA else _of_fields
        found.append(of(base, stored.body))
    return found


def _number(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = body[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at


def _of_delta(base: bytes, body: bytes) -> bytes:
    length, at = _number(body, 0)
    out, copied_to = b"", 0
    while at < len(body):
        token, at = body[at], at + 1
        copied, new, moved = token & 15, token >> 4 & 7, token >> 7
        if copied == 15:
            more, at = _number(body, at)
            copied += more
        if new == 7:
            more, at = _number(body, at)
            new += more
        left_out = new
        if moved:
            by, at = _number(body, at)
            left_out += by // 2 + 1 if by % 2 else -(by // 2 + 1)
        out += base[copied_to : copied_to + copied] + body[at : at + new]
        at, copied_to = at + new, min(copied_to + copied + left_out, len(base))
    last = length - len(out)
    assert 0 <= last <= len(base) - copied_to
    return out + base[copied_to : copied_to + last]


def _value_end(data: bytes, at: int) -> int:
    """Return where the value, or the name, ends that begins at a code."""
    code = data[at]
    if code < 0x80:
        return at + 1
    if code in _LENGTHS:
        width = _LENGTHS[code]
        return at + 1 + width + int.from_bytes(data[at + 1 : at + 1 + width], "little")
    if code in _FIXED:
        return at + 1 + _FIXED[code]
    if code in _STOP_BIT or code == 0xBA:
        at += 1
        while data[at] >= 0x80:
            at += 1
        return at + 1
    if code in _TEXTS:
        length, at = _number(data, at + 1)
        return at + length
    if code >= 0xC0:
        return at + 1 + (code & 31)
    raise AssertionError(f"{code:#x}")


def _is_block(data: bytes, at: int) -> bool:
    """Say whether a map or a list begins here, which is taken apart."""
    if data[at] not in _LENGTHS:
        return False
    inside = at + 1 + _LENGTHS[data[at]]
    return _value_end(data, at) > inside and data[inside] not in (0x8A, 0x86, 0x8D)


def _parts(data: bytes, at: int, end: int) -> Iterator[tuple[str, bytes]]:
    while at < end:
        code = data[at]
        after = at + 1 if code in (0x8F, 0xBD) else _value_end(data, at)
        if code in (0x8F, 0xBD, 0xB6, 0xB7, 0xB9, 0xBA) or 0xC0 <= code < 0xE0:
            yield "between", data[at:after]
        elif _is_block(data, at):
            yield "open", data[at : at + 1]
            yield from _parts(data, at + 1 + _LENGTHS[code], after)
            yield "close", b""
        else:
            yield "value", data[at:after]
        at = after


def _default(value: bytes) -> bytes:
    code = value[0]
    if code < 0x80:
        return b"\0"
    if code in (0xB0, 0xB1):
        return b"\xb0"
    if code >= 0xE0 or code == 0xB8:
        return b"\xe0"
    if code in _STOP_BIT:
        return value[:1] + b"\0"
    return value[:1] + bytes(_FIXED[code])


def _of_fields(base: bytes, body: bytes) -> bytes:
    parts = list(_parts(base, 0, len(base)))
    values = sum(kind == "value" for kind, _ in parts)
    at, number = (values + 3) // 4, 0
    blocks: list[tuple[int, bytes]] = []
    out = b""
    for kind, data in parts:
        if kind == "open":
            blocks.append((data[0], out))
            out = b""
        elif kind == "close":
            code, before = blocks.pop()
            out = before + bytes([code]) + len(out).to_bytes(_LENGTHS[code], "little") + out
        elif kind == "between":
            out += data
        else:
            how = body[number // 4] >> number % 4 * 2 & 3
            number += 1
            if how == 0:
                end = _value_end(body, at)
                out, at = out + body[at:end], end
            else:
                out += data if how == 1 else _default(data) if how == 2 else b"\xa1\0"
    assert at == len(body)
    return out
