"""Which cycles are removed, and why the others are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from quire._common.roll_file_names import is_compressed
from quire.maintenance.holders import REPLICA, Holder
from quire.retaining.prune_report import PrunedCycle
from quire.retaining.rule import Limits, Rule

AGED: Final = "ended before keep="
"""How the reason starts for a cycle that is removed because of its age."""


class Cycle(NamedTuple):
    """A cycle on disk."""

    number: int
    file: Path
    bytes: int
    ended_ms: int
    """When the cycle's period ended, in epoch milliseconds."""
    identity: tuple[int, int]
    """Device and inode number of the file, or of the directory."""

    @property
    def is_compressed(self) -> bool:
        """Whether the cycle's file is compressed."""
        return is_compressed(self.file.name)

    def as_pruned(self, reason: str, dest: Path | None = None) -> PrunedCycle:
        """Return the cycle as reports show it."""
        return PrunedCycle(self.number, self.file, self.bytes, reason, dest)


class Plan(NamedTuple):
    """The cycles to remove, with the reasons, and those to keep; both the oldest first."""

    going: list[tuple[Cycle, str]]
    kept: list[PrunedCycle]


def plan(
    cycles: Sequence[Cycle], rule: Rule, now_ms: int, blocked: Callable[[Cycle], str | None]
) -> Plan:
    """
    Decide which cycles of a queue to remove.

    There will be no gap: all cycles after one that has to be kept are kept. So is the newest one.

    Args:
        cycles: All cycles of the queue, ascending.
        rule: The limits.
        now_ms: The time, in epoch milliseconds.
        blocked: Returns why a cycle that exceeds a limit has to be kept, or None.

    """
    found = Plan([], [])
    beyond = _beyond(cycles, rule, now_ms)
    first_kept: Cycle | None = None
    reason: str | None
    for cycle in cycles:
        if cycle.number not in beyond:
            reason = "within the limits"
        elif rule.action == "compress" and cycle.is_compressed:
            found.kept.append(cycle.as_pruned("compressed already"))
            continue
        elif cycle is cycles[-1]:
            reason = "kept as the newest"
        elif first_kept is not None:
            reason = f"kept after an older one that is kept: {first_kept.file.name}"
        else:
            reason = blocked(cycle)
        if reason is None:
            found.going.append((cycle, beyond[cycle.number]))
        else:
            first_kept = first_kept or cycle
            found.kept.append(cycle.as_pruned(reason))
    return found


def without_stale(
    holders: Sequence[Holder], cycles: Sequence[Cycle], limits: Limits, now_ms: int
) -> tuple[list[Holder], list[Holder]]:
    """
    Divide the named readers into those that protect the cycles they need, and stale ones.

    A replica is never stale: a user, or its source, removes it from the in-sync set.
    """
    if limits.stale_ms is None:
        return [*holders], []
    stale_at = now_ms - limits.stale_ms
    past = {cycle.number for cycle in cycles[:-1] if cycle.ended_ms <= stale_at}
    last_stale = max(past, default=-1)
    is_stale = [
        bool(past) and holder.cycle <= last_stale and holder.kind != REPLICA for holder in holders
    ]
    return (
        [it for it, stale in zip(holders, is_stale, strict=True) if not stale],
        [it for it, stale in zip(holders, is_stale, strict=True) if stale],
    )


def _beyond(cycles: Sequence[Cycle], rule: Rule, now_ms: int) -> dict[int, str]:
    """Return the limit that each cycle exceeds, by its number."""
    limits, found = rule.limits, dict[int, str]()
    total = 0
    for age, cycle in enumerate(reversed(cycles), 1):
        total += cycle.bytes
        if limits.max_cycles is not None and age > limits.max_cycles:
            found[cycle.number] = f"beyond max_cycles={rule.max_cycles}"
        elif limits.max_bytes is not None and total > limits.max_bytes:
            found[cycle.number] = f"beyond max_bytes={rule.max_bytes}"
        elif limits.keep_ms is not None and cycle.ended_ms <= now_ms - limits.keep_ms:
            found[cycle.number] = f"{AGED}{rule.keep}"
    return found
