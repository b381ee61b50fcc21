"""The result of a run of retention."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class PrunedCycle(NamedTuple):
    """
    A cycle, in a :class:`quire.retaining.PruneReport`.

    Attributes:
        cycle: The number of the cycle.
        file: The cycle's file in the queue; of a Vanilla Chronicle, its directory.
        bytes: The disk space of the file.
        reason: Why the cycle was removed or kept.
        dest: Where its messages are now, if they were moved, archived or compressed.

    Examples:
        >>> for kept in quire.prune("orders", keep="7d").kept:
        ...     print(kept.file.name, kept.reason)

    """

    cycle: int
    file: Path
    bytes: int
    reason: str
    dest: Path | None = None


@dataclass(slots=True)
class PruneReport:
    """
    The result of :func:`quire.prune`, also of a dry run.

    Attributes:
        removed: The cycles removed, the oldest first; in a dry run, those that would be.
        kept: The cycles kept.
        overtaken: Stale named tailers and groups, which lost messages that they had not read.
        dry_run: Whether nothing was changed.
        unseen: How many processes of other users could not be examined for open files.

    Examples:
        >>> report = quire.prune("orders", keep="7d", dry_run=True)
        >>> len(report.removed), report.bytes
        (0, 0)

    """

    removed: list[PrunedCycle] = field(default_factory=list[PrunedCycle])
    kept: list[PrunedCycle] = field(default_factory=list[PrunedCycle])
    overtaken: list[str] = field(default_factory=list[str])
    dry_run: bool = False
    unseen: int = 0

    @property
    def bytes(self) -> int:
        """The disk space of the removed cycles."""
        return sum(cycle.bytes for cycle in self.removed)
