"""Queues of some days to archive, and what another program finds in the archive."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import quire
from queues import DAY_MS, START_MS
from reference import open_queue, read_queue

PER_DAY = 200


FIRST_DAY = START_MS // DAY_MS


def fill(path: Path, days: Iterable[int], *, per_day: int = PER_DAY) -> None:
    """Append messages of many lengths on these days."""
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**18) as queue,
        queue.appender() as appender,
    ):
        for day in days:
            clock.now_ms = START_MS + day * DAY_MS
            appender.write_many([b"%d.%d " % (day, n) * (n % 40 + 1) for n in range(per_day)])


def rows(dest: Path) -> list[tuple[int, bytes]]:
    """What another program finds: indexes and payloads in the order of the indexes."""
    table = pq.read_table(dest, columns=["_index", "payload"]).sort_by("_index")
    return list(zip(*table.to_pydict().values(), strict=True))


def finished(path: Path) -> list[tuple[int, bytes]]:
    """What the reference reader finds in the cycles that are finished."""
    roll_cycle, stores = open_queue(path)
    newest = max((cycle for cycle, it in stores.items() if _messages(it.documents)), default=-1)
    done = {cycle for cycle, store in stores.items() if store.has_eof or cycle < newest}
    shift = roll_cycle.to_index(1, 0).bit_length() - 1
    return [(index, data) for index, data in read_queue(path) if index >> shift in done]


def _messages(documents: Iterable[Any]) -> bool:
    return any(not document.is_metadata for document in documents)


def parquet_files(dest: Path) -> list[Path]:
    return sorted(file for file in dest.rglob("*") if file.suffix == ".parquet")


def leftovers(dest: Path) -> list[Path]:
    return [file for file in dest.rglob(".*") if file.is_file()]


def make_older(dest: Path, *, only: int | None = None) -> None:
    """Have the files, or the first so many, as earlier versions wrote them: floats with minimum."""
    for listed in (dest / "_quire").glob("*.json"):
        known = json.loads(listed.read_text())
        for entry in known["cycles"][:only]:
            file = dest / f"topic={known['topic']}" / entry["file"]
            del entry["layout"]
            _write_older(file)
            content = file.read_bytes()
            entry |= {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
        listed.write_text(json.dumps(known))


def _write_older(file: Path) -> None:
    metadata = json.loads((pq.read_metadata(file).metadata or {})[b"quire"])
    del metadata["layout"]
    table = pq.ParquetFile(file).read()
    table = table.replace_schema_metadata({"quire": json.dumps(metadata)})
    fields: list[Any] = list(table.schema)
    plain = [it.name for it in fields if not pa.types.is_nested(it.type)]
    options: Any = {"compression": "zstd", "use_dictionary": plain, "write_statistics": plain}
    pq.write_table(table, file, write_page_index=True, **options)


def cut(file: Path) -> None:
    """Leave what is in front of the message in the middle, and a bit of that."""
    data = file.read_bytes()
    file.write_bytes(data[: data.index(b"1.100 1.100") + 5])


def cut_between(file: Path) -> None:
    """Leave whole messages alone."""
    data = file.read_bytes()
    file.write_bytes(data[: data.index(b"1.100 1.100") - 4])


def zero(file: Path) -> None:
    """Have a page lost in the middle."""
    data = bytearray(file.read_bytes())
    start = data.index(b"1.100 1.100") - 4
    data[start : start + 4096] = bytes(4096)
    file.write_bytes(data)
