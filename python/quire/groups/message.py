"""Messages that a consumer delivers, and batches of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from quire._common import arguments
from quire._native import Excerpt
from quire.errors import UnsupportedError

if TYPE_CHECKING:
    from quire._native import Claim
    from quire.groups.delivered import Delivered

_T = TypeVar("_T")


class Acknowledging(Protocol):
    """The member of a group that delivered a message."""

    @property
    def known(self) -> int:
        """Messages before this index may have been delivered by a state whose counts are lost."""
        ...

    def acknowledge(self, claim: Claim, bits: int, /) -> bool:
        """Acknowledge messages of a claim; False if none of them was pending."""
        ...

    def refuse(self, claim: Claim, bit: int, delay_ms: int, /) -> bool:
        """Have a message delivered again after a delay; False if it is not pending."""
        ...

    def extend(self, claim: Claim, bit: int, timeout_ms: int | None, /) -> bool:
        """Have a message time out later; False if it is not pending."""
        ...

    async def in_loop(self, call: Callable[[], _T], /) -> _T:
        """Return the result of a call that would wait for a server; an event loop goes on."""
        ...

    def excerpt(self, index: int, data: bytes, /) -> Any:  # noqa: ANN401 - of the queue's format
        """Return a message as a tailer would."""
        ...


class GroupMessage:
    """
    A message of a group, until it is acknowledged.

    Examples:
        >>> _ = appender.write_map({"symbol": "EURUSD"})
        >>> with queue.group("billing").consumer("c1") as consumer:
        ...     for message in consumer:
        ...         print(message.delivery_count, message.to_dict(), message.ack())
        1 {'symbol': 'EURUSD'} True
        >>> message.index == queue.first_index, message.data == message.excerpt.data
        (True, True)

    """

    __slots__ = ("_bit", "_claim", "_membership", "data", "index")

    index: int
    """The index of the message in its queue."""
    data: bytes
    """Its bytes."""

    def __init__(
        self, membership: Acknowledging, claim: Claim, bit: int, index: int, data: bytes
    ) -> None:
        """Keep what acknowledging needs."""
        self._membership, self._claim, self._bit = membership, claim, bit
        self.index, self.data = index, data

    @property
    def delivery_count(self) -> int:
        """The number of deliveries of the message, including this one; at most 255."""
        return self._claim.count_of(self._bit)

    @property
    def redelivered(self) -> bool:
        """
        Whether the message may have been delivered before.

        True if `delivery_count` is over 1, and for messages from before the group was reset or its
        side file or queue was damaged: how often those were delivered is unknown.

        Examples:
            >>> _ = appender.write_text("hello")
            >>> with queue.group("billing").consumer("c1") as consumer:
            ...     consumer.ack_many(consumer.read_many(10))
            1
            >>> queue.group("billing").reset()
            >>> with queue.group("billing").consumer("c1") as consumer:
            ...     message = consumer.read()
            ...     message.delivery_count, message.redelivered
            (1, True)

        """
        return self.delivery_count > 1 or self.index < self._membership.known

    @property
    def redelivery_cause(self) -> str | None:
        """
        Why the message is delivered again; None the first time, or if it is unknown.

        One of ``refused``, ``timed out``, ``consumer died``, ``consumer closed`` and ``released``
        (see :meth:`Group.release`): how the last consumer that had it lost it. A message that was
        extended too late, or not far enough, has timed out.

        Examples:
            >>> _ = appender.write_text("hello")
            >>> with queue.group("billing").consumer("c1") as consumer:
            ...     _ = consumer.read().nack()
            ...     consumer.read().redelivery_cause
            'refused'

        """
        return self._claim.cause if self.delivery_count > 1 else None

    def ack(self) -> bool:
        """
        Acknowledge the message: the group is done with it.

        False if it timed out and was delivered to another member, or if it was already
        acknowledged.
        """
        return self._membership.acknowledge(self._claim, self._bit)

    def nack(self, *, delay_s: float = 0.0) -> bool:
        """
        Refuse the message: it is delivered again, to any member; False if another already has it.

        A message of a batch is delivered again once the others of its range of at most 32
        messages are acknowledged or refused, and the longest of their delays is over.

        Args:
            delay_s: Seconds to delay it, by the wall clock. With a key, later messages of its key
                wait for it. If the consumer dies before the rest of the range is acknowledged or
                refused, it is delivered at once.

        Raises:
            ValueError: The delay is negative or not a number.

        Examples:
            >>> _ = appender.write_text("hello")
            >>> with queue.group("billing").consumer("c1") as consumer:
            ...     consumer.read().nack()
            ...     message = consumer.read()
            ...     message.delivery_count, message.nack(delay_s=60), consumer.read()
            True
            (2, True, None)

        """
        delay_ms = arguments.milliseconds("delay_s", delay_s) if delay_s else 0
        return self._membership.refuse(self._claim, self._bit, delay_ms)

    def extend(self, timeout_s: float | None = None) -> bool:
        """
        Give the consumer more time for the message; False if another member already has it.

        Its range of at most 32 messages then times out no earlier than *timeout_s* from now. That
        never shortens the remaining time.

        Args:
            timeout_s: None: the group's ``ack_timeout_s``.

        Raises:
            ValueError: The time is negative or not a number.

        Examples:
            >>> _ = appender.write_text("hello")
            >>> with queue.group("billing", ack_timeout_s=30).consumer("c1") as consumer:
            ...     message = consumer.read()
            ...     message.extend(600), message.ack(), message.extend()
            (True, True, False)

        """
        timeout_ms = None if timeout_s is None else arguments.milliseconds("timeout_s", timeout_s)
        return self._membership.extend(self._claim, self._bit, timeout_ms)

    async def aack(self) -> bool:
        """
        Acknowledge the message without blocking the event loop: see :meth:`ack`.

        Only a remote queue makes the call wait. If the task is cancelled meanwhile, the message may
        or may not be acknowledged.

        Examples:
            >>> import asyncio
            >>> _ = appender.write_text("hello")
            >>> with queue.group("billing").consumer("c1") as consumer:
            ...     asyncio.run(consumer.read().aack())
            True

        """
        return await self._membership.in_loop(self.ack)

    async def anack(self, *, delay_s: float = 0.0) -> bool:
        """
        Refuse the message without blocking the event loop: see :meth:`nack`, :meth:`aack`.

        Examples:
            >>> import asyncio
            >>> _ = appender.write_text("hello")
            >>> with queue.group("billing").consumer("c1") as consumer:
            ...     asyncio.run(consumer.read().anack(delay_s=60)), consumer.read()
            (True, None)

        """
        return await self._membership.in_loop(partial(self.nack, delay_s=delay_s))

    async def aextend(self, timeout_s: float | None = None) -> bool:
        """
        Give the consumer more time without blocking the event loop: see :meth:`extend`.

        Examples:
            >>> import asyncio
            >>> _ = appender.write_text("hello")
            >>> with queue.group("billing").consumer("c1") as consumer:
            ...     asyncio.run(consumer.read().aextend(600))
            True

        """
        return await self._membership.in_loop(partial(self.extend, timeout_s))

    @property
    def excerpt(self) -> Any:  # noqa: ANN401 - of the queue's format
        """The message as a tailer would return it, an :class:`Excerpt` or one of the format."""
        return self._membership.excerpt(self.index, self.data)

    def to_dict(self) -> dict[Any, Any]:
        """
        Return the fields of the message; see :meth:`Excerpt.to_dict`.

        Raises:
            UnsupportedError: The queue is a Quick-Queue, whose messages have no names of fields.

        """
        return self._document("to_dict").to_dict()

    def to_text(self) -> str:
        """
        Return the message as text; see :meth:`Excerpt.to_text`. One of a Quick-Queue is UTF-8.

        Raises:
            UnicodeDecodeError: The message of a Quick-Queue is not UTF-8.

        Examples:
            >>> _ = appender.write_text("hello")
            >>> with queue.group("billing").consumer("c1") as consumer:
            ...     consumer.read().to_text()
            'hello'

        """
        excerpt = self.excerpt
        return excerpt.to_text() if isinstance(excerpt, Excerpt) else self.data.decode()

    @overload
    def to_message(self, cls: type[_T]) -> _T: ...
    @overload
    def to_message(self, cls: None = None) -> Any: ...  # noqa: ANN401 - of any class
    def to_message(self, cls: type[Any] | None = None) -> Any:
        """
        Return the message as an object; see :meth:`Excerpt.to_message`.

        Raises:
            UnsupportedError: The queue is a Quick-Queue, whose messages have no names of fields.

        Examples:
            >>> from dataclasses import dataclass
            >>> @quire.message
            ... @dataclass
            ... class Invoice:
            ...     amount: float
            >>> _ = appender.write_message(Invoice(9.5))
            >>> with queue.group("billing").consumer("c1") as consumer:
            ...     consumer.read().to_message(Invoice)
            Invoice(amount=9.5)

        """
        return self._document("to_message").to_message(cls)

    def _document(self, call: str) -> Excerpt:
        """Return the message as what a tailer of a journal returns."""
        excerpt = self.excerpt
        if not isinstance(excerpt, Excerpt):
            raise UnsupportedError(
                f"not supported: {call} of a message of a Quick-Queue, which is raw bytes"
                " (data, to_text() and excerpt.unpack() return what is in it)"
            )
        return excerpt

    def __repr__(self) -> str:
        """Return the index, the number of bytes and of deliveries."""
        return (
            f"GroupMessage(index={self.index:#x}, {len(self.data)} bytes,"
            f" delivery_count={self.delivery_count})"
        )


class GroupBatch(Sequence[GroupMessage]):
    """
    Messages that were delivered together.

    Messages are created on demand: acknowledging a batch creates none.

    Examples:
        >>> _ = appender.write_many([b"one", b"two"])
        >>> with queue.group("billing").consumer("c1") as consumer:
        ...     batch = consumer.read_many(10)
        ...     print(len(batch), batch[1].data, batch.payloads())
        ...     consumer.ack_many(batch)
        2 b'two' [b'one', b'two']
        2

    """

    def __init__(self, membership: Acknowledging, delivered: Delivered) -> None:
        """Keep the parts that messages are made from."""
        self._membership, self.delivered = membership, delivered

    def payloads(self) -> list[bytes]:
        """Return the bytes of all messages."""
        return self.delivered.payloads()

    def __len__(self) -> int:
        """Return how many messages there are."""
        return len(self.delivered)

    def __iter__(self) -> Iterator[GroupMessage]:
        """Yield the messages."""
        return starmap(partial(GroupMessage, self._membership), self.delivered)

    @overload
    def __getitem__(self, place: int) -> GroupMessage: ...
    @overload
    def __getitem__(self, place: slice) -> list[GroupMessage]: ...
    def __getitem__(self, place: int | slice) -> GroupMessage | list[GroupMessage]:
        """Return the message at a place, or a list of them."""
        count = len(self)
        if isinstance(place, slice):
            return [self[it] for it in range(*place.indices(count))]
        wanted = place + count if place < 0 else place
        if not 0 <= wanted < count:
            raise IndexError(f"no such message in the batch: place={place} count={count}")
        return GroupMessage(self._membership, *self.delivered.at(wanted))

    def __repr__(self) -> str:
        """Return how many messages there are."""
        return f"GroupBatch({len(self)} messages)"
