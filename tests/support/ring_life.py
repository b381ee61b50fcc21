"""
A life of asynchronous appends in the build with fault points: a producer and a draining thread.

Says ``puts text`` before a write and ``put text`` when it returned. The life after it has no fault,
and leaves an empty ring.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import quire
from life_server import say, serve

SMALL = 65_536
MESSAGES = 12
LONG = 3000
DIRECT = "direct"
PACKED = b"\xb6\x03qz1\x82"  # what a compressed message begins with; then its length
OPTIONS: dict[str, dict[str, str]] = {
    "thread": {},
    "packed": {},  # messages that look like compressed ones
    "zstd": {"compression": "zstd"},
    "differences": {"wire_type": "DELTA_BINARY"},
}


def live(path: Path, form: str, name: str) -> None:
    """Put messages in: some that are drained at once, then as many as there is room for."""
    open_any: Any = quire.open
    ring = quire.RingOptions(capacity_bytes=SMALL, on_full="raise")
    with (
        open_any(path, block_bytes=SMALL, buffer_mode="async", ring=ring, **OPTIONS[form]) as queue,
        queue.appender() as appender,
    ):
        for number in range(MESSAGES):
            put(appender, form, f"{name} {number} " + "x" * (number * 7))
        flush(queue)
        # Nothing is drained while another appender has the write lock.
        with (
            open_any(path, block_bytes=SMALL, **OPTIONS[form]) as other,
            other.appender() as direct,
            direct.writing_document() as document,
        ):
            document.write(DIRECT, 1)
            fill(appender, form, name)
        flush(queue)
        put(appender, form, f"{name} last")


def put(appender: quire.JournalAppender, form: str, text: str) -> None:
    say("puts", text)
    appender.write_bytes(wrapped(text) if form == "packed" else text.encode())
    say("put", text)


def fill(appender: quire.JournalAppender, form: str, name: str) -> None:
    for number in range(SMALL):
        try:
            put(appender, form, f"{name} full {number} ".ljust(LONG, "."))
        except quire.errors.RingFullError:
            say("full")
            return
    raise AssertionError("a ring without end")


def wrapped(text: str) -> bytes:
    content = b"\x8a\0" + text.encode()
    return PACKED + len(content).to_bytes(4, "little") + content


def flush(queue: quire.JournalQueue) -> None:
    assert queue.ring is not None
    queue.ring.flush(timeout_s=60.0)


if __name__ == "__main__":
    serve(live)
