"""
Files without an end-of-file marker before others: what reads to an end goes on to the later ones.

A marker is missing where a writer died before it rolled, and where a file was copied or damaged.
"""

from __future__ import annotations

import asyncio
import signal
import struct
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import quire
from damages import DAYS, PER_DAY, WHOLE, age, break_message, empty, erase_marker, fill, patch
from event_loops import until
from queues import START_MS

HOUR_S = 3600.0
ALL = DAYS * PER_DAY


def in_a_loop(tailer: quire.JournalTailer) -> Iterator[Any]:
    while (found := tailer.read_map()) is not None:
        yield found


def by_documents(tailer: quire.JournalTailer) -> Iterator[Any]:
    while True:
        with tailer.reading_document() as document:
            if not document.is_present:
                return
            yield document.map()


def by_a_method_reader(tailer: quire.JournalTailer) -> list[Any]:
    class Handler:
        def n(self, value: int) -> None:
            found.append({"n": value})

    found: list[Any] = []
    tailer.method_reader(Handler()).run(until=lambda: True)
    return found


def decoded(messages: Iterable[Any]) -> list[Any]:
    return [quire.Excerpt(0, message).to_dict() for message in messages]


def _payloads(tailer: quire.JournalTailer) -> list[bytes]:
    return [row["payload"] for row in tailer.read_batch(10_000).to_pylist()]


NUMBERS = quire.Schema({"n": "int64"})
READERS: dict[str, Callable[[quire.JournalTailer], Iterable[Any]]] = {
    "iteration": lambda tailer: decoded([excerpt.data for excerpt in tailer]),
    "payloads": lambda tailer: decoded(list(tailer.payloads())),
    "read": in_a_loop,
    "read_many": lambda tailer: decoded(tailer.read_many(10_000)),
    "read_batch": lambda tailer: decoded(_payloads(tailer)),
    "schema": lambda tailer: tailer.read_batch(10_000, schema=NUMBERS).select(["n"]).to_pylist(),
    "documents": by_documents,
    "methods": by_a_method_reader,
}
BATCHES = {"read_many", "read_batch", "schema"}


@pytest.fixture
def files(path: Path) -> list[Path]:
    """Four days of messages; the second and third lack their end-of-file markers."""
    files = fill(path)
    for file in files[1:3]:
        erase_marker(file)
    return files


@contextmanager
def opened(
    path: Path, eof_grace_s: float | None
) -> Generator[tuple[quire.JournalQueue, quire.JournalTailer]]:
    with (
        quire.open(path, read_only=True, wait=quire.WaitOptions(eof_grace_s=eof_grace_s)) as queue,
        queue.tailer() as tailer,
    ):
        yield queue, tailer


@contextmanager
def alarm(action: Callable[[], object]) -> Generator[None]:
    """Have a signal's handler do something while this waits."""

    def handle(*_: object) -> None:
        action()

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("how", READERS)
def test_a_read_to_the_end_waits_for_the_grace_time_and_goes_on(
    path: Path, files: list[Path], how: str
) -> None:
    assert files
    with opened(path, 0.05) as (queue, tailer):
        assert [*READERS[how](tailer)] == WHOLE
        assert queue.entry_count == ALL


@pytest.mark.parametrize("how", READERS)
def test_files_left_alone_for_long_are_not_waited_for(
    path: Path, files: list[Path], how: str
) -> None:
    for file in files:
        age(file)
    with opened(path, HOUR_S) as (_, tailer):
        assert [*READERS[how](tailer)] == WHOLE


def test_a_batch_that_is_full_is_not_waited_for(path: Path, files: list[Path]) -> None:
    assert files
    with opened(path, HOUR_S) as (_, tailer):
        assert len(tailer.read_many(2 * PER_DAY)) == 2 * PER_DAY
    with opened(path, HOUR_S) as (_, tailer):
        assert tailer.read_batch(2 * PER_DAY).num_rows == 2 * PER_DAY
    with opened(path, HOUR_S) as (_, tailer):
        assert tailer.read_batch(2 * PER_DAY, schema=NUMBERS).num_rows == 2 * PER_DAY


