"""Asynchronous appends: a limit to those under way, and nothing that waits in the loop's thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import quire
from event_loops import held, ticking
from queues import payloads

PATIENCE_S = 600.0
LEAST = 2**16


@pytest.fixture
def patient(path: Path) -> Iterator[quire.JournalQueue]:
    """A queue whose appends give up long after any test is over."""
    with quire.open(path, timeout_s=PATIENCE_S) as queue:
        yield queue


class Clock:
    """A queue's clock, which notes the threads that ask it, and can keep them waiting."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self) -> int:
        self.threads.append(threading.get_ident())
        self.go_on.wait()
        return 1_700_000_000_000


def test_no_more_than_the_limit_are_under_way(patient: quire.JournalQueue) -> None:
    appender = patient.appender(limit=3)
    begun: list[int] = []

    def messages(number: int) -> Iterator[bytes]:
        begun.append(number)
        yield b"%d" % number

    async def main() -> None:
        async with ticking() as ticks:
            writes = [asyncio.create_task(appender.awrite_many(messages(it))) for it in range(9)]
            await ticks.more()
            assert begun == [0, 1, 2]
            let_go()
            await asyncio.gather(*writes)

    with held(patient) as let_go:
        asyncio.run(main())
    assert begun == [*range(9)]
    assert sorted(payloads(patient)[1:]) == [b"%d" % it for it in range(9)]


def test_a_limit_of_one_keeps_the_order_of_calls(patient: quire.JournalQueue) -> None:
    appender = patient.appender(limit=1)

    async def main() -> None:
        async with ticking() as ticks:
            writes = [asyncio.create_task(appender.awrite_bytes(b"%d" % it)) for it in range(50)]
            await ticks.more()
            let_go()
            await asyncio.gather(*writes)

    with held(patient) as let_go:
        asyncio.run(main())
    assert payloads(patient)[1:] == [b"%d" % it for it in range(50)]


@pytest.mark.parametrize("limit", [1, 2])
def test_cancelled_appends_lose_no_slot_and_no_message(
    limit: int, patient: quire.JournalQueue
) -> None:
    appender = patient.appender(limit=limit)

    async def main() -> None:
        async with ticking() as ticks:
            writes = [asyncio.create_task(appender.awrite_bytes(b"%d" % it)) for it in range(40)]
            await ticks.more()
            for write in writes[::2]:  # the first has a slot, others wait for one
                write.cancel()
            await ticks.more()
            let_go()
            done = await asyncio.gather(*writes, return_exceptions=True)
        assert all(isinstance(it, asyncio.CancelledError) for it in done[::2])
        first = patient.first_index or 0
        assert sorted(str(it) for it in done[1::2]) == [str(first + it) for it in range(1, 21)]
        await asyncio.gather(*(appender.awrite_bytes(b"after") for _ in range(10)))

    with held(patient) as let_go:
        asyncio.run(main())
    expected = [*(b"%d" % it for it in range(1, 40, 2)), *[b"after"] * 10]
    assert sorted(payloads(patient)[1:]) == sorted(expected)


def test_an_append_that_fails_gives_its_slot_back(patient: quire.JournalQueue) -> None:
    appender = patient.appender(limit=2)

    async def main() -> None:
        for _ in range(5):
            with pytest.raises(ValueError, match="at least one"):
                await appender.awrite_map({})
            with pytest.raises(TypeError):
                await appender.awrite_many([b"x", 5])  # type: ignore[list-item]
        await appender.awrite_bytes(b"after")

    asyncio.run(main())
    assert payloads(patient)[-1] == b"after"


def test_an_appender_with_a_limit_serves_one_loop_after_another(
    patient: quire.JournalQueue,
) -> None:
    appender = patient.appender(limit=1)

    async def main(let_go: Callable[[], None]) -> None:
        async with ticking() as ticks:
            writes = [asyncio.create_task(appender.awrite_bytes(b"x")) for _ in range(3)]
            await ticks.more()
            let_go()
            await asyncio.gather(*writes)

    for _ in range(3):
        with held(patient) as let_go:
            asyncio.run(main(let_go))
    assert payloads(patient) == [b"held", b"x", b"x", b"x"] * 3


@pytest.mark.parametrize("limit", [None, 1])
def test_a_thread_waits_for_the_disk(limit: int | None, path: Path) -> None:
    clock = Clock()
    with quire.open(path, durability="each", clock=clock) as queue:
        appender = queue.appender(limit=limit)
        clock.threads.clear()
        asyncio.run(appender.awrite_bytes(b"x"))
        asyncio.run(appender.awrite_many([b"y", b"z"]))
        assert clock.threads
        assert threading.get_ident() not in clock.threads
        assert payloads(queue) == [b"x", b"y", b"z"]


