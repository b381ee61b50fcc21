"""
Calls with too little memory: `python starved.py GROUP DIRECTORY` makes those of a group.

Each has to raise `MemoryError`, and to succeed as soon as there is enough: nothing was lost.
"""

from __future__ import annotations

import ctypes
import resource
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import quire
from any_format import open_vanilla

pa = import_module("pyarrow")

BYTES = 48 << 20
LEFT = BYTES // 2
LIBC = ctypes.CDLL(None)
HARD = resource.getrlimit(resource.RLIMIT_AS)[1]

Call = Callable[[], Any]
Calls = Iterator[tuple[str, Call]]


def limit(left: int | None) -> None:
    """Leave this much memory beyond what is in use, or all."""
    if sys.platform == "linux" and hasattr(LIBC, "malloc_trim"):
        LIBC.malloc_trim(0)  # what was freed is no longer in use
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

    def tailer(name: str) -> quire.JournalTailer:
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
    schema = quire.Schema({"it": str})
    typed = [tailer("text"), tailer("text")]
    yield "read_batch schema", lambda: len(typed[0].read_batch(1, schema=schema))
    yield "read_batch misfits", lambda: len(typed[1].read_batch(1, schema=schema, errors="column"))
    for name in "str", "emoji":
        yield f"read_text {name}", tailer(name).read_text
        yield f"Excerpt.to_text {name}", excerpt(name).to_text
        yield f"ReadDocument.text {name}", document(name).text
    for name in messages():
        yield f"read_map {name}", tailer(name).read_map
        yield f"Excerpt.to_dict {name}", excerpt(name).to_dict
        yield f"ReadDocument.to_dict {name}", document(name).to_dict


def journal_writes(path: Path) -> Calls:
    queue = quire.open(path, block_bytes=1 << 29)
    appender = queue.appender()
    wide, text, data = "\N{GRINNING FACE}" * (BYTES // 4), "x" * BYTES, bytes(BYTES)
    buffer, floats = bytearray(BYTES), [1.5] * 3_000_000
    appender.write_bytes(data)  # maps what the rest goes to
    json = f'{{"it": "{text}"}}'
    rows = pa.table({"it": pa.array([text]), "other": pa.array([1])})
    yield "write_bytes", lambda: appender.write_bytes(buffer)
    yield "write_many", lambda: appender.write_many([buffer])
    yield "write_text", lambda: appender.write_text(wide)
    yield "write_map text", lambda: appender.write_map({"it": text})
    yield "write_map wide text", lambda: appender.write_map({"it": wide})
    yield "write_map bytes", lambda: appender.write_map({"it": data})
    yield "write_map list", lambda: appender.write_map({"it": floats})
    yield "write_json", lambda: appender.write_json(json)
    yield "write_yaml", lambda: appender.write_yaml(json)
    yield "write_batch", lambda: appender.write_batch(rows)

    def document(name: str, put: Callable[[quire.WriteDocument], object]) -> tuple[str, Call]:
        def write() -> int:
            with appender.writing_document() as document:
                put(document)
            return document.index

        return f"WriteDocument.{name}", write

    yield document("write", lambda it: it.write("it", text))
    yield document("write_bytes", lambda it: it.write_bytes(data))
    yield document("reserve", lambda it: it.reserve(BYTES))
    yield document("wire.write", lambda it: it.wire.write("it", data))
    yield document("raw.write_utf8", lambda it: it.raw.write_utf8(text))
    yield document("raw.write_bytes", lambda it: it.raw.write_bytes(data))


def raw_reads(queue: quire.quick_queue.QuickQueue | quire.vanilla.VanillaQueue) -> Calls:
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
    yield from raw_reads(quire.quick_queue.open(path, page_bytes=1 << 27))


def vanilla_reads(path: Path) -> Calls:
    yield from raw_reads(open_vanilla(path, data_block_bytes=1 << 27))


def quick_writes(path: Path) -> Calls:
    queue = quire.quick_queue.open(path, page_bytes=1 << 27)
    appender = queue.appender()
    text, data = "x" * BYTES, bytes(BYTES)
    packer = appender.new_message()
    yield "pack_bytes", lambda: packer.pack_bytes(data)
    yield "pack_raw", lambda: packer.pack_raw(data)
    yield "pack_string", lambda: packer.pack_string(text)


def vanilla_writes(path: Path) -> Calls:
    queue = open_vanilla(path, data_block_bytes=1 << 28)
    appender = queue.appender()
    wide, text, data = "\N{GRINNING FACE}" * (BYTES // 4), "x" * BYTES, bytes(BYTES)
    appender.write_bytes(data)  # maps what the rest goes to
    yield "write_text", lambda: appender.write_text(wide)

    def excerpt(name: str, put: Callable[[quire.ExcerptWriter], object]) -> tuple[str, Call]:
        def write() -> int:
            with appender.writing_excerpt(capacity=1 << 27) as writer:
                put(writer)
            assert writer.index is not None
            return writer.index

        return f"ExcerptWriter.{name}", write

    yield excerpt("write_bytes", lambda it: it.write_bytes(data))
    yield excerpt("write_utf", lambda it: it.write_utf(text))
    yield excerpt("append", lambda it: it.append(text))
    yield excerpt("write_object text", lambda it: it.write_object(text))
    yield excerpt("write_object bytes", lambda it: it.write_object(data))


def texts(_: Path) -> Calls:
    text = "x" * BYTES
    json = f'{{"it": "{text}"}}'
    message = quire.types.parse_json(json)
    yield "to_yaml", lambda: quire.types.to_yaml(message)
    yield "to_json", lambda: quire.types.to_json(message)
    yield "parse_yaml", lambda: quire.types.parse_yaml(json)
    yield "parse_json", lambda: quire.types.parse_json(json)


GROUPS = [
    journal_reads,
    journal_writes,
    quick_reads,
    quick_writes,
    vanilla_reads,
    vanilla_writes,
    texts,
]

if __name__ == "__main__":
    group = {group.__name__: group for group in GROUPS}[sys.argv[1]]
    for name, call in group(Path(sys.argv[2])):
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()
        starve(name, call)
