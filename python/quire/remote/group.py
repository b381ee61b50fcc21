"""Consumer groups of remote queues."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from quire._common import arguments
from quire.errors import (
    ClosedError,
    GroupError,
    ServerLostError,
    UnsupportedError,
)
from quire.groups.consumer import Consumer
from quire.groups.group import Group
from quire.groups.message import GroupBatch, GroupMessage
from quire.groups.states import GroupMemberState, GroupState, PendingMessage, is_group_name
from quire.remote.connection import Connection, packed
from quire.remote.handle_thread import HandleThread
from quire.remote.lacking import FORMAT
from quire.remote.reconnecting import BLOCK_MS, Reconnecting
from quire.remote.waiting import socket_watch, wake_waiting

if TYPE_CHECKING:
    from datetime import date

    from quire.remote.link import RemoteLink

_T = TypeVar("_T")

_DELIVERIES: Final = 5
_END: Final = 2**63 - 1
_PLACE: Final = arguments.whole(0, _END)


@dataclass(frozen=True, slots=True)
class RemoteClaim:
    """The delivery of one message: the counterpart of a native claim."""

    index: int
    count: int
    cause: str | None
    is_again: bool
    joined: int

    def count_of(self, bit: int, /) -> int:
        """Return how often it was delivered."""
        del bit
        return self.count


class _Delivered:
    """Messages that were delivered together."""

    def __init__(self, rows: Sequence[tuple[RemoteClaim, bytes]]) -> None:
        self.rows = rows

    def payloads(self) -> list[bytes]:
        """Return the bytes of all messages."""
        return [data for _, data in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, place: int) -> tuple[RemoteClaim, int, int, bytes]:
        """Return the parts of the message at a place."""
        claim, data = self.rows[place]
        return claim, 1, claim.index, data

    def __iter__(self) -> Iterator[tuple[RemoteClaim, int, int, bytes]]:
        return map(self.at, range(len(self.rows)))


class RemoteMembership(Reconnecting):
    """
    A member of a group at the server, while its connection lasts.

    After a lost connection it joins again. Its messages go to any member: acknowledging them
    afterwards returns False.

    Args:
        queue: The queue.
        words: What it joins with.

    """

    def __init__(self, queue: RemoteLink, words: Sequence[bytes | str | int]) -> None:
        self._queue, self._words = queue, words
        server = queue.server
        self._connection = Connection(server, self._greet)
        self._lock = RLock()
        self._number, self._joined = 0, 0
        self._is_asked = False
        self._ready: list[tuple[RemoteClaim, bytes]] = []
        self._ready_lock = RLock()  # no call to the server is made under it
        self._wanted = 1  # how many messages a task waits for
        self._thread = HandleThread("quire-remote-consumer")
        self._connection.ready(self._connection.deadline())

    def _greet(self, connection: Connection) -> None:
        found: int = connection.ask(self._words, connection.deadline())
        self._number, self._joined = found, self._joined + 1
        with self._ready_lock:
            self._ready, self._is_asked = [], False

    @property
    def closed(self) -> bool:
        """Whether the member has left the group."""
        return self._connection.closed

    @property
    def known(self) -> int:
        """The server says of each message whether it was delivered before."""
        return 0

    def sleepers(self) -> tuple[RemoteMembership]:
        """Return what is due once there may be a message."""
        return (self,)

    def may_deliver(self) -> bool:
        """Return whether a read may return a message: to ask again would end a task's wait."""
        if self._ready:
            return True
        with self._lock:
            return bool(self._ready) or not self._is_awaited or self._poll()

    @property
    def _is_awaited(self) -> bool:
        """Whether a task waits, which asked the server."""
        return not self.closed and socket_watch().has_waits(self._connection.fileno())

    def _is_buffered(self) -> bool:
        """Return whether a message is here that no task has."""
        self._check_open()
        return bool(self._ready)

    def _asks_first(self) -> bool:
        return not self._is_awaited

    def _reconnect(self) -> None:
        with self._lock:
            self._connection.ready(self._connection.deadline())
            if not self._ready and not self._look():
                self._settle()

    def _poll(self) -> bool:
        """Let the server wait for messages; return whether it has answered already."""
        return self._connection.repeated(self._look, self._connection.deadline())

    def _look(self) -> bool:
        connection = self._connection
        connection.ready(connection.deadline())
        if not self._is_asked:
            wanted = self._wanted
            words = ("QUIRE.GROUP", "READ", self._number, "COUNT", wanted, "BLOCK", BLOCK_MS)
            connection.send(packed(words), connection.deadline())
            self._is_asked = True
        is_there, answer = connection.poll()
        if is_there:
            self._is_asked = False
            self._keep(answer)
            wake_waiting(connection.fileno())  # the others ask again
        return is_there

    def _keep(self, rows: Sequence[Sequence[Any]]) -> None:
        for index, count, is_again, cause, data in rows:
            text = None if cause is None else cause.decode()
            claim = RemoteClaim(index, count, text, bool(is_again), self._joined)
            with self._ready_lock:  # a task may take messages meanwhile
                self._ready.append((claim, data))

    def _settle(self) -> None:
        """End a wait, whose answer precedes that of the next command."""
        if self._is_asked:
            self._is_asked = False
            if self._connection.is_connected:
                ends = self._connection.deadline()
                self._connection.send(packed(["PING"]), ends)
                self._keep(self._connection.receive(ends))
                self._connection.receive(ends)
                wake_waiting(self._connection.fileno())  # those who waited ask again

    def _ask(self, what: str, *words: bytes | str | int) -> Any:  # noqa: ANN401 - whatever it says
        self._check_open()
        connection = self._connection
        with self._lock:
            ends = connection.deadline()

            def exchange() -> Any:  # noqa: ANN401 - whatever it says
                connection.ready(ends)
                self._settle()
                return connection.ask(("QUIRE.GROUP", what, self._number, *words), ends)

            return connection.repeated(exchange, ends)

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedError(f"the consumer is closed: queue={self._queue.url}")

    def _read(self, count: int) -> list[tuple[RemoteClaim, bytes]]:
        self._check_open()
        if len(self._ready) < count:
            with self._lock:
                ends = self._connection.deadline()
                self._connection.repeated(lambda: self._fill(count, ends), ends)
        return self._taken(count)

    def _taken(self, count: int) -> list[tuple[RemoteClaim, bytes]]:
        with self._ready_lock:
            taken, self._ready = self._ready[:count], self._ready[count:]
            self._wanted = 1
            return taken

    def _fill(self, count: int, ends: float) -> None:
        """Get no more than this many messages: the others are for other members."""
        self._connection.ready(ends)
        self._settle()
        if (missing := count - len(self._ready)) > 0:
            words = ("QUIRE.GROUP", "READ", self._number, "COUNT", missing)
            self._keep(self._connection.ask(words, ends))

    def read_one(self) -> GroupMessage | None:
        """Return the next message."""
        for claim, data in self._read(1):
            return RemoteMessage(self, claim, data)
        return None

    def read_many(self, count: int) -> GroupBatch:
        """Return the next messages, about *count* at most."""
        return RemoteBatch(self, _Delivered(self._read(count)))

    def reader(self, count: int) -> Callable[[], GroupBatch]:
        """Return what reads up to *count* messages that have arrived, for a task that waits."""
        self._wanted = max(count, self._wanted)
        return lambda: RemoteBatch(self, _Delivered(self._taken(count)))

    async def in_loop(self, call: Callable[[], _T], /) -> _T:
        """Return the result of a call that may wait for the server."""
        return await self._thread.run(call)

    def excerpt(self, index: int, data: bytes, /) -> Any:  # noqa: ANN401 - of the format
        """Return a message as a tailer would."""
        return self._queue.excerpt(index, data)

    def acknowledge_all(self, delivered: Any) -> int:  # noqa: ANN401 - see RemoteBatch
        """Acknowledge messages; return how many were pending."""
        claims = [claim for claim, _ in delivered.rows if claim.joined == self._joined]
        if not claims:
            return 0
        found: list[int] = self._ask("ACK", *(it.index for it in claims))
        return sum(found)

    def acknowledge(self, claim: Any, bits: int, /) -> bool:  # noqa: ANN401 - a RemoteClaim
        """Acknowledge a message; False if it was not pending."""
        del bits
        return self._one(claim, "ACK")

    def refuse(self, claim: Any, bit: int, delay_ms: int, /) -> bool:  # noqa: ANN401 - a RemoteClaim
        """Return a message, to be delivered again after a delay; False if it is not pending."""
        del bit
        return self._one(claim, "NACK", delay_ms)

    def extend(self, claim: Any, bit: int, timeout_ms: int | None, /) -> bool:  # noqa: ANN401 - a RemoteClaim
        """Let a message time out later; False if it is not pending."""
        del bit
        return self._one(claim, "RENEW", timeout_ms or 0)

    def _one(self, claim: RemoteClaim, what: str, *words: int) -> bool:
        if claim.joined != self._joined:
            return False  # the server gave it back with the connection
        found: list[int] = self._ask(what, *words, claim.index)
        return claim.joined == self._joined and found[0] != 0

    def close(self) -> None:
        """Leave the group: other members get its unacknowledged messages."""
        if self.closed:
            return
        try:
            if self._connection.is_connected:
                self._ask("LEAVE")
        except (ServerLostError, GroupError):
            pass  # it left with its connection
        finally:
            self._connection.close()
            self._thread.close()


