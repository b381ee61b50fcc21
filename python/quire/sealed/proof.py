"""
The proof that one message is in a queue: the way from its hash and index up to a signed checkpoint.

It holds no message, and only hashes of other messages.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from quire.errors import SealError
from quire.sealed.seal_chain import QUEUE_ID_LEN, Checkpoint, SealedCycle, Signature
from quire.sealed.trees import HASH_LEN, NOTHING, message_leaf, root_by_path

_MAGIC: Final = b"QuirePf2"
_HEAD: Final = struct.Struct("<qqQQBQBB")
_CHECKPOINT: Final = struct.Struct(f"<{QUEUE_ID_LEN}sQQQ32s32s32s8s64s")
_MOST: Final = 64  # siblings of a way up


@dataclass(frozen=True, slots=True)
class Proof:
    """
    A proof.

    Attributes:
        index: The index of the message.
        message: The hash of the message.
        before: The hash of that metadata; None without any.
        cycle: The cycle.
        number: The number of the message in its cycle.
        place: The number of the cycle among those that were ever sealed.
        sealed: What is sealed of the cycle.
        path: The hashes beside the way from the message to the root of its cycle.
        cycle_path: Those beside the way from there to the root of the checkpoint.
        checkpoint: The checkpoint.

    """

    index: int
    message: bytes
    before: bytes | None
    cycle: int
    number: int
    place: int
    sealed: SealedCycle
    path: list[bytes]
    cycle_path: list[bytes]
    checkpoint: Checkpoint

    def is_right(self) -> bool:
        """Return whether the way leads from the message to the root of the checkpoint."""
        message = message_leaf(self.index, self.before, self.message)
        root = root_by_path(message, self.number, self.sealed.count, self.path)
        if root != self.sealed.root:
            return False
        leaf = self.sealed.leaf(self.cycle)
        size = self.checkpoint.size
        return root_by_path(leaf, self.place, size, self.cycle_path) == self.checkpoint.root

    def to_bytes(self) -> bytes:
        """Return the bytes of a proof."""
        checkpoint, sealed = self.checkpoint, self.sealed
        signature = checkpoint.signature or Signature(bytes(8), bytes(64))
        flags = (
            sealed.is_ended | (self.before is not None) << 1 | (sealed.metadata is not None) << 2
        )
        return b"".join(
            (
                _MAGIC,
                _HEAD.pack(
                    self.index,
                    self.cycle,
                    self.number,
                    sealed.count,
                    flags,
                    self.place,
                    len(self.path),
                    len(self.cycle_path),
                ),
                self.message,
                self.before or b"",
                sealed.metadata or b"",
                *self.path,
                *self.cycle_path,
                _CHECKPOINT.pack(
                    checkpoint.queue,
                    checkpoint.number,
                    checkpoint.time_ms,
                    checkpoint.size,
                    checkpoint.root,
                    checkpoint.changes,
                    checkpoint.previous,
                    signature.key,
                    signature.value,
                ),
            )
        )

    @classmethod
    def parse(cls, content: bytes) -> Proof:
        """
        Return the proof of some bytes.

        Raises:
            SealError: The bytes are not a proof.

        """
        try:
            return _parse(content)
        except (struct.error, ValueError) as error:
            raise SealError(f"not a proof: length={len(content)} reason={error}") from None


def _parse(content: bytes) -> Proof:
    if not content.startswith(_MAGIC):
        raise ValueError("it begins otherwise")
    at = len(_MAGIC)
    index, cycle, number, count, flags, place, ways, cycle_ways = _HEAD.unpack_from(content, at)
    if ways > _MOST or cycle_ways > _MOST or flags >= 1 << 3:
        raise ValueError("a way that is too long, or unknown flags")
    has_before, has_metadata = bool(flags & 2), bool(flags & 4)
    hashes, tail = at + _HEAD.size, len(content) - _CHECKPOINT.size
    expected = 1 + has_before + has_metadata + ways + cycle_ways
    if tail - hashes != expected * HASH_LEN:
        raise ValueError(f"expected {expected} hashes")
    found = [content[it : it + HASH_LEN] for it in range(hashes, tail, HASH_LEN)]
    message = found.pop(0)
    before = found.pop(0) if has_before else None
    metadata = found.pop(0) if has_metadata else None
    path, cycle_path = found[:ways], found[ways:]
    queue, at_number, time_ms, size, root, changes, previous, key, value = _CHECKPOINT.unpack_from(
        content, tail
    )
    signature = None if key == bytes(8) else Signature(key, value)
    checkpoint = Checkpoint(queue, at_number, time_ms, size, root, changes, previous, signature)
    inner = root_by_path(message_leaf(index, before, message), number, count, path)
    sealed = SealedCycle(count, bool(flags & 1), NOTHING if inner is None else inner, metadata)
    return Proof(index, message, before, cycle, number, place, sealed, path, cycle_path, checkpoint)
