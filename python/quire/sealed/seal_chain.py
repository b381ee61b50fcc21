"""
Checkpoints: what a seal says about all cycles of a queue at one time.

Each is a line of ``seals.quire``: a JSON object, a signature or ``-``, and a JSON array of the
cycles that changed since the one before. The object names the hash of the array and that of the
object before, so that a signature covers all that precedes it.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self, cast

from quire.errors import SealError
from quire.sealed.trees import NOTHING, leaf, root_of

QUEUE_ID_LEN: Final = 16
NO_CHECKPOINT: Final = bytes(32)
"""In place of the hash of the checkpoint before the first."""
LONGEST_LINE: Final = 64 << 20
_CONTEXT: Final = b"quire checkpoint\n"
_SIGNATURE: Final = re.compile(r"-|([0-9a-f]{16}):([0-9a-f]{128})")
_HEX: Final = re.compile(r"[0-9a-f]*")
_MOST: Final = 2**63
_CYCLES: Final = 2**31
_DAY_MS: Final = 86_400_000
_LATEST_MS: Final = 253_402_300_800_000
"""The end of the year 9999."""
_VERSION: Final = 2
"""Of the leaves: those of the first version had the message in place of its hash."""
_FIELDS: Final = ("changes", "number", "previous", "queue", "root", "size", "time_ms", "version")


@dataclass(frozen=True, slots=True)
class SealedCycle:
    """
    What is sealed of a cycle.

    Attributes:
        count: How many messages.
        is_ended: Whether the end-of-file marker followed them.
        root: The root of their tree.
        metadata: The hash of metadata after the last message; None without any, or in a cycle that
            goes on.

    """

    count: int
    is_ended: bool
    root: bytes
    metadata: bytes | None

    def leaf(self, cycle: int) -> bytes:
        """Return its leaf in the tree of the queue."""
        head = struct.pack("<qQB", cycle, self.count, self.is_ended)
        return leaf(head + self.root + (self.metadata or NOTHING))


Cycles = Mapping[int, SealedCycle]


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature: which key made it, and its bytes."""

    key: bytes
    value: bytes


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """
    The head of a checkpoint, which is what is signed.

    Attributes:
        queue: The random id of the queue.
        number: From 0.
        time_ms: When it was made, in epoch milliseconds; never before the one before.
        size: How many cycles were ever sealed.
        root: The root of the tree over them.
        changes: The hash of those that changed.
        previous: The hash of the head before.
        signature: None if it is not signed.

    """

    queue: bytes
    number: int
    time_ms: int
    size: int
    root: bytes
    changes: bytes
    previous: bytes
    signature: Signature | None = None

    def body(self) -> bytes:
        """Return the JSON object."""
        fields = {
            "changes": self.changes.hex(),
            "number": self.number,
            "previous": self.previous.hex(),
            "queue": self.queue.hex(),
            "root": self.root.hex(),
            "size": self.size,
            "time_ms": self.time_ms,
            "version": _VERSION,
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    def hash(self) -> bytes:
        """Return the hash by which the next one names it."""
        return hashlib.sha256(self.body()).digest()

    def signed_bytes(self) -> bytes:
        """Return what a signature is over."""
        return _CONTEXT + self.body()

    def with_signature(self, signature: Signature | None) -> Self:
        """Return it with a signature."""
        return replace(self, signature=signature)

    def head_line(self) -> bytes:
        """Return the head and its signature, as a file of one checkpoint has them."""
        signature = self.signature
        shown = "-" if signature is None else f"{signature.key.hex()}:{signature.value.hex()}"
        return self.body() + b" " + shown.encode()

    @classmethod
    def parse(cls, body: bytes, signature: str) -> Self:
        """
        Return the checkpoint of a head and a signature.

        Raises:
            ValueError: The bytes are not a checkpoint.

        """
        loaded: object = json.loads(body)
        fields = cast("dict[str, object]", loaded) if isinstance(loaded, dict) else {}
        if fields and fields.get("version", 1) != _VERSION:
            raise ValueError(
                "a checkpoint of another version of Quire (move seals.quire and *.seal.quire out of"
                " the directory, and seal again)"
            )
        if tuple(sorted(fields)) != _FIELDS:
            raise ValueError("expected the fields of a checkpoint")
        found = _SIGNATURE.fullmatch(signature)
        if found is None:
            raise ValueError("expected a signature or -")
        made = cls(
            queue=_bytes(fields["queue"], QUEUE_ID_LEN),
            number=_number(fields["number"]),
            time_ms=_number(fields["time_ms"], _LATEST_MS),
            size=_number(fields["size"]),
            root=_bytes(fields["root"]),
            changes=_bytes(fields["changes"]),
            previous=_bytes(fields["previous"]),
            signature=None
            if found[1] is None
            else Signature(bytes.fromhex(found[1]), bytes.fromhex(found[2])),
        )
        if made.body() != body:
            raise ValueError("expected a checkpoint as Quire writes it")
        return made


class Entry(NamedTuple):
    """A line: a checkpoint, and the cycles that changed."""

    checkpoint: Checkpoint
    changed: dict[int, SealedCycle]

    def line(self) -> bytes:
        """Return the line, with its end."""
        return self.checkpoint.head_line() + b" " + changes_of(self.changed) + b"\n"


def changes_of(changed: Cycles) -> bytes:
    """Return cycles as a JSON array."""
    rows = [
        [
            cycle,
            it.count,
            it.is_ended,
            it.root.hex(),
            None if it.metadata is None else it.metadata.hex(),
        ]
        for cycle, it in sorted(changed.items())
    ]
    return json.dumps(rows, separators=(",", ":")).encode()


def parse_line(line: bytes) -> Entry:
    """
    Return the entry of a line.

    Raises:
        ValueError: The line is not an entry.

    """
    parts = line.rstrip(b"\n").split(b" ")
    if len(parts) != 3:  # noqa: PLR2004
        raise ValueError("expected a head, a signature and changes")
    body, signature, changes = parts
    checkpoint = Checkpoint.parse(body, signature.decode("ascii", "replace"))
    if hashlib.sha256(changes).digest() != checkpoint.changes:
        raise ValueError("the changes are not those that the head names")
    match json.loads(changes):
        case [*rows]:
            return Entry(checkpoint, dict(_cycle(row) for row in rows))
        case _:
            raise ValueError("expected an array of cycles")


def _cycle(row: object) -> tuple[int, SealedCycle]:
    match row:
        case [int(cycle), int(count), bool(is_ended), str(root), str() | None as metadata]:
            found = None if metadata is None else _bytes(metadata)
            return _number(cycle, _CYCLES), SealedCycle(
                _number(count), is_ended, _bytes(root), found
            )
        case _:
            raise ValueError("expected a cycle, a count, whether it is ended, and hashes")


def is_ahead(time_ms: int) -> bool:
    """Whether a time in epoch milliseconds is more than a day ahead of the clock."""
    return time_ms > time.time() * 1000 + _DAY_MS


def _number(found: object, limit: int = _MOST) -> int:
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < limit:
        raise ValueError(f"expected a number from 0, less than {limit}")
    return found


def _bytes(found: object, length: int = 32) -> bytes:
    if not isinstance(found, str) or len(found) != 2 * length or not _HEX.fullmatch(found):
        raise ValueError(f"expected {length} bytes in hexadecimal")
    return bytes.fromhex(found)


def tree_of(cycles: Cycles) -> list[bytes]:
    """Return the leaves of the tree over cycles."""
    return [it.leaf(cycle) for cycle, it in sorted(cycles.items())]


class Chain:
    """The checkpoints of a queue, one after the other, and what they say together."""

    def __init__(self) -> None:
        """Begin without any."""
        self.entries: Final = list[Entry]()
        self.cycles: Final = dict[int, SealedCycle]()

    @property
    def newest(self) -> Checkpoint | None:
        """The last one."""
        return self.entries[-1].checkpoint if self.entries else None

    def add(self, entry: Entry) -> None:
        """
        Add the next one.

        Raises:
            ValueError: The entry does not follow the last.

        """
        found, before = entry.checkpoint, self.newest
        expected = (0, NO_CHECKPOINT, found.queue, 0)
        if before is not None:
            expected = (before.number + 1, before.hash(), before.queue, before.time_ms)
        if (found.number, found.previous, found.queue) != expected[:3]:
            raise ValueError("it does not follow the one before")
        if found.time_ms < expected[3]:
            raise ValueError("its time is before that of the one before")
        for cycle, sealed in entry.changed.items():
            old = self.cycles.get(cycle)
            if old is not None and (old.is_ended or sealed.count < old.count):
                raise ValueError(f"it takes back what was sealed: cycle={cycle}")
        self.cycles.update(entry.changed)
        if found.size != len(self.cycles):
            raise ValueError("it counts other cycles than there are")
        self.entries.append(entry)

    def next(self, queue: bytes, time_ms: int, changed: dict[int, SealedCycle]) -> Checkpoint:
        """Return the checkpoint of changes, which is not added yet, nor signed."""
        before = self.newest
        cycles = {**self.cycles, **changed}
        return Checkpoint(
            queue=queue,
            number=0 if before is None else before.number + 1,
            time_ms=time_ms if before is None else max(time_ms, before.time_ms),
            size=len(cycles),
            root=root_of(tree_of(cycles)),
            changes=hashlib.sha256(changes_of(changed)).digest(),
            previous=NO_CHECKPOINT if before is None else before.hash(),
        )

    def cycles_at(self, number: int) -> dict[int, SealedCycle]:
        """Return what was sealed up to a checkpoint."""
        found = dict[int, SealedCycle]()
        for entry in self.entries[: number + 1]:
            found.update(entry.changed)
        return found

    def inserted_after(self, number: int) -> dict[int, int]:
        """
        Return cycles that checkpoints after one insert between those that it has.

        Returns:
            The number of the checkpoint for each cycle.

        """
        known = self.cycles_at(number)
        newest = max(known, default=-1)
        found = dict[int, int]()
        for entry in self.entries[number + 1 :]:
            for cycle in entry.changed:
                if cycle < newest and cycle not in known:
                    found.setdefault(cycle, entry.checkpoint.number)
        return found

    def has(self, checkpoint: Checkpoint) -> bool:
        """Whether a checkpoint is one of these."""
        number = checkpoint.number
        return (
            number < len(self.entries)
            and self.entries[number].checkpoint.hash() == checkpoint.hash()
        )


def parse_chain(content: Iterable[bytes], file: str) -> tuple[Chain, str | None]:
    """
    Return the chain in lines, and what is wrong with the first line that is no part of it.

    Raises:
        SealError: A line is too long.

    """
    chain = Chain()
    for number, line in enumerate(content):
        if len(line) > LONGEST_LINE:
            raise SealError(f"a line is too long: file={file} line={number + 1}")
        try:
            if not line.endswith(b"\n"):
                return chain, f"line {number + 1} is cut off"
            chain.add(parse_line(line))
        except (ValueError, RecursionError) as error:
            return chain, f"line {number + 1}: {error}"
    return chain, None