class RemoteMessage(GroupMessage):
    """A message of a group of a remote queue, until it is acknowledged."""

    __slots__ = ()

    def __init__(self, membership: RemoteMembership, claim: RemoteClaim, data: bytes) -> None:
        super().__init__(membership, claim, 1, claim.index, data)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]

    @property
    def redelivered(self) -> bool:
        """Whether the message may have been delivered before."""
        claim: Any = self._claim
        return bool(claim.is_again)


class RemoteBatch(GroupBatch):
    """Messages of a group of a remote queue that were delivered together."""

    def __init__(self, membership: RemoteMembership, delivered: _Delivered) -> None:
        super().__init__(membership, delivered)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        self._member, self._rows = membership, delivered.rows

    def __iter__(self) -> Iterator[GroupMessage]:
        """Yield the messages."""
        return (RemoteMessage(self._member, claim, data) for claim, data in self._rows)


class RemoteGroup(Group):
    """
    A group of consumers of a remote queue, from :meth:`RemoteQueue.group`.

        with queue.group("billing").consumer("c1") as consumer:
            for message in consumer.follow():
                message.ack()
    """

    def __init__(  # noqa: PLR0913 - those of Queue.group
        self,
        queue: RemoteLink,
        name: str,
        *,
        ack_timeout_s: float = 30.0,
        key: str | Callable[[Any], Any] | None = None,
        dead_letter: Any = None,  # noqa: ANN401 - a queue, or its address
        max_deliveries: int | None = None,
        on_missing: Literal["raise", "warn", "skip"] = "warn",
    ) -> None:
        if key is not None and not isinstance(key, str):
            raise UnsupportedError(
                f"not supported in a {FORMAT}: a function as key= (give the field that holds it)"
            )
        if max_deliveries is not None and dead_letter is None:
            raise ValueError("max_deliveries= requires dead_letter=, a queue for such messages")
        self._link, self._text = queue, arguments.text("name", name)
        if not is_group_name(name):
            raise ValueError(
                f"invalid name of a group: {name!r:.80} (1 to 64 letters, digits, '_', '-' and '.',"
                " the first a letter or digit)"
            )
        self._options: list[bytes | str | int] = [
            *("TIMEOUT", arguments.milliseconds("ack_timeout_s", ack_timeout_s)),
            *("MISSING", arguments.one_of("raise", "warn", "skip")("on_missing", on_missing)),
        ]
        if key is not None:
            self._options += "KEY", key
        if dead_letter is not None:
            letters = queue.neighbour(dead_letter)
            self._options += "DEADLETTER", letters, max_deliveries or _DELIVERIES

    @property
    def name(self) -> str:
        """The group's name."""
        return self._text

    def _ask(self, what: str, *words: bytes | str | int) -> Any:  # noqa: ANN401 - whatever it says
        return self._link.ask("QUIRE.GROUP", what, self._link.topic, self._text, *words)

    def state(self) -> GroupState:
        """Return the lag, the members and the position of the group at one moment."""
        return state_of(self._ask("STATE"))

    def consumer(self, name: str | None = None) -> Consumer:
        """Join the group: see :meth:`quire.Group.consumer`."""
        name = str(os.getpid()) if name is None else arguments.text("name", name)
        topic = self._link.topic
        words = ["QUIRE.GROUP", "JOIN", topic, self._text, name, *self._options]
        membership: Any = RemoteMembership(self._link, words)
        return Consumer(name, membership)

    def pending(self) -> list[PendingMessage]:
        """Return the messages that were delivered and are not acknowledged, by index."""
        return [_pending(it) for it in self._ask("PENDING")]

    def extend(self, index: int, timeout_s: float) -> int:
        """Give a message more time: see :meth:`quire.Group.extend`."""
        timeout_ms = arguments.milliseconds("timeout_s", timeout_s)
        return int(self._ask("EXTEND", index, timeout_ms))

    def release(self, index: int, *, delay_s: float = 0.0) -> int:
        """Take a message from the consumer that has it: see :meth:`quire.Group.release`."""
        delay_ms = arguments.milliseconds("delay_s", delay_s) if delay_s else 0
        return int(self._ask("RELEASE", index, delay_ms))

    def reset(
        self,
        index: int | Literal["start", "end"] | None = None,
        *,
        time: date | float | str | None = None,
        time_field: str | None = None,
    ) -> None:
        """Make the group start elsewhere: see :meth:`quire.Group.reset`."""
        if index is not None and time is not None:
            raise ValueError("index= and time= exclude each other")
        if time is not None:
            from quire.ranges.event_time import epoch_ns_of

            time_ns = max(-_END, min(epoch_ns_of(time), _END))
            words: list[bytes | str | int] = ["TIME", time_ns]
            if time_field is not None:
                words += ["FIELD", time_field]
            index = int(self._link.ask("QUIRE.SEEK", self._link.topic, *words))
        elif time_field is not None:
            raise ValueError("time_field= requires time=")
        if index not in {None, "start", "end"}:
            index = _PLACE("index", index)
        self._ask("RESET", "START" if index is None else str(index))

    def delete(self) -> bool:
        """Remove the group; return whether there was one."""
        return bool(self._ask("DELETE"))

    def __repr__(self) -> str:
        """Return its name and its queue."""
        return f"RemoteGroup({self._text!r}, {self._link.url!r})"


def state_of(found: dict[str, Any]) -> GroupState:
    """Return the state of a group from the server's answer."""
    members = [GroupMemberState(name.decode(), pid, count) for name, pid, count in found["members"]]
    oldest = found["oldest_ms"]
    return GroupState(
        found["name"].decode(),
        found["lag"],
        found["lowest"],
        found["next"],
        tuple(members),
        found["pending"],
        None if oldest is None else oldest / 1000,
    )


def _pending(found: dict[str, Any]) -> PendingMessage:
    def seconds(name: str) -> float | None:
        value = found[name]
        return None if value is None else value / 1000

    def text(name: str) -> str | None:
        value = found[name]
        return None if value is None else value.decode()

    return PendingMessage(
        index=found["index"],
        consumer=text("consumer"),
        pid=found["pid"],
        delivery_count=found["count"],
        age_s=seconds("age_ms"),
        timeout_s=seconds("timeout_ms"),
        delay_s=seconds("delay_ms") or 0.0,
        cause=text("cause"),
    )
