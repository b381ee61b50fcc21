"""Wrapping the data keys of an encrypted queue with another key."""

from __future__ import annotations

from os import PathLike

from quire._common import arguments
from quire.sealed import key_file
from quire.sealed.key_ring import KeyRing, ring_of


def rewrap(path: str | PathLike[str], *, key: bytes | KeyRing, new_key: bytes | KeyRing) -> int:
    """
    Wrap the data keys of an encrypted queue with another key; no message is changed.

    From then on the old key cannot open the queue, but with an older copy of ``keys.quire`` it
    still can: to change the data key, too, open the queue with a key ring whose *current* is new.
    Processes that have the queue open continue.

    Args:
        path: The queue's directory.
        key: The key that wraps the data keys now, or a key ring with all such keys.
        new_key: The key to wrap them with.

    Returns:
        How many data keys there are.

    Raises:
        EncryptionError: The queue is not encrypted, or *key* does not wrap a data key.
        LockHeldError: Another process changes the keys.

    Examples:
        >>> old, new = bytes(32), bytes(range(32))
        >>> quire.open("vault", key=old).close()
        >>> quire.maintenance.rewrap("vault", key=old, new_key=new)
        1
        >>> quire.open("vault", key=new).close()

    """
    return key_file.rewrap(arguments.path("path", path), ring_of(key), ring_of(new_key))
