"""A reader of Quick-Queues written from docs/quick-queue.md alone, plainly and slowly."""

from __future__ import annotations

import fcntl
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

COMPLETE = 0x7F
ENTRY = 16


@dataclass(frozen=True)
class Entry:
    """An index entry that somebody has."""

    index: int
    begin: int
    length: int
    producer: str | None
    complete: bool


class QuickReference:
    """A Quick-Queue that nobody writes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        shared = [*directory.glob("*.qmx")]
        self.suffix = "qmx" if shared else "qx"
        self.page_bytes = (directory / f"0.{self.suffix}").stat().st_size

    def entries(self) -> Iterator[Entry]:
        """Yield the index up to the first entry that nobody has."""
        index = 0
        while (raw := self._read(self.directory, self.suffix, index, ENTRY)) is not None:
            begin, length, name, flag = struct.unpack("<qi3sb", raw)
            if raw[8:] == bytes(8):
                return
            producer = name[::-1].decode("ascii") if self.suffix == "qmx" else None
            yield Entry(index, begin, length, producer, flag == COMPLETE)
            index += ENTRY

    def messages(self) -> list[tuple[int, str | None, bytes]]:
        """Return what a reader delivers: index, producer and bytes."""
        found: list[tuple[int, str | None, bytes]] = []
        ends: dict[str | None, int] = {}
        entries = [*self.entries()]
        for entry in entries:
            begin = entry.begin
            if not entry.complete:
                proven = self._begin(entry, ends.get(entry.producer, 0))
                if proven is None:
                    own = [it for it in entries if it.producer == entry.producer]
                    proven = self._begin_without_gap(own, own.index(entry))
                if proven is None:
                    continue
                begin = proven
            folder = self.directory / (entry.producer or "")
            data = self._read(folder, "qd", begin, entry.length)
            assert data is not None, entry
            ends[entry.producer] = begin + entry.length
            found.append((entry.index, entry.producer, data))
        return found

    def profile(self, producer: str) -> tuple[int, int, int, int]:
        """Return the ends of a producer's data, in order, and its two indexes."""
        raw = (self.directory / f"{producer}.qm").read_bytes()[:32].ljust(32, b"\0")
        one, other, last, attempt = struct.unpack("<4q", raw)
        return min(one, other), max(one, other), last, attempt

    def _begin(self, entry: Entry, previous_end: int) -> int | None:
        assert entry.producer is not None
        with (self.directory / f"{entry.producer}.qm").open("rb+") as profile:
            fcntl.lockf(profile, fcntl.LOCK_EX | fcntl.LOCK_NB)  # its producer is dead
        low, high, last, _ = self.profile(entry.producer)
        is_its_own = high - low == entry.length and last <= entry.index
        if not is_its_own or entry.begin not in {0, low} or low != previous_end:
            return None
        return low

    def _begin_without_gap(self, own: list[Entry], at: int) -> int | None:
        """Where the entries before it end, if those after it begin where it ends."""
        begin, before = 0, 0
        for entry in reversed(own[:at]):
            if entry.complete:
                begin = entry.begin + entry.length
                break
            before += entry.length
        begin += before
        end = begin
        for entry in own[at:]:
            if entry.complete:
                return begin if entry.begin == end else None
            end += entry.length
        _, high, _, _ = self.profile(own[at].producer or "")
        return begin if high == end else None

    def _read(self, folder: Path, suffix: str, address: int, length: int) -> bytes | None:
        data = b""
        while len(data) < length:
            page, position = divmod(address + len(data), self.page_bytes)
            try:
                with (folder / f"{page}.{suffix}").open("rb") as file:
                    file.seek(position)
                    some = file.read(min(length - len(data), self.page_bytes - position))
            except FileNotFoundError:
                return None
            if not some:  # its writer died before the page had a length
                return None
            data += some
        return data


def decimal_of(field: bytes) -> Decimal:
    """Return the decimal number that a field holds."""
    if field[0] == 1:
        scale, length = struct.unpack_from("<bb", field, 1)
        unscaled = field[3 : 3 + length]
    else:
        scale, length = struct.unpack_from("<ii", field, 1)
        unscaled = field[9 : 9 + length]
    digits = Decimal(int.from_bytes(unscaled, "big", signed=True)).as_tuple()
    return Decimal((digits.sign, digits.digits, -scale))
