"""Whatever a sink connects to: a `ReplicationError`, a refusal sent, and nothing changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import quire
import replication_reference as reference
from queues import DAY_MS, START_MS, snapshot
from quire.errors import OldEpochError, PeerLostError, PeerSilentError, QuireError, ReplicationError
from quire.replication import Sink
from replicas import LAYOUT, NUMBERED
from replication_reference import HOST, SEQUENCE_BITS, Batch, Document, Peer, Place, frame

CYCLE = START_MS // DAY_MS
FIRST = CYCLE << SEQUENCE_BITS
MIN, MAX = -(1 << 63), (1 << 63) - 1
WELCOME: Mapping[str, Any] = {
    "version": 1,
    "queue": "0123456789abcdef" * 2,
    "epoch": 3,
    "first": None,
    "last": None,
    "layout": LAYOUT,
}


def welcome(**changed: object) -> bytes:
    return reference.facts(reference.WELCOME, **{**WELCOME, **changed})


def laid_out(**changed: object) -> bytes:
    return welcome(layout={**LAYOUT, **changed})


def raw(content: bytes) -> bytes:
    return frame(reference.WELCOME, content)


def batch(first: int, *payloads: bytes, metadata: int = 0, ended: bool = False) -> bytes:
    documents = tuple(Document(it) for it in payloads)
    return reference.batch(1, Batch(first, documents, metadata, ended))


def malformed(content: bytes) -> bytes:
    return frame(reference.BATCH, bytes(8) + content)


def head(count: int = 1, flags: int = 0, first: int = FIRST) -> bytes:
    return (
        first.to_bytes(8, "little", signed=True)
        + bytes(4)
        + count.to_bytes(4, "little")
        + flags.to_bytes(4, "little")
    )


STATE = reference.GroupState(
    0, FIRST + 2, 0, [], [reference.InWork(FIRST, 0b11, 0, 1, 0, 3, 1, [1, 1])]
)


def group_with(**changes: Any) -> bytes:  # noqa: ANN401
    (found,) = STATE.ranges
    state = STATE._replace(ranges=[found._replace(**changes)])
    return reference.group("billing", state.encode())


NEVER_FROM_A_SOURCE = {
    "greeting": reference.greeting("a"),
    "digest request": reference.digest_request(Place(FIRST)),
    "start": reference.start(None),
    "acknowledgement": reference.acknowledgement(1, Place(FIRST)),
    "kind 0": frame(0),
    "taken over": reference.taken_over(4),
    "kind 13": frame(13),
    "kind 255": frame(255),
}
FIRST_FRAMES = {
    "http": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "ones": b"\xff" * 64,
    "zeros": bytes(64),
    "empty frame": bytes(4),
    "too long for a welcome": (4098).to_bytes(4, "little") + b"\x02",
    **NEVER_FROM_A_SOURCE,
    "batch first": batch(FIRST, b"x"),
    "end first": frame(reference.END),
    "handover first": reference.handover(4, None),
    "digest first": reference.digest(Place(FIRST), None),
    "no JSON": raw(b"hello"),
    "no text": raw(b"\xff"),
    "a list": raw(b"[]"),
    "nested lists": raw(b"[" * 4000),
    "nested layout": raw(b'{"version":1,"layout":' + b"[" * 1900 + b"]" * 1900 + b"}"),
    "version 2": welcome(version=2),
    "no version": welcome(version=None),
    "no queue": welcome(queue=None),
    "queue a path": welcome(queue="../../../../../../etc/passwd"),
    "queue in capitals": welcome(queue="ABCDEF0123456789" * 2),
    "queue a list": welcome(queue=[]),
    "epoch 0": welcome(epoch=0),
    "epoch negative": welcome(epoch=-1),
    "epoch too large": welcome(epoch=1 << 63),
    "epoch as text": welcome(epoch="3"),
    "epoch true": welcome(epoch=True),
    "epoch a fraction": welcome(epoch=1.5),
    "no layout": welcome(layout=None),
    "layout a list": welcome(layout=[]),
    "layout text": welcome(layout="FAST_DAILY"),
    "layout empty": welcome(layout={}),
    **{f"layout without {key}": laid_out(**{key: None}) for key in LAYOUT},
    **{f"{key} a list": laid_out(**{key: [1]}) for key in LAYOUT},
    **{
        f"{key} {value}": laid_out(**{key: value})
        for key in ("length_ms", "source_id", "block_bytes", "index_count")
        for value in (-1, 1 << 62, 1 << 70)
    },
    "epoch_ms too large": laid_out(epoch_ms=1 << 70),
    "length 0": laid_out(roll_cycle="", length_ms=0),
    "pattern that leaves": laid_out(roll_cycle="", pattern="'../../evil'yyyyMMdd"),
    "pattern absolute": laid_out(roll_cycle="", pattern="'/tmp/evil'yyyyMMdd"),
    "pattern empty": laid_out(roll_cycle="", pattern=""),
    "pattern long": laid_out(roll_cycle="", pattern="'" + "x" * 1000 + "'yyyyMMdd"),
    "pattern null": laid_out(roll_cycle="", pattern="'\0'yyyyMMdd"),
    "zone a path": laid_out(time_zone="../../../../etc/passwd"),
    "zone unknown": laid_out(time_zone="Nowhere/Else"),
    "zone empty": laid_out(time_zone=""),
    "wire type unknown": laid_out(wire_type="TELEX"),
    "another wire type than patterns": laid_out(sequences=1 << 40),
}
LATER_FRAMES = {
    **NEVER_FROM_A_SOURCE,
    "welcome again": welcome(),
    "handover without what it has": reference.handover(4, None),
    "handover of more": reference.handover(4, Place(FIRST + 99)),
    "handover of an epoch that is not the next": reference.handover(9, Place(FIRST + 3)),
    "handover of this epoch": reference.handover(3, Place(FIRST + 3)),
    "handover cut off": frame(reference.HANDOVER, bytes(8)),
    "handover with more": frame(reference.HANDOVER, bytes(10)),
    "digest unasked": reference.digest(Place(FIRST), bytes(32)),
    "tailer empty": frame(reference.TAILER),
    "tailer of a strange flag": frame(reference.TAILER, b"\2x"),
    "tailer cut off": frame(reference.TAILER, b"\1" + bytes(15)),
    "tailer of no text": frame(reference.TAILER, b"\0\xff"),
    "tailer that does not replicate": reference.tailer("risk", (FIRST, 1)),
    "tailer that did not replicate deleted": reference.tailer("risk", None),
    "tailer of a negative index": reference.tailer("replicated:risk", (-1, 1)),
    "tailer of no name that can be shown": reference.tailer("replicated:\0", (FIRST, 1)),
    "too long for a tailer": (4098).to_bytes(4, "little") + b"\x0f",
    "group empty": frame(reference.GROUP),
    "group without a state": reference.group("billing", b""),
    "group of a path": reference.group("../billing", STATE.encode()),
    "group of no text": frame(reference.GROUP, b"\1\xff" + STATE.encode()),
    "group of a hidden file": reference.group(".billing", STATE.encode()),
    "group with more": reference.group("billing", STATE.encode() + b"x"),
    "group cut off": reference.group("billing", STATE.encode()[:-1]),
    "group of a strange flag": reference.group("billing", STATE._replace(keyed=2).encode()),
    "group of a negative index": reference.group("billing", STATE._replace(next=-1).encode()),
    "group beyond its next index": reference.group("billing", STATE._replace(next=FIRST).encode()),
    "group of many tails": reference.group(
        "billing", STATE._replace(tails=[(FIRST, 1)] * 113).encode()
    ),
    "group of a range twice": reference.group(
        "billing", STATE._replace(ranges=STATE.ranges * 2).encode()
    ),
    "group of an empty range": group_with(pending=0, counts=[]),
    "group of a strange cause": group_with(cause=6),
    "too long for a group": ((1 << 20) + 2).to_bytes(4, "little") + b"\x10",
    "groups no list": frame(reference.GROUPS, b"{}"),
    "groups of numbers": frame(reference.GROUPS, b"[1]"),
    "groups nested": frame(reference.GROUPS, b"[" * 100_000),
    "tailers no object": frame(reference.TAILERS, b"[]"),
    "tailers of versions that are no numbers": frame(reference.TAILERS, b'{"replicated:a":null}'),
    "tailers nested": frame(reference.TAILERS, b'{"":' * 100_000),
    "too long for tailers": ((1 << 20) + 2).to_bytes(4, "little") + b"\x12",
    "file empty": frame(reference.FILE),
    "file of a path": reference.file("../keys.quire", b"{}"),
    "file of no text": frame(reference.FILE, b"\1\xff"),
    "file of the table": reference.file("metadata.cq4t", bytes(64)),
    "file of a strange number": reference.file("0123ABC.dictionary.quire", b"x"),
    "file of damaged keys": reference.file("keys.quire", b'{"version": 1}'),
    "too long for a file": ((1 << 20) + 1282).to_bytes(4, "little") + b"\x13",
    "too long for a batch": b"\xff\xff\xff\xff\x07",
    "batch empty": frame(reference.BATCH),
    "batch of a clock": malformed(b""),
    "batch cut off in its head": malformed(head()[:-1]),
    "fewer documents than said": malformed(head(2) + b"\x01\0\0\0x"),
    "more documents than said": malformed(head(0) + b"\x01\0\0\0x"),
    "as many as can be said": malformed(head(0xFFFF_FFFF)),
    "unknown flags": malformed(head(1, 2) + b"\x01\0\0\0x"),
    "word cut off": malformed(head() + b"\x01\0\0"),
    "payload cut off": malformed(head() + b"\x02\0\0\0x"),
    "greatest length": malformed(head() + b"\xff\xff\xff\x3fx"),
    "document under way": malformed(head() + b"\x01\0\0\x80x"),
    "end of data": malformed(head() + b"\0\0\0\xc0"),
    "empty document": malformed(head() + b"\0\0\0\0"),
    "gap": batch(FIRST + 7, b"x"),
    "gap of metadata": batch(FIRST + 3, b"x", metadata=7),
    "gap at the start of a cycle": batch(FIRST + (1 << SEQUENCE_BITS) + 1, b"x"),
    "earlier cycle": batch(FIRST - (1 << SEQUENCE_BITS), b"x"),
    "negative index": batch(-1, b"x"),
    "least index": batch(MIN, b"x"),
    "greatest index": batch(MAX, b"x", b"y"),
    "sequence too large": batch(FIRST + NUMBERED, b"x"),
    "greatest sequence": batch(FIRST + 0xFFFF_FFFF, b"x", b"y"),
    "greatest metadata": batch(FIRST + 3, b"x", metadata=0xFFFF_FFFF),
    "digest of one byte": frame(reference.DIGEST, bytes(13) + b"\1x"),
    "heartbeat empty": frame(reference.HEARTBEAT),
    "end with more": frame(reference.END, b"x"),
    "refusal": reference.facts(reference.REFUSAL, code="protocol", reason="\n\x1b[2J"),
    "refusal of a strange code": reference.facts(reference.REFUSAL, code=["x"], reason=5),
    "refusal without a code": reference.facts(reference.REFUSAL),
}


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Script:
    """Says frames after the greeting, and more once the sink has started."""

    def __init__(self, *frames: bytes, after_start: bytes = b"") -> None:
        self._frames, self._after_start = frames, after_start
        self.heard = list[tuple[int, tuple[Any, ...]]]()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        with suppress(asyncio.CancelledError):  # the server is closed
            await self._talk(peer)
            await peer.close()

    async def _talk(self, peer: Peer) -> None:
        await peer.expect(reference.GREETING)
        await peer.send(*self._frames)
        if self._after_start:
            while (await peer.receive())[0] != reference.START:
                pass
            await peer.send(self._after_start)
        self.heard = await peer.rest()


async def end_of_sink(copy: Path, script: Talk) -> BaseException:
    server = await asyncio.start_server(script, HOST, 0)
    async with server:
        port: int = server.sockets[0].getsockname()[1]
        with pytest.raises(QuireError) as caught:
            async with Sink(copy, port=port, attempts=1) as sink:
                await sink.run_forever()
    return caught.value


def failed(copy: Path, script: Talk) -> BaseException:
    error = asyncio.run(end_of_sink(copy, script))
    assert isinstance(error, ReplicationError), repr(error)
    assert not isinstance(error, PeerLostError | PeerSilentError), repr(error)
    assert str(error).isprintable()
    assert len(str(error)) < 2000
    return error


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy with three messages, the last cycle open."""
    path = tmp_path / "copy"
    content = batch(FIRST, b"one", b"two", b"three")
    asyncio.run(keep(path, content, FIRST + 2))
    return path


