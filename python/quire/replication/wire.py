"""
The frames of a replication: the meaning of each byte between a source and a sink.

A frame is the length of the rest (uint32), a kind (one byte) and a body; all integers are
little-endian. ``docs/replication.md`` has the bodies and test vectors. Nothing here knows
connections, clocks or queues.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple, cast

from quire.errors import ReplicationError
from quire.sealed.needed_files import NEEDED_LIMIT, is_needed

VERSION: Final = 1
"""The version of the protocol."""

HANDOVER: Final = "handover"
CYCLES: Final = "cycles"
POSITIONS: Final = "positions"
TAILERS: Final = "tailers"
FILES: Final = "files"
ZSTD: Final = "zstd"
REFILL: Final = "refill"
FEATURES: Final = (HANDOVER, CYCLES, POSITIONS, TAILERS, FILES, ZSTD)
"""Features of this side beyond version 1; peers use common ones. ``REFILL`` is separate."""

HEAD: Final = struct.Struct("<IB")
TEXT_LIMIT: Final = 4096
"""The longest body of a greeting or welcome, and of every body that is text."""

BATCH_LIMIT: Final = (1 << 30) + 4096
"""The longest body: the longest message of a roll file, with its head."""

GROUP_LIMIT: Final = 1 << 20
"""The longest body with the state of a group, or with the names of all groups or tailers."""

FILE_LIMIT: Final = NEEDED_LIMIT + 256
"""The longest body with a file that messages need beside them."""

COMPRESSED_LIMIT: Final = 4 << 20
"""The longest batch that is sent compressed: no frame decompresses to more."""

_LENGTH: Final = struct.Struct("<I")
_COMPRESSED: Final = struct.Struct("<qI")
_COMPRESSED_MORE: Final = 64 << 10  # what cannot be compressed gets a little longer
_PLACE: Final = struct.Struct("<qIB")
_TIME: Final = struct.Struct("<q")
_READ: Final = struct.Struct("<qq")
_CYCLES_ASKED: Final = struct.Struct("<ii")
_CYCLES_FOUND: Final = struct.Struct("<iiiI32s")
_DIGEST_BYTES: Final = 32
_LEVELS: Final = ("stored", "synced")


class Kind(IntEnum):
    """The kind of a frame."""

    GREETING = 1
    WELCOME = 2
    REFUSAL = 3
    DIGEST_REQUEST = 4
    DIGEST = 5
    START = 6
    BATCH = 7
    ACKNOWLEDGEMENT = 8
    HEARTBEAT = 9
    END = 10
    HANDOVER = 11
    TAKEN_OVER = 12
    CYCLES_REQUEST = 13
    CYCLES = 14
    TAILER = 15
    GROUP = 16
    GROUPS = 17
    TAILERS = 18
    FILE = 19
    COMPRESSED_BATCH = 20


_LIMITS: Final[Mapping[Kind, int]] = {
    Kind.GREETING: TEXT_LIMIT,
    Kind.WELCOME: TEXT_LIMIT,
    Kind.REFUSAL: TEXT_LIMIT,
    Kind.DIGEST_REQUEST: _PLACE.size,
    Kind.DIGEST: _PLACE.size + 1 + _DIGEST_BYTES,
    Kind.START: 1 + _PLACE.size,
    Kind.BATCH: BATCH_LIMIT,
    Kind.ACKNOWLEDGEMENT: _TIME.size + _PLACE.size + 1,
    Kind.HEARTBEAT: _TIME.size,
    Kind.END: 0,
    Kind.HANDOVER: _TIME.size + 1 + _PLACE.size,
    Kind.TAKEN_OVER: TEXT_LIMIT,
    Kind.CYCLES_REQUEST: _CYCLES_ASKED.size,
    Kind.CYCLES: _CYCLES_FOUND.size,
    Kind.TAILER: TEXT_LIMIT,
    Kind.GROUP: GROUP_LIMIT,
    Kind.GROUPS: GROUP_LIMIT,
    Kind.TAILERS: GROUP_LIMIT,
    Kind.FILE: FILE_LIMIT,
    Kind.COMPRESSED_BATCH: COMPRESSED_LIMIT + _COMPRESSED_MORE,
}


class Place(NamedTuple):
    """
    A place between two documents of a queue.

    Attributes:
        next: The index of the next message, if that is in the same cycle.
        metadata: How many metadata documents lie between the preceding message and the place.
        is_ended: Whether the cycle ends here.

    """

    next: int
    metadata: int
    is_ended: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """The body of a greeting or a welcome: names and what they stand for."""

    kind: Kind
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """The peer ends the connection, with a reason and perhaps a later epoch of a queue."""

    code: str
    reason: str
    queue: object = None
    epoch: object = None


@dataclass(frozen=True, slots=True)
class DigestAsked:
    """A sink wants to know the digest of a cycle up to a place."""

    place: Place


@dataclass(frozen=True, slots=True)
class Digest:
    """The digest of a cycle up to a place; None where there is no such place."""

    place: Place
    digest: bytes | None


@dataclass(frozen=True, slots=True)
class Started:
    """A sink requests everything after a place; None: from the start."""

    place: Place | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents, with the time at which the source sent them."""

    time_ns: int
    documents: bytes


