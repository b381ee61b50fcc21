"""Whatever connects to a source: one line in the log, the connection closed, and nobody hurt."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import quire
import replication_reference as reference
from event_loops import until
from queues import Snapshot
from queues import snapshot as snapshot_of_all
from quire.replication import Source
from replication_reference import Peer, Place, ReferenceSink, frame

FIRST = 0x4D1900000000
MIN, MAX = -(1 << 63), (1 << 63) - 1
GREETING = reference.greeting("hostile")
BATCH = reference.batch(1, reference.Batch(FIRST, (reference.Document(b"x"),)))
SOMEWHERE = Place(FIRST)
DIGEST_REQUEST = reference.digest_request(SOMEWHERE)
ACKNOWLEDGEMENT = reference.acknowledgement(1, SOMEWHERE)
EVERYTHING = reference.start(None)
NEVER_FROM_A_SINK = {
    "welcome": reference.facts(reference.WELCOME, version=1),
    "digest": reference.digest(SOMEWHERE, bytes(32)),
    "batch": BATCH,
    "end": frame(reference.END),
    "kind 0": frame(0),
    "kind 11": frame(11),
    "kind 255": frame(255, b"x"),
}


def named(name: object) -> bytes:
    return reference.facts(reference.GREETING, version=1, name=name)


def raw(content: bytes) -> bytes:
    return frame(reference.GREETING, content)


FIRST_FRAMES = {
    "http": b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "ones": b"\xff" * 64,
    "zeros": bytes(64),
    "empty frame": bytes(4),
    "longest length": b"\xff\xff\xff\xff\x01",
    "a length too long for a greeting": (4098).to_bytes(4, "little") + b"\x01",
    "digest request first": DIGEST_REQUEST,
    "start first": EVERYTHING,
    "refusal first": reference.facts(reference.REFUSAL, code="old-epoch", reason="no"),
    "acknowledgement first": ACKNOWLEDGEMENT,
    **{f"{name} first": content for name, content in NEVER_FROM_A_SINK.items()},
    "no name": reference.facts(reference.GREETING, version=1),
    "empty name": named(""),
    "line feed in the name": named("a\nb"),
    "escape in the name": named("\x1b[2J"),
    "null in the name": named("a\0b"),
    "surrogate in the name": named("\ud800"),
    "long name": named("x" * 201),
    "name of 4 KiB": named("x" * 4000),
    "name a number": named(5),
    "name a list": named(["a"]),
    "version 0": reference.greeting("a", 0),
    "version 2": reference.greeting("a", 2),
    "version as text": reference.greeting("a", "1"),
    "version null": reference.greeting("a", None),
    "version huge": raw(b'{"name":"a","version":' + b"9" * 4000 + b"}"),
    "no JSON": raw(b"hello"),
    "no text": raw(b"\xff\xfe"),
    "nothing": raw(b""),
    "a list": raw(b"[]"),
    "a number": raw(b"1"),
    "nested lists": raw(b"[" * 4000),
    "nested lists that close": raw(b"[" * 2000 + b"]" * 2000),
    "nested objects": raw(b'{"a":' * 800),
    "nested name": raw(b'{"version":1,"name":' + b"[" * 1900 + b"]" * 1900 + b"}"),
}
LATER_FRAMES = {
    "greeting again": GREETING,
    **NEVER_FROM_A_SINK,
    "acknowledgement before start": ACKNOWLEDGEMENT,
    "negative place": reference.start(Place(-1)),
    "least place": reference.start(Place(MIN)),
    "greatest place": reference.start(Place(MAX, 0xFFFF_FFFF, 1)),
    "no such message": reference.start(Place(FIRST + 100)),
    "no such metadata": reference.start(Place(FIRST + 1, 4)),
    "no such cycle": reference.start(Place(FIRST + (1 << 40))),
    "start flag 2": frame(reference.START, b"\x02"),
    "start cut off": frame(reference.START, b"\x01" + bytes(12)),
    "start with more": frame(reference.START, b"\x00\x00"),
    "start empty": frame(reference.START),
    "digest request cut off": frame(reference.DIGEST_REQUEST, bytes(12)),
    "digest request with more": frame(reference.DIGEST_REQUEST, bytes(14)),
    "heartbeat cut off": frame(reference.HEARTBEAT, bytes(7)),
    "start again": EVERYTHING + EVERYTHING,
    "digest request after start": EVERYTHING + DIGEST_REQUEST,
    "acknowledgement of nothing sent": EVERYTHING + reference.acknowledgement(1, Place(FIRST + 99)),
    "acknowledgement cut off": EVERYTHING + frame(reference.ACKNOWLEDGEMENT, bytes(21)),
    "refusal": reference.facts(reference.REFUSAL, code="protocol", reason="\n\x1b[2J"),
    "refusal of a strange code": reference.facts(reference.REFUSAL, code=["x"], reason=5),
    "taken over unasked": reference.taken_over(2),
    "taken over by nobody": EVERYTHING + reference.taken_over(2),
    "taken over without an epoch": reference.taken_over(None),
    "taken over at a strange host": reference.taken_over(2, 5, 7001),
    "taken over at a strange port": reference.taken_over(2, "a", "7001"),
    "refusal without a code": reference.facts(reference.REFUSAL),
}


# Where readers sleep, and the table, which keeps what the other sinks acknowledge.
CHANGING = {"waiting.quire", "metadata.cq4t", "replicas.quire"}


def snapshot(path: Path) -> Snapshot:
    """Return the state of a directory, without the file where those who wait are counted."""
    return {name: it for name, it in snapshot_of_all(path).items() if name not in CHANGING}


class Bystander:
    """A sink that is served while others misbehave."""

    def __init__(self, peer: Peer, sink: ReferenceSink) -> None:
        self._peer, self._sink = peer, sink

    async def gets(self, queue: quire.JournalQueue) -> None:
        index = queue.appender().write_bytes(b"for the bystander")
        while self._sink.end is None or self._sink.end.next <= index:
            time_ns, content = await self._peer.expect(reference.BATCH)
            self._sink.take(content)
            await self._peer.send(reference.acknowledgement(time_ns, content.end))


@asynccontextmanager
async def serving(queue: quire.JournalQueue) -> AsyncGenerator[tuple[Source, Bystander]]:
    async with Source(queue) as source:
        sink = ReferenceSink("bystander")
        peer = await sink.join(source.address[1])
        await peer.send(reference.start(None))
        bystander = Bystander(peer, sink)
        await bystander.gets(queue)
        yield source, bystander
        await peer.close()


Talk = Callable[[int], Awaitable[None]]


def refused(queue: quire.JournalQueue, caplog: pytest.LogCaptureFixture, talk: Talk) -> str:
    """Return the one line of the log that says why a sink was disconnected."""

    async def work() -> None:
        async with serving(queue) as (source, bystander):
            before = snapshot(Path(queue.path))
            await talk(source.address[1])
            await until(lambda: len(source.sinks) == 1)
            await until(lambda: bool(warnings(caplog)))
            assert snapshot(Path(queue.path)) == before
            await bystander.gets(queue)

    asyncio.run(work())
    (line,) = warnings(caplog)
    assert line.isprintable()
    return line


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [it for it in caplog.records if it.levelno >= logging.WARNING]
    assert all(it.name == "quire" for it in found), found
    return [it.getMessage() for it in found]


@pytest.fixture
def filled(queue: quire.JournalQueue) -> quire.JournalQueue:
    queue.appender().write_many([b"one", b"two"])
    return queue


@pytest.mark.parametrize("content", FIRST_FRAMES.values(), ids=FIRST_FRAMES)
def test_a_first_frame_that_is_no_greeting(
    content: bytes, filled: quire.JournalQueue, caplog: pytest.LogCaptureFixture
) -> None:
    async def talk(port: int) -> None:
        peer = await Peer.connect(port)
        await peer.send(content)
        assert [kind for kind, _ in await peer.rest()] in ([reference.REFUSAL], [])
        await peer.close()

    refused(filled, caplog, talk)


@pytest.mark.parametrize("content", LATER_FRAMES.values(), ids=LATER_FRAMES)
def test_a_frame_out_of_turn(
    content: bytes, filled: quire.JournalQueue, caplog: pytest.LogCaptureFixture
) -> None:
    async def talk(port: int) -> None:
        peer = await ReferenceSink("hostile").join(port)
        await peer.send(content)
        await peer.rest()
        await peer.close()

    refused(filled, caplog, talk)


@pytest.mark.parametrize("place", [Place(-1), Place(MIN), Place(MAX), Place(FIRST, 0xFFFF_FFFF)])
def test_a_digest_of_no_place_is_none(place: Place, filled: quire.JournalQueue) -> None:
    async def work() -> None:
        async with serving(filled) as (source, bystander):
            peer = await ReferenceSink("hostile").join(source.address[1])
            await peer.send(reference.digest_request(place))
            assert await peer.expect(reference.DIGEST) == (place, None)
            await peer.close()
            await bystander.gets(filled)

    asyncio.run(work())


def test_acknowledgements_go_forward(
    filled: quire.JournalQueue, caplog: pytest.LogCaptureFixture
) -> None:
    async def talk(port: int) -> None:
        peer = await ReferenceSink("hostile").join(port)
        await peer.send(reference.start(None))
        time_ns, content = await peer.expect(reference.BATCH)
        await peer.send(reference.acknowledgement(time_ns, content.end))
        await peer.send(reference.acknowledgement(time_ns, content.end))
        await peer.rest()
        await peer.close()

    assert "was not sent" in refused(filled, caplog, talk)


@pytest.mark.check
def test_a_conversation_cut_at_each_byte(
    filled: quire.JournalQueue, caplog: pytest.LogCaptureFixture
) -> None:
    first = filled.first_index or 0
    whole = b"".join(
        [
            GREETING,
            reference.digest_request(Place(first + 1)),
            reference.start(Place(first + 1)),
            reference.heartbeat(),
            reference.facts(reference.REFUSAL, code="protocol", reason="enough"),
        ]
    )

    async def cut(port: int, length: int) -> None:
        peer = await Peer.connect(port)
        await peer.send(whole[:length])
        await peer.close()

    async def work() -> None:
        async with serving(filled) as (source, bystander):
            before = snapshot(Path(filled.path))
            for length in range(len(whole)):
                await cut(source.address[1], length)
            await until(lambda: len(source.sinks) == 1)
            assert snapshot(Path(filled.path)) == before
            await bystander.gets(filled)

    asyncio.run(work())
    assert warnings(caplog) == []


def test_one_byte_at_a_time(filled: quire.JournalQueue) -> None:
    async def work() -> None:
        async with serving(filled) as (source, _):
            peer = await Peer.connect(source.address[1])
            for byte in GREETING + EVERYTHING:
                await peer.send(bytes([byte]))
                await asyncio.sleep(0)
            await peer.expect(reference.WELCOME)
            await peer.expect(reference.BATCH)
            await peer.close()

    asyncio.run(work())


@pytest.mark.check
def test_a_sink_that_never_acknowledges_gets_no_more_than_the_window(
    filled: quire.JournalQueue,
) -> None:
    window, message = 16 << 20, b"x" * 60_000
    filled.appender().write_many([message] * 400)

    async def work() -> int:
        async with serving(filled) as (source, bystander):
            sink = ReferenceSink("silent")
            peer = await sink.join(source.address[1])
            await peer.send(reference.start(None))
            size = 0
            while size < window:
                _, content = await peer.expect(reference.BATCH)
                size += len(content.encode())
            await bystander.gets(filled)
            kind, _ = await peer.receive_raw()  # what comes next is no batch
            assert kind == reference.HEARTBEAT
            await peer.close()
            return size

    assert window <= asyncio.run(work()) < window + (1 << 20)


@pytest.mark.check
def test_silent_sinks_are_disconnected(
    filled: quire.JournalQueue, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        async with Source(filled) as source:
            port = source.address[1]
            silent = await Peer.connect(port)
            slow = await Peer.connect(port)
            greeted = await ReferenceSink("greeted").join(port)
            started = await ReferenceSink("started").join(port)
            await started.send(EVERYTHING)

            async def drip() -> None:
                for number in range(100):
                    await slow.send(b"\xff" if number == 0 else b"\0" if number < 4 else b"\x01")
                    await asyncio.sleep(0.5)

            dripping = asyncio.ensure_future(drip())
            await asyncio.gather(*(it.rest() for it in (silent, slow, greeted, started)))
            dripping.cancel()
            await asyncio.wait({dripping})
            for peer in (silent, slow, greeted, started):
                await peer.close()
            assert source.sinks == []

    asyncio.run(work())
    assert ["nothing for too long" in it for it in warnings(caplog)] == [True] * 4


@pytest.mark.check
def test_silent_peers_keep_no_sink_out(
    filled: quire.JournalQueue, caplog: pytest.LogCaptureFixture
) -> None:
    """The oldest of too many makes room: for each of them, and for sinks."""
    many, last = 100, filled.last_index or 0

    async def work() -> None:
        async with Source(filled, max_sinks=2) as source:
            port = source.address[1]
            first = ReferenceSink("first")
            held = await first.join(port)
            silent = [await Peer.connect(port) for _ in range(many)]
            closed = silent[: many - 32]
            assert [await it.rest() for it in closed] == [[]] * len(closed)
            await ReferenceSink("late").replicate(port, last)
            await until(lambda: [it.name for it in source.sinks] == ["first"])
            await held.send(EVERYTHING)  # which greeted, and has its place
            await held.expect(reference.BATCH)
            for peer in (held, *silent):
                await peer.close()

    asyncio.run(work())
    [line] = warnings(caplog)
    assert "limit=32" in line


def test_sinks_that_greet_after_too_many_others(
    filled: quire.JournalQueue, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        async with Source(filled, max_sinks=1) as source:
            silent, late = [await Peer.connect(source.address[1]) for _ in range(2)]
            one = await ReferenceSink("a").join(source.address[1])
            await late.send(GREETING)
            await late.rest()
            for peer in (silent, late, one):
                await peer.close()

    asyncio.run(work())
    assert [it for it in warnings(caplog) if "max_sinks=1" in it]


def test_more_sinks_than_a_source_serves(
    filled: quire.JournalQueue, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        async with Source(filled, max_sinks=2) as source:
            one, two = [await ReferenceSink(it).join(source.address[1]) for it in "ab"]
            third = await Peer.connect(source.address[1])
            assert await third.rest() == []
            await third.close()
            await one.close()
            await until(lambda: len(source.sinks) == 1)
            fourth = await ReferenceSink("d").join(source.address[1])
            await fourth.close()
            await two.close()

    asyncio.run(work())
    (line,) = warnings(caplog)
    assert "max_sinks=2" in line
