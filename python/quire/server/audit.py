"""The audit log: who did what, when and from where, in a queue."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Protocol

from quire.errors import QuireError
from quire.opening.opener import open as open_queue
from quire.server.tokens import Token

_log = logging.getLogger("quire")


class Client(Protocol):
    """Who does something: with which token, and from where."""

    @property
    def token(self) -> Token | None:
        """The client's token; None: it has shown none."""
        ...

    @property
    def peer(self) -> str:
        """The client's address."""
        ...


class Audit:
    """
    A queue with a message for each connection that authenticates or fails to, and for what it does.

    Args:
        path: The queue's directory, made if it is not there.

    """

    def __init__(self, path: Path) -> None:
        self._queue = open_queue(path, format="chronicle")
        self._appender = self._queue.appender()

    def note(self, what: str, client: Client, about: str) -> None:
        """Write what a client did; a failure is logged, and stops no client."""
        who = "" if client.token is None else client.token.name
        row = {"what": what, "who": who, "from": client.peer, "about": about}
        try:
            self._appender.write_map(row)
        except (QuireError, OSError) as error:
            _log.error("the audit log failed: what=%s who=%s error=%s", what, who, error)

    def close(self) -> None:
        """Close the queue."""
        self._queue.close()
