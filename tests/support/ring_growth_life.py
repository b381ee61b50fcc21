"""
A life of a ring that grows, in the build with fault points.

While it holds the write lock, so that nothing can be drained, it puts messages in until the ring
has grown twice, or until it cannot grow; then all are drained. It says what it put in, then how
often each point was hit.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import quire
from life_server import say, serve

MESSAGES = 12
LEAST = 2**16
PATIENCE_S = 600.0


def text(name: str, number: int) -> str:
    return f"{name} {number} ".ljust(20_000, "x")


def live(path: Path, form: Any, name: str) -> None:  # noqa: ANN401 - an on_full
    """Put messages in, with numbers of its own."""
    first = {"first": 0, "second": 100}[name]
    with (
        quire.open(path, timeout_s=PATIENCE_S) as plain,
        quire.open(
            path,
            buffer_mode="async",
            ring=quire.RingOptions(capacity_bytes=LEAST, on_full=form),
            timeout_s=0.1,
        ) as queue,
        queue.appender() as appender,
    ):
        with plain.appender().writing_document() as document:
            with suppress(quire.errors.RingFullError):
                for number in range(first, first + MESSAGES):
                    appender.write_bytes(text(name, number).encode())
                    say(number, text(name, number))
            document.rollback_on_close()
        assert queue.ring is not None
        queue.ring.flush(timeout_s=PATIENCE_S)


if __name__ == "__main__":
    serve(live)
