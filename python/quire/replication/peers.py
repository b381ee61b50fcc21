"""The user of a peer on this machine, from Linux's tables of connections."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from quire.replication.tls import is_loopback

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED: Final = "01"
_ROOT: Final = 0
_MAPPED: Final = bytes(10) + b"\xff\xff"


def is_of_same_user(own: tuple[Any, ...] | None, peer: tuple[Any, ...] | None) -> bool:
    """
    Whether a peer is a process on this machine of the same user, or of root.

    If the system does not report it, every process on this machine counts.

    Args:
        own: This side's address, of an open connection.
        peer: The peer's.

    """
    if not own or not peer or not is_loopback(str(peer[0])):
        return False
    tables = [it for it in _TABLES if it.exists()]
    wanted = set(_shown(peer)), set(_shown(own))
    users = [user for it in tables for user in _users(it, *wanted)]
    return not tables or (bool(users) and set(users) <= {_ROOT, os.geteuid()})


def _users(table: Path, local: set[str], remote: set[str]) -> Iterator[int]:
    """Yield the users of open sockets between two addresses."""
    for line in table.read_text("ascii").splitlines()[1:]:
        _, here, there, state, _, _, _, user, _, inode, *_ = line.split()
        # A socket that was closed has no inode, and seems to be root's.
        if here in local and there in remote and state == _ESTABLISHED and inode != "0":
            yield int(user)


def _shown(address: tuple[Any, ...]) -> Iterator[str]:
    """Yield an address in the forms of the tables: words in the machine's byte order."""
    host, port = str(address[0]), int(address[1])
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    packed = socket.inet_pton(family, host)
    either = {packed, packed.removeprefix(_MAPPED)}
    if family == socket.AF_INET:
        either.add(_MAPPED + packed)
    for each in either:
        words = (each[at : at + 4] for at in range(0, len(each), 4))
        numbers = (int.from_bytes(word, sys.byteorder) for word in words)
        yield "".join(f"{number:08X}" for number in numbers) + f":{port:04X}"
