"""
The protocol of replication once more, in plain Python.

Written from docs/replication.md alone and importing nothing of quire, so that the two can disagree.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeAlias

from blake3 import blake3

HOST: Final = "127.0.0.1"
GREETING, WELCOME, REFUSAL, DIGEST_REQUEST, DIGEST = 1, 2, 3, 4, 5
START, BATCH, ACKNOWLEDGEMENT, HEARTBEAT, END = 6, 7, 8, 9, 10
HANDOVER, TAKEN_OVER = 11, 12
CYCLES_REQUEST, CYCLES = 13, 14
TAILER, GROUP, GROUPS, TAILERS, FILE, COMPRESSED_BATCH = 15, 16, 17, 18, 19, 20
KINDS: Final = range(GREETING, COMPRESSED_BATCH + 1)
METADATA: Final = 0x4000_0000
HASH_BYTES: Final = 32
SEQUENCE_BITS: Final = 32  # of an index, in the roll cycles that the tests have
_FRAME, _PLACE, _BATCH_HEAD = struct.Struct("<IB"), struct.Struct("<qIB"), struct.Struct("<qIII")
_RANGE, _CYCLES = struct.Struct("<ii"), struct.Struct("<iiiI32s")
_CYCLE_HASHED: Final = struct.Struct("<iqI32s")
_GROUP_HEAD, _IN_WORK = struct.Struct("<BqqB"), struct.Struct("<qIQQQBB")
_READ: Final = struct.Struct("<qq")
_TIME, _WORD = struct.Struct("<q"), struct.Struct("<I")
_NUMBERS: Final = {HEARTBEAT: _TIME, CYCLES_REQUEST: _RANGE, CYCLES: _CYCLES}

Facts: TypeAlias = Mapping[str, Any]


class Place(NamedTuple):
    """A place between two documents."""

    next: int
    metadata: int = 0
    is_ended: int = 0


class Document(NamedTuple):
    """A message or a metadata document."""

    payload: bytes
    is_metadata: bool = False

    def encode(self) -> bytes:
        return _WORD.pack(len(self.payload) | (METADATA if self.is_metadata else 0)) + self.payload


class Batch(NamedTuple):
    """Documents of one cycle that follow one another."""

    first: int
    documents: tuple[Document, ...]
    metadata_before: int = 0
    is_ended: bool = False

    def encode(self) -> bytes:
        head = _BATCH_HEAD.pack(
            self.first, self.metadata_before, len(self.documents), int(self.is_ended)
        )
        return head + b"".join(it.encode() for it in self.documents)

    @property
    def end(self) -> Place:
        """Where a replica ends with it."""
        place = Place(self.first, self.metadata_before)
        for document in self.documents:
            place = after(place, document)
        return place._replace(is_ended=int(self.is_ended))


def after(place: Place, document: Document) -> Place:
    if document.is_metadata:
        return Place(place.next, place.metadata + 1)
    return Place(place.next + 1)


def frame(kind: int, body: bytes = b"") -> bytes:
    return _FRAME.pack(1 + len(body), kind) + body


def facts(kind: int, **content: object) -> bytes:
    return frame(kind, json.dumps(content, separators=(",", ":")).encode())


def greeting(name: object, version: object = 1, **more: object) -> bytes:
    return facts(GREETING, version=version, name=name, **more)


def old_epoch(queue: object, epoch: object) -> bytes:
    return facts(REFUSAL, code="old-epoch", reason="no", queue=queue, epoch=epoch)


def heartbeat(time_ns: int = 1) -> bytes:
    return frame(HEARTBEAT, _TIME.pack(time_ns))


def digest_request(place: Place) -> bytes:
    return frame(DIGEST_REQUEST, _PLACE.pack(*place))


def digest(place: Place, found: bytes | None) -> bytes:
    return frame(DIGEST, _PLACE.pack(*place) + (b"\0" if found is None else b"\1" + found))


def cycles_request(first: int, last: int) -> bytes:
    return frame(CYCLES_REQUEST, _RANGE.pack(first, last))


def start(place: Place | None) -> bytes:
    return frame(START, b"\0" if place is None else b"\1" + _PLACE.pack(*place))


def batch(time_ns: int, content: Batch) -> bytes:
    return frame(BATCH, _TIME.pack(time_ns) + content.encode())


def compressed_batch(time_ns: int, length: int, stored: bytes) -> bytes:
    return frame(COMPRESSED_BATCH, _TIME.pack(time_ns) + _WORD.pack(length) + stored)


def acknowledgement(time_ns: int, place: Place, *, is_synced: bool = False) -> bytes:
    return frame(ACKNOWLEDGEMENT, _TIME.pack(time_ns) + _PLACE.pack(*place) + bytes([is_synced]))


def handover(epoch: int, place: Place | None) -> bytes:
    return frame(HANDOVER, _TIME.pack(epoch) + start(place)[_FRAME.size :])


def taken_over(epoch: object, host: object = None, port: object = None) -> bytes:
    return facts(TAKEN_OVER, epoch=epoch, host=host, port=port)


class InWork(NamedTuple):
    """Neighbours that were delivered and are not acknowledged."""

    first: int
    pending: int
    key: int
    since_ms: int
    available_ms: int
    cause: int
    singly: int
    counts: list[int]

    def encode(self) -> bytes:
        return _IN_WORK.pack(*self[:-1]) + bytes(self.counts)


class GroupState(NamedTuple):
    """The state of a consumer group."""

    keyed: int
    next: int
    known: int
    tails: list[tuple[int, int]]
    ranges: list[InWork]

    def encode(self) -> bytes:
        head = _GROUP_HEAD.pack(self.keyed, self.next, self.known, len(self.tails))
        tails = b"".join(struct.pack("<qQ", *it) for it in self.tails)
        return (
            head + tails + _WORD.pack(len(self.ranges)) + b"".join(i.encode() for i in self.ranges)
        )

    @classmethod
    def decode(cls, body: bytes) -> GroupState:
        keyed, following, known, tails = _GROUP_HEAD.unpack_from(body)
        at = _GROUP_HEAD.size
        found = [struct.unpack_from("<qQ", body, at + 16 * it) for it in range(tails)]
        at += 16 * tails
        (count,) = _WORD.unpack_from(body, at)
        at, ranges = at + _WORD.size, list[InWork]()
        for _ in range(count):
            fields = _IN_WORK.unpack_from(body, at)
            at += _IN_WORK.size
            length = fields[1].bit_count()
            ranges.append(InWork._make((*fields, [*body[at : at + length]])))
            at += length
        assert at == len(body)
        return cls(keyed, following, known, [(it[0], it[1]) for it in found], ranges)


def tailer(name: str, at: tuple[int, int] | None) -> bytes:
    return frame(TAILER, (b"\0" if at is None else b"\1" + _READ.pack(*at)) + name.encode())


def group(name: str, state: bytes) -> bytes:
    return frame(GROUP, bytes([len(name)]) + name.encode() + state)


def groups(*names: str) -> bytes:
    return frame(GROUPS, json.dumps(names, separators=(",", ":")).encode())


def tailers(**versions: object) -> bytes:
    return facts(TAILERS, **versions)


def file(name: str, content: bytes) -> bytes:
    return frame(FILE, bytes([len(name)]) + name.encode() + content)


def decode_position(kind: int, body: bytes) -> tuple[Any, ...]:
    if kind in {GROUPS, TAILERS}:
        return (json.loads(body),)
    if kind == FILE:
        return body[1 : 1 + body[0]].decode(), body[1 + body[0] :]
    if kind == GROUP:
        return body[1 : 1 + body[0]].decode(), GroupState.decode(body[1 + body[0] :])
    at = _READ.unpack_from(body, 1) if body[0] else None
    return body[1 + (_READ.size if at else 0) :].decode(), at


def decode(kind: int, body: bytes) -> tuple[Any, ...]:  # noqa: PLR0911 - a kind, a line
    """Return what a body holds; what is left over is an error."""
    if kind in {GREETING, WELCOME, REFUSAL, TAKEN_OVER}:
        return (json.loads(body),)
    if kind in {TAILER, GROUP, GROUPS, TAILERS, FILE}:
        return decode_position(kind, body)
    if kind in _NUMBERS:
        return _NUMBERS[kind].unpack(body)
    if kind == HANDOVER:
        return (*_TIME.unpack(body[:8]), *decode(START, body[8:]))
    if kind == END:
        assert body == b""
        return ()
    if kind in {BATCH, COMPRESSED_BATCH}:
        rest = (
            (decode_batch(body[8:]),) if kind == BATCH else (*_WORD.unpack(body[8:12]), body[12:])
        )
        return (*_TIME.unpack(body[:8]), *rest)
    if kind == ACKNOWLEDGEMENT:
        return (*_TIME.unpack(body[:8]), Place(*_PLACE.unpack(body[8:21])), *body[21:])
    if kind == START:
        return (Place(*_PLACE.unpack(body[1:])) if body[0] else None,)
    place = Place(*_PLACE.unpack(body[: _PLACE.size]))
    if kind == DIGEST_REQUEST:
        assert len(body) == _PLACE.size
        return (place,)
    assert kind == DIGEST
    assert len(body) == _PLACE.size + 1 + (HASH_BYTES if body[_PLACE.size] else 0)
    return place, body[_PLACE.size + 1 :] or None


def decode_batch(content: bytes) -> Batch:
    first, metadata_before, count, flags = _BATCH_HEAD.unpack(content[: _BATCH_HEAD.size])
    assert flags in {0, 1}
    at, documents = _BATCH_HEAD.size, list[Document]()
    while at < len(content):
        (word,) = _WORD.unpack(content[at : at + 4])
        length = word & 0x3FFF_FFFF
        documents.append(Document(content[at + 4 : at + 4 + length], bool(word & METADATA)))
        assert len(documents[-1].payload) == length
        at += 4 + length
    assert len(documents) == count
    return Batch(first, tuple(documents), metadata_before, bool(flags))


class Peer:
    """A connection that carries frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, port: int) -> Peer:
        return cls(*await asyncio.open_connection(HOST, port))

    async def send(self, *frames: bytes) -> None:
        self._writer.write(b"".join(frames))
        await self._writer.drain()

    async def receive(self) -> tuple[int, tuple[Any, ...]]:
        """Return kind and content of the next frame that is no heartbeat."""
        while True:
            kind, body = await self.receive_raw()
            if kind != HEARTBEAT:
                return kind, decode(kind, body)

    async def receive_raw(self) -> tuple[int, bytes]:
        length, kind = _FRAME.unpack(await self._reader.readexactly(_FRAME.size))
        return kind, await self._reader.readexactly(length - 1)

    async def expect(self, kind: int) -> tuple[Any, ...]:
        found, content = await self.receive()
        assert found == kind, (found, content)
        return content

    async def rest(self) -> list[tuple[int, tuple[Any, ...]]]:
        """Return all frames until the peer closes the connection."""
        found = list[tuple[int, tuple[Any, ...]]]()
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                found.append(await self.receive())
        return found

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


