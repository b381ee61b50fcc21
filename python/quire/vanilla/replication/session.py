"""One connection of a sink, as the source sees it: requests are answered, messages are sent."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from quire.errors import MessageTooLargeError, ReplicationError
from quire.handles.vanilla import VanillaAppender, VanillaQueue
from quire.vanilla.replication import wire_frames
from quire.vanilla.replication.link import Link
from quire.vanilla.replication.wire_frames import Action, Mark

if TYPE_CHECKING:
    from quire._native import Buffer

_BATCH_COUNT: Final = 1024
_BATCH_BYTES: Final = 256 << 10
_POLL_MIN_S: Final = 0.000_1
_POLL_MAX_S: Final = 0.01
_CYCLES_KEPT: Final = 64
_DROP_BYTES: Final = 64 << 10


class SinkStatus(NamedTuple):
    """
    How far a connected sink is, from :attr:`Source.sinks`.

        late = [each.peer for each in source.sinks if each.sent_index != queue.last_index]

    Attributes:
        peer: Its address.
        subscribed: Whether it gets messages.
        sent_index: The last message it was sent; None before the first.
        acknowledged_index: The last message it says it has stored; None if it never said so.

    """

    peer: str
    subscribed: bool
    sent_index: int | None
    acknowledged_index: int | None


class Acknowledged:
    """
    What a sink says it has stored: the last message of each cycle.

    A slow writer may add to a cycle after newer ones began, so that one index says nothing about
    other cycles.
    """

    def __init__(self, entries_per_cycle: int) -> None:
        self._entries_per_cycle = entries_per_cycle
        self._ends: dict[int, int] = {}

    def add(self, index: int) -> None:
        """Note that a message, and those before it in its cycle, are stored."""
        cycle = index // self._entries_per_cycle
        self._ends[cycle] = max(index, self._ends.get(cycle, index))
        if len(self._ends) > _CYCLES_KEPT:
            del self._ends[min(self._ends)]

    def __contains__(self, index: int) -> bool:
        """Whether a message is stored. A sink need not mention cycles before those it mentions."""
        cycle = index // self._entries_per_cycle
        if cycle in self._ends:
            return index <= self._ends[cycle]
        return bool(self._ends) and cycle < min(self._ends)

    @property
    def last(self) -> int:
        """The highest index."""
        return max(self._ends.values())


class Session:
    """
    A connection of a sink.

    Args:
        queue: The source's queue.
        link: The connection.
        appender: Appends what the sink submits; None: it may not.
        submit_limit: The longest message that it may submit.
        heartbeat_s: After how long without a message it gets a heartbeat.
        changed: Called when it subscribes or acknowledges.

    """

    def __init__(  # noqa: PLR0913 - what a connection needs
        self,
        queue: VanillaQueue,
        link: Link,
        *,
        appender: VanillaAppender | None,
        submit_limit: int,
        heartbeat_s: float,
        changed: Callable[[], None],
    ) -> None:
        self._queue, self._link = queue, link
        self._appender, self._submit_limit = appender, submit_limit
        self._heartbeat_s = heartbeat_s
        self._changed = changed
        self._is_at_message = False  # False too where the sink asked for one that is not there
        self._is_stuck = False  # the last frame is too short for Java's sink to look at
        self._sent_s = 0.0
        self._sent: int | None = None
        self._newest = -1  # the newest cycle of what was sent
        self._asked: list[int] = []  # what the sink wanted to know the next message of
        self.is_subscribed = False
        self.acknowledged: Acknowledged | None = None

    @property
    def status(self) -> SinkStatus:
        """How far the sink is."""
        acknowledged = self.acknowledged.last if self.acknowledged else None
        return SinkStatus(self._link.peer, self.is_subscribed, self._sent, acknowledged)

    async def run(self) -> None:
        """Answer requests and send messages until either side ends the connection."""
        try:
            with self._queue.tailer() as self._tailer:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._answer_all())
                    tasks.create_task(self._send_all())
        finally:
            self._link.close()

    async def _answer_all(self) -> None:
        is_first = True
        while True:
            action = await self._read_int(may_wait=not is_first)
            await self._answer(action)
            is_first = False

    async def _answer(self, code: int) -> None:
        match code:
            case Action.SUBSCRIBE:
                await self._send(self._subscribe(await self._read_int()))
            case Action.UNSUBSCRIBE:
                await self._read_int()
                self.is_subscribed = self._is_at_message = False
                self._changed()
            case Action.QUERY:
                await self._send(self._query(await self._read_int()))
            case Action.SUBMIT | Action.SUBMIT_NO_ACK:
                await self._submit(await self._read_int(), is_answered=code == Action.SUBMIT)
            case Action.ACKNOWLEDGE:
                self._acknowledge(await self._read_int())
            case Action.WITH_MAPPING:
                text = "a sink asked for a mapping, a serialised Java function: not supported"
                raise ReplicationError(f"{text}: peer={self._link.peer}")
            case _:
                text = "a sink sent an unknown action"
                raise ReplicationError(f"{text}: found={code} peer={self._link.peer}")

    async def _read_int(self, *, may_wait: bool = False) -> int:
        size = wire_frames.ACTION.size
        [number] = wire_frames.ACTION.unpack(await self._link.read_exactly(size, may_wait=may_wait))
        return int(number)

    def _subscribe(self, last: int) -> bytes:
        """Go to where a sink wants to begin: it gets its last message again."""
        if last == wire_frames.TO_END:
            found = self._queue.last_index
            last = wire_frames.FROM_START if found is None else found
        if last == wire_frames.FROM_START:
            self._tailer.to_start()
            self._is_at_message = True
            self._newest = -1
        else:
            # As with Java, a sink that asks for a message that is not there gets only heartbeats.
            self._is_at_message = last >= 0 and self._tailer.move_to_index(last)
            self._newest = last // self._queue.entries_per_cycle
            if self._is_at_message:
                # It asks for the ends of its cycles first: what came since is sent, too.
                asked = [index for index in self._asked if index < last]
                self._tailer._watch_earlier(asked)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        self.is_subscribed = True
        self._changed()
        return wire_frames.marked(Mark.SYNC_INDEX, last)

    def _query(self, index: int) -> bytes:
        self._asked = [*self._asked, index][-_CYCLES_KEPT:]
        with self._queue.tailer() as tailer:
            if index >= 0 and tailer.move_to_index(index):
                tailer.read()
                if (after := tailer.read()) is not None:
                    return wire_frames.marked(Mark.SYNC_INDEX, after.index)
        return wire_frames.marked(Mark.IN_SYNC, 0)

    async def _submit(self, length: int, *, is_answered: bool) -> None:
        appender = self._appender
        if length < 0 or (appender and length > self._submit_limit):
            text = "a sink submitted a message of invalid length"
            limits = f"found={length} limit={self._submit_limit} peer={self._link.peer}"
            raise ReplicationError(f"{text}: {limits}")
        if appender is None:
            await self._refuse(length, is_answered=is_answered)
            return
        payload = await self._link.read_exactly(length)
        try:
            index = appender.write_bytes(payload)
        except MessageTooLargeError as error:
            raise ReplicationError(f"{error} peer={self._link.peer}") from None
        if is_answered:
            await self._send(wire_frames.marked(Mark.ACK, index))

    async def _refuse(self, length: int, *, is_answered: bool) -> None:
        if not is_answered:
            # Only the end of the connection says that the message is not stored.
            text = "a sink submitted a message, and this source takes none"
            raise ReplicationError(f"{text}: length={length} peer={self._link.peer}")
        while length:
            length -= len(await self._link.read_exactly(min(length, _DROP_BYTES)))
        await self._send(wire_frames.marked(Mark.NACK, wire_frames.UNSUPPORTED))

    def _acknowledge(self, index: int) -> None:
        if self.acknowledged is None:
            self.acknowledged = Acknowledged(self._queue.entries_per_cycle)
        self.acknowledged.add(index)
        self._changed()

    async def _send_all(self) -> None:
        pause_s = _POLL_MIN_S
        while True:
            if self._is_at_message and (chunk := self._next_messages()):
                await self._send(chunk)
                pause_s = 0
            elif self.is_subscribed and (self._is_stuck or self._is_quiet()):
                self._is_stuck = False
                await self._send(wire_frames.marked(Mark.IN_SYNC, 0))
            await asyncio.sleep(pause_s)
            pause_s = min(max(pause_s * 2, _POLL_MIN_S), _POLL_MAX_S)

    def _is_quiet(self) -> bool:
        return asyncio.get_running_loop().time() - self._sent_s >= self._heartbeat_s

    def _next_messages(self) -> bytes:
        read = self._tailer._read_columns  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        count, indexes, offsets, data = read(_BATCH_COUNT, max_bytes=_BATCH_BYTES)
        if not count:
            return b""
        numbers, ends = _integers("q", count, indexes), _integers("i", count + 1, offsets)
        self._check_cycles({number // self._queue.entries_per_cycle for number in numbers})
        self._sent = numbers[-1]
        last_frame = wire_frames.FRAME_BYTES + ends[-1] - ends[-2]
        self._is_stuck = last_frame < wire_frames.JAVA_READS_FROM
        return wire_frames.messages(numbers, ends, memoryview(data))

    def _check_cycles(self, cycles: Iterable[int]) -> None:
        """
        Check that retention took no cycle between what was sent and what comes next.

        It removes the oldest first: where some are skipped, the one before them must be there.

        Raises:
            ReplicationError: Retention removed a cycle that was not sent.

        """
        for cycle in sorted(cycles):
            if 0 <= self._newest < cycle - 1:
                before = Path(self._queue.directory_for_cycle(self._newest))
                if not before.is_dir():
                    text = "cycles that a sink had not been sent may have been removed"
                    raise ReplicationError(f"{text}: after={before} peer={self._link.peer}")
            self._newest = max(self._newest, cycle)

    async def _send(self, chunk: bytes) -> None:
        self._sent_s = asyncio.get_running_loop().time()
        await self._link.send(chunk)


def _integers(code: str, count: int, column: Buffer) -> tuple[int, ...]:
    return struct.unpack(f"<{count}{code}", column)
