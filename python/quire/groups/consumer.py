"""Consumers: the members of a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, Self, TypeVar

from quire._common import arguments
from quire._common.known_attributes import KnownAttributes
from quire._waiting.async_reading import AsyncClosing, AsyncMessages, Tasks
from quire._waiting.sleeping import AnyOf, pauser_at
from quire.errors import WaitTimeoutError
from quire.groups.message import GroupBatch, GroupMessage

if TYPE_CHECKING:
    from types import TracebackType

    from quire._native import EventLoopWaits
    from quire._waiting.async_reading import RemoteReading
    from quire._waiting.sleeping import Begun
    from quire.groups.membership import Membership
    from quire.pausers import Pauser

_T = TypeVar("_T")

_COUNT: Final = arguments.whole(1, 2**31 - 1)


class Consumer(AsyncClosing, KnownAttributes):
    """
    A member of a group, from :meth:`Group.consumer`.

    A message that is not acknowledged is delivered again: after the group's ``ack_timeout_s``, or
    at once when the consumer is closed or its process dies. A consumer may be used from any thread.

    Examples:
        >>> _ = appender.write_many([b"one", b"two"])
        >>> with queue.group("billing").consumer("c1") as consumer:
        ...     for message in consumer:
        ...         print(message.data, message.ack())
        ...     consumer.name, consumer.closed, consumer.read()
        b'one' True
        b'two' True
        ('c1', False, None)
        >>> consumer.close()
        >>> consumer.closed
        True
        >>> _ = appender.write_many([b"three", b"four"])
        >>> with queue.group("billing").consumer() as consumer:
        ...     consumer.ack_many(consumer.read_many(1000))
        2

    """

    def __init__(self, name: str, membership: Membership) -> None:
        """Keep the membership."""
        self._name, self._membership = name, membership
        self._tasks = Tasks(sole=False)
        self._any = AnyOf(membership.sleepers)

    @property
    def name(self) -> str:
        """The consumer's name, as `quire groups` lists it."""
        return self._name

    @property
    def closed(self) -> bool:
        """Whether the consumer has left the group."""
        return self._membership.closed

    def read(self) -> GroupMessage | None:
        """Return the next message; None if there is nothing yet."""
        return self._membership.read_one()

    def read_many(self, count: int) -> GroupBatch:
        """
        Return up to *count* messages, of 8 MiB at most; an empty batch if there is nothing yet.

        Args:
            count: How many. Redelivered messages come in ranges of up to 32, so there may be a few
                more.

        """
        return self._membership.read_many(_COUNT("count", count))

    def ack_many(self, messages: Iterable[GroupMessage]) -> int:
        """
        Acknowledge messages; return how many of them this consumer still held.

        Args:
            messages: A batch, or messages of this consumer.

        """
        if isinstance(messages, GroupBatch):
            return self._membership.acknowledge_all(messages.delivered)
        if not isinstance(messages, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise arguments.refusal("messages", "a batch, or messages", messages)
        return sum(_message(one).ack() for one in messages)

    async def aack_many(self, messages: Iterable[GroupMessage]) -> int:
        """
        Acknowledge messages without blocking the event loop: see :meth:`ack_many`.

        Only a remote queue makes the call wait. If the task is cancelled meanwhile, the messages
        may or may not be acknowledged.

        Args:
            messages: A batch, or messages of this consumer.

        Examples:
            >>> import asyncio
            >>> _ = appender.write_many([b"one", b"two"])
            >>> with queue.group("billing").consumer("c1") as consumer:
            ...     asyncio.run(consumer.aack_many(consumer.read_many(10)))
            2

        """
        return await self._membership.in_loop(lambda: self.ack_many(messages))

    def __iter__(self) -> Self:
        """Iterate over messages; ends at "nothing yet"."""
        return self

    def __next__(self) -> GroupMessage:
        """Return the next message."""
        message = self.read()
        if message is None:
            raise StopIteration
        return message

    def follow(
        self, timeout_s: float | None = None, *, pauser: Pauser | None = None
    ) -> Iterator[GroupMessage]:
        """
        Iterate over messages and wait for more.

        Args:
            timeout_s: End when nothing came for this many seconds; None: never end.
            pauser: How to wait, from :mod:`quire.pausers`; its own timeout ends it too.

        Examples:
            >>> _ = appender.write_text("hello")
            >>> with queue.group("billing").consumer("c1") as consumer:
            ...     for message in consumer.follow(timeout_s=0.01):
            ...         print(message.to_text(), message.ack())
            hello True

        """
        arguments.optional(arguments.seconds)("timeout_s", timeout_s)
        pauser = pauser_at(self, pauser)
        pauser.reset()
        while True:
            message = self.read() if self._prepare() else None
            if message is not None:
                yield message
                pauser.reset()
                continue
            try:
                pauser.pause(timeout_s)
            except WaitTimeoutError:
                return

    def afollow(
        self, timeout_s: float | None = None, *, pauser: Pauser | None = None
    ) -> AsyncMessages[GroupMessage]:
        """
        Iterate over messages in an event loop and wait for more: see :meth:`follow`.

        A wait that is cancelled loses no message. Several tasks may share a consumer; each message
        goes to one of them.

        Args:
            timeout_s: End when nothing came for this many seconds; None: never end.
            pauser: How to wait, from :mod:`quire.pausers`; its own timeout ends it too. Tasks that
                share a consumer need a pauser each.

        Examples:
            >>> import asyncio
            >>> async def work(group):
            ...     async with group.consumer("c1") as consumer:
            ...         async for message in consumer.afollow(timeout_s=0.01):
            ...             print(message.to_text(), message.ack())
            >>> _ = appender.write_text("hello")
            >>> asyncio.run(work(queue.group("billing")))
            hello True

        """
        return AsyncMessages(self, self.read, timeout_s, pauser)

    def __aiter__(self) -> AsyncMessages[GroupMessage]:
        """Iterate over messages and wait for more, without holding up the event loop."""
        return self.afollow()

    async def aread(self, timeout_s: float | None = None) -> GroupMessage | None:
        """
        Wait for the next message and return it, without blocking the event loop.

        A wait that is cancelled loses no message.

        Args:
            timeout_s: Return None when nothing came for this many seconds; None: wait for ever.

        Examples:
            >>> import asyncio
            >>> _ = appender.write_text("hello")
            >>> with queue.group("billing").consumer("c1") as consumer:
            ...     asyncio.run(consumer.aread()).to_text()
            'hello'

        """
        return await self._aread(self.read, timeout_s)

    async def aread_many(self, count: int, timeout_s: float | None = None) -> GroupBatch:
        """
        Return up to *count* messages, once there is one: see :meth:`read_many`, :meth:`aread`.

        Args:
            count: How many; one is enough to end the wait.
            timeout_s: Return an empty batch when nothing came for this many seconds.

        Examples:
            >>> import asyncio
            >>> _ = appender.write_many([b"one", b"two"])
            >>> with queue.group("billing").consumer("c1") as consumer:
            ...     consumer.ack_many(asyncio.run(consumer.aread_many(10)))
            2

        """
        read = self._membership.reader(_COUNT("count", count))
        batch = await self._aread(lambda: read() or None, timeout_s)
        return read() if batch is None else batch

    async def _aread(self, read: Callable[[], _T | None], timeout_s: float | None) -> _T | None:
        arguments.optional(arguments.seconds)("timeout_s", timeout_s)
        return await self._tasks.read(self, read, timeout_s)

    @property
    def _remote(self) -> RemoteReading | None:
        return self._membership._remote  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def _prepare(self) -> bool:
        return self._membership.may_deliver()

    def _begin_wait(self, waits: EventLoopWaits, number: int, /) -> Begun:
        return self._any._begin_wait(waits, number)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def close(self) -> None:
        """Leave the group: other members get its unacknowledged messages."""
        self._membership.close()

    def __enter__(self) -> Self:
        """Return the consumer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close the consumer."""
        self.close()

    def __repr__(self) -> str:
        """Return its name."""
        return f"Consumer({self._name!r}{', closed' if self.closed else ''})"


def _message(found: object) -> GroupMessage:
    if not isinstance(found, GroupMessage):
        raise arguments.refusal("messages", "a batch, or messages", found)
    return found