def test_what_is_written_while_a_read_waits_is_read_first(path: Path, files: list[Path]) -> None:
    data = files[1].read_bytes()
    tail = len(data.rstrip(b"\0"))
    tail += -tail % 4

    def write() -> None:
        patch(files[1], tail + 4, b"late")
        patch(files[1], tail, struct.pack("<I", 4))
        for file in files:
            age(file)
        assert tailer.index  # nothing of the tailer is held meanwhile

    with opened(path, HOUR_S) as (queue, tailer), alarm(write):
        found = list(tailer)
        assert [excerpt.data for excerpt in found][2 * PER_DAY] == b"late"
        assert len(found) == ALL + 1 == queue.entry_count


@pytest.mark.parametrize("how", READERS)
def test_an_interrupt_ends_the_wait_and_loses_nothing(
    path: Path, files: list[Path], how: str
) -> None:
    def interrupt() -> None:
        if tailer.index >= waits_at:
            raise KeyboardInterrupt
        signal.setitimer(signal.ITIMER_REAL, 0.01)  # it is on its way

    with opened(path, HOUR_S) as (queue, tailer):
        waits_at = queue.roll_cycle.to_index(queue.cycles[1], PER_DAY)
        with alarm(interrupt), pytest.raises(KeyboardInterrupt):
            assert [*READERS[how](tailer)]
        for file in files:
            age(file)
        with opened(path, 0.0) as (_, other):
            other.move_to_index(tailer.index)
            left = len(other.read_many(10_000))
        # A batch is put back; what was handed out one by one is not.
        assert left == (ALL if how in BATCHES else 2 * PER_DAY)


def test_polling_does_not_wait(path: Path, files: list[Path]) -> None:
    assert files

    found: list[quire.Excerpt] = []

    async def collect() -> None:
        async for excerpt in tailer:
            found.append(excerpt)  # noqa: PERF401 - those before the wait count

    async def collect_for_a_moment() -> None:
        collecting = asyncio.create_task(collect())
        await until(lambda: len(found) == 2 * PER_DAY)
        await asyncio.wait({collecting}, timeout=0.1)
        assert not collecting.done()
        collecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await collecting

    with opened(path, HOUR_S) as (_, tailer):
        asyncio.run(collect_for_a_moment())
        assert len(found) == 2 * PER_DAY
        with pytest.raises(quire.errors.WaitTimeoutError):
            tailer.wait(0.01)


def test_without_a_grace_time_it_is_said_where_a_tailer_stays(
    path: Path, files: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    with opened(path, None) as (_, tailer):
        for _ in range(2):
            tailer.read_many(10_000)
        assert tailer.read() is None
    (warning,) = caplog.messages
    assert "though a later one has messages" in warning
    assert files[1].name in warning


def test_messages_after_a_lost_one_are_not_passed_over(path: Path, files: list[Path]) -> None:
    position = break_message(files[1], 10)
    patch(files[1], position, bytes(4))
    with opened(path, 0.0) as (queue, tailer):
        with pytest.raises(
            quire.errors.CorruptError, match="messages are missing in the middle"
        ) as raised:
            list(tailer)
        assert raised.value.position == position
        assert queue.entry_count == ALL


@pytest.mark.parametrize("is_old", [False, True])
def test_a_file_that_was_never_finished_is_passed_over_and_named(
    path: Path, caplog: pytest.LogCaptureFixture, *, is_old: bool
) -> None:
    files = fill(path)
    empty(files[1])
    if is_old:
        age(files[1])
    with opened(path, HOUR_S if is_old else 0.05) as (_, tailer):
        found = [quire.Excerpt.to_dict(excerpt) for excerpt in tailer]
    assert found == WHOLE[:PER_DAY] + WHOLE[2 * PER_DAY :]
    (warning,) = caplog.messages
    assert "never finished, or was emptied" in warning
    assert files[1].name in warning


def test_a_service_goes_on(tmp_path: Path) -> None:
    files = fill(tmp_path / "in", source_id=7)
    erase_marker(files[1])
    clock = quire.ManualClock(START_MS)
    quire.open(tmp_path / "out", clock=clock, source_id=8).close()

    class Doubling:
        def __init__(self, out: Numbers) -> None:
            self._out = out

        def n(self, value: int) -> None:
            self._out.n(value * 2)

    class Numbers:
        def n(self, value: int) -> None: ...

    with (
        quire.open(tmp_path / "in", wait=quire.WaitOptions(eof_grace_s=0.05)) as numbers,
        quire.service(
            inputs=[numbers], output=tmp_path / "out", handler=Doubling, writes=Numbers
        ) as service,
    ):
        while service.run_once():
            pass
    with quire.open(tmp_path / "out", read_only=True) as out:
        assert out.entry_count == ALL
