"""What a queue knows of its replication between two runs: the file ``replication.json``."""

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
class State:
    """
    What is known of a queue's replication.

    Attributes:
        identity: Of the queue, the same on all machines: 32 hexadecimal digits.
        epoch: The number of the reign: each promotion begins a new one.
        role: What the queue was last.

    """

    identity: str
    epoch: int
    role: Role

    @classmethod
    def new(cls) -> State:
        """Return that of a queue which was never replicated."""
        return cls(secrets.token_hex(16), 1, "none")

    def as_role(self, role: Role) -> State:
        """Return the same in another role."""
        return replace(self, role=role)

    def promoted(self) -> State:
        """Return that of the source of a new reign."""
        return replace(self, epoch=self.epoch + 1, role="source")


def parsed(identity: object, epoch: object, role: object) -> State | None:
    """Return the state that these values say, wherever they come from; None if they say none."""
    if not (isinstance(identity, str) and _IDENTITY.fullmatch(identity)):
        return None
    if type(epoch) is not int or not 1 <= epoch < 1 << 63:
        return None
    return State(identity, epoch, role) if role in _ROLES else None


def read(path: str | PathLike[str]) -> State | None:
    """
    Return what is known of the queue in a directory; None if it was never replicated.

    Raises:
        CorruptError: The file is damaged.

    """
    with SafeFolder.at(path) as folder:
        if not folder.has(NAME):
            return None
        content = folder.read(NAME, _LIMIT)
    try:
        found = json.loads(content)
        state = parsed(found["identity"], found["epoch"], found["role"])
    except (ValueError, KeyError, TypeError):
        state = None
    if state is not None:
        return state
    text = f"{NAME} does not say how the queue is replicated: path={path}"
    hint = "restore it from a backup, or remove it: the queue then counts as another one"
    raise CorruptError(f"{text} ({hint})", NAME, 0, repr(content[:64]), "a JSON object")


def write(path: str | PathLike[str], state: State) -> None:
    """Replace what is known, durably."""
    with SafeFolder.at(path) as folder:
        folder.replace(NAME, json.dumps(asdict(state), indent=2).encode() + b"\n")
