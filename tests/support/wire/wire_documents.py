"""Messages made at random, of every code that Java's dump shows: an encoder of its own."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable

DEPTH_MAX = 5
INTEGERS = (
    0,
    1,
    -1,
    127,
    128,
    255,
    256,
    1000,
    65_535,
    -1_000_000,
    2**31,
    2**40,
    2**63 - 1,
    -(2**63),
)
FLOATS = (
    0.0,
    -0.0,
    1.5,
    0.1,
    1e-5,
    9.99e-4,
    1e-7,
    1e-8,
    1e3,
    1e15,
    2.5e10,
    1 / 3,
    math.inf,
    math.nan,
)
TEXTS = (
    "abcXYZ 09",
    "abc \"'",
    "a:b,#{}[]?|>&*!%@`^~=<-+.",
    "é中\u2028\u0085\u00a0ab",
    "\t\n\r\0\x07\x1b\x7f ab",
)
TIMES = (
    (0xB2, "01:02"),
    (0xB2, "12:34:56.789"),
    (0xB3, "2024-02-29"),
    (0xB4, "2024-02-29T12:34:56.500"),
    (0xB5, "2024-02-29T12:34:56Z[Europe/London]"),
    (0xB5, "2024-02-29T12:34:56.123456Z"),
    (0xB5, "2024-02-29T12:34+01:00"),
)
TYPES = ("!oset", "!omap", "int[]", "Trade", "a.b.C$D")
FIELD_NAMES = ("a", "name", "x y", "9a", "", "k:", "q'")
EVENT_NAMES = ("say", "key", "to", "", "1", 'a"b')


class Documents:
    """Messages of one seed."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311 - the same messages each time
        self.scalars: tuple[Callable[[], bytes], ...] = (
            self.integer,
            self.integer,
            self.real,
            self.real,
            self.string,
            self.string,
            self.word,
            self.time,
            self.type_literal,
            self.blob,
            self.byte_array,
            self.longs,
        )

    def message(self) -> bytes:
        kind = self.dice.randrange(10)
        if kind == 0:
            return self.value(0)
        if kind == 1:
            return b"\xba\x80\x00" + block16(self.history()) + self.name() + self.value(0)
        parts: list[bytes] = []
        for _ in range(self.dice.randrange(1, 5)):
            parts += [self.name(), self.value(0)]
            if self.dice.random() < 0.1:
                parts.append(b"\xbe\x03cmt")
            if self.dice.random() < 0.05:
                parts.append(b"\x8f")
        return b"".join(parts)

    def value(self, depth: int) -> bytes:
        if depth == DEPTH_MAX or self.dice.random() < 0.5:
            return self.dice.choice(self.scalars)()
        kind = self.dice.randrange(10)
        if kind < 4:
            return self.block(self.entries(depth + 1, 4))
        if kind < 7:
            return self.block(self.values(depth + 1, 4))
        if kind == 7:
            return type_prefix(self.dice.choice(TYPES)) + self.value(depth + 1)
        if kind == 8:
            keys = (self.integer, self.real, self.time)
            entries = [
                b"\xbd" + self.dice.choice(keys)() + self.value(depth + 1)
                for _ in range(self.dice.randrange(1, 3))
            ]
            return self.block(b"".join(entries))
        return self.dice.choice(
            (
                self.block(self.history()),
                b"\xbe\x05hello" + self.value(depth + 1),
                b"\x8e\x03\x00\x00\x00abc" + self.value(depth + 1),
            )
        )

    def entries(self, depth: int, most: int) -> bytes:
        count = self.dice.randrange(most)
        return b"".join(self.name() + self.value(depth) for _ in range(count))

    def values(self, depth: int, most: int) -> bytes:
        return b"".join(self.value(depth) for _ in range(self.dice.randrange(most)))

    def name(self) -> bytes:
        kind = self.dice.randrange(10)
        if kind < 5:
            name = self.dice.choice(FIELD_NAMES).encode("latin-1")
            return bytes([0xC0 + len(name)]) + name
        if kind < 8:
            name = self.dice.choice(EVENT_NAMES).encode("latin-1")
            return b"\xb9" + stop_bit(len(name)) + name
        if kind == 8:
            return b"\xba" + stop_bit(self.dice.choice((0, 5, 200, -1, -2, 10**6)))
        name = b"n" * self.dice.randrange(32, 40)
        return b"\xb7" + stop_bit(len(name)) + name

    def integer(self) -> bytes:
        value = self.dice.choice((*INTEGERS, self.dice.randrange(-(2**63), 2**63)))
        code, form = self.dice.choice(
            ((0xA1, "B"), (0xA2, "<H"), (0xA3, "<I"), (0xA4, "b"), (0xA5, "<h"), (0xA6, "<i"))
            if self.dice.random() < 0.7
            else ((0xA7, "<q"), (0xAF, "<q"), (0xA8, "B"), (0xA9, "<H"))
        )
        size = struct.calcsize(form)
        return bytes([code]) + int(value % 256**size).to_bytes(size, "little")

    def real(self) -> bytes:
        dice = self.dice
        value = dice.choice(
            (
                *FLOATS,
                dice.random(),
                dice.random() * 1e-3,
                dice.uniform(-1e6, 1e6),
                dice.uniform(0, 1e15),
            )
        )
        kind = dice.randrange(3)
        if kind == 0:
            return b"\x91" + struct.pack("<d", value)
        if kind == 1:
            return b"\x90" + struct.pack("<f", value)
        scaled = dice.choice((0, 1, -250, 12_345, dice.randrange(-(2**40), 2**40)))
        return bytes([dice.choice((0x92, 0x94, 0x96))]) + stop_bit(scaled)

    def string(self) -> bytes:
        letters = self.dice.choice(TEXTS)
        count = self.dice.choice((0, 1, 2, 3, 8, 40))
        text = "".join(self.dice.choice(letters) for _ in range(count)).encode()
        if self.dice.random() < 0.1:
            text += b"\xed\xa0\xbd\xed\xb8\x80"  # U+1F600, as two surrogates
        if len(text) < 32:
            return bytes([0xE0 + len(text)]) + text
        return b"\xb8" + stop_bit(len(text)) + text

    def word(self) -> bytes:
        return self.dice.choice((b"\xb0", b"\xb1", b"\xbb", b"\xb8\x80\x00"))

    def time(self) -> bytes:
        code, text = self.dice.choice(TIMES)
        return bytes([code]) + stop_bit(len(text)) + text.encode()

    def type_literal(self) -> bytes:
        name = self.dice.choice(("String", "a.b.C", "x y", ""))
        return b"\xbc" + stop_bit(len(name)) + name.encode()

    def blob(self) -> bytes:
        count = self.dice.randrange(8)
        text = bytes(self.dice.randrange(32, 127) for _ in range(count))
        return self.block(b"\x8a" + self.dice.choice((text, self.dice.randbytes(count))))

    def byte_array(self) -> bytes:
        return type_prefix("byte[]") + self.block(
            b"\x8a" + self.dice.randbytes(self.dice.randrange(8))
        )

    def longs(self) -> bytes:
        capacity = self.dice.randrange(6)
        used = self.dice.randrange(capacity + 1)
        values = [self.dice.choice((0, self.dice.randrange(1000))) for _ in range(capacity)]
        return b"\x8d" + struct.pack(f"<{capacity + 2}q", capacity, used, *values)

    def history(self) -> bytes:
        dice, count = self.dice, self.dice.randrange(3)
        ids = [dice.randrange(-3, 100) for _ in range(count)]
        indexes = [dice.randrange(2**63) for _ in range(count)]
        times = [dice.randrange(2**62) for _ in range(dice.randrange(4))]
        sources = struct.pack(f"<B{count}i", count, *ids) + struct.pack(f"<{count}q", *indexes)
        return b"\x86" + sources + struct.pack(f"<B{len(times)}q", len(times), *times)

    def block(self, content: bytes) -> bytes:
        if len(content) < 256 and self.dice.random() < 0.2:
            return bytes([0x80, len(content)]) + content
        return b"\x82" + len(content).to_bytes(4, "little") + content


def block16(content: bytes) -> bytes:
    return b"\x81" + len(content).to_bytes(2, "little") + content


def type_prefix(name: str) -> bytes:
    return b"\xb6" + stop_bit(len(name)) + name.encode()


def stop_bit(value: int) -> bytes:
    """Seven bits a byte, the lowest first; a negative number inverted, with a zero behind."""
    rest, is_negative = (~value, True) if value < 0 else (value, False)
    groups: list[int] = []
    while True:
        groups.append(rest & 0x7F | 0x80)
        rest >>= 7
        if not rest:
            break
    if is_negative:
        return bytes([*groups, 0])
    groups[-1] &= 0x7F
    return bytes(groups)
