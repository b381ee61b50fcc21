"""
The format once more, in plain Python: writes queue directories, each file in one go.

The counterpart of reference.py: written from docs/format.md alone, imports nothing of quire.
`python tests/support/reference_writer.py` writes the fixture in the older layout, tests/golden/v4.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

from paths import GOLDEN
from reference import (
    END_OF_DATA,
    META_DATA,
    NUMBERS,
    ROLL_CYCLES,
    RollCycle,
    Store,
    align,
    read_queue,
    shift_of,
)

TABLE_BYTES, UNLOCKED = 131_072, -(2**63)
NEW_TABLE = {  # in the order of the file, §5.3
    "listing.highestCycle": -(2**31),
    "listing.lowestCycle": 2**31 - 1,
    "listing.modCount": 1,
    "chronicle.write.lock": UNLOCKED,
    "chronicle.append.lock": UNLOCKED,
    "chronicle.lastIndexReplicated": -1,
    "chronicle.lastAcknowledgedIndexReplicated": -1,
    "chronicle.lastIndexMSynced": -1,
}


class Slots(NamedTuple):
    """Words that change in place: one of them is a bare INT64, several are an array."""

    values: Sequence[int]
    used: int = 0
    alignment: int = 8


Value: TypeAlias = "bytes | int | str | Slots | tuple[int, str, Value] | Mapping[str, Value]"
EVENT, TYPE, TIME = 0xB9, 0xB6, 0xB2


def encode(image: bytearray, value: Value) -> None:
    """Append a value (§8): bytes as they are; a tuple is a code, a name and what they precede."""
    if isinstance(value, bytes):
        image += value
    elif isinstance(value, str):
        image += bytes([0xE0 + len(value)]) + value.encode()
    elif isinstance(value, int):
        image += encode_number(value)
    elif isinstance(value, Slots):
        encode_slots(image, value)
    elif isinstance(value, tuple):
        image += bytes([value[0], len(value[1])]) + value[1].encode()
        encode(image, value[2])
    else:
        image += struct.pack("<BI", 0x82, 0)
        start = len(image)
        for name, inner in value.items():
            image += bytes([0xC0 + len(name)]) + name.encode()
            encode(image, inner)
        struct.pack_into("<I", image, start - 4, len(image) - start)


def encode_number(value: int) -> bytes:
    for code, form in NUMBERS.items():  # in the order of §8.3
        with suppress(struct.error):
            return bytes([code]) + struct.pack(form, value)
    raise OverflowError(value)


def encode_slots(image: bytearray, slots: Slots) -> None:
    gap, count = -(len(image) + 1) % slots.alignment, len(slots.values)
    image += b"\x8f" * gap if gap < 5 else struct.pack("<BI", 0x8E, gap - 5) + bytes(gap - 5)
    image += b"\xa7" if count == 1 else struct.pack("<B2q", 0x8D, count, slots.used)
    image += struct.pack(f"<{count}q", *slots.values)


def append(image: bytearray, content: Value, *, metadata: bool = False, alignment: int = 4) -> int:
    """Append a document (§2.1) and return its position."""
    image += bytes(-len(image) % alignment + 4)
    start = len(image)
    encode(image, content)
    struct.pack_into("<I", image, start - 4, len(image) - start + META_DATA * metadata)
    return start - 4


class RollFile:
    """A roll file in the making (§3, §4)."""

    def __init__(
        self,
        cycle: RollCycle,
        *,
        header: Mapping[str, Value] | None = None,
        alignment: int = 4,
        indexed: bool = True,
    ) -> None:
        self.cycle, self.alignment, self.indexed = cycle, alignment, indexed
        self.image, self.sequence, self.arrays = bytearray(), 0, dict[int, int]()
        fields = store_header(cycle) if header is None else header
        append(self.image, (EVENT, "header", (TYPE, "SCQStore", fields)), metadata=True)
        self.offsets = Store(bytes(self.image)).offsets
        if indexed:
            position, self.outer = self._allocate("index2index")
            self._put(self.offsets["index2Index"], position)
            self._link(0)

    def append(self, payload: bytes, *, metadata: bool = False) -> None:
        position = append(self.image, payload, metadata=metadata, alignment=self.alignment)
        if metadata:
            return
        sequence, self.sequence = self.sequence, self.sequence + 1
        shift = shift_of(self.cycle.index_count, self.cycle.index_spacing)
        self._put(self.offsets["writePosition"], position)
        self._put(self.offsets["writePosition"] + 8, (position << shift) + sequence)
        if self.indexed and sequence % self.cycle.index_spacing == 0:
            self._index(sequence, position)

    def data(self, *, eof: bool = False, block_bytes: int = 0) -> bytes:
        """Return the file as it lies on the disk; the block is the smallest unless given (§7.1)."""
        end = align(len(self.image), self.alignment)
        data = self.image + bytes(end - len(self.image))
        if eof:
            name = b"\xc3EOF" if self.alignment == 4 else b""
            data += struct.pack("<I", END_OF_DATA) + name
        block = max(block_bytes, 4096, 32 * self.cycle.index_count)
        overlap = block if block < 2**16 else 2**16 if block < 2**18 else block // 4
        size = (end // block + 1) * block + overlap
        return bytes(data) + bytes(size - len(data))

    def _index(self, sequence: int, position: int) -> None:
        k, j = divmod(sequence // self.cycle.index_spacing, self.cycle.index_count)
        if k >= self.cycle.index_count:  # §4.6
            return
        if k not in self.arrays:
            self._link(k)
        self._put(self.arrays[k] + 8 * j, position)
        self._put(self.arrays[k] - 8, j + 1)
        self._put(self.offsets["lastIndex"], sequence + self.cycle.index_spacing)

    def _link(self, k: int) -> None:
        position, self.arrays[k] = self._allocate("index")
        self._put(self.outer + 8 * k, position)
        self._put(self.outer - 8, k + 1)

    def _allocate(self, name: str) -> tuple[int, int]:
        """Append an empty index array; return its position and the offset of its slots."""
        count = self.cycle.index_count
        content = (EVENT, name, Slots([0] * count))
        position = append(self.image, content, metadata=True, alignment=self.alignment)
        return position, len(self.image) - 8 * count

    def _put(self, offset: int, value: int) -> None:
        struct.pack_into("<Q", self.image, offset, value % 2**64)


def store_header(cycle: RollCycle) -> dict[str, Value]:
    return {
        "writePosition": Slots([0, 0], used=2, alignment=16),
        "indexing": (TYPE, "SCQSIndexing", indexing_fields(cycle)),
        "dataFormat": 1,
    }


def indexing_fields(cycle: RollCycle) -> dict[str, Value]:
    return {
        "indexCount": cycle.index_count,
        "indexSpacing": cycle.index_spacing,
        "index2Index": Slots([0]),
        "lastIndex": Slots([0]),
    }


def table_data(
    cycle: RollCycle,
    entries: Mapping[str, int],
    roll_time: tuple[str, str] = ("", ""),
    source_id: int = 0,
) -> bytes:
    """Return the bytes of metadata.cq4t (§5); *roll_time* is a time and a zone."""
    roll: dict[str, Value] = {"length": cycle.length_ms, "format": cycle.pattern}
    roll["epoch"] = cycle.epoch_ms
    if roll_time[0]:
        roll |= {"rollTime": (TIME, roll_time[0], b""), "rollTimeZone": roll_time[1]}
    metadata: dict[str, Value] = {"roll": (TYPE, "SCQSRoll", roll), "sourceId": source_id}
    header: dict[str, Value] = {"wireType": (TYPE, "WireType", "BINARY_LIGHT")}
    header["metadata"] = (TYPE, "SCQMeta", metadata)
    image = bytearray(4)
    encode(image, (EVENT, "header", (TYPE, "STStore", header)))
    image += b"\x8f" * (-len(image) % 4)
    struct.pack_into("<I", image, 0x16, len(image) - 0x1A)  # the object's length counts the pad
    struct.pack_into("<I", image, 0, META_DATA + len(image) - 4)
    for key, value in entries.items():
        append(image, (EVENT, key, Slots([value])))
    return bytes(image) + bytes(TABLE_BYTES - len(image))


def write_queue(path: Path, cycle: RollCycle, files: Mapping[int, Sequence[bytes]]) -> None:
    """Write what one Java appender leaves that rolled from file to file within a minute."""
    for number, messages in files.items():
        roll_file = RollFile(cycle)
        for message in messages:
            roll_file.append(message)
        data = roll_file.data(eof=number != max(files))
        path.joinpath(cycle.file_name(number)).write_bytes(data)
    listing = {"listing.highestCycle": max(files), "listing.lowestCycle": min(files)}
    entries = NEW_TABLE | listing | {"listing.modCount": 1 + 2 * len(files)}
    path.joinpath("metadata.cq4t").write_bytes(table_data(cycle, entries))


def v4_header(cycle: RollCycle) -> dict[str, Value]:
    """Return the header of §3.5: small numbers are bare bytes, and there is no dataFormat."""
    spacing: dict[str, Value] = {"indexSpacing": bytes([cycle.index_spacing])}
    roll: dict[str, Value] = {"length": cycle.length_ms, "format": cycle.pattern, "epoch": b"\0"}
    return {
        "wireType": (TYPE, "WireType", b"\xecBINARY_LIGHT\x8e\0\0\0\0"),
        "writePosition": Slots([0, 0], used=2),
        "roll": (TYPE, "SCQSRoll", roll),
        "indexing": (TYPE, "SCQSIndexing", indexing_fields(cycle) | spacing),
        "lastAcknowledgedIndexReplicated": Slots([-1]),
        "recovery": (TYPE, "TimedStoreRecovery", {"timeStamp": Slots([0])}),
        "deltaCheckpointInterval": b"\0",
        "lastIndexReplicated": Slots([-1]),
        "sourceId": b"\0",
    }


def v4_files(cycle: RollCycle) -> dict[str, bytes]:
    """Return two files: one ended, without index arrays; one open, with them."""
    files: dict[str, bytes] = {}
    for number, indexed in ((19737, False), (19738, True)):
        roll_file = RollFile(cycle, header=v4_header(cycle), alignment=1, indexed=indexed)
        for length in (*range(1, 70), 1000):
            roll_file.append(bytes(ord("a") + i % 26 for i in range(length)))
        files[cycle.file_name(number)] = roll_file.data(eof=not indexed)
    return files


def write_v4(path: Path) -> None:
    """Write the fixture in the older layout, with its listing."""
    path.mkdir(parents=True, exist_ok=True)
    for name, data in v4_files(ROLL_CYCLES["DAILY"]).items():
        path.joinpath(name).write_bytes(data)
    lines = [
        {"index": f"{i:x}", "len": len(data), "hex": data.hex()} for i, data in read_queue(path)
    ]
    head = {"queue": "v4", "rollCycle": "DAILY", "indexCount": 8192, "indexSpacing": 64}
    head |= {"firstIndex": lines[0]["index"], "lastIndex": lines[-1]["index"], "sourceId": 0}
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in [head, *lines])
    path.joinpath("list.jsonl").write_text(text, encoding="ascii")


if __name__ == "__main__":
    write_v4(GOLDEN / "v4")
