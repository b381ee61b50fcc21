"""
The format once more, in plain Python: reads and checks queue directories.

Written from docs/format.md alone and importing nothing of quire, so that the two can disagree.
The table of roll cycles is read out of that page.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from paths import ROOT

LENGTH, META_DATA, NOT_COMPLETE, END_OF_DATA = 0x3FFFFFFF, 0x40000000, 0x80000000, 0xC0000000
DAY_MS, ZERO_TIME = 86_400_000, datetime(1970, 1, 1, tzinfo=UTC)
DATES = {"yyyy": "Y", "MM": "m", "dd": "d", "HH": "H", "mm": "M", "ss": "S", "YYYY": "G", "ww": "V"}
NUMBERS = {0xA1: "<B", 0xA4: "<b", 0xA5: "<h", 0xA2: "<H", 0xA6: "<i", 0xA3: "<I", 0xA7: "<q"}
FIELDS = "writePosition indexCount indexSpacing index2Index lastIndex dataFormat"
ZEROS = bytes(2**16)
PAGE = (ROOT / "docs/format.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([A-Z0-9_]+) \| `(\S+)` \| (\d+) \| (\d+) \| (\d+) \|", re.MULTILINE)


def shift_of(index_count: int, index_spacing: int) -> int:
    return max(32, 2 * (index_count.bit_length() - 1) + index_spacing.bit_length() - 1)


def align(position: int, alignment: int) -> int:
    return -(-position // alignment) * alignment


def content_of(file: Path) -> bytes | mmap.mmap:
    """Return the bytes of a file as they are now; of its holes, tens of megabytes, none is read."""
    with file.open("rb") as opened:
        length, end = os.fstat(opened.fileno()).st_size, 0
        if length == 0:
            return b""
        found = mmap.mmap(-1, length)
        with suppress(OSError):  # behind the last bytes that are none of a hole
            while True:
                start = os.lseek(opened.fileno(), end, os.SEEK_DATA)
                end = os.lseek(opened.fileno(), start, os.SEEK_HOLE)
                opened.seek(start)
                found[start:end] = opened.read(end - start)
    return found


def unpack(form: str, data: bytes | bytearray | mmap.mmap, position: int) -> int:
    return int(struct.unpack_from(form, data, position)[0])


class RollCycle(NamedTuple):
    name: str
    pattern: str
    length_ms: int
    index_count: int
    index_spacing: int
    epoch_ms: int = 0

    def to_index(self, cycle: int, sequence: int) -> int:
        return (cycle << shift_of(self.index_count, self.index_spacing)) + sequence

    def cycle_at(self, time_ms: int) -> int:
        return (time_ms - self.epoch_ms) // self.length_ms

    def file_name(self, cycle: int) -> str:
        form, epoch_ms = self._naming()
        start_ms = cycle * self.length_ms + epoch_ms + DAY_MS * ("w" in self.pattern)
        return (ZERO_TIME + timedelta(milliseconds=start_ms)).strftime(form)

    def cycle_of_file(self, name: str) -> int:
        form, epoch_ms = self._naming()
        text, form = (name + "6", form + "%u") if "w" in self.pattern else (name, form)
        time = datetime.strptime(text, form).replace(tzinfo=UTC) - ZERO_TIME
        return (time // timedelta(milliseconds=1) - epoch_ms) // self.length_ms

    def _naming(self) -> tuple[str, int]:
        """Return the name's form and the epoch in whole days; a week is named after its Monday."""
        form = re.sub(r"'(\w*)'|([A-Za-z])\2*", lambda m: m[1] or "%" + DATES[m[0]], self.pattern)
        rest_ms = self.epoch_ms % DAY_MS
        epoch_ms = -DAY_MS if self.epoch_ms < 0 and rest_ms else self.epoch_ms - rest_ms
        return form + ".cq4", epoch_ms

    def names(self, file_name: str) -> bool:
        """Whether a file of this cycle can have this name."""
        form = re.sub(r"'(\w*)'|[A-Za-z]", lambda m: m[1] or r"\d", self.pattern)
        return re.fullmatch(form + r"\.cq4", file_name) is not None


ROLL_CYCLES = {
    row[0]: RollCycle(row[0], row[1], int(row[2]), int(row[3]), int(row[4]))
    for row in ROW.findall(PAGE)
}