@dataclass
class Cycle:
    """The documents of one cycle."""

    number: int
    documents: list[Document]
    is_ended: bool = False


@dataclass
class History:
    """A recorded list of documents."""

    cycles: list[Cycle]

    def start_of(self, cycle: Cycle) -> int:
        return cycle.number << SEQUENCE_BITS

    def places(self, cycle: Cycle) -> Iterator[Place]:
        """Yield the place before each document of a cycle, and the end of it."""
        place = Place(self.start_of(cycle))
        yield place
        for document in cycle.documents:
            place = after(place, document)
            yield place

    def digest(self, place: Place) -> bytes | None:
        for cycle in self.cycles:
            for count, found in enumerate(self.places(cycle)):
                if found[:2] == place[:2]:
                    hashed = blake3()
                    for document in cycle.documents[:count]:
                        hashed.update(document.encode())
                    return hashed.digest()
        return None

    def of_range(self, first: int, last: int) -> tuple[int, bytes]:
        """Return how many cycles of a range there are, and the hash of their digests."""
        hashed, count = sha256(), 0
        for cycle in (it for it in self.cycles if first <= it.number <= last):
            *_, end = self.places(cycle)
            found = self.digest(end)
            assert found is not None
            hashed.update(_CYCLE_HASHED.pack(cycle.number, end.next, end.metadata, found))
            count += 1
        return count, hashed.digest()

    def batches(self, place: Place | None, size: int) -> Iterator[Batch]:
        """Yield what follows a place, so many documents at a time."""
        is_after = place is None
        for cycle in self.cycles:
            places = list(self.places(cycle))
            at = 0
            if not is_after:
                found = [it[:2] for it in places]
                if place is None or place[:2] not in found:
                    continue
                at, is_after = found.index(place[:2]), True
                if place.is_ended:
                    continue
            yield from _batches(cycle, places, at, size)

    def messages(self) -> list[tuple[int, bytes]]:
        found = list[tuple[int, bytes]]()
        for cycle in self.cycles:
            data = [it.payload for it in cycle.documents if not it.is_metadata]
            found += enumerate(data, self.start_of(cycle))
        return found


