"""
Indexed Chronicles once more, in plain Python: a writer as Java's, and a reader.

Written from docs/vanilla.md alone and importing nothing of quire, so that the two can disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

LINE: Final = 64
ENTRIES: Final = 14


class IndexedWriter:
    """Builds both files in memory, as Java's appender with these block sizes does."""

    def __init__(self, *, data_block: int = 4096, index_block: int = 4096) -> None:
        self.data_block, self.index_block = data_block, index_block
        self.index = bytearray(index_block)
        self.data = bytearray(data_block)
        self.entry = self.position = 0

    def append(self, payload: bytes) -> int:
        """Append a message, after a padding where it does not fit its block; its index."""
        assert len(payload) < self.data_block
        rest = -self.position % self.data_block
        if self.position % self.data_block and len(payload) > rest:
            self._put(self.position + rest, sign=-1)
        end = self.position + len(payload)
        blocks = -(-end // self.data_block)
        self.data.extend(bytes(max(0, blocks * self.data_block - len(self.data))))
        self.data[self.position : end] = payload
        return self._put(end, sign=1)

    def _put(self, end: int, *, sign: int) -> int:
        line, number = divmod(self.entry, ENTRIES)
        if LINE * (line + 1) > len(self.index):
            self.index.extend(bytes(self.index_block))
        if number == 0:
            self.index[LINE * line : LINE * line + 8] = self.position.to_bytes(8, "little")
        base = int.from_bytes(self.index[LINE * line : LINE * line + 8], "little")
        at = LINE * line + 8 + 4 * number
        self.index[at : at + 4] = (sign * (end - base)).to_bytes(4, "little", signed=True)
        self.position = end
        self.entry += 1
        return self.entry - 1

    def save(self, base: Path) -> Path:
        Path(f"{base}.index").write_bytes(self.index)
        Path(f"{base}.data").write_bytes(self.data)
        return base


def written(base: Path, payloads: Iterable[bytes], **blocks: int) -> list[tuple[int, bytes]]:
    """Write a chronicle; indexes and payloads."""
    writer = IndexedWriter(**blocks)
    messages = [(writer.append(payload), payload) for payload in payloads]
    writer.save(base)
    return messages


def messages(base: Path) -> Iterator[tuple[int, bytes]]:
    """Yield index and payload of each message up to the first free entry."""
    index, data = Path(f"{base}.index").read_bytes(), Path(f"{base}.data").read_bytes()
    for line in range(len(index) // LINE):
        words = index[LINE * line : LINE * (line + 1)]
        base_position = int.from_bytes(words[:8], "little")
        start = base_position
        for number in range(ENTRIES):
            end = int.from_bytes(words[8 + 4 * number : 12 + 4 * number], "little", signed=True)
            if end == 0:
                return
            if end > 0:
                yield line * ENTRIES + number, data[start : base_position + end]
            start = base_position + abs(end)
