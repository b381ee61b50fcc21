"""Batches that are compressed on their way: by the reference too, and with peers of each kind."""

from __future__ import annotations

import asyncio
import io
import os
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import quire
import replication_reference as reference
from queues import DAY_MS, START_MS, payloads
from quire.errors import ReplicationError
from quire.replication import Sink, Source
from replicas import LAYOUT
from replication_reference import (
    BATCH,
    COMPRESSED_BATCH,
    Batch,
    Document,
    Peer,
    compressed_batch,
    decode_batch,
)

MESSAGE: Final = b"a message that says the same as others do: %06d"
FIRST: Final = (START_MS // DAY_MS) << reference.SEQUENCE_BITS
WELCOME: Final = {
    "version": 1,
    "features": ["zstd"],
    "queue": "0123456789abcdef" * 2,
    "epoch": 3,
    "first": None,
    "last": None,
    "layout": LAYOUT,
}


def record(path: Path, count: int = 500, *more: bytes) -> list[bytes]:
    messages = [*(MESSAGE % it for it in range(count)), *more]
    clock = quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="TEST4_DAILY", clock=clock) as queue:
        queue.appender().write_many(messages)
    return messages


async def received(port: int, features: list[str], last: int) -> list[tuple[int, bytes]]:
    """Return the kinds and bodies of what a sink with these features is sent, up to an index."""
    peer, found, next_index = await Peer.connect(port), list[tuple[int, bytes]](), 0
    await peer.send(reference.greeting("b", features=features), reference.start(None))
    stored_so_far, plain_so_far = b"", 0
    while next_index <= last:
        kind, body = await peer.receive_raw()
        if kind not in {BATCH, COMPRESSED_BATCH}:
            continue
        time_ns, *rest = reference.decode(kind, body)
        if kind == COMPRESSED_BATCH:
            length, stored = rest
            stored_so_far, start = stored_so_far + stored, plain_so_far
            plain_so_far += length
            plain = decompressed(stored_so_far, plain_so_far)[start:]
            assert len(plain) == length
            content = decode_batch(plain)
        else:
            (content,) = rest
        found.append((kind, body))
        next_index = content.end.next
        await peer.send(reference.acknowledgement(time_ns, content.end))
    await peer.close()
    return found


def sent(path: Path, features: list[str], *, compress: bool) -> list[tuple[int, bytes]]:
    async def work() -> list[tuple[int, bytes]]:
        with quire.open(path) as queue:
            async with Source(queue, compress=compress) as source:
                return await received(source.address[1], features, queue.last_index or 0)

    return asyncio.run(work())


def test_an_independent_sink_reads_a_compressed_stream(tmp_path: Path) -> None:
    messages = record(tmp_path / "queue")
    found = sent(tmp_path / "queue", ["zstd"], compress=True)
    assert {kind for kind, _ in found} == {COMPRESSED_BATCH}
    assert sum(len(body) for _, body in found) * 5 < sum(map(len, messages))


@pytest.mark.parametrize(("features", "compress"), [([], True), (["zstd"], False)])
def test_batches_are_as_they_are_unless_both_sides_want_it(
    tmp_path: Path, features: list[str], *, compress: bool
) -> None:
    record(tmp_path / "queue")
    assert {kind for kind, _ in sent(tmp_path / "queue", features, compress=compress)} == {BATCH}