class Document(NamedTuple):
    position: int
    end: int
    sequence: int  # its own, or of the message that follows metadata
    is_metadata: bool


def parse(data: bytes | mmap.mmap, position: int, end: int) -> Iterator[tuple[str, int, int | str]]:
    """Walk names and values (§8): name, offset, value; objects are entered, arrays give slot 0."""
    name, unnamed = "", iter(FIELDS.split())
    while position < end:
        code, start = data[position], position + 1
        form = NUMBERS.get(code, "<0s")
        if code in {0xB2, 0xB6, 0xB9}:
            start, position = start + 1, start + 1 + data[start]
        elif code == 0x8D:
            start, form, position = start + 16, "<q", start + 16 + 8 * unpack("<q", data, start)
        elif code < 0x80:  # a small number, as written before 5.23
            start, form, position = position, "<B", start
        else:
            sizes = {0x82: 4, 0x8E: 4 + unpack("<I", data, start) if code == 0x8E else 0}
            position = start + (
                code & 31 if code >= 0xC0 else sizes.get(code, struct.calcsize(form))
            )
        if code == 0xB9 or 0xC0 <= code < 0xE0:
            name = data[start:position].decode("latin-1")
        elif code == 0x82:
            name = ""
        elif code not in {0x8E, 0x8F, 0xB6}:
            text = data[start:position].decode() if form == "<0s" else ""
            yield name or next(unnamed), start, text or unpack(form, data, start)
            name = ""


class Store:
    """A file taken apart: a roll file, or the table, whose entries are its messages."""

    def __init__(self, data: bytes | mmap.mmap) -> None:
        fields = list(parse(data, 4, 4 + (unpack("<I", data, 0) & LENGTH)))
        self.data, self.offsets = data, {name: offset for name, offset, _ in fields}
        self.numbers = {name: value for name, _, value in fields if isinstance(value, int)}
        self.texts = {name: value for name, _, value in fields if isinstance(value, str)}
        is_unaligned = "writePosition" in self.offsets and self.numbers.get("dataFormat") != 1
        self.alignment = 1 if is_unaligned else 4
        self.documents, self.tail, sequence = list[Document](), 0, 0
        while (
            self.tail + 4 <= len(data)
            and 0 < (word := unpack("<I", data, self.tail)) < NOT_COMPLETE
        ):
            is_metadata, end = bool(word & META_DATA), self.tail + 4 + (word & LENGTH)
            self.documents.append(Document(self.tail, end, sequence, is_metadata))
            self.tail, sequence = align(end, self.alignment), sequence + (not is_metadata)
        self.has_eof = data[self.tail : self.tail + 4] == struct.pack("<I", END_OF_DATA)

    def index(self) -> tuple[dict[int, int], list[tuple[int, list[int]]]]:
        """Return the indexed sequences with their positions, and used and slots of each array."""
        arrays = [self.array(self.numbers["index2Index"])]
        spacing, count = self.numbers["indexSpacing"], self.numbers["indexCount"]
        found: dict[int, int] = {}
        for k, position in enumerate(arrays[0][1]):
            if position:
                arrays.append(self.array(position))
                first = k * count
                found |= {(first + j) * spacing: p for j, p in enumerate(arrays[-1][1]) if p}
        return found, arrays

    def entries(self) -> dict[str, tuple[int, int]]:
        """Return a table's keys, each with its value's offset and the value."""
        found = (next(parse(self.data, d.position + 4, d.end)) for d in self.documents[1:])
        return {key: (offset, value) for key, offset, value in found if isinstance(value, int)}

    def array(self, position: int) -> tuple[int, list[int]]:
        """Return used and the slots of the index array whose document is at *position*."""
        _, offset, _ = next(parse(self.data, position + 4, len(self.data)))
        capacity, used = struct.unpack_from("<2q", self.data, offset - 16)
        return used, list(struct.unpack_from(f"<{capacity}q", self.data, offset))


