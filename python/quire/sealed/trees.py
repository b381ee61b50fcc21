"""Merkle trees of RFC 9162, as far as they are not built in the kernel: SHA-256."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

HASH_LEN = 32
NOTHING = bytes(HASH_LEN)
"""In place of the hash of metadata that is not there."""

_LEAF = b"\0"
_NODE = b"\1"


def message_hash(message: bytes) -> bytes:
    """Return the hash that the leaf of a message has of it."""
    return hashlib.sha256(message).digest()


def message_leaf(index: int, metadata: bytes | None, message: bytes) -> bytes:
    """
    Return the leaf of a message in the tree of its cycle.

    Args:
        index: Its index.
        metadata: The hash of the metadata before it; None without any.
        message: Its hash.

    """
    before = b"" if metadata is None else metadata
    return leaf(struct.pack("<qB", index, len(before)) + before + message)


def leaf(content: bytes) -> bytes:
    """Return the hash of a leaf."""
    return hashlib.sha256(_LEAF + content).digest()


def node(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node."""
    return hashlib.sha256(_NODE + left + right).digest()


def root_of_peaks(peaks: Sequence[bytes]) -> bytes:
    """Return the root of a tree, from the roots of its perfect subtrees, the largest first."""
    if not peaks:
        return hashlib.sha256(b"").digest()
    *others, root = peaks
    for peak in reversed(others):
        root = node(peak, root)
    return root


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root of a tree."""
    level = list(leaves)
    if not level:
        return root_of_peaks([])
    while len(level) > 1:
        paired = [node(level[at], level[at + 1]) for at in range(0, len(level) - 1, 2)]
        level = paired + level[len(paired) * 2 :]
    return level[0]


def path_of(leaves: Sequence[bytes], number: int) -> list[bytes]:
    """Return the siblings on the way from a leaf to the root, from the leaf up."""
    level, at, path = list(leaves), number, list[bytes]()
    while len(level) > 1:
        if at ^ 1 < len(level):
            path.append(level[at ^ 1])
        paired = [node(level[it], level[it + 1]) for it in range(0, len(level) - 1, 2)]
        level, at = paired + level[len(paired) * 2 :], at // 2
    return path


def root_by_path(leaf_hash: bytes, number: int, count: int, path: Sequence[bytes]) -> bytes | None:
    """Return the root that a path leads to (RFC 9162 §2.1.3.2); None if it is no path."""
    if not 0 <= number < count:
        return None
    at, last, root = number, count - 1, leaf_hash
    for sibling in path:
        if last == 0:
            return None
        if at & 1 or at == last:
            root = node(sibling, root)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            root = node(root, sibling)
        at, last = at >> 1, last >> 1
    return root if last == 0 else None
