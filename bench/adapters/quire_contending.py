"""Quire as one of several writers of a queue."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import cycle, islice
from pathlib import Path
from typing import Protocol

import quire
from bench.quire_queues import open_queue
from bench.task import DISTINCT, Outcome, Task, messages

_BETWEEN_LOOKS = 10
"""Messages between two looks at the time."""


class _Bulk(Protocol):
    def read_many(self, count: int, /) -> list[bytes]: ...


def run(task: Task) -> Outcome:
    """Warm up, wait for the common start, append until the time is up."""
    pool = cycle(messages(task.size, task.writer))
    buffered = task.operation == "double_buffer"
    with (
        open_queue(task.queue, double_buffer=buffered) as queue,
        queue.appender() as appender,
    ):
        append = _APPENDS[task.operation](appender)
        append(islice(pool, task.warm_up))
        print("READY", flush=True)
        begin = int(input())
        end = begin + task.duration_ms * 1_000_000
        time.sleep(max(0, begin - time.monotonic_ns()) / 1e9)
        count, cpu_begin = 0, time.process_time_ns()
        while time.monotonic_ns() < end:
            append(islice(pool, _BETWEEN_LOOKS))
            count += _BETWEEN_LOOKS
        nanos = time.monotonic_ns() - begin
        return Outcome(nanos, time.process_time_ns() - cpu_begin, count, 0)


def _write_bytes(appender: quire.JournalAppender) -> Callable[[Iterable[bytes]], None]:
    write = appender.write_bytes

    def append(payloads: Iterable[bytes]) -> None:
        for payload in payloads:
            write(payload)

    return append


def _documents(appender: quire.JournalAppender) -> Callable[[Iterable[bytes]], None]:
    def append(payloads: Iterable[bytes]) -> None:
        for payload in payloads:
            with appender.writing_document() as document:
                document.write_bytes(payload)

    return append


_APPENDS = {"write_bytes": _write_bytes, "document": _documents, "double_buffer": _documents}


def verify(path: Path, size: int, counts: list[int]) -> None:
    """Compare a queue with the messages of its writers: all of each, in each one's order."""
    with open_queue(path, read_only=True) as queue:
        compare(queue.tailer(), size, counts)


def compare(tailer: _Bulk, size: int, counts: list[int]) -> None:
    """Compare what a tailer reads with the messages of the writers, as `verify` does."""
    import numpy as np

    pools = [
        np.frombuffer(b"".join(messages(size, writer)), np.uint8).reshape(DISTINCT, size)
        for writer in range(len(counts))
    ]
    found = [0] * len(counts)
    while batch := tailer.read_many(DISTINCT):
        rows = np.frombuffer(b"".join(batch), np.uint8).reshape(len(batch), size)
        writers = rows[:, 8]
        for writer, pool in enumerate(pools):
            theirs = rows[writers == writer]
            expected = pool[(found[writer] + np.arange(len(theirs))) % DISTINCT]
            assert np.array_equal(theirs, expected), f"other messages: writer={writer}"
            found[writer] += len(theirs)
    assert found == counts, f"found={found} expected={counts}"
