"""The reports of archiving, verifying and rewriting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from quire.archive.cycle_entry import Entry

Progress: TypeAlias = Callable[[str, int, int], object]
"""Called with the name of the step, the number of messages done, and their total number."""


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
    A cycle, or a whole topic, that was not archived, deleted or verified, and why.

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
        archived: The cycles added to the archive, by topic.
        present: How many cycles were in the archive before.
        unfinished: How many cycles may still grow.
        deleted: How many cycles were deleted from their queues.
        kept: Cycles that were to be deleted from their queues, but are still needed.
        failed: Cycles that could not be archived, and files or cycles that are damaged.
        lost: Cycles that an earlier run saw, and that are now neither in the queue nor archived.
        bytes: The size of the files added.

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
        """The number of messages archived by this run."""
        return sum(entry.messages for entry in self.entries)

    @property
    def misfits(self) -> int:
        """The number of rows without values in typed columns, because the message is malformed."""
        return sum(entry.misfits for entry in self.entries)

    @property
    def payload_bytes(self) -> int:
        """The size of the payloads archived by this run."""
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
        cycles: How many cycles were verified.
        messages: How many messages they hold.
        compared: How many of the cycles are still in the queue, and were compared with it.
        failed: Cycles and topics with a problem, and the reason.

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
