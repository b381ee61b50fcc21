"""An address on a server, before a queue is opened: the queues that it names, and the options."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from quire.errors import NotAQueueError, RefusedError
from quire.remote.address import RemoteAddress, parse
from quire.remote.connection import Connection, server_at

if TYPE_CHECKING:
    from quire.remote.queue import RemoteQueue

_AT_ONCE: Final = 10_000


@dataclass(frozen=True, slots=True)
class RemotePlace:
    """
    A server, one of its queues, or all queues whose names begin with the same parts.

    Attributes:
        address: The address; without a topic, it stands for all queues of the server.
        options: ``token``, ``tls`` and ``timeout_s``, as :func:`quire.open` takes them.

    """

    address: RemoteAddress
    options: Mapping[str, Any] = field(repr=False, default_factory=dict[str, Any])

    @classmethod
    def of(cls, url: str, **options: Any) -> RemotePlace:  # noqa: ANN401 - of quire.open
        """
        Parse ``quire://HOST:PORT`` or ``quire://HOST:PORT/QUEUE``.

        Raises:
            OptionsError: The text has another form.

        """
        given = {name: it for name, it in options.items() if it is not None}
        return cls(parse(url, names_queue=False), given)

    def __str__(self) -> str:
        """Return the address, without the token."""
        return self.address.url

    def within(self, topic: str) -> RemotePlace:
        """Return the place of a queue on the same server."""
        return replace(self, address=self.address._replace(topic=topic))

    def connected(self) -> Connection:
        """Return a connection for single commands, which connects at the first one."""
        return Connection(server_at(self.address, self.options))

    def open(self, **options: Any) -> RemoteQueue:  # noqa: ANN401 - of quire.open
        """Open the queue, as :func:`quire.open` does."""
        from quire.remote.queue import open_remote

        return open_remote(self.address.url, {**self.options, **options})

    def topics(self, connection: Connection | None = None) -> list[str]:
        """
        Return the names of the queues at this place that the token may read, in order.

        These are the queue of this name; or the queues whose names begin with it and ``/``; or,

        without a name, all queues of the server. A given *connection* is left open.

        Raises:
            NotAQueueError: There is no such queue.
            RefusedError: The server refuses the token, or the name.
            ServerLostError: The server was not reached.

        """
        if connection is None:
            with closing(self.connected()) as made:
                return self.topics(made)
        topic = self.address.topic
        if topic and connection.call("EXISTS", topic):
            return [topic]
        before = f"{topic}/" if topic else ""
        found = sorted(it for it in _listed(connection) if it.startswith(before))
        if not found:
            below = ", nor any whose name begins with it" if topic else " that may be read"
            more = _elsewhere(connection)
            raise NotAQueueError(f"no queue at this address{below}: path={self}{more}")
        return found

    def queues(self, connection: Connection | None = None) -> dict[str, RemotePlace]:
        """
        Return the place of each queue, by its name below this place; empty for the queue itself.

        A given *connection* is left open.

        Raises:
            NotAQueueError: There is no such queue.
            RefusedError: The server refuses the token, or the name.
            ServerLostError: The server was not reached.

        """
        if connection is None:
            with closing(self.connected()) as made:
                return self.queues(made)
        own, topics = self.address.topic, self.topics(connection)
        there = replace(self, address=connection.server.address)  # another server's, it may be
        before = f"{own}/" if own else ""
        return {"" if it == own else it.removeprefix(before): there.within(it) for it in topics}


def _elsewhere(connection: Connection) -> str:
    """Return the queues of other servers, for an error."""
    try:
        found = connection.call("QUIRE.PEERS")
    except RefusedError:  # an older server
        return ""
    shown = ", ".join(f"{it.decode()} at {at.decode()}" for it, at in found)
    return f" (on other servers: {shown:.1000})" if shown else ""


def _listed(connection: Connection) -> set[str]:
    """Return the names of all queues that may be read."""
    found, cursor = set[str](), 0
    while True:
        following, names = connection.call("SCAN", cursor, "COUNT", _AT_ONCE)
        found |= {name.decode("utf-8", "replace") for name in names}
        if not int(following):
            return found
        if int(following) <= cursor:
            raise RefusedError(f"the server's listing does not continue: cursor={following!r}")
        cursor = int(following)