def test_a_long_message_goes_as_it_is_between_compressed_ones(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    record(path, 10, os.urandom(5 << 20), b"after it")
    kinds = [kind for kind, _ in sent(path, ["zstd"], compress=True)]
    assert {*kinds} == {BATCH, COMPRESSED_BATCH}


@pytest.mark.parametrize("options", [{}, {"key": bytes(32)}, {"compression": "zstd"}])
def test_a_sink_has_the_same_messages(tmp_path: Path, options: dict[str, Any]) -> None:
    open_any: Any = quire.open
    path, copy = tmp_path / "queue", tmp_path / "copy"
    messages = [MESSAGE % it for it in range(500)] + [os.urandom(1 << 20)]

    async def work() -> None:
        with open_any(path, **options) as queue:
            queue.appender().write_many(messages)
            async with (
                Source(queue, compress=True) as source,
                Sink(copy, port=source.address[1]),
            ):
                await source.acknowledged(queue.last_index)
                last = queue.appender().write_bytes(b"while it is connected")
                await source.acknowledged(last)

    asyncio.run(work())
    key = options.get("key")
    with open_any(copy, read_only=True, key=key) as queue:
        assert payloads(queue) == [*messages, b"while it is connected"]


def stream_of(*batches: bytes) -> list[bytes]:
    """Return the parts of a stream, as another implementation makes them."""
    made, parts = io.BytesIO(), list[bytes]()
    stream = pa.CompressedOutputStream(pa.PythonFile(made, "w"), "zstd")
    for it in batches:
        start = made.tell()
        stream.write(it)
        stream.flush()
        parts.append(made.getvalue()[start:])
    return parts


def decompressed(stored: bytes, length: int) -> bytes:
    """Return the start of a stream, as another implementation reads it."""
    with pa.CompressedInputStream(pa.BufferReader(stored), "zstd") as stream:
        return stream.read(length)


def served(path: Path, *frames: bytes, last: int = FIRST) -> None:
    """Have a sink follow a source that sends these frames, until it has a message."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        await peer.expect(reference.GREETING)
        await peer.send(reference.facts(reference.WELCOME, **WELCOME))
        await peer.expect(reference.START)
        await peer.send(*frames)
        await peer.rest()
        await peer.close()

    async def work() -> None:
        server = await asyncio.start_server(serve, reference.HOST)
        port = server.sockets[0].getsockname()[1]
        async with server, Sink(path, port=port, attempts=1) as sink:
            await sink.stored(last)

    asyncio.run(work())


def batches_of(*payloads: bytes) -> list[bytes]:
    return [Batch(FIRST + at, (Document(it),)).encode() for at, it in enumerate(payloads)]


def test_a_sink_reads_the_stream_of_an_independent_source(tmp_path: Path) -> None:
    path, messages = tmp_path / "copy", [b"one", b"one", b"x" * 100_000]
    batches = batches_of(*messages)
    stored = stream_of(*batches)
    served(
        path,
        *(compressed_batch(1, len(it), part) for it, part in zip(batches, stored, strict=True)),
        last=FIRST + 2,
    )
    with quire.open(path, read_only=True) as queue:
        assert payloads(queue) == messages


BOMB: Final = stream_of(bytes(64 << 20))[0]
ONE: Final = stream_of(batches_of(b"one")[0])[0]
LENGTH: Final = len(batches_of(b"one")[0])


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (compressed_batch(1, LENGTH, BOMB), "not a part of a compressed stream"),
        (compressed_batch(1, 4 << 20, BOMB), "not a part of a compressed stream"),
        (compressed_batch(1, 64 << 20, BOMB), "a compressed batch is too long"),
        (compressed_batch(1, LENGTH + 1, ONE), "not a part of a compressed stream"),
        (compressed_batch(1, LENGTH - 1, ONE), "not a part of a compressed stream"),
        (compressed_batch(1, LENGTH, ONE[1:]), "not a part of a compressed stream"),
        (compressed_batch(1, LENGTH, b""), "not a part of a compressed stream"),
        (reference.frame(COMPRESSED_BATCH, b"short"), "cannot be read"),
        ((5 << 20).to_bytes(4, "little") + bytes([COMPRESSED_BATCH]), "invalid length"),
    ],
)
def test_what_is_no_part_of_a_stream_ends_the_connection(
    tmp_path: Path, frame: bytes, why: str
) -> None:
    with pytest.raises(ReplicationError, match=why):
        served(tmp_path / "copy", frame)