def _batches(cycle: Cycle, places: Sequence[Place], at: int, size: int) -> Iterator[Batch]:
    while at < len(cycle.documents) or cycle.is_ended:
        documents = tuple(cycle.documents[at : at + size])
        is_last = at + size >= len(cycle.documents)
        first, metadata, _ = places[at]
        yield Batch(first, documents, metadata, is_last and cycle.is_ended)
        at += size
        if is_last:
            return


@dataclass
class ReferenceSource:
    """Serves a history to sinks of either kind, and keeps what they say."""

    history: History
    welcome: dict[str, Any]
    batch_documents: int = 3
    clock_ns: int = 1_700_000_000_000_000_000
    requested: list[Place] = field(default_factory=list[Place])
    started: list[Place | None] = field(default_factory=list["Place | None"])
    acknowledged: list[tuple[int, Place, int]] = field(default_factory=list[tuple[int, Place, int]])
    refusals: list[Facts] = field(default_factory=list["Facts"])
    names: list[str] = field(default_factory=list[str])
    is_ending: bool = True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._converse(peer)
        await peer.close()

    async def _converse(self, peer: Peer) -> None:
        (greeted,) = await peer.expect(GREETING)
        self.names.append(greeted["name"])
        await peer.send(facts(WELCOME, **self.welcome))
        end: Place | None = None
        while True:
            kind, content = await peer.receive()
            if kind == DIGEST_REQUEST:
                self.requested.append(content[0])
                await peer.send(digest(content[0], self.history.digest(content[0])))
            elif kind == START:
                self.started.append(content[0])
                end = await self._send_all(peer, content[0])
            elif kind == ACKNOWLEDGEMENT:
                self.acknowledged.append((content[0], content[1], content[2]))
                if content[1] == end and self.is_ending:
                    return
            else:
                assert kind == REFUSAL
                self.refusals.append(content[0])
                return

    async def _send_all(self, peer: Peer, place: Place | None) -> Place | None:
        sent = list(self.history.batches(place, self.batch_documents))
        for number, content in enumerate(sent):
            await peer.send(batch(self.clock_ns + number, content))
        if self.is_ending:
            await peer.send(frame(END))
        return sent[-1].end if sent else place


