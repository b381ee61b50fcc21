"""Sharing the messages of a queue among consumers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from os import PathLike

    from quire.formats.protocols import AnyQueue
    from quire.groups.group import Group
    from quire.groups.states import GroupState


class GroupMethods:
    """A queue whose messages groups of consumers share."""

    def group(  # noqa: PLR0913 - settings, by name
        self,
        name: str,
        *,
        ack_timeout_s: float = 30.0,
        key: str | Callable[[Any], Any] | None = None,
        dead_letter: AnyQueue | str | PathLike[str] | None = None,
        max_deliveries: int | None = None,
        on_missing: Literal["raise", "warn", "skip"] = "warn",
    ) -> Group:
        """
        Return a group of consumers, each of which gets a part of the messages.

        Args:
            name: Letters, digits, ``_``, ``-`` and ``.``, 64 at most.
            ack_timeout_s: A message that is not acknowledged for this many seconds is delivered
                again, to any member.
            key: Keep messages of one key in order, and with one member at a time: the field that
                holds the key, or a function of an excerpt that returns it. Messages with the key
                None have no order. All members must give the same key.
            dead_letter: A queue, or its path, for messages that were delivered too often.
            max_deliveries: How often a message is delivered before that; 5 by default.
            on_missing: What happens if the messages to deliver next are gone, or other messages
                have their indexes: ``raise``, once in each consumer that finds this, whose next
                read continues with the first remaining message; ``warn``, which logs it and
                continues; or ``skip``, which continues silently.

        Raises:
            UnsupportedError: The queue is a Vanilla Chronicle, or an Indexed Chronicle.
            ValueError: The name or a setting is not valid for a group.

        Examples:
            >>> _ = appender.write_text("hello")
            >>> with queue.group("billing", ack_timeout_s=60).consumer("c1") as consumer:
            ...     for message in consumer:
            ...         print(message.to_text(), message.ack())
            hello True
            >>> queue.group("billing").lag
            0

        """
        from quire.groups.group import Group

        return Group(
            self,  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - checked there
            name,
            ack_timeout_s=ack_timeout_s,
            key=key,
            dead_letter=dead_letter,
            max_deliveries=max_deliveries,
            on_missing=on_missing,
        )

    def groups(self) -> list[GroupState]:
        """
        Return the groups that consumers joined, with their lag, position and members.

        Raises:
            TableLostError: Another queue, or none, is at the queue's path by now.

        Examples:
            >>> _ = appender.write_text("hello")
            >>> with queue.group("billing").consumer("c1"):
            ...     for group in queue.groups():
            ...         print(group.name, group.lag, [member.name for member in group.members])
            billing 1 ['c1']

        """
        from quire.groups.eligible import check_at_its_path, grouped
        from quire.groups.states import states_of

        queue = grouped(self)
        check_at_its_path(queue)
        return states_of(queue)
