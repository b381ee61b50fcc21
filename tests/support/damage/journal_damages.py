"""Damages of a journal, each with the kind of finding that names it."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from damages import empty, erase_marker, lose_header, patch, positions
from queues import APPEND_LOCK, WRITE_LOCK, poke
from reference import Store

WRITE_POSITION, SEQUENCE_WORD, INDEX2INDEX, LAST_INDEX = 0x40, 0x48, 0x98, 0xB0
FIRST_ENTRY = 0x210  # of the first index array, in TEST4 files
DEAD_PID = 2**22 + 5  # above the greatest that Linux gives


@dataclass(frozen=True)
class Damage:
    """What is done to a queue, what must be found, and how many of a file's messages are lost."""

    name: str
    kind: str
    do: Callable[[Path], object]
    lost: int = 0


def of_file(number: int, do: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda path: do(sorted(path.glob("*.cq4"))[number])


def cut_message(file: Path) -> None:
    os.truncate(file, positions(file)[-3] + 6)


def zero_end(file: Path) -> None:
    start = positions(file)[-3]
    patch(file, start, bytes(os.path.getsize(file) - start))  # noqa: PTH202


def half_document(file: Path) -> None:
    tail = Store(file.read_bytes()).tail
    patch(file, tail, struct.pack("<I", 0x8000_0064) + b"half")


def zero_word(position: int) -> Callable[[Path], None]:
    return lambda file: patch(file, position, bytes(8))


def other_word(position: int, value: int) -> Callable[[Path], None]:
    return lambda file: patch(file, position, struct.pack("<q", value))


def unlink_array(file: Path) -> None:
    """Clear the slot of index2index that names the first array."""
    patch(file, 0xF0, bytes(8))


def cut_table_entry(path: Path) -> None:
    """Have the entry of the append lock claim more bytes than the table has."""
    table = path / "metadata.cq4t"
    offset, _ = Store(table.read_bytes()).entries()[APPEND_LOCK]
    name = table.read_bytes().rindex(APPEND_LOCK.encode(), 0, offset)
    patch(table, name - 6, struct.pack("<I", 0x0FFF_FFF0))


def of_table(do: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda path: do(path / "metadata.cq4t")


DAMAGES = [
    Damage("no mark", "missing-end-mark", of_file(0, erase_marker)),
    Damage("lost header", "lost-header", of_file(0, lose_header)),
    Damage("lost newest header", "lost-header", of_file(-1, lose_header)),
    Damage("emptied", "unfinished-file", of_file(0, empty), lost=40),
    Damage("emptied newest", "unfinished-file", of_file(-1, empty), lost=40),
    Damage("cut", "lost-end", of_file(0, cut_message), lost=3),
    Damage("cut newest", "lost-end", of_file(-1, cut_message), lost=3),
    Damage("zeroed", "lost-end", of_file(0, zero_end), lost=3),
    Damage("zeroed newest", "lost-end", of_file(-1, zero_end), lost=3),
    Damage("half a document", "dead-header", of_file(-1, half_document)),
    Damage("no position", "write-position", of_file(-1, zero_word(WRITE_POSITION))),
    Damage("odd position", "write-position", of_file(-1, other_word(WRITE_POSITION, 0x311))),
    Damage("no sequence", "sequence-word", of_file(-1, zero_word(SEQUENCE_WORD))),
    Damage("hole", "index-hole", of_file(0, zero_word(FIRST_ENTRY + 24))),
    Damage("other entry", "index-entry", of_file(-1, other_word(FIRST_ENTRY + 24, 0x310))),
    Damage("entry after the end", "index-entry", of_file(-1, other_word(0x270, 0x1000))),
    Damage("no index", "index-array", of_file(0, zero_word(INDEX2INDEX))),
    Damage("no array", "index-array", of_file(-1, unlink_array)),
    Damage("low lastIndex", "index-count", of_file(-1, zero_word(LAST_INDEX))),
    Damage("high lastIndex", "index-count", of_file(-1, other_word(LAST_INDEX, 4000))),
    Damage("no table", "no-table", of_table(Path.unlink)),
    Damage("spoiled table", "unreadable-table", of_table(lambda it: patch(it, 0, b"spoiled!" * 8))),
    Damage("cut entry", "table-entry", cut_table_entry),
    Damage("dead writer", "stale-lock", lambda path: poke(path, WRITE_LOCK, DEAD_PID)),
    Damage("dead sink", "stale-lock", lambda path: poke(path, APPEND_LOCK, DEAD_PID)),
    Damage("listing", "listing", lambda path: poke(path, "listing.highestCycle", 3)),
]