@dataclass
class ReferenceSink:
    """Keeps what a source sends, in memory."""

    name: str = "reference"
    batches: list[Batch] = field(default_factory=list[Batch])
    welcome: dict[str, Any] = field(default_factory=dict[str, Any])
    end: Place | None = None

    async def join(self, port: int) -> Peer:
        """Connect, and return the connection after the welcome."""
        peer = await Peer.connect(port)
        await peer.send(greeting(self.name))
        (self.welcome,) = await peer.expect(WELCOME)
        return peer

    async def replicate(self, port: int, until: int) -> None:
        """Take batches until there is a message of this index, and acknowledge each."""
        peer = await self.join(port)
        await peer.send(start(self.end))
        while self.end is None or self.end.next <= until:
            time_ns, content = await peer.expect(BATCH)
            self.take(content)
            await peer.send(acknowledgement(time_ns, content.end))
        await peer.close()

    def take(self, content: Batch) -> None:
        """Check that a batch follows the one before, and keep it."""
        if self.end is not None:
            is_next = (content.first, content.metadata_before) == self.end[:2]
            is_later = content.first >> SEQUENCE_BITS > self.end.next >> SEQUENCE_BITS
            assert is_later or (is_next and not self.end.is_ended)
        self.batches.append(content)
        self.end = content.end

    @property
    def history(self) -> History:
        """Everything that it has."""
        cycles = dict[int, Cycle]()
        for content in self.batches:
            number = content.first >> SEQUENCE_BITS
            cycle = cycles.setdefault(number, Cycle(number, []))
            cycle.documents += content.documents
            cycle.is_ended |= content.is_ended
        return History(list(cycles.values()))


@asynccontextmanager
async def listening(source: ReferenceSource) -> AsyncGenerator[int]:
    """Have a reference source listen; gives its port."""
    server = await asyncio.start_server(source.serve, HOST, 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
