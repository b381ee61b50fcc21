"""The audit log: who did what, when and from where, in a queue."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from quire.errors import OptionsError, QuireError
from quire.opening.opener import open as open_queue
from quire.server.tokens import Token

_log = logging.getLogger("quire")
_COUNTED: Final = {"wrong token", "refused", "authenticated"}
"""Records that clients can cause without limit and without a right: repetitions are counted."""
_PERIOD_S: Final = 60.0
_MOST_COUNTED: Final = 1000
_LONGEST: Final = 1000


class Client(Protocol):
    """A client: its token or certificate, and its address."""

    @property
    def token(self) -> Token | None:
        """The client's token; None: it has sent none."""
        ...

    @property
    def peer(self) -> str:
        """The client's address."""
        ...

    @property
    def certificate(self) -> str:
        """The name in the client's certificate; empty if it sent none, or if that is unknown."""
        ...


def who_is(client: Client) -> str:
    """Return the name of a client: that of its token, or the one in its certificate."""
    return client.certificate if client.token is None else client.token.name


@dataclass(slots=True)
class _Counted:
    """A written record, and the number of repetitions since."""

    row: dict[str, object]
    until_s: float
    more: int = 0


class Audit:
    """
    A queue with messages about authentication, successful or not, and about what clients do.

    Args:
        path: The queue's directory, which is created if it does not exist.
        served: The directory that is served.
        clock: Returns the seconds of a monotonic clock.

    Raises:
        OptionsError: The queue is below the served directory.

    """

    def __init__(
        self, path: Path, *, served: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if path.resolve().is_relative_to(served.resolve()):
            raise OptionsError(
                "the audit log is below the served directory, where clients could read and forge"
                f" it: audit={path} directory={served} (name one elsewhere)"
            )
        self._queue = open_queue(path, format="chronicle")
        self._appender = self._queue.appender()
        self._clock = clock
        self._counted: dict[tuple[object, ...], _Counted] = {}

    def note(self, what: str, client: Client, about: str, command: str = "") -> None:
        """Record what a client did; a failure is logged, and stops no client."""
        who = who_is(client)
        row: dict[str, object] = {"what": what, "who": who, "from": client.peer, "about": about}
        if command:
            row["command"] = command
        now_s = self._clock()
        self._write_counts(now_s)
        if what not in _COUNTED:
            self._write(row)
            return
        place = client.peer if what == "authenticated" else client.peer.rpartition(":")[0]
        key: tuple[object, ...] = (what, who, place, about)
        if key not in self._counted and len(self._counted) >= _MOST_COUNTED:
            key, row = (what,), row | {"who": "", "from": "", "about": ""}
        if (known := self._counted.get(key)) is not None:
            known.more += 1
            return
        self._counted[key] = _Counted(row, now_s + _PERIOD_S)
        self._write(row)

    def _write_counts(self, now_s: float) -> None:
        """Write the counts of repetitions whose period is over, the oldest first."""
        while self._counted:
            key, oldest = next(iter(self._counted.items()))
            if now_s < oldest.until_s:
                return
            del self._counted[key]
            if oldest.more:
                self._write(oldest.row | {"count": oldest.more})

    def _write(self, row: dict[str, object]) -> None:
        try:
            self._appender.write_map({"when": time.time_ns(), **row})
        except (QuireError, OSError) as error:
            what, who = row["what"], row["who"]
            _log.error("the audit log failed: what=%s who=%s error=%s", what, who, error)

    def close(self) -> None:
        """Write the remaining counts, and close the queue."""
        self._write_counts(float("inf"))
        self._queue.close()


def shown_command(request: Sequence[bytes]) -> str:
    """Return a command in the form of the audit log."""
    words = [it[:_LONGEST] for it in request[:_LONGEST]]
    return b" ".join(words)[:_LONGEST].decode("utf-8", "backslashreplace")
