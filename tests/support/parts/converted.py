"""Queues of every format to convert, and what a conversion made of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow.dataset as ds

import quire
from any_format import open_as
from queues import DAY_MS, START_MS

Into: TypeAlias = Literal["chronicle", "vanilla", "quick-queue", "parquet"]
Messages: TypeAlias = list[tuple[int, bytes]]

QUEUES: tuple[Into, ...] = ("chronicle", "vanilla", "quick-queue")
INTO: tuple[Into, ...] = (*QUEUES, "parquet")
SMALL: dict[str, dict[str, Any]] = {  # blocks that tests can have many of
    "chronicle": {"block_bytes": 1 << 18},
    "vanilla": {"data_block_bytes": 1 << 18, "index_block_bytes": 1 << 13},
    "quick-queue": {"page_bytes": 1 << 14},
}


def fill(path: Path, kind: Into, days: Iterable[Iterable[bytes]]) -> Messages:
    """Make a queue with the messages of each day, two days apart."""
    clock = quire.ManualClock(START_MS)
    options = SMALL[kind] if kind == "quick-queue" else SMALL[kind] | {"clock": clock}
    with open_as(kind, path, **options) as queue, queue.appender() as appender:
        for payloads in days:
            appender.write_many(payloads)
            clock.advance(2 * DAY_MS)
    return messages(path)


def messages(path: Path) -> Messages:
    """Return the messages of a queue, or of the Parquet files of a conversion."""
    if any(path.glob("*.parquet")):
        table: Any = ds.dataset(path).to_table()
        indexes, payloads = table.column("_index"), table.column("payload")
        return [*zip(indexes.to_pylist(), payloads.to_pylist(), strict=True)]
    if {file.name for file in path.iterdir()} <= {"_indexes.jsonl"}:
        return []  # a Vanilla Chronicle without a message has no files, nor have Parquet files
    with quire.open(path, read_only=True, create=False) as queue, queue.tailer() as tailer:
        return [(excerpt.index, excerpt.data) for excerpt in tailer]


def payloads(found: Messages) -> list[bytes]:
    return [payload for _, payload in found]


def check_map(dest: Path, source: Messages, found: Messages) -> None:
    """Check that the map gives each message of the source its index in the result."""
    indexes = quire.converting.IndexMap(dest)
    assert len(indexes) == len(source)
    assert [indexes[index] for index, _ in source] == [index for index, _ in found]
