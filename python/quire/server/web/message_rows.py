"""Messages as rows of a page: as what they are shown, when they were written, and dead letters."""

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
        message: The message, as it is shown.
        time: When it was written; None: not known.
        letter: Where it comes from, if it is a dead letter.

    """

    message: Shown
    time: MessageTime | None
    letter: DeadLetter | None

    @property
    def why(self) -> str:
        """Why it is a dead letter; empty: it is none."""
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
        view: As what they are shown.
        most: How many characters of each are shown at most.
        time_field: The field that holds their time; empty: none is known.

    Raises:
        QuireError: The queue is damaged, or was removed.

    """
    letters = letters_among(queue, [index for index, _ in messages])
    return [
        Row(shown(index, data, view, most), at, letters.get(index))
        for (index, data), at in zip(messages, Times(queue, time_field).of(messages), strict=True)
    ]
