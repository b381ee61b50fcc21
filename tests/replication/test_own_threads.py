"""Connections that a thread of its own drives: what wakes it, and what does not hold it up."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
import replication_reference as reference
from quire.replication import Sink, Source
from quire.replication.drivers import sending
from quire.replication.drivers.idling import Sleeping
from quire.replication.session import Session
from replication_reference import ReferenceSink

WAIT_S = 60.0
NEVER_S = 3600.0


@pytest.fixture
def no_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nobody look again by itself: what does not wake a thread does not happen."""
    monkeypatch.setattr(Session, "tick_s", NEVER_S)


class Planted:
    """A pause in the thread of a source: after it found nothing to do, before it sleeps."""

    def __init__(self, patch: pytest.MonkeyPatch, is_source: Callable[[Sleeping], bool]) -> None:
        self._is_source = is_source
        self._wait = Sleeping.wait
        self._is_planted = False
        self.reached, self._go_on = threading.Event(), threading.Event()
        planted = self

        def wait(
            sleeping: Sleeping,
            lent: socket.socket,
            timeout_s: float,
            *,
            has_more: bool,
            is_asked: bool,
        ) -> None:
            planted.pause(sleeping)
            planted._wait(sleeping, lent, timeout_s, has_more=has_more, is_asked=is_asked)

        patch.setattr(Sleeping, "wait", wait)

    def plant(self) -> None:
        self._is_planted = True

    def pause(self, sleeping: Sleeping) -> None:
        if self._is_planted and self._is_source(sleeping):
            self._is_planted = False
            self.reached.set()
            assert self._go_on.wait(WAIT_S)

    def go_on(self) -> None:
        self._go_on.set()


def sends(sleeping: Sleeping) -> bool:
    return sleeping._sleeper() is not None  # pyright: ignore[reportPrivateUsage]


def receives(sleeping: Sleeping) -> bool:
    return sleeping._sleeper() is None  # pyright: ignore[reportPrivateUsage]


def own_threads() -> list[threading.Thread]:
    """The threads that drive connections."""
    return [it for it in threading.enumerate() if it.name == "quire-replication"]


async def both_threads() -> None:
    """Return once source and sink have left their connection to threads."""
    async with asyncio.timeout(WAIT_S):
        while len(own_threads()) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)


def test_messages_pass_while_the_event_loop_is_held_up(orders: Path, tmp_path: Path) -> None:
    async def work() -> None:
        with quire.open(orders, timeout_s=WAIT_S) as queue, queue.appender() as appender:
            async with (
                Source(queue) as source,
                Sink(tmp_path / "copy", port=source.address[1]) as sink,
            ):
                await asyncio.wait_for(source.acknowledged(queue.last_index or 0), WAIT_S)
                await both_threads()
                index = appender.write_bytes(b"three", wait=1)  # blocks the loop
                assert sink.last_index == index

    asyncio.run(work())


@pytest.mark.usefixtures("no_ticks")
def test_each_message_wakes_the_source_and_the_sink(orders: Path, tmp_path: Path) -> None:
    async def work() -> None:
        with quire.open(orders) as queue, queue.appender() as appender:
            async with (
                Source(queue) as source,
                Sink(tmp_path / "copy", port=source.address[1]) as sink,
            ):
                await sink.stored(queue.last_index or 0)
                await both_threads()
                for number in range(200):
                    index = appender.write_bytes(b"%d" % number)
                    await asyncio.wait_for(source.acknowledged(index), WAIT_S)
                    assert sink.last_index == index

    asyncio.run(work())


@pytest.mark.usefixtures("no_ticks")
def test_a_message_that_comes_right_before_the_source_sleeps(
    orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = Planted(monkeypatch, sends)

    async def work() -> None:
        with quire.open(orders) as queue, queue.appender() as appender:
            async with (
                Source(queue) as source,
                Sink(tmp_path / "copy", port=source.address[1]) as sink,
            ):
                await asyncio.wait_for(source.acknowledged(queue.last_index or 0), WAIT_S)
                await both_threads()
                pause.plant()
                appender.write_bytes(b"three")  # after it the thread goes to sleep again
                assert await asyncio.to_thread(pause.reached.wait, WAIT_S)
                index = appender.write_bytes(b"four")
                pause.go_on()
                await asyncio.wait_for(sink.stored(index), WAIT_S)

    asyncio.run(work())


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("side", [sends, receives], ids=["source", "sink"])
def test_an_end_that_comes_right_before_a_side_sleeps(
    orders: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    side: Callable[[Sleeping], bool],
) -> None:
    pause = Planted(monkeypatch, side)

    async def work() -> None:
        with quire.open(orders) as queue:
            source = Source(queue)
            async with source:
                sink = Sink(tmp_path / "copy", port=source.address[1])
                await sink.__aenter__()
                await asyncio.wait_for(source.acknowledged(queue.last_index or 0), WAIT_S)
                await both_threads()
                pause.plant()
                queue.appender().write_bytes(b"three")
                assert await asyncio.to_thread(pause.reached.wait, WAIT_S)
                ending = asyncio.create_task((source if side is sends else sink).close())
                await asyncio.sleep(0.01)  # it has said so, and waits for the thread
                pause.go_on()
                await asyncio.wait_for(ending, WAIT_S)
                await sink.close()

    asyncio.run(work())
    for thread in own_threads():  # one has reported its end just before it returns
        thread.join(WAIT_S)
    assert own_threads() == []


@pytest.mark.usefixtures("no_ticks")
def test_a_sink_that_takes_more_wakes_the_source(orders: Path) -> None:
    """What a socket does not hold is sent once there is room, and not only with time."""

    async def work() -> None:
        with quire.open(orders) as queue:
            async with Source(queue) as source:
                slow = await ReferenceSink("slow").join(source.address[1])
                await slow.send(reference.start(None))
                queue.appender().write_many([b"x" * 60_000] * 200)
                found = 0
                while found < queue.entry_count:
                    _, content = await slow.expect(reference.BATCH)
                    found += sum(not it.is_metadata for it in content.documents)
                await slow.close()

    asyncio.run(asyncio.wait_for(work(), WAIT_S))


@pytest.mark.parametrize("rounds", range(6))
def test_a_source_that_is_closed_as_a_sink_goes_does_not_wait_for_it(
    orders: Path, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    """At each round of the event loop after the thread has ended."""
    monkeypatch.setattr(sending, "LAST_WORDS_S", NEVER_S)

    async def work() -> None:
        with quire.open(orders) as queue:
            async with Source(queue) as source:
                peer = await ReferenceSink("gone").join(source.address[1])
                await peer.send(reference.start(None))
                await peer.expect(reference.BATCH)
                while not (found := own_threads()):  # noqa: ASYNC110
                    await asyncio.sleep(0)
                await peer.close()
                found[0].join(WAIT_S)  # blocks the loop, which does not know yet
                for _ in range(rounds):
                    await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(work(), WAIT_S))
