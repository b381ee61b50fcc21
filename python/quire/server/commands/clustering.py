"""CLUSTER: a server without peers, as the one node of a Redis Cluster that has every slot."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from quire.errors import RefusedError
from quire.recording.addresses import show_address
from quire.server.answers import Answer
from quire.server.commands.command_table import command

if TYPE_CHECKING:
    from quire.server.client_session import Outcome, Session

_SLOTS: Final = 16384
_NOT_BY_SLOTS: Final = (
    "This instance has cluster support disabled: queues are divided among servers by patterns of"
    " their names, and not by slots (connect to the server that has the queue, see QUIRE.PEERS)"
)


@command("CLUSTER", -2, "stale")
def cluster(session: Session, request: Sequence[bytes]) -> Outcome:
    """Describe the server as the only node of a Redis Cluster."""
    if session.context.queues.peers.all:
        raise RefusedError(_NOT_BY_SLOTS)
    name = request[1].decode("utf-8", "replace").lower()
    if name == "keyslot":
        _check_count(name, request, 3)
        return _slot_of(request[2])
    tell = _TOLD.get(name)
    if tell is None:
        raise RefusedError(f"unknown subcommand '{name:.128}'")
    _check_count(name, request, 2)
    return tell(session)


def _slot_of(key: bytes) -> int:
    """Return the slot of a key, or of its hash tag: the content of its first pair of braces."""
    _, _, after = key.partition(b"{")
    tag, closing, _ = after.partition(b"}")
    return binascii.crc_hqx(tag if tag and closing else key, 0) % _SLOTS


def _check_count(name: str, request: Sequence[bytes], wanted: int) -> None:
    if len(request) != wanted:
        raise RefusedError(f"wrong number of arguments for 'cluster|{name}' command")


def _identity(session: Session) -> bytes:
    return session.context.run_id.encode()


def _information(session: Session) -> Answer:
    del session
    known = {
        "state": "ok",
        "slots_assigned": _SLOTS,
        "slots_ok": _SLOTS,
        "slots_pfail": 0,
        "slots_fail": 0,
        "known_nodes": 1,
        "size": 1,
        "current_epoch": 0,
        "my_epoch": 0,
    }
    return "".join(f"cluster_{name}:{value}\r\n" for name, value in known.items()).encode()


def _nodes(session: Session) -> Answer:
    at = f"{show_address(session.reached)}@0"  # nodes have no connections among themselves
    return b"%b %b myself,master - 0 0 0 connected 0-%d\n" % (
        _identity(session),
        at.encode(),
        _SLOTS - 1,
    )


def _slots(session: Session) -> Answer:
    host, port = session.reached
    return [[0, _SLOTS - 1, [host.encode(), port, _identity(session), {}]]]


def _shards(session: Session) -> Answer:
    host, port = session.reached
    node: dict[str, Answer] = {
        "id": _identity(session),
        "port": port,
        "ip": host.encode(),
        "endpoint": host.encode(),
        "role": b"master",
        "replication-offset": 0,
        "health": b"online",
    }
    return [{"slots": [0, _SLOTS - 1], "nodes": [node]}]


_TOLD: Final[dict[str, Callable[[Session], Answer]]] = {
    "info": _information,
    "myid": _identity,
    "nodes": _nodes,
    "shards": _shards,
    "slots": _slots,
}
