"""Quire as one of several writers of a queue."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Protocol

import quire
from bench.quire_queues import freeze_the_collector, open_queue
from bench.task import DISTINCT, Outcome, Task, messages

_BETWEEN_LOOKS = 10
"""Messages between two looks at the time."""
PIECE_BYTES = 64
"""The bytes of each piece of a document that is appended at a rate."""


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
        if task.rate:
            count = _append_paced(appender, task, pool)
        else:
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


def _append_paced(appender: quire.JournalAppender, task: Task, pool: Iterator[bytes]) -> int:
    """Append documents in pieces at a rate, and write to a file how long each took."""
    count = task.rate * task.duration_ms // 1000
    took, clock = array("q", bytes(8 * count)), time.monotonic_ns
    freeze_the_collector()
    first = clock()
    for place, payload in enumerate(islice(pool, count)):
        pieces = [payload[at : at + PIECE_BYTES] for at in range(0, task.size, PIECE_BYTES)]
        due = first + place * 1_000_000_000 // task.rate
        while (begin := clock()) < due:
            pass
        with appender.writing_document() as document:
            for piece in pieces:
                document.write_bytes(piece)
        took[place] = clock() - begin
    Path(task.out).write_bytes(took.tobytes())
    return count


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
