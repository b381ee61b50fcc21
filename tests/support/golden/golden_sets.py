"""The golden queues that Java wrote, and what their listings say."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NotRequired, TypedDict

from paths import GOLDEN
from reference import (
    Store,
    read_queue,
)

JAVA = sorted(file.parent for file in GOLDEN.glob("java-*/*/list.jsonl"))


QUEUES = [*JAVA, GOLDEN / "v4"]


MAIN = GOLDEN / "java-5.27ea11"


CRASHED = {"l_crash_open", "l_crash_pos"}


def name_of(path: Path) -> str:
    return "/".join(path.parts[len(GOLDEN.parts) :])


class Row(TypedDict):
    index: str
    len: int
    hex: NotRequired[str]
    sha256: NotRequired[str]
    meta: NotRequired[bool]


def listing(queue: Path, name: str) -> list[Row]:
    lines = (queue / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines[1:]]


def delivered(queue: Path, name: str) -> list[tuple[int, int, str]]:
    """Return index, length and digest of every message of a listing."""
    rows = listing(queue, name)
    return [(int(row["index"], 16), row["len"], row.get("sha256") or sha256(row)) for row in rows]


def sha256(row: Row) -> str:
    return hashlib.sha256(bytes.fromhex(row.get("hex", ""))).hexdigest()


def found(queue: Path, *, metadata: bool = False) -> list[tuple[int, int, str]]:
    documents = read_queue(queue, metadata=metadata)
    return [(index, len(data), hashlib.sha256(data).hexdigest()) for index, data in documents]


def messages(store: Store) -> list[tuple[bytes, bool]]:
    """Return what an appender was given: messages and metadata, without header and arrays."""
    documents = [
        (store.data[found.position + 4 : found.end], found.is_metadata)
        for found in store.documents[1:]
    ]
    return [
        entry
        for entry in documents
        if not entry[0].startswith((b"\xb9\x05index", b"\xb9\x0bindex2"))
    ]