@dataclass(frozen=True, slots=True)
class CompressedBatch:
    """A batch whose documents have *length* bytes and continue a stream of zstd."""

    time_ns: int
    length: int
    stored: bytes


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Documents up to a place are stored, or synced; the time is that of their batch."""

    time_ns: int
    place: Place
    level: str


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The peer is alive."""

    time_ns: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The source sends no more, and the sink has everything."""


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The source accepts no more appends; the sink has all messages and begins an epoch."""

    epoch: int
    place: Place | None


@dataclass(frozen=True, slots=True)
class TakenOver:
    """The sink is the source of a new epoch, and serves at the address, if there is one."""

    epoch: int
    address: tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class CyclesAsked:
    """A sink wants to know the hash of the digests of a range of cycles, both ends included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Cycles:
    """The number of cycles of a range, the hash of their digests, and the very first cycle."""

    first: int
    last: int
    lowest: int
    count: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class TailerAt:
    """Index and version of a ``replicated:`` tailer; None: it was deleted."""

    name: str
    at: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class GroupAt:
    """The state of a consumer group."""

    name: str
    state: bytes


@dataclass(frozen=True, slots=True)
class GroupNames:
    """The names of all consumer groups."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileSent:
    """A file that messages need beside them to be read: wrapped keys, or a dictionary."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class TailerVersions:
    """The versions of all ``replicated:`` tailers, by name."""

    versions: Mapping[str, int]


PositionFrame = TailerAt | GroupAt | GroupNames | TailerVersions
Answer = Batch | CompressedBatch | Acknowledged | Heartbeat | Ended | HandedOver | TakenOver
Comparison = DigestAsked | Digest | CyclesAsked | Cycles
Frame = Facts | Refused | Comparison | Started | Answer | PositionFrame | FileSent


def facts(kind: Kind, found: Mapping[str, Any]) -> bytes:
    """Return the frame of a greeting or a welcome."""
    return _text(kind, {"version": VERSION, "features": FEATURES, **found})


def refusal(code: str, reason: str, **found: object) -> bytes:
    """Return the frame that ends a connection."""
    return _text(Kind.REFUSAL, {"code": code, "reason": reason[:1024], **found})


def digest_request(place: Place) -> bytes:
    """Return the frame that asks for a digest."""
    return _framed(Kind.DIGEST_REQUEST, _PLACE.pack(*place))


def digest(place: Place, found: bytes | None) -> bytes:
    """Return the frame with a digest, or with none."""
    has = b"\0" if found is None else b"\1" + found
    return _framed(Kind.DIGEST, _PLACE.pack(*place) + has)


def cycles_request(first: int, last: int) -> bytes:
    """Return the frame that asks for a range of cycles."""
    return _framed(Kind.CYCLES_REQUEST, _CYCLES_ASKED.pack(first, last))


def cycles(found: Cycles) -> bytes:
    """Return the frame with the content of a range of cycles."""
    body = _CYCLES_FOUND.pack(found.first, found.last, found.lowest, found.count, found.digest)
    return _framed(Kind.CYCLES, body)


def start(place: Place | None) -> bytes:
    """Return the frame that asks for batches."""
    return _framed(Kind.START, b"\0" if place is None else b"\1" + _PLACE.pack(*place))


def batch(time_ns: int, documents: bytes) -> bytes:
    """Return the frame of a batch."""
    size = _TIME.size + len(documents)
    return b"".join((HEAD.pack(size + 1, Kind.BATCH), _TIME.pack(time_ns), documents))


def compressed_batch(time_ns: int, length: int, stored: bytes) -> bytes:
    """Return the frame of a batch whose documents continue a stream of zstd."""
    return _framed(Kind.COMPRESSED_BATCH, _COMPRESSED.pack(time_ns, length) + stored)


def acknowledgement(time_ns: int, place: Place, level: str) -> bytes:
    """Return the frame that acknowledges everything before a place."""
    body = _TIME.pack(time_ns) + _PLACE.pack(*place) + bytes((_LEVELS.index(level),))
    return _framed(Kind.ACKNOWLEDGEMENT, body)


def heartbeat(time_ns: int) -> bytes:
    """Return the frame of a heartbeat."""
    return _framed(Kind.HEARTBEAT, _TIME.pack(time_ns))


def end() -> bytes:
    """Return the frame that ends a source's stream."""
    return _framed(Kind.END, b"")


