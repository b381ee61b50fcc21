"""The shared state of one server's sessions."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from quire.errors import OptionsError
from quire.server.append_ids import AppendIds
from quire.server.client_shares import ClientBytes, ClientShares
from quire.server.queue_folder import Queues
from quire.server.queue_names import QueueNames
from quire.server.requests import RequestLimits
from quire.server.stream_groups import StreamGroups
from quire.server.tokens import Token, TokenFile

if TYPE_CHECKING:
    from quire._native import PackedEntries
    from quire.server.served_queue import ServedQueue

_LOOK_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Limits:
    """
    What one server, and one client of it, may use.

        Server("queues", limits=Limits(connections=100))

    Attributes:
        connections: How many connections there may be at once.
        connections_of_one: How many of them one token may have, or one machine without a token.
        queues: How many queues may be open at once: the server closes the least recently used one,
            unless clients use all of them.
        held: How many named tailers, members of groups and parts of batches a connection may hold.
        request_bytes: The length of the longest request.
        request_arguments: How many arguments a request may have.
        begun_bytes_of_one: How many bytes incomplete requests may have, on all connections of one
            token, or of one machine without a token.
        names: How many queues a command may name.
        kept_names: How many named tailers, and how many groups, a queue may have before clients can
            no longer add one.
        answer_bytes: The length of the longest answer.
        waiting_bytes: How many bytes may wait to be sent to a client before its commands wait, too.
        greeting_s: How long a client may take to authenticate.
        request_s: How long a client may take to send a request that it has begun.
        live_views: How many web pages may be live at once.
        live_views_of_one: How many of them one token may have, or one machine without a token.
        streams: How many streams of Arrow Flight there may be at once.
        streams_of_one: How many of them one token may have, or one machine without a token.

    """

    connections: int = 10_000
    connections_of_one: int = 2000
    queues: int = 1000
    held: int = 256
    request_bytes: int = 64 << 20
    request_arguments: int = 1 << 20
    begun_bytes_of_one: int = 512 << 20
    names: int = 1000
    kept_names: int = 1000
    answer_bytes: int = 64 << 20
    waiting_bytes: int = 1 << 20
    greeting_s: float = 10.0
    request_s: float = 60.0
    live_views: int = 256
    live_views_of_one: int = 64
    streams: int = 1000
    streams_of_one: int = 200

    @property
    def of_requests(self) -> RequestLimits:
        """The limits for requests of an authenticated client."""
        return RequestLimits(self.request_bytes, self.request_arguments)


@dataclass(slots=True)
class Context:
    """
    The state that the sessions of one server share.

    Attributes:
        queues: The queues.
        groups: The groups of their consumers.
        appends: The appends of clients that number their messages.
        tokens: The tokens of clients that may use the server; None: all clients may.
        limits: What clients may use.
        carry_out: Executes a command of a session.
        add_all: Executes XADD commands of a session that append to one queue.
        note: Writes to the audit log: what happened, by whom, about which queue, by which command.
        run_id: The id of this run of the server, as in Redis.
        started_s: When the server started, in seconds since 1970.
        addresses: The server's other addresses, by their names in the greeting.
        sessions: The sessions of the connected clients.
        shares: How many connections each client has.
        begun: How many bytes of incomplete requests each client has sent.
        names: The names of all queues.
        commands: How many commands were executed.
        created: Wakes the clients that wait for a queue: called with the name of each new queue,
            and of each that lost a group.
        busy: Returns the names of queues that clients wait for, or that threads use for them.

    """

    queues: Queues
    groups: StreamGroups
    appends: AppendIds
    tokens: TokenFile | None
    limits: Limits
    carry_out: Callable[[Any, Sequence[bytes]], Any]
    add_all: Callable[[Any, PackedEntries], Any]
    note: Callable[..., object] = lambda *_given: None
    run_id: str = field(default_factory=lambda: secrets.token_hex(20))
    started_s: float = field(default_factory=time.time)
    addresses: dict[str, str] = field(default_factory=dict[str, str])
    sessions: set[Any] = field(default_factory=set[Any])
    shares: ClientShares = field(init=False)
    begun: ClientBytes = field(init=False)
    names: QueueNames = field(init=False)
    commands: int = 0
    created: Callable[[str], object] = lambda _topic: None
    busy: Callable[[], Iterable[str]] = tuple
    _looked_s: float = 0.0
    _required: bool = False

    def __post_init__(self) -> None:
        limits = self.limits
        self.names = QueueNames(self.queues.topics)
        refusal = "max number of clients reached"
        self.shares = ClientShares(refusal, limits.connections, limits.connections_of_one)
        self.begun = ClientBytes("too long unfinished requests", limits.begun_bytes_of_one)
        self.queues.in_use, self.queues.forgotten = self._in_use, self.groups.forget

    def _in_use(self) -> Iterator[str]:
        """Yield the names of the queues that clients use now."""
        yield from self.busy()
        yield from self.groups.topics_with_pending()
        for session in self.sessions:
            yield from session.used_topics()

    def create(self, topic: str, options: dict[str, Any]) -> ServedQueue:
        """
        Return a queue by its name; if it does not exist, create it with these options.

        Raises:
            RefusedError: The queue cannot be created.

        """
        found = self.queues.create(topic, options)
        self.created(topic)
        return found

    def leave_moved(self) -> None:
        """Close moved queues that have groups: members of these groups would keep messages."""
        for topic in self.groups.topics():
            self.queues.forget_moved(topic)

    def needs_token(self) -> bool:
        """Return whether a client needs a token; the file is checked now and then."""
        if self.tokens is None:
            return False
        now = time.monotonic()
        if now - self._looked_s > _LOOK_S:
            try:
                self._required = self.tokens.is_required
            except OptionsError:
                self._required = True
            self._looked_s = now
        return self._required

    def find(self, token: bytes) -> Token | None:
        """Return the record of a token; None: it is not valid."""
        try:
            return None if self.tokens is None else self.tokens.find(token)
        except OptionsError:
            return None
