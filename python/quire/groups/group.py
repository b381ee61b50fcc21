"""Groups of consumers that share the messages of a queue."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from quire import _native
from quire._common import arguments
from quire._common.known_attributes import KnownAttributes
from quire.errors import (
    GroupError,
    QuireError,
    ReadOnlyError,
    TableLostError,
    UnsupportedError,
)
from quire.formats.adapters import adapter_of, end_index_of, numbering_of
from quire.groups.consumer import Consumer
from quire.groups.eligible import check_at_its_path, grouped
from quire.groups.keys import Keys, hashing_of
from quire.groups.letters import DeadLetters
from quire.groups.membership import Membership, Rules
from quire.groups.states import GroupState, PendingMessage, pending_of, side_file, state_of

if TYPE_CHECKING:
    from datetime import date
    from os import PathLike
    from pathlib import Path

    from quire.formats.protocols import AnyQueue

_INDEX: Final = partial(arguments.whole(0, 2**63 - 1), "index")
_UNUSED: Final = (0, 0, 0, None)
_ON_MISSING: Final = ("raise", "warn", "skip")


class Group(KnownAttributes):
    """
    A group of consumers, from :meth:`Queue.group`.

    Examples:
        >>> _ = appender.write_many([b"one", b"two"])
        >>> group = queue.group("billing")
        >>> with group.consumer("c1") as consumer:
        ...     _ = consumer.read().ack()
        >>> group.name, group.lag
        ('billing', 1)
        >>> group.state().members
        ()

    """

    def __init__(  # noqa: PLR0913 - those of Queue.group
        self,
        queue: AnyQueue,
        name: str,
        *,
        ack_timeout_s: float = 30.0,
        key: str | Callable[[Any], Any] | None = None,
        dead_letter: AnyQueue | str | PathLike[str] | None = None,
        max_deliveries: int | None = None,
        on_missing: Literal["raise", "warn", "skip"] = "warn",
    ) -> None:
        """Check the settings; nothing is made before a consumer joins."""
        self._queue = queue = grouped(queue)
        self._ack_timeout_ms = arguments.milliseconds("ack_timeout_s", ack_timeout_s)
        if key is not None and not isinstance(key, str) and not callable(key):
            raise arguments.refusal("key", "the name of a field, or a function of an excerpt", key)
        if isinstance(key, str) and not adapter_of(queue).is_wire:
            raise UnsupportedError(
                "not supported in a Quick-Queue: a field as key=, as messages are raw bytes"
                " (give a function of an excerpt)"
            )
        self._keys = None if key is None else Keys(key, hashing_of(queue))
        if max_deliveries is not None and dead_letter is None:
            raise ValueError("max_deliveries= requires dead_letter=, a queue for such messages")
        self._dead_letters = (
            None if dead_letter is None else DeadLetters(dead_letter, max_deliveries, queue)
        )
        if on_missing not in _ON_MISSING:
            raise ValueError(
                f"invalid on_missing={on_missing!r}: expected {', '.join(map(repr, _ON_MISSING))}"
            )
        self._on_missing = on_missing
        options: dict[str, Any] = getattr(queue, "_options", {})
        self._native = _native.Group(
            queue.path,
            arguments.text("name", name),
            keyed=key is not None,
            step=numbering_of(queue).step,
            file_mode=options.get("file_mode", 0o600),
        )

    @property
    def name(self) -> str:
        """The group's name."""
        return self._native.name

    @property
    def _side_file(self) -> Path:
        return side_file(self._queue.path, self.name)

    @property
    def lag(self) -> int:
        """
        The number of messages that are not acknowledged.

        In a Quick-Queue, this includes entries that dead producers left without a message.
        """
        return self.state().lag

    def state(self) -> GroupState:
        """
        Return the lag, the members and the position of the group at one moment.

        Raises:
            TableLostError: Another queue, or none, is at the queue's path by now.

        """
        check_at_its_path(self._queue)
        return state_of(self._queue, self.name)

    def consumer(self, name: str | None = None) -> Consumer:
        """
        Join the group.

        Args:
            name: What the consumer is called in `quire groups`; by default its pid. Two consumers
                may have the same name.

        Raises:
            ReadOnlyError: The queue was opened read-only.
            GroupError: The group was created with a key but joined without one, or the other way
                round.
            TableLostError: Another queue, or none, is at the queue's path by now.

        """
        if self._queue.read_only:
            raise ReadOnlyError(
                f"a consumer needs a writable queue: path={self._queue.path} read_only=True"
            )
        name = str(os.getpid()) if name is None else arguments.text("name", name)
        member = self._joined(name)
        rules = Rules(
            self.name, self._ack_timeout_ms, self._keys, self._dead_letters, self._on_missing
        )
        membership = Membership(self._queue, name, member, rules)
        return Consumer(name, membership)

    def _joined(self, name: str) -> _native.GroupMember:
        """
        Join as a member of the group of this queue.

        Raises:
            TableLostError: Another queue, or none, is at the queue's path by now.

        """
        check_at_its_path(self._queue)
        end = end_index_of(self._queue)
        check_at_its_path(self._queue)
        is_new = not self._side_file.exists()
        try:
            member = self._native._join(name, self._ack_timeout_ms, end)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        except QuireError:
            check_at_its_path(self._queue)
            raise
        try:
            check_at_its_path(self._queue)
        except TableLostError:
            member.close()
            if is_new:
                self._remove_unused()
            raise
        return member

    def _remove_unused(self) -> None:
        """Remove the group that a join has just made in another queue, as long as it is unused."""
        with suppress(QuireError, OSError):
            if _native.group_backlog(self._side_file) == _UNUSED:
                self._native._delete()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def pending(self) -> list[PendingMessage]:
        """
        Return the messages that were delivered and are not acknowledged, by index.

        Messages that wait for their keys, or for a consumer to read them, are not included.

        Examples:
            >>> _ = appender.write_many([b"one", b"two"])
            >>> group = queue.group("billing", ack_timeout_s=30)
            >>> with group.consumer("c1") as consumer:
            ...     message = consumer.read()
            ...     for it in group.pending():
            ...         print(it.index == message.index, it.consumer, it.age_s < 10)
            True c1 True

        """
        check_at_its_path(self._queue)
        return pending_of(self._side_file)

    def extend(self, index: int, timeout_s: float) -> int:
        """
        Give the consumer of a message more time for it and its range of at most 32 messages.

        They then time out no earlier than *timeout_s* from now. That never shortens the remaining
        time. Consumers call :meth:`GroupMessage.extend`.

        Returns:
            How many messages are in the range and not acknowledged.

        Raises:
            GroupError: No consumer has the message, or it has timed out or is about to.
            ReadOnlyError: The queue was opened read-only.

        Examples:
            >>> index = appender.write_text("hello")
            >>> with queue.group("billing").consumer("c1") as consumer:
            ...     message = consumer.read()
            ...     queue.group("billing").extend(index, 600)
            1

        """
        self._need_writable("extend the time of a message")
        timeout_ms = arguments.milliseconds("timeout_s", timeout_s)
        found = _native.group_extend(self._side_file, _INDEX(index), timeout_ms)
        return self._changed(index, found)

    def release(self, index: int, *, delay_s: float = 0.0) -> int:
        """
        Take a message and its range of at most 32 messages from their consumer.

        They are delivered again, to any consumer and one at a time, after *delay_s*. The former
        consumer's ``ack()`` then returns False. If a message waits after ``nack(delay_s=)``,
        *delay_s* replaces its delay.

        Returns:
            How many messages are in the range and not acknowledged.

        Raises:
            GroupError: The message was not delivered, or is acknowledged.
            ReadOnlyError: The queue was opened read-only.

        Examples:
            >>> index = appender.write_text("hello")
            >>> with queue.group("billing").consumer("c1") as consumer:
            ...     message = consumer.read()
            ...     print(queue.group("billing").release(index), message.ack())
            ...     consumer.read().redelivery_cause
            1 False
            'released'

        """
        self._need_writable("release a message")
        delay_ms = arguments.milliseconds("delay_s", delay_s) if delay_s else 0
        found = _native.group_release(self._side_file, _INDEX(index), delay_ms)
        return self._changed(index, found)

    def _changed(self, index: int, found: tuple[int, str]) -> int:
        count, why_not = found
        if not count:
            raise GroupError(
                f"the message cannot be changed: group={self.name} index={index:#x} ({why_not})"
            )
        return count

    def reset(
        self,
        index: int | Literal["start", "end"] | None = None,
        *,
        time: date | float | str | None = None,
        time_field: str | None = None,
    ) -> None:
        """
        Make the group start elsewhere; without arguments, at the first message.

        Args:
            index: Of the next message, ``start`` or ``end``.
            time: Start at the first message that is not earlier than this, as
                :meth:`JournalTailer.move_to_time` finds it.
            time_field: The field that holds a message's time.

        Raises:
            GroupError: The group has members.
            ReadOnlyError: The queue was opened read-only.
            TableLostError: Another queue, or none, is at the queue's path by now.
            ValueError: The queue's format has no such index, the queue ends before the index, or
                the time cannot be found.

        Examples:
            >>> last = appender.write_many([b"one", b"two"])
            >>> group = queue.group("billing")
            >>> group.reset(last)
            >>> group.lag
            1
            >>> group.reset(time="2000-01-01")
            >>> group.lag
            2

        """
        self._need_writable("reset a group")
        if index is not None and time is not None:
            raise ValueError("index= and time= exclude each other")
        if time is None and time_field is not None:
            raise ValueError("time_field= requires time=")
        end = end_index_of(self._queue)
        start = self._start(index, end) if time is None else self._start_at(time, time_field)
        check_at_its_path(self._queue)  # the search may have taken long
        self._native._reset(start, end)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def _start(self, index: int | str | None, end: int) -> int:
        if index is None or index == "start":
            return 0
        if index == "end":
            return end
        start: int = _INDEX(index)
        step = numbering_of(self._queue).step
        if start % step:
            raise ValueError(
                f"not the index of a message: index={start:#x} expected=a multiple of {step}"
            )
        if start > end:
            raise ValueError(
                f"the index is after the end of the queue: index={start:#x} end={end:#x}"
            )
        return start

    def _start_at(self, time: date | float | str, time_field: str | None) -> int:
        from quire.ranges.event_time import epoch_ns_of
        from quire.ranges.seek import first_at, first_from

        time_ns = epoch_ns_of(time)
        arguments.optional(arguments.text)("time_field", time_field)
        return first_from(self._queue, first_at(self._queue, time_ns, time_field))

    def _need_writable(self, what: str) -> None:
        if self._queue.read_only:
            raise ReadOnlyError(
                f"to {what} needs a writable queue: path={self._queue.path} read_only=True"
            )
        check_at_its_path(self._queue)

    def delete(self) -> bool:
        """
        Remove the group: retention no longer waits for it, and a later member starts a new group.

        Returns:
            Whether there was such a group.

        Raises:
            GroupError: The group has members.

        Examples:
            >>> queue.group("billing").consumer().close()
            >>> queue.group("billing").delete(), queue.group("billing").delete()
            (True, False)

        """
        self._need_writable("delete a group")
        return self._native._delete()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def __repr__(self) -> str:
        """Return its name and its queue."""
        return f"Group({self.name!r}, {self._queue.path!r})"