def test_a_thread_keeps_the_slot_of_its_cancelled_append(path: Path) -> None:
    clock = Clock()
    with quire.open(path, durability="each", clock=clock) as queue:
        appender = queue.appender(limit=1)

        async def main() -> None:
            clock.threads.clear()
            clock.go_on.clear()
            first = asyncio.create_task(appender.awrite_bytes(b"first"))
            async with ticking() as ticks:
                while not clock.threads:
                    await ticks.more()
                first.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await first
                second = asyncio.create_task(appender.awrite_bytes(b"second"))
                await ticks.more()
                assert len(clock.threads) == 1
                clock.go_on.set()
                await second

        asyncio.run(main())
        assert payloads(queue) == [b"first", b"second"]


def batch() -> Any:  # noqa: ANN401 - of pyarrow
    import pyarrow as pa

    return pa.array([b"1", b"2"])


IN_RING: dict[str, tuple[Callable[[quire.JournalAppender], Awaitable[int | None]], int]] = {
    "bytes": (lambda appender: appender.awrite_bytes(b"1"), 1),
    "map": (lambda appender: appender.awrite_map({"a": 1}), 1),
    "topic": (lambda appender: appender.topic("t").awrite_text("x"), 1),
    "many": (lambda appender: appender.awrite_many([b"1", b"2"]), 2),
    "batch": (lambda appender: appender.awrite_batch(batch()), 2),
}


def filled(path: Path) -> int:
    """Put messages into the ring until it is full, and return how many."""
    ring = quire.RingOptions(on_full="raise", capacity_bytes=LEAST)
    with quire.open(path, buffer_mode="async", timeout_s=0.1, ring=ring) as queue:
        assert queue.ring is not None
        appender = queue.appender()
        with suppress(quire.errors.RingFullError):
            while True:
                appender.write_bytes(b"x")
        return queue.ring.pending


@pytest.mark.parametrize("name", IN_RING)
def test_an_append_waits_for_a_full_ring_while_the_loop_runs(
    name: str, path: Path, patient: quire.JournalQueue
) -> None:
    write, number = IN_RING[name]

    async def main(appender: quire.JournalAppender, ring: quire.Ring) -> int | None:
        stalls = ring.stalls
        async with ticking() as ticks:
            task = asyncio.ensure_future(write(appender))
            await ticks.more()
            while ring.stalls == stalls:  # its thread has not found the ring full yet
                await ticks.more()
            assert not task.done()
            let_go()
            return await task

    with held(patient) as let_go:  # nothing is drained meanwhile
        count = filled(path)
        with quire.open(path, buffer_mode="async", timeout_s=PATIENCE_S) as queue:
            assert queue.ring is not None
            assert asyncio.run(main(queue.appender(limit=1), queue.ring)) == -1
            queue.ring.flush()
    assert patient.entry_count == 1 + count + number


def test_an_append_cancelled_at_a_full_ring_puts_nothing_in(
    path: Path, patient: quire.JournalQueue
) -> None:
    async def main(appender: quire.JournalAppender) -> None:
        async with ticking() as ticks:
            task = asyncio.create_task(appender.awrite_bytes(b"no"))
            await ticks.more()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with held(patient) as let_go:
        count = filled(path)
        with quire.open(path, buffer_mode="async", timeout_s=PATIENCE_S) as queue:
            asyncio.run(main(queue.appender()))
            let_go()
            assert queue.ring is not None
            queue.ring.flush()
    assert payloads(patient) == [b"held", *[b"x"] * count]


@pytest.mark.parametrize(
    ("on_full", "waited"), [("block", r"waited_ms=\d{3}"), ("raise", "waited_ms=")]
)
def test_an_append_gives_up_on_a_full_ring(
    on_full: Any,  # noqa: ANN401 - a literal
    waited: str,
    path: Path,
    patient: quire.JournalQueue,
) -> None:
    with held(patient):
        filled(path)
        with (
            quire.open(
                path, buffer_mode="async", timeout_s=0.1, ring=quire.RingOptions(on_full=on_full)
            ) as queue,
            pytest.raises(quire.errors.RingFullError, match=waited),
        ):
            asyncio.run(queue.appender().awrite_bytes(b"no"))


@pytest.mark.parametrize(
    ("limit", "error", "said"),
    [
        (0, ValueError, "invalid limit: expected an integer from 1 to 2147483647, found 0"),
        (-1, ValueError, "invalid limit"),
        ("9", TypeError, "invalid limit: expected an integer, found str"),
        (1.5, TypeError, "invalid limit"),
    ],
)
def test_a_wrong_limit_is_refused(
    limit: Any,  # noqa: ANN401 - wrong ones
    error: type[Exception],
    said: str,
    patient: quire.JournalQueue,
) -> None:
    with pytest.raises(error, match=said):
        patient.appender(limit=limit)
