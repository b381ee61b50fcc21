"""Consumers: the members of a group."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Final, Self

from quire._common import arguments
from quire._common.following import pauser_of, poll_async
from quire.errors import WaitTimeoutError
from quire.groups.message import GroupBatch, GroupMessage

if TYPE_CHECKING:
    from types import TracebackType

    from quire.groups.membership import Membership
    from quire.pausers import Pauser

_COUNT: Final = arguments.whole(1, 2**31 - 1)


class Consumer:
    """
    A member of a group, from :meth:`Group.consumer`.

    A message that is not acknowledged is delivered again: after the group's ``ack_timeout_s``, at
    once when the consumer is closed or its process dies. A consumer may be used from any thread.

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
            count: How many. Messages that are delivered again come in ranges of up to 32, so that
                there may be a few more.

        """
        return self._membership.read_many(_COUNT("count", count))

    def ack_many(self, messages: Iterable[GroupMessage]) -> int:
        """
        Acknowledge messages; return how many of them this consumer still had.

        Args:
            messages: A batch, or messages of this consumer.

        """
        if isinstance(messages, GroupBatch):
            return self._membership.acknowledge_all(messages.delivered)
        if not isinstance(messages, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise arguments.refusal("messages", "a batch, or messages", messages)
        return sum(_message(one).ack() for one in messages)

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
        if timeout_s is not None:
            arguments.seconds("timeout_s", timeout_s)
        pauser = pauser_of(pauser)
        pauser.reset()
        while True:
            message = self.read()
            if message is not None:
                yield message
                pauser.reset()
                continue
            try:
                pauser.pause(timeout_s)
            except WaitTimeoutError:
                return

    def __aiter__(self) -> AsyncIterator[GroupMessage]:
        """Iterate over messages and wait for more, without holding up the event loop."""
        return poll_async(lambda: True, self.read, pauser_of(None))

    def close(self) -> None:
        """Leave the group: other members get the messages that are not acknowledged."""
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

    async def __aenter__(self) -> Self:
        """Return the consumer."""
        return self

    async def __aexit__(
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