async def keep(path: Path, content: bytes, last: int) -> None:
    server = await asyncio.start_server(Script(welcome(), after_start=content), HOST, 0)
    async with server:
        port: int = server.sockets[0].getsockname()[1]
        async with Sink(path, port=port) as sink:
            await sink.stored(last)


def matching() -> bytes:
    """The answer to a sink with the three messages that asks for their digest."""
    documents = tuple(Document(it) for it in (b"one", b"two", b"three"))
    history = reference.History([reference.Cycle(CYCLE, list(documents))])
    place = Place(FIRST + 3)
    return reference.digest(place, history.digest(place))


@pytest.mark.parametrize("content", FIRST_FRAMES.values(), ids=FIRST_FRAMES)
def test_a_first_frame_that_is_no_welcome(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "none"
    script = Script(content)
    failed(path, script)
    assert not path.exists() or not list(path.glob("*.cq4"))
    assert [it.name for it in tmp_path.iterdir()] in ([], ["none"])


@pytest.mark.parametrize("content", LATER_FRAMES.values(), ids=LATER_FRAMES)
def test_a_frame_out_of_turn(content: bytes, copy: Path) -> None:
    before = snapshot(copy)
    del before[copy.name]
    script = Script(welcome(), matching(), after_start=content)
    failed(copy, script)
    after = snapshot(copy)
    del after[copy.name]
    changed = {name for name in after | before if after.get(name) != before.get(name)}
    # The word of the lock, and that a source had the same messages when it was connected.
    assert changed <= {"metadata.cq4t", "replicas.quire"}, changed
    with quire.open(copy, read_only=True) as queue, queue.tailer() as tailer:
        assert list(tailer.payloads()) == [b"one", b"two", b"three"]


CHANGED_WELCOMES = {
    "another queue": welcome(queue="f" * 32),
    "another roll cycle": laid_out(roll_cycle="FAST_DAILY", pattern="yyyyMMdd'F'"),
    "another epoch of days": laid_out(epoch_ms=DAY_MS),
    "another wire type": laid_out(wire_type="TEXT"),
    "no layout": welcome(layout=None),
    "layout a list": welcome(layout=[]),
}


@pytest.mark.parametrize("content", CHANGED_WELCOMES.values(), ids=CHANGED_WELCOMES)
def test_a_source_of_another_queue(content: bytes, copy: Path) -> None:
    before = snapshot(copy)
    failed(copy, Script(content))
    after = snapshot(copy)
    del before["metadata.cq4t"], after["metadata.cq4t"]
    assert after == before


def test_a_source_of_an_older_epoch(copy: Path) -> None:
    before = snapshot(copy)
    script = Script(welcome(epoch=2))
    assert isinstance(failed(copy, script), OldEpochError)
    assert snapshot(copy) == before
    ((kind, (told,)),) = script.heard
    assert (kind, told["code"]) == (reference.REFUSAL, "old-epoch")


def test_a_source_that_denies_every_digest(copy: Path) -> None:
    before = snapshot(copy)

    async def deny(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        await peer.expect(reference.GREETING)
        await peer.send(welcome())
        for _ in range(100):
            kind, content = await peer.receive()
            if kind != reference.DIGEST_REQUEST:
                break
            await peer.send(reference.digest(content[0], None))
        await peer.close()

    error = failed(copy, deny)
    assert f"first_different_index={FIRST:#x}" in str(error)
    after = snapshot(copy)
    del before["metadata.cq4t"], after["metadata.cq4t"]
    assert after == before


@pytest.mark.check
def test_a_conversation_cut_at_each_byte(tmp_path: Path) -> None:
    path = tmp_path / "copy"
    content = batch(FIRST, b"one", b"two") + batch(FIRST + 2, b"three", ended=True)
    whole = welcome() + content + batch(FIRST + (1 << SEQUENCE_BITS), b"four")
    lengths = iter(range(len(whole) + 1))

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        await peer.expect(reference.GREETING)
        length = next(lengths, None)
        if length is None:
            return
        await peer.send(whole[: min(length, len(welcome()))])
        if length > len(welcome()):
            kind, found = await peer.receive()
            if kind == reference.DIGEST_REQUEST:
                await peer.send(reference.digest(found[0], history_digest(found[0])))
                await peer.expect(reference.START)
            await peer.send(whole[len(welcome()) : length])
        await peer.close()

    async def work() -> None:
        server = await asyncio.start_server(cut, HOST, 0)
        async with server:
            port: int = server.sockets[0].getsockname()[1]
            async with Sink(path, port=port, reconnect_s=0.001) as sink:
                await sink.stored(FIRST + (1 << SEQUENCE_BITS))

    asyncio.run(work())
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        assert list(tailer.payloads()) == [b"one", b"two", b"three", b"four"]


def history_digest(place: Place) -> bytes | None:
    documents = [Document(it) for it in (b"one", b"two", b"three")]
    cycles = [
        reference.Cycle(CYCLE, documents, is_ended=True),
        reference.Cycle(CYCLE + 1, [Document(b"four")]),
    ]
    return reference.History(cycles).digest(place)
