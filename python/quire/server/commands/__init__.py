"""The commands that clients give: those of a connection, of Redis Streams, and Quire's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from quire.errors import RefusedError
from quire.server.commands import (
    clustering,
    connecting,
    consuming,
    members,
    ranging,
    staged_batches,
    tailing,
    whole_messages,
    writing,
)
from quire.server.commands.command_table import COMMANDS
from quire.server.commands.writing import add_all

if TYPE_CHECKING:
    from quire.server.client_session import Outcome, Session

__all__ = [
    "add_all",
    "carry_out",
    "clustering",
    "connecting",
    "consuming",
    "members",
    "ranging",
    "staged_batches",
    "tailing",
    "whole_messages",
    "writing",
]

_SHOWN: Final = 128
_ENDS: Final = {b"EXEC", b"DISCARD"}
_BEGINS_AGAIN: Final = {b"RESET", b"HELLO", b"QUIT"}


def carry_out(session: Session, request: Sequence[bytes]) -> Outcome:
    """
    Execute a command.

    Raises:
        RefusedError: The command is unknown or not allowed, or its arguments are wrong.

    """
    name = request[0].upper()
    command = COMMANDS.get(name)
    if command is None or not command.is_open:
        session.check_admitted()
    session.is_in_transaction = _is_in_transaction(session, name)
    if command is None:
        shown = request[0][:_SHOWN].decode("utf-8", "replace")
        raise RefusedError(f"unknown command '{shown}': docs/remote.md lists the known ones")
    command.check_count(request)
    most = session.context.limits.names
    if len(request) > most and len(command.keys_of(request)) > most:
        raise RefusedError(f"the command names too many queues: limit={most}")
    session.request = request
    return command.call(session, request)


def _is_in_transaction(session: Session, name: bytes) -> bool:
    """
    Return whether the client is in a transaction after a command.

    Clients send what belongs to one together with ``MULTI``, and take its error for that of all.

    Raises:
        RefusedError: The command begins a transaction, belongs to one, or ends it.

    """
    if session.is_in_transaction and name in _ENDS:
        session.is_in_transaction = False
        raise RefusedError("EXECABORT Transaction discarded, as MULTI is not supported")
    if name == b"MULTI":
        session.is_in_transaction = True
        raise RefusedError(
            "not supported: MULTI, as an appended message is visible at once (redis-py:"
            " pipeline(transaction=False))"
        )
    if session.is_in_transaction and name not in _BEGINS_AGAIN:
        session.check_transaction()
    return False
