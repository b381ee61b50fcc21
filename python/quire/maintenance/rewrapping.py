"""Wrapping the data keys of an encrypted queue by another key."""

from __future__ import annotations

from os import PathLike

from quire._common import arguments
from quire.sealed import key_file
from quire.sealed.key_ring import KeyRing, ring_of


def rewrap(path: str | PathLike[str], *, key: bytes | KeyRing, new_key: bytes | KeyRing) -> int:
    """
    Wrap the data keys of an encrypted queue by another key; no message is touched.

    From then on the old key opens nothing here, but an older copy of ``keys.quire`` with the old
    key does: open the queue with a key ring whose *current* is new to have another data key, too.
    Processes that have the queue open go on.

    Args:
        path: The queue's directory.
        key: The key that wraps the data keys now, or a key ring of all that do.
        new_key: The key to wrap them by.

    Returns:
        How many data keys there are.

    Raises:
        EncryptionError: The queue is not encrypted, or a data key is wrapped by another key.
        LockHeldError: Another process changes the keys.

    Examples:
        >>> old, new = bytes(32), bytes(range(32))
        >>> quire.open("vault", key=old).close()
        >>> quire.maintenance.rewrap("vault", key=old, new_key=new)
        1
        >>> quire.open("vault", key=new).close()

    """
    return key_file.rewrap(arguments.path("path", path), ring_of(key), ring_of(new_key))
