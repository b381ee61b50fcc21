"""Every way to write, with ``wait="all"``: for queues in files, and those of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from quire.errors import WaitTimeoutError
from replicated import Peer


class Market:
    def price(self, symbol: str) -> None: ...


def every_write_waits(patient: Any, queue: Any, sink: Peer, many: Sequence[bytes]) -> None:  # noqa: ANN401
    """
    Write in every way while the only sink runs, and while it is stopped.

    The first of two handles of the queue waits for as long as the sink may need.
    """
    for way in _ways(patient, many).values():
        way()
    sink.stop()
    for name, way in _ways(queue, many).items():
        before = queue.entry_count
        with pytest.raises(WaitTimeoutError):
            way()
        assert queue.entry_count > before, name
    sink.go_on()


def _ways(queue: Any, many: Sequence[bytes]) -> dict[str, Callable[[], Any]]:  # noqa: ANN401
    import pyarrow as pa

    appender, waiting = queue.appender(), queue.appender(wait="all")
    batch = pa.RecordBatch.from_pydict({"a": [1, 2]})

    def document() -> None:
        with appender.writing_document(wait="all") as document:
            document.write("a", 1)

    return {
        "text": lambda: appender.write_text("x", wait="all"),
        "map": lambda: appender.write_map({"a": 1}, wait="all"),
        "many": lambda: appender.write_many(many, wait="all"),
        "yaml": lambda: appender.write_yaml("a: 1", wait="all"),
        "json": lambda: appender.write_json('{"a": 1}', wait="all"),
        "batch": lambda: appender.write_batch(batch, wait="all"),
        "document": document,
        "method": lambda: waiting.method_writer(Market).price("EURUSD"),
        "appender": lambda: waiting.write_bytes(b"x"),
        "topic": lambda: waiting.topic("a").write_text("x"),
        "async": lambda: asyncio.run(waiting.awrite_bytes(b"x")),
    }
