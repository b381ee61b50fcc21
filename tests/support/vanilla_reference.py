"""
Vanilla Chronicles once more, in plain Python.

Written from docs/vanilla.md alone and importing nothing of quire, so that the two can disagree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

INDEX = re.compile(r"index-(\d+)")
MAX_LENGTH = 1 << 30


class Geometry(NamedTuple):
    tid_bits: int
    index_block: int
    data_block: int
    sequence_bits: int = 40


def entries(folder: Path, geometry: Geometry) -> Iterator[tuple[int, int]]:
    """Yield sequence numbers and entries up to the first free one."""
    numbers = {int(found[1]) for it in folder.iterdir() if (found := INDEX.fullmatch(it.name))}
    for number in range(len(numbers)):
        words = (folder / f"index-{number}").read_bytes()
        for slot in range(len(words) // 8):
            entry = int.from_bytes(words[8 * slot : 8 * slot + 8], "little")
            if entry == 0:
                return
            yield number * (geometry.index_block // 8) + slot, entry


def payload(folder: Path, entry: int, geometry: Geometry) -> bytes:
    shift = 64 - geometry.tid_bits
    number, position = divmod(entry & ((1 << shift) - 1), geometry.data_block)
    with (folder / f"data-{entry >> shift}-{number}").open("rb") as file:
        file.seek(position - 4)
        length = ~int.from_bytes(file.read(4), "little") & 0xFFFFFFFF
        assert length < MAX_LENGTH
        found = file.read(length)
    assert len(found) == length
    return found


def messages(folder: Path, cycle: int, geometry: Geometry) -> Iterator[tuple[int, bytes]]:
    """Yield index and payload of each message of a cycle."""
    for sequence, entry in entries(folder, geometry):
        index = (cycle << geometry.sequence_bits) + sequence
        yield index, payload(folder, entry, geometry)