def hand_over(epoch: int, place: Place | None) -> bytes:
    """Return the frame that makes the sink the source of a new epoch."""
    has = b"\0" if place is None else b"\1" + _PLACE.pack(*place)
    return _framed(Kind.HANDOVER, _TIME.pack(epoch) + has)


def taken_over(epoch: int, address: tuple[str, int] | None) -> bytes:
    """Return the frame that reports that the sink is now the source."""
    host, port = address or (None, None)
    return _text(Kind.TAKEN_OVER, {"epoch": epoch, "host": host, "port": port})


def file(name: str, content: bytes) -> bytes:
    """Return the frame with a file that messages need beside them."""
    return _framed(Kind.FILE, _named(name, content))


def _named(name: str, content: bytes) -> bytes:
    encoded = name.encode()
    return bytes((len(encoded),)) + encoded + content


def position(found: PositionFrame) -> bytes:
    """Return the frame with the position of a reader."""
    match found:
        case TailerAt(name, at):
            has = b"\0" if at is None else b"\1" + _READ.pack(*at)
            return _framed(Kind.TAILER, has + name.encode())
        case GroupAt(name, state):
            return _framed(Kind.GROUP, _named(name, state))
        case GroupNames(names):
            return _text(Kind.GROUPS, names)
        case TailerVersions(versions):
            return _text(Kind.TAILERS, versions)


def _framed(kind: Kind, body: bytes) -> bytes:
    return HEAD.pack(len(body) + 1, kind) + body


def _text(kind: Kind, found: Mapping[str, Any] | Sequence[str]) -> bytes:
    return _framed(kind, json.dumps(found, separators=(",", ":")).encode())


class FrameReader:
    """
    Frames out of the bytes of a connection, wherever these are cut.

    Args:
        expected: The kinds that the peer may send.

    """

    def __init__(self, expected: frozenset[Kind]) -> None:
        self._expected = expected
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Generator[Frame]:
        """
        Yield the frames that are now complete. Frames not taken are yielded next time.

        Raises:
            ReplicationError: The bytes break the protocol; frames before the error have been
                yielded.

        """
        self._buffer += data
        at = 0
        try:
            while len(self._buffer) - at >= _LENGTH.size:
                if not any(self._buffer[at : at + _LENGTH.size]):
                    raise ReplicationError("the peer sent a frame without a kind")
                if len(self._buffer) - at < HEAD.size:
                    break
                length, code = HEAD.unpack_from(self._buffer, at)
                kind = self._checked(length, code)
                stop = at + HEAD.size + length - 1
                if stop > len(self._buffer):
                    break
                with memoryview(self._buffer) as view, view[at + HEAD.size : stop] as body:
                    frame = _decoded(kind, body)
                at = stop
                yield frame
        finally:
            del self._buffer[:at]

    @property
    def is_between_frames(self) -> bool:
        """Whether the last frame was complete."""
        return not self._buffer

    def _checked(self, length: int, code: int) -> Kind:
        """Return the kind of a frame, before its body has arrived."""
        if code not in self._expected:
            raise ReplicationError(f"the peer sent a frame of an unexpected kind: found={code}")
        kind = Kind(code)
        if length > _LIMITS[kind] + 1:
            text = "the peer announced a frame of an invalid length"
            limit = f"found={length} limit={_LIMITS[kind] + 1}"
            raise ReplicationError(f"{text}: kind={kind.name} {limit}")
        return kind


def _decoded(kind: Kind, body: memoryview) -> Frame:
    try:
        # Of a batch nothing is copied twice.
        return _batch_of(body) if kind == Kind.BATCH else _DECODERS[kind](bytes(body))
    except (ValueError, KeyError, IndexError, struct.error) as error:
        text = "the peer sent a frame that cannot be read"
        raise ReplicationError(f"{text}: kind={kind.name} reason={error}") from None


def _refused(body: bytes) -> Refused:
    found = _facts_of(body)
    code, reason = str(found["code"]), str(found["reason"])
    return Refused(code, reason, found.get("queue"), found.get("epoch"))


def _started(body: bytes) -> Started:
    if _flag(body[0]):
        return Started(_place(body[1:]))
    if len(body) > 1:
        raise ValueError(f"a START from the start of the queue has extra bytes: length={len(body)}")
    return Started(None)


def _handed_over(body: bytes) -> HandedOver:
    [epoch] = _TIME.unpack_from(body)
    return HandedOver(epoch, _started(body[_TIME.size :]).place)


