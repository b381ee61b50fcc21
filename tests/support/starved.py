"""
Calls with too little memory: `python starved.py GROUP DIRECTORY` makes those of a group.

Each has to raise `MemoryError`, and to succeed as soon as there is enough: nothing was lost.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import quire

import_module("pyarrow")  # while there is memory for it

# More than the allocator ever keeps of what was freed.
BYTES = 48 << 20
LEFT = BYTES // 2
HARD = resource.getrlimit(resource.RLIMIT_AS)[1]

Call = Callable[[], Any]
Calls = Iterator[tuple[str, Call]]


def limit(left: int | None) -> None:
    """Leave this much memory beyond what is in use, or all."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    soft = HARD if left is None else pages * resource.getpagesize() + left
    resource.setrlimit(resource.RLIMIT_AS, (soft, HARD))


def starve(name: str, call: Call) -> None:
    limit(LEFT)
    try:
        call()
    except MemoryError:
        limit(None)
    else:
        limit(None)
        sys.exit(f"{name}: no MemoryError")
    assert call() is not None, f"{name}: nothing when there was enough"


def messages() -> dict[str, Any]:
    return {
        "bytes": {"it": bytes(BYTES)},
        "text": {"it": "x" * BYTES},
        "floats": {"it": [float(number) for number in range(2_000_000)]},
    }


def journal_reads(path: Path) -> Calls:
    queue = quire.open(path, block_bytes=1 << 29)
    appender = queue.appender()
    at = {"raw": appender.write_bytes(bytes(BYTES)), "str": appender.write_text("x" * BYTES)}
    at["emoji"] = appender.write_text("\N{GRINNING FACE}" * (BYTES // 6))
    at |= {name: appender.write_map(values) for name, values in messages().items()}

    def tailer(name: str) -> quire.Tailer:
        made = queue.tailer()
        assert made.move_to_index(at[name])
        return made

    def excerpt(name: str) -> quire.Excerpt:
        found = tailer(name).read()
        assert found
        return found

    def document(name: str) -> quire.ReadDocument:
        return tailer(name).reading_document().__enter__()

    raw = [tailer("raw") for _ in range(6)]
    yield "read", raw[0].read
    yield "read_bytes", raw[1].read_bytes
    yield "read_many", lambda: raw[2].read_many(1)[0]
    payloads, excerpts = raw[3].payloads(), iter(raw[4])
    yield "payloads", lambda: next(payloads)
    yield "iterator", lambda: next(excerpts)
    yield "read_batch", lambda: len(raw[5].read_batch(1))
    for name in "str", "emoji":
        yield f"read_text {name}", tailer(name).read_text
        yield f"Excerpt.to_text {name}", excerpt(name).to_text
        yield f"ReadDocument.text {name}", document(name).text
    for name in messages():
        yield f"read_map {name}", tailer(name).read_map
        yield f"Excerpt.to_dict {name}", excerpt(name).to_dict
        yield f"ReadDocument.to_dict {name}", document(name).to_dict


def raw_reads(queue: quire.QuickQueue | quire.VanillaQueue) -> Calls:
    appender = queue.appender()
    appender.write_text("small: its file is mapped")
    appender.write_text("x" * BYTES)
    tailers = [queue.tailer() for _ in range(6)]
    for tailer in tailers:
        assert tailer.read()
    yield "read_bytes", tailers[0].read_bytes
    yield "read_many", lambda: tailers[1].read_many(1)[0]
    payloads = tailers[2].payloads()
    yield "payloads", lambda: next(payloads)
    yield "read_text", tailers[3].read_text
    yield "read_batch", lambda: len(tailers[4].read_batch(1))
    excerpt = tailers[5].read()
    assert excerpt
    yield "Excerpt.data", lambda: excerpt.data


def quick_reads(path: Path) -> Calls:
    yield from raw_reads(quire.open(path, format="quick-queue", page_bytes=1 << 27))


def vanilla_reads(path: Path) -> Calls:
    yield from raw_reads(quire.open(path, format="vanilla", data_block_bytes=1 << 27))


GROUPS = [journal_reads, quick_reads, vanilla_reads]

if __name__ == "__main__":
    group = {group.__name__: group for group in GROUPS}[sys.argv[1]]
    for name, call in group(Path(sys.argv[2])):
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()
        starve(name, call)
