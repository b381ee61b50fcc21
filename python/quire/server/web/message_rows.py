"""Messages as rows of a page: their content, their times, and dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from quire.groups.undelivered import DeadLetter
from quire.server.served_queue import ServedQueue
from quire.server.web.message_times import MessageTime, Times
from quire.server.web.message_views import Shown, View, shown
from quire.server.web.shown_letters import letters_among

_WORD: Final = 200


class Row(NamedTuple):
    """
    A message on a page.

    Attributes:
        message: The message as it is shown.
        time: When it was written; None if that is not known.
        letter: The dead letter that the message is, if any.

    """

    message: Shown
    time: MessageTime | None
    letter: DeadLetter | None

    @property
    def why(self) -> str:
        """Why the message is a dead letter; empty if it is not one."""
        if self.letter is None:
            return ""
        group, reason = self.letter.group[:_WORD], self.letter.reason[:_WORD]
        return f"Dead letter of {group}, delivered {self.delivered}: {reason}"

    @property
    def delivered(self) -> str:
        """How often a dead letter was delivered."""
        count = 0 if self.letter is None else self.letter.delivery_count
        return "once" if count == 1 else f"{count:,} times"


def rows_of(
    queue: ServedQueue,
    messages: Sequence[tuple[int, bytes]],
    view: View,
    most: int,
    time_field: str = "",
) -> list[Row]:
    """
    Return messages as rows.

    Args:
        queue: Their queue.
        messages: Their indexes, ascending, and bytes.
        view: The form in which they are shown.
        most: The most characters of each message to show.
        time_field: The field that contains their time; empty if there is none.

    Raises:
        QuireError: The queue is damaged, or was removed.

    """
    letters = letters_among(queue, [index for index, _ in messages])
    return [
        Row(shown(index, data, view, most), at, letters.get(index))
        for (index, data), at in zip(messages, Times(queue, time_field).of(messages), strict=True)
    ]
