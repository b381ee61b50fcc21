"""Groups of consumers that share the messages of a queue."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal

from quire import _native
from quire._common import arguments
from quire.errors import ReadOnlyError, UnsupportedError
from quire.formats.adapters import adapter_of, end_index_of, numbering_of
from quire.groups.consumer import Consumer
from quire.groups.eligible import grouped
from quire.groups.keys import Keys
from quire.groups.letters import DeadLetters
from quire.groups.membership import Membership, Rules
from quire.groups.states import GroupState, state_of

if TYPE_CHECKING:
    from os import PathLike

    from quire.formats.protocols import AnyQueue

_ON_MISSING: Final = ("raise", "warn", "skip")


class Group:
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
        self._keys = None if key is None else Keys(key)
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
    def lag(self) -> int:
        """
        The number of messages that are not acknowledged.

        In a Quick-Queue, this includes entries that dead producers left without a message.
        """
        return self.state().lag

    def state(self) -> GroupState:
        """Return the lag, the members and the position of the group at one moment."""
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

        """
        if self._queue.read_only:
            raise ReadOnlyError(
                f"a consumer needs a writable queue: path={self._queue.path} read_only=True"
            )
        name = str(os.getpid()) if name is None else arguments.text("name", name)
        end = end_index_of(self._queue)
        member = self._native._join(name, self._ack_timeout_ms, end)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        rules = Rules(self.name, self._keys, self._dead_letters, self._on_missing)
        membership = Membership(self._queue, name, member, rules)
        return Consumer(name, membership)

    def reset(self, index: int | None = None) -> None:
        """
        Make the group start at an index; None: at the first message.

        Raises:
            GroupError: The group has members.
            ValueError: The queue's format has no such index, or the queue ends before the index.

        Examples:
            >>> last = appender.write_many([b"one", b"two"])
            >>> group = queue.group("billing")
            >>> group.reset(last)
            >>> group.lag
            1

        """
        if self._queue.read_only:
            raise ReadOnlyError(
                f"to reset a group needs a writable queue: path={self._queue.path} read_only=True"
            )
        start: int = 0 if index is None else arguments.whole(0, 2**63 - 1)("index", index)
        step = numbering_of(self._queue).step
        if start % step:
            raise ValueError(
                f"not the index of a message: index={start} expected=a multiple of {step}"
            )
        if start > (end := end_index_of(self._queue)):
            raise ValueError(f"after the end of the queue: index={start} end={end}")
        self._native._reset(start, end)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def delete(self) -> bool:
        """
        Remove the group: it no longer holds any cycle, and a later member starts a new group.

        Returns:
            Whether there was such a group.

        Raises:
            GroupError: The group has members.

        Examples:
            >>> queue.group("billing").consumer().close()
            >>> queue.group("billing").delete(), queue.group("billing").delete()
            (True, False)

        """
        if self._queue.read_only:
            raise ReadOnlyError(
                f"to delete a group needs a writable queue: path={self._queue.path} read_only=True"
            )
        return self._native._delete()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def __repr__(self) -> str:
        """Return its name and its queue."""
        return f"Group({self.name!r}, {self._queue.path!r})"
