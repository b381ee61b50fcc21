"""
A life of asynchronous appends in the build with fault points: a producer and a draining thread.

Says ``puts text`` before a write and ``put text`` when it returned. The life after it has no fault,
and leaves an empty ring.
"""

from __future__ import annotations

from pathlib import Path

import quire
from life_server import say, serve

SMALL = 65_536
MESSAGES = 12
LONG = 3000
DIRECT = "direct"


def live(path: Path, form: str, name: str) -> None:
    """Put messages in: some that are drained at once, then as many as there is room for."""
    assert form == "thread"
    with (
        quire.open(
            path,
            block_bytes=SMALL,
            buffer_mode="async",
            ring=quire.RingOptions(capacity_bytes=SMALL, on_full="raise"),
        ) as queue,
        queue.appender() as appender,
    ):
        for number in range(MESSAGES):
            put(appender, f"{name} {number} " + "x" * (number * 7))
        flush(queue)
        # Nothing is drained while another appender has the write lock.
        with (
            quire.open(path, block_bytes=SMALL) as other,
            other.appender() as direct,
            direct.writing_document() as document,
        ):
            document.write(DIRECT, 1)
            fill(appender, name)
        flush(queue)
        put(appender, f"{name} last")


def put(appender: quire.JournalAppender, text: str) -> None:
    say("puts", text)
    appender.write_bytes(text.encode())
    say("put", text)


def fill(appender: quire.JournalAppender, name: str) -> None:
    for number in range(SMALL):
        try:
            put(appender, f"{name} full {number} ".ljust(LONG, "."))
        except quire.errors.RingFullError:
            say("full")
            return
    raise AssertionError("a ring without end")


def flush(queue: quire.JournalQueue) -> None:
    assert queue.ring is not None
    queue.ring.flush(timeout_s=60.0)


if __name__ == "__main__":
    serve(live)
