"""The connections of a server: an asyncio protocol for each, around a session."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import math
import select
import termios
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, cast

from quire._waiting.sleeping import sleep_async
from quire.errors import QuireError, RefusedError
from quire.recording.addresses import show_address
from quire.server.answers import Answer, encoded
from quire.server.client_session import Later, Session
from quire.server.client_shares import name_of
from quire.server.command_threads import CommandThreads
from quire.server.server_tls import name_in

if TYPE_CHECKING:
    from quire.server.context import Context

_log = logging.getLogger("quire")
_ABSENT_S: Final = 0.1
_LOOKS_PER_S: Final = 2000
"""The number of missing queues to look for in a second, however many clients wait."""
_TICK_S: Final = 0.5


class ClientConnection(asyncio.Protocol):
    """
    A client's connection.

    Args:
        hub: Wakes the sessions of a server.

    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._transport: asyncio.Transport | None = None
        self.session: Session | None = None
        self._is_full = self._is_paused = self._is_due = self._was_empty = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start a session, unless there are too many."""
        self._transport = transport = cast(
            "asyncio.Transport", transport
        )  # uvloop's is no subclass
        context = self._hub.context
        peer, own = (transport.get_extra_info(it) or ("?", 0) for it in ("peername", "sockname"))
        certificate = name_in(transport.get_extra_info("peercert"))
        session = Session(context, show_address(peer), (str(own[0]), int(own[1])), certificate)
        if self._hub.is_ending:
            transport.close()
            return
        try:
            self._hub.admit(session)
        except RefusedError as refusal:
            self.refuse(str(refusal))
            return
        transport.set_write_buffer_limits(high=context.limits.waiting_bytes)
        self.session = session
        self._hub.connections[session] = self

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the session."""
        del exc
        if self.session is not None:
            self.session.close()
            self.session.waiting = None
            self._hub.forget(self.session)
            if self.session.steps is not None:
                self._is_full = False
                self._soon()

    def data_received(self, data: bytes) -> None:
        """Take data from the client, and execute the commands."""
        if self.session is None:
            return
        self.session.receive(data)
        self._hub.end_wait(self.session)
        self.go_on()

    def eof_received(self) -> bool:
        """Answer the remaining commands, although the client sends no more."""
        session = self.session
        if session is None or session.is_idle or session.waiting is not None:
            return False
        session.commands.append([b"QUIT"])
        return True

    def pause_writing(self) -> None:
        """Execute no more commands until the client has read its answers."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Continue: the client has read its answers."""
        self._is_full = False
        self.go_on()

    def go_on(self) -> None:
        """Execute the commands that are ready, send the answers, and wait for the others."""
        session, transport = self.session, self._transport
        if session is None or transport is None:
            return
        again = False
        if not self._is_full:
            again = session.run()
        if data := session.outgoing():
            transport.write(data)
        if session.is_closing:
            transport.close()
            if again:
                self._soon()
            return
        if session.waiting is not None:
            self._hub.wait(session)
        if session.later is not None and not session.later.is_begun:
            session.later.is_begun = True
            self._hub.carry_out_later(session, session.later)
        if again or (session.may_run and not self._is_full):
            self._soon()
        self._pause(session, transport)

    def _soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._is_due = False
        self.go_on()

    def _pause(self, session: Session, transport: asyncio.Transport) -> None:
        """Stop reading from a client that sends commands faster than they are executed."""
        has_much = bool(session.commands) or self._is_full or self._hub.is_ending
        if has_much and not self._is_paused:
            transport.pause_reading()
        elif not has_much and self._is_paused:
            transport.resume_reading()
        self._is_paused = has_much

    @property
    def unread_socket(self) -> int:
        """The file descriptor of a socket that is not read now; -1 if it is read, or closed."""
        if self._transport is None or not self._is_paused or self._transport.is_closing():
            return -1
        return int(self._transport.get_extra_info("socket").fileno())

    def end(self) -> None:
        """Close the connection once the answers are sent, without a last text."""
        if self._transport is not None:
            self._transport.close()

    @property
    def is_delivered(self) -> bool:
        """Whether the other side has received everything, by two looks at the buffer."""
        transport = self._transport
        if transport is None or transport.get_write_buffer_size():
            return False
        handle = int(transport.get_extra_info("socket").fileno())
        try:
            left = fcntl.ioctl(handle, termios.TIOCOUTQ, bytes(4)) if handle >= 0 else b""
        except OSError:  # closed meanwhile
            return False
        was_empty, self._was_empty = self._was_empty, not any(left)
        return was_empty and self._was_empty

    def refuse(self, text: str) -> None:
        """Send the reason, and close the connection."""
        if self._transport is not None:
            self._transport.write(encoded(RefusedError(text), 2))
            self._transport.close()

    def drop(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()


class Hub:
    """
    Wakes waiting sessions: one sleep per queue, however many clients wait for it.

    Args:
        context: The state that the sessions share.

    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.connections: dict[Session, ClientConnection] = {}
        self.is_ending = False
        self._waiting: dict[str, set[Session]] = {}
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._missing: set[str] = set()
        self._due: set[Session] = set()
        self._threads = CommandThreads()
        self._ticks: asyncio.Task[None] | None = None
        self._tasks: dict[asyncio.Task[Answer], Later] = {}
        context.created, context.busy = self._wake_all, self._busy

    def start(self) -> None:
        """Start to check for slow clients and for waits whose time is up."""
        self._ticks = asyncio.get_running_loop().create_task(self._tick())

    def _busy(self) -> Iterator[str]:
        """Yield the names of queues that a client waits for, or that a running command uses."""
        yield from (topic for topic, waiting in self._waiting.items() if waiting)
        for later in self._tasks.values():
            yield from later.topics

    def wait(self, session: Session) -> None:
        """Wake a session when there are messages for it, or its time is up."""
        waiting = session.waiting
        if waiting is None:
            return
        for topic in waiting.topics:
            self._waiting.setdefault(topic, set()).add(session)
            if topic not in self._watches:
                self._watches[topic] = asyncio.get_running_loop().create_task(self._watch(topic))
        if waiting.until is not None:
            left = max(0.0, waiting.until - time.monotonic())
            asyncio.get_running_loop().call_later(left + 0.001, self._time_is_up, session, waiting)

    def end_wait(self, session: Session) -> None:
        """End a client's wait if its next command has arrived and the wait yields to it."""
        waiting = session.waiting
        if waiting is not None and waiting.yields and session.commands:
            waiting.until = 0.0
            self._wake(session)

    def _time_is_up(self, session: Session, waiting: object) -> None:
        if session.waiting is waiting:
            self._wake(session)

    def _wake(self, session: Session) -> None:
        waiting = session.waiting
        if waiting is None:
            return
        session.wake(time.monotonic())
        if session.waiting is None:
            self._stop_waiting(session, waiting.topics)
            if (connection := self.connections.get(session)) is not None:
                connection.go_on()

    def _stop_waiting(self, session: Session, topics: tuple[str, ...]) -> None:
        for topic in topics:
            if (found := self._waiting.get(topic)) is not None:
                found.discard(session)

    def _wake_all(self, topic: str) -> None:
        """Wake the sessions that wait for a queue: once, however many queues have messages."""
        for session in self._waiting.get(topic, ()):
            if session not in self._due:
                self._due.add(session)
                asyncio.get_running_loop().call_soon(self._wake_due, session)

    def _wake_due(self, session: Session) -> None:
        self._due.discard(session)
        self._wake(session)

    async def _watch(self, topic: str) -> None:
        """Wake the sessions that wait for a queue, each time it has more messages."""
        was_there = False
        try:
            while self._waiting.get(topic):
                try:
                    found = self.context.queues.get(topic)
                except RefusedError:
                    found, was_there = None, True  # the next try of those who wait fails likewise
                if found is None:
                    if was_there:
                        self._wake_all(topic)
                    was_there = False
                    await self._absent(topic)
                    continue
                was_there, news = True, found.news
                try:
                    news.to_end()
                    self._wake_all(topic)
                    await asyncio.sleep(0)  # they are woken
                    if self._waiting.get(topic):
                        await sleep_async(news, math.inf)
                except (QuireError, OSError) as error:
                    self.context.queues.check(found, error)
                    self._wake_all(topic)
                    await asyncio.sleep(_ABSENT_S)
        finally:
            self._watches.pop(topic, None)
            self._waiting.pop(topic, None)

    async def _absent(self, topic: str) -> None:
        """Wait until it is time to check again whether another process has created a queue."""
        self._missing.add(topic)
        try:
            await asyncio.sleep(max(_ABSENT_S, len(self._missing) / _LOOKS_PER_S))
        finally:
            self._missing.discard(topic)

    def carry_out_later(self, session: Session, later: Later) -> None:
        """Let a thread execute a command."""
        task = asyncio.get_running_loop().create_task(self._threads.carried_out(session, later))
        self._tasks[task] = later
        task.add_done_callback(lambda done: self._finish(session, later, done))

    def _finish(self, session: Session, later: Later, done: asyncio.Task[Answer]) -> None:
        del self._tasks[done]
        if done.cancelled():  # the server ends
            return
        if session.later is later:
            self._answer(session, done.result)
        elif (error := done.exception()) is not None:
            _log.info("a command failed that was ended: peer=%s error=%s", session.peer, error)

    def _answer(self, session: Session, call: Callable[[], Answer]) -> None:
        """Answer a client whose command a thread has finished, or finishes in vain."""
        session.finish(call)
        if (connection := self.connections.get(session)) is not None:
            connection.go_on()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            now = time.monotonic()
            for session, connection in [*self.connections.items()]:
                if session.is_late(now):
                    _log.warning("disconnected a slow client: peer=%s", session.peer)
                    connection.refuse("the request took too long")
                elif not session.is_idle and not session.is_admitted:
                    self._end(session)
            self._drop_gone()
            self.context.leave_moved()
            for queue in self.context.queues.opened:
                queue.forget_places(now)

    def _drop_gone(self) -> None:
        """Drop clients that are gone but have sent commands after one that still waits."""
        polled, unread = select.poll(), dict[int, ClientConnection]()
        for session, connection in self.connections.items():
            if session.waiting is not None and (handle := connection.unread_socket) >= 0:
                polled.register(handle, select.POLLRDHUP)
                unread[handle] = connection
        for handle, _ in polled.poll(0):
            unread[handle].drop()

    def admit(self, session: Session) -> None:
        """
        Count a session of a new connection.

        Raises:
            RefusedError: There are too many connections.

        """
        self.context.shares.take(name_of(session))
        self.context.sessions.add(session)

    def _end(self, session: Session) -> None:
        """End the wait of a client whose token is no longer valid."""
        self._wake(session)
        if session.later is not None:
            self._answer(session, lambda: None)

    def forget(self, session: Session) -> None:
        """Forget a session whose connection is gone."""
        self.connections.pop(session, None)
        self.context.sessions.discard(session)
        self.context.shares.give_back(name_of(session))
        if session.held:
            self._threads.submit(session.release)
        for found in self._waiting.values():
            found.discard(session)

    async def end(self, timeout_s: float) -> None:
        """Answer the received commands, and close all connections."""
        self.is_ending = True
        for connection in [*self.connections.values()]:
            connection.go_on()  # and receive nothing more
        if self._ticks is not None:
            self._ticks.cancel()
        for watch in [*self._watches.values()]:
            watch.cancel()
        await _until(lambda: all(map(_is_through, self.connections)), timeout_s)
        for connection in [*self.connections.values()]:
            connection.end()
        await _until(self._are_delivered, timeout_s)
        for connection in [*self.connections.values()]:
            connection.drop()
        for session in [*self.connections]:
            session.release()
        self._threads.end()

    def _are_delivered(self) -> bool:
        """Whether all clients have their answers; drops those that do, without TLS's last words."""
        for connection in [*self.connections.values()]:
            if connection.is_delivered:
                connection.drop()
        return not self.connections


async def _until(is_so: Callable[[], bool], timeout_s: float) -> None:
    """Return when a condition holds, or the time is up."""
    ends = time.monotonic() + timeout_s
    while not is_so() and time.monotonic() < ends:  # noqa: ASYNC110 - the sessions have no event
        await asyncio.sleep(0.005)


def _is_through(session: Session) -> bool:
    return session.waiting is not None or session.is_idle
