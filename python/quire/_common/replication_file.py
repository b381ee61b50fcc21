"""A queue's standing in a replication, which the file ``replication.json`` in it keeps."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import Final, Literal

from quire._common.durable import SafeFolder
from quire.errors import CorruptError

Role = Literal["none", "source", "sink"]
NAME: Final = "replication.json"
_LIMIT: Final = 64 << 10
_IDENTITY: Final = re.compile(r"[0-9a-f]{32}")
_ROLES: Final = ("none", "source", "sink")


@dataclass(frozen=True, slots=True)
class Standing:
    """
    A queue's part in a replication.

    Attributes:
        identity: Of the queue, the same on all machines: 32 hexadecimal digits.
        epoch: Of its source: each promotion begins a new one.
        role: What the queue was last.

    """

    identity: str
    epoch: int
    role: Role

    @classmethod
    def new(cls) -> Standing:
        """Return the standing of a queue that was never replicated."""
        return cls(secrets.token_hex(16), 1, "none")

    def as_role(self, role: Role) -> Standing:
        """Return the same in another role."""
        return replace(self, role=role)

    def promoted(self) -> Standing:
        """Return that of the source of a new epoch."""
        return replace(self, epoch=self.epoch + 1, role="source")


def parsed(identity: object, epoch: object, role: object) -> Standing | None:
    """Return the standing that values of a file or a peer describe; None if one is invalid."""
    if not isinstance(identity, str) or _IDENTITY.fullmatch(identity) is None:
        return None
    if not isinstance(epoch, int) or isinstance(epoch, bool) or not 1 <= epoch < 1 << 63:
        return None
    return Standing(identity, epoch, role) if role in _ROLES else None


def read(path: str | PathLike[str]) -> Standing | None:
    """
    Return the standing of the queue in a directory; None if it was never replicated.

    Raises:
        CorruptError: The file is damaged.

    """
    with SafeFolder.at(path) as folder:
        return read_in(folder)


def read_in(folder: SafeFolder) -> Standing | None:
    """Return the standing of the queue in an open directory, as :func:`read` does."""
    if not folder.has(NAME):
        return None
    content = folder.read(NAME, _LIMIT)
    try:
        found = json.loads(content)
        member = parsed(found["identity"], found["epoch"], found["role"])
    except (ValueError, KeyError, TypeError, RecursionError):
        member = None
    if member is not None:
        return member
    text = f"{NAME} does not say how the queue is replicated: path={folder.path}"
    hint = "restore it from a backup, or remove it: the queue then counts as another one"
    raise CorruptError(f"{text} ({hint})", NAME, 0, repr(content[:64]), "a JSON object")


def write(path: str | PathLike[str], member: Standing) -> None:
    """Replace the standing, durably."""
    with SafeFolder.at(path) as folder:
        write_in(folder, member)


def write_in(folder: SafeFolder, member: Standing) -> None:
    """Replace the standing in an open directory, durably."""
    folder.replace(NAME, json.dumps(asdict(member), indent=2).encode() + b"\n")
