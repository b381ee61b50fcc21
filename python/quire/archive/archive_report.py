"""The reports of archiving and of verifying."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from quire.archive.cycle_entry import Entry

Progress: TypeAlias = Callable[[str, int, int], object]
"""Called with what is being done, how many messages are, and how many there are."""


def no_progress(_what: str, _done: int, _total: int) -> None:
    """Ignore progress."""


class ProgressCounter:
    """Calls a progress function with growing counts."""

    def __init__(self, progress: Progress, what: str, before: int, total: int) -> None:
        """Start after *before* of *total* messages."""
        self._progress, self._what, self._done, self._total = progress, what, before, total

    def add(self, messages: int) -> None:
        """Add to the number of messages done."""
        self._done += messages
        self._progress(self._what, self._done, self._total)


@dataclass(frozen=True, slots=True)
class Failure:
    """
    A cycle that was not archived, or does not equal its archive, and why.

    Examples:
        >>> import quire.archive
        >>> for failure in quire.archive.archive("orders", "archive").failed:
        ...     print(failure.topic, failure.cycle, failure.reason)

    """

    topic: str
    cycle: int | None
    reason: str

    def __str__(self) -> str:
        """Return one line."""
        cycle = "" if self.cycle is None else f" cycle={self.cycle}"
        return f"{self.reason} topic={self.topic}{cycle}"


@dataclass(slots=True)
class Report:
    """
    The result of :func:`quire.archive.archive`.

    Attributes:
        dest: The archive.
        archived: The cycles that it added, by topic.
        present: How many cycles were there before.
        unfinished: How many cycles are still written to.
        deleted: How many cycles it deleted from their queues.
        kept: Cycles that it was asked to delete and did not, as they are not done with.
        failed: Cycles that it could not archive, and files or cycles that are damaged.
        lost: Cycles that an earlier run saw, and that are in no place any more.
        bytes: The size of the files it added.

    Examples:
        >>> import quire.archive
        >>> report = quire.archive.archive("orders", "archive")
        >>> report.messages, report.unfinished, report.deleted
        (0, 0, 0)

    """

    dest: Path
    archived: dict[str, list[Entry]] = field(default_factory=dict[str, list[Entry]])
    present: int = 0
    unfinished: int = 0
    deleted: int = 0
    kept: list[Failure] = field(default_factory=list[Failure])
    failed: list[Failure] = field(default_factory=list[Failure])
    lost: list[Failure] = field(default_factory=list[Failure])
    bytes: int = 0

    @property
    def entries(self) -> list[Entry]:
        """The cycles added, of all topics."""
        return [entry for entries in self.archived.values() for entry in entries]

    @property
    def messages(self) -> int:
        """The number of messages that were archived."""
        return sum(entry.messages for entry in self.entries)

    @property
    def misfits(self) -> int:
        """The number of rows without typed columns, because the message fits no schema."""
        return sum(entry.misfits for entry in self.entries)

    @property
    def payload_bytes(self) -> int:
        """The bytes of the payloads that were archived."""
        return sum(entry.payload_bytes for entry in self.entries)

    @property
    def is_complete(self) -> bool:
        """Whether every finished cycle is in the archive, and nothing was found damaged."""
        return not (self.failed or self.lost)


@dataclass(slots=True)
class Verified:
    """
    The result of :func:`quire.archive.verify`.

    Attributes:
        cycles: How many cycles were read.
        messages: How many messages they hold.
        compared: How many of the cycles are still in the queue, and were compared with it.
        failed: What is wrong.

    Examples:
        >>> import quire.archive
        >>> _ = quire.archive.archive("orders", "archive")
        >>> quire.archive.verify("archive").messages
        0

    """

    cycles: int = 0
    messages: int = 0
    compared: int = 0
    failed: list[Failure] = field(default_factory=list[Failure])


@dataclass(slots=True)
class Rewritten:
    """
    The result of :func:`quire.archive.rewrite`.

    Attributes:
        cycles: How many files were replaced.
        messages: How many messages they hold.
        failed: Files that could not be replaced, and why; they stay as they are.

    Examples:
        >>> import quire.archive
        >>> _ = quire.archive.archive("orders", "archive")
        >>> quire.archive.rewrite("archive").failed
        []

    """

    cycles: int = 0
    messages: int = 0
    failed: list[Failure] = field(default_factory=list[Failure])