def _taken_over(body: bytes) -> TakenOver:
    found = _facts_of(body)
    epoch, host, port = found["epoch"], found["host"], found["port"]
    if type(epoch) is not int:
        raise ValueError(f"an epoch is not an integer: found={epoch!r}")
    if host is None and port is None:
        return TakenOver(epoch, None)
    is_port = isinstance(port, int) and not isinstance(port, bool) and 0 < port < 1 << 16
    if isinstance(host, str) and host.isprintable() and is_port:
        return TakenOver(epoch, (host, port))
    raise ValueError(f"an address is invalid: host={host!r} port={port!r}")


def _batch_of(body: memoryview) -> Batch:
    [time_ns] = _TIME.unpack_from(body)
    return Batch(time_ns, bytes(body[_TIME.size :]))


def _compressed_batch_of(body: bytes) -> CompressedBatch:
    time_ns, length = _COMPRESSED.unpack_from(body)
    if length > COMPRESSED_LIMIT:
        raise ValueError(f"a compressed batch is too long: found={length} limit={COMPRESSED_LIMIT}")
    return CompressedBatch(time_ns, length, body[_COMPRESSED.size :])


def _acknowledged(body: bytes) -> Acknowledged:
    [time_ns] = _TIME.unpack_from(body)
    return Acknowledged(time_ns, _place(body[_TIME.size : -1]), _LEVELS[body[-1]])


def _place(body: bytes) -> Place:
    following, metadata, is_ended = _PLACE.unpack(body)
    return Place(following, metadata, _flag(is_ended))


def _flag(byte: int) -> bool:
    if byte > 1:
        raise ValueError(f"a flag is neither 0 nor 1: found={byte}")
    return byte == 1


def _digest_of(body: bytes) -> Digest:
    place, found = _place(body[: _PLACE.size]), body[_PLACE.size + 1 :]
    if not _flag(body[_PLACE.size]):
        return Digest(place, None)
    if len(found) != _DIGEST_BYTES:
        raise ValueError(f"a digest has another length: found={len(found)}")
    return Digest(place, found)


def _tailer_at(body: bytes) -> TailerAt:
    if not _flag(body[0]):
        return TailerAt(body[1:].decode(), None)
    index, version = _READ.unpack_from(body, 1)
    return TailerAt(body[1 + _READ.size :].decode(), (index, version))


def _group_at(body: bytes) -> GroupAt:
    start = 1 + body[0]
    return GroupAt(body[1:start].decode(), body[start:])


def _file_sent(body: bytes) -> FileSent:
    start = 1 + body[0]
    name = body[1:start].decode()
    if not is_needed(name):
        raise ValueError(f"not the name of wrapped keys or of a dictionary: {name!r}")
    return FileSent(name, body[start:])


def _group_names(body: bytes) -> GroupNames:
    found = _json_of(body)
    names = cast("list[object]", found) if isinstance(found, list) else [None]
    if not all(isinstance(it, str) for it in names):
        raise ValueError("no list of names")
    return GroupNames(tuple(cast("list[str]", names)))


def _tailer_versions(body: bytes) -> TailerVersions:
    found = _facts_of(body)
    if not all(type(it) is int for it in found.values()):
        raise ValueError("a version is not an integer")
    return TailerVersions(found)


def _json_of(body: bytes) -> object:
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None


def _facts_of(body: bytes) -> dict[str, Any]:
    found = _json_of(body)
    if not isinstance(found, dict):
        raise ValueError("no JSON object")  # noqa: TRY004 - becomes a ReplicationError
    return cast("dict[str, Any]", found)


_DECODERS: Final[Mapping[Kind, Callable[[bytes], Frame]]] = {
    Kind.GREETING: lambda body: Facts(Kind.GREETING, _facts_of(body)),
    Kind.WELCOME: lambda body: Facts(Kind.WELCOME, _facts_of(body)),
    Kind.REFUSAL: _refused,
    Kind.DIGEST_REQUEST: lambda body: DigestAsked(_place(body)),
    Kind.DIGEST: _digest_of,
    Kind.START: _started,
    Kind.ACKNOWLEDGEMENT: _acknowledged,
    Kind.HEARTBEAT: lambda body: Heartbeat(*_TIME.unpack(body)),
    Kind.END: lambda _: Ended(),
    Kind.HANDOVER: _handed_over,
    Kind.TAKEN_OVER: _taken_over,
    Kind.CYCLES_REQUEST: lambda body: CyclesAsked(*_CYCLES_ASKED.unpack(body)),
    Kind.CYCLES: lambda body: Cycles(*_CYCLES_FOUND.unpack(body)),
    Kind.TAILER: _tailer_at,
    Kind.GROUP: _group_at,
    Kind.GROUPS: _group_names,
    Kind.TAILERS: _tailer_versions,
    Kind.FILE: _file_sent,
    Kind.COMPRESSED_BATCH: _compressed_batch_of,
}