def open_queue(path: Path) -> tuple[RollCycle, dict[int, Store]]:
    """Return the roll cycle (§1.5), and the roll files by cycle."""
    files = {file.name: content_of(file) for file in sorted(path.glob("*.cq4"))}
    stores = {name: Store(data) for name, data in files.items() if is_ready(data)}
    table = path / "metadata.cq4t"
    store = Store(table.read_bytes()) if table.exists() else next(iter(stores.values()))
    known = [cycle for cycle in ROLL_CYCLES.values() if all(map(cycle.names, stores))]
    cycle = next(c for c in known if c.pattern == store.texts.get("format", c.pattern))
    cycle = cycle._replace(epoch_ms=store.numbers.get("epoch", 0))
    return cycle, {cycle.cycle_of_file(name): stores[name] for name in stores}


def is_ready(data: bytes | mmap.mmap) -> bool:
    """Whether a file exists for its readers: its first header is published."""
    return len(data) >= 4 and 0 < unpack("<I", data, 0) < NOT_COMPLETE


def read_queue(path: Path, *, metadata: bool = False) -> list[tuple[int, bytes]]:
    roll_cycle, stores = open_queue(path)
    return [
        (roll_cycle.to_index(cycle, found.sequence), store.data[found.position + 4 : found.end])
        for cycle, store in sorted(stores.items())
        for found in store.documents
        if metadata or not found.is_metadata
    ]


def is_zero(data: bytes | bytearray | mmap.mmap, start: int, end: int) -> bool:
    """Return whether all these bytes are zero; files end in tens of megabytes of them."""
    end = min(end, len(data))
    at = range(start, end, len(ZEROS))
    return all(data[it : min(it + len(ZEROS), end)] == ZEROS[: end - it] for it in at)


def check_store(store: Store) -> Iterator[str]:
    """Name every rule of §2 to §4 that a roll file breaks."""
    data, numbers = store.data, store.numbers
    messages = {d.position: d.sequence for d in store.documents if not d.is_metadata}
    last, spacing, count = max(messages, default=0), numbers["indexSpacing"], numbers["indexCount"]
    word = ((last << shift_of(count, spacing)) + messages.get(last, 0)) % 2**64
    if (found := numbers["writePosition"]) != last:
        yield f"write position: found={found} expected={last}"
    if (found := unpack("<Q", data, store.offsets["writePosition"] + 8)) != word:
        yield f"sequence word: found={found:#x} expected={word:#x}"
    for document in store.documents:
        if not is_zero(data, document.end, align(document.end, store.alignment)):
            yield f"padding is not zero: position={document.end}"
    if not is_zero(data, store.tail + 8 * store.has_eof, len(data)):
        yield f"bytes behind the end: position={store.tail}"
    if numbers["index2Index"]:
        found_at, arrays = store.index()
        due = {s: p for p, s in messages.items() if s % spacing == 0 and s < count**2 * spacing}
        if found_at != due or numbers["lastIndex"] != max(due, default=-spacing) + spacing:
            yield f"index: found={found_at} expected={due} lastIndex={numbers['lastIndex']}"
        if any(used != sum(map(bool, slots)) for used, slots in arrays):
            yield "index array: used is not the number of its slots"


def check_killed(store: Store) -> Iterator[str]:
    """Name what is wrong even where writers were killed: hints may lag, and never lie."""
    data, numbers = store.data, store.numbers
    messages = {d.position: d.sequence for d in store.documents if not d.is_metadata}
    spacing, count = numbers["indexSpacing"], numbers["indexCount"]
    shift = shift_of(count, spacing)
    if (found := numbers["writePosition"]) not in {0, *messages}:
        yield f"write position: found={found}"
    words = {0, *((p << shift) + s for p, s in messages.items())}
    if (found := unpack("<Q", data, store.offsets["writePosition"] + 8)) not in words:
        yield f"sequence word: found={found:#x}"
    for document in store.documents:
        if not is_zero(data, document.end, align(document.end, store.alignment)):
            yield f"padding is not zero: position={document.end}"
    if numbers["index2Index"]:
        found_at, arrays = store.index()
        due = {s: p for p, s in messages.items() if s % spacing == 0}
        if not found_at.items() <= due.items():
            yield f"index: found={found_at.items() - due.items()}"
        if numbers["lastIndex"] not in {0, *(s + spacing for s in due)}:
            yield f"lastIndex: found={numbers['lastIndex']}"
        if any(any(slots[used:]) > 1 for used, slots in arrays):
            yield "index array: used is too low"
