"""A run of retention, by `quire.prune` or, after a roll, by the rule of an open queue."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from quire._common import arguments
from quire._common.file_identity import Identity
from quire._native import ManualClock, count_pruned
from quire.errors import CorruptError, NotAQueueError, StoppedError
from quire.handles.base import Queue
from quire.maintenance.files import identities_of, reason_of, users_of
from quire.maintenance.holders import Holder, reader_in
from quire.maintenance.removal import reason_hidden
from quire.opening.declaring import check_clock
from quire.retaining.actions import Saver, check_dest, saver_of
from quire.retaining.by_format import (
    Cycles,
    check_format,
    identity_in,
    opened_to_look,
    opened_to_prune,
)
from quire.retaining.prune_report import PrunedCycle, PruneReport
from quire.retaining.pruning_plan import AGED, Cycle, Plan, plan, without_stale
from quire.retaining.rule import Action, Age, Rule

if TYPE_CHECKING:
    from quire._common.durable import SafeFolder

    Clock: TypeAlias = ManualClock | Callable[[], int]
    Progress: TypeAlias = Callable[[str, int, int], object]

_LOG: Final = logging.getLogger("quire")
_DAY_MS: Final = 86_400_000


def prune(  # noqa: PLR0913 - by keywords
    queue: Queue | str | PathLike[str],
    keep: Age | None = None,
    max_bytes: int | str | None = None,
    max_cycles: int | None = None,
    dry_run: bool = False,  # noqa: FBT001, FBT002 - by keyword
    *,
    action: Action = "delete",
    dest: str | PathLike[str] | None = None,
    stale_after: Age | None = None,
    on_removed: Callable[[PrunedCycle], object] | None = None,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> PruneReport:
    """
    Remove the oldest cycles of a queue that no reader needs any more.

    A cycle is removed once it exceeds one of the limits. The newest cycle is kept, and so is a
    cycle without an end-of-file marker, one that a named tailer or consumer group has not left, one
    that a process has open, and every cycle after one that is kept. Each is checked again right
    before it is removed. A run that is killed, at any moment, has removed whole cycles, and the
    next run continues. Java may write and read meanwhile.

    Args:
        queue: A queue, or its directory.
        keep: Keep cycles that ended less than this long ago: text such as ``7d`` or ``12h``,
            seconds, or a ``datetime.timedelta``.
        max_bytes: Keep at most this much on disk: bytes, or text such as ``10GB``.
        max_cycles: Keep at most this many cycles, including the one being written.
        dry_run: Change nothing, and report what would be done.
        action: What to do with all other cycles: ``delete`` them, ``move`` their files to *dest*,
            ``archive`` them to Parquet in *dest* and delete them, or ``compress`` them in place:
            Quire reads them as before, and Java no longer sees them.
        dest: The directory to move or archive to, created if it does not exist.
        stale_after: Ignore a named tailer or consumer group whose next message is in a cycle that
            ended this long ago. None: each keeps the cycles that it has not read.
        on_removed: Called with each :class:`quire.retaining.PrunedCycle` after its removal, with no
            lock held.
        clock: Returns the time, as in :func:`quire.open`; None: use the system's clock.
        progress: Called with the name of the step, the number of cycles done, and their total
            number.

    Raises:
        ValueError: A limit, *action* or *dest* is not valid, or no limit was given.
        NotAQueueError: There is no queue in the directory.
        UnsupportedError: The cycles of this format cannot be removed, or the system has no
            ``/proc``.
        LockHeldError: Another process removes cycles of the queue.
        TableLostError: Another queue replaced *queue*, before or during the run.
        OSError: A file cannot be removed or moved, or the disk is full; earlier cycles are removed,
            this cycle and later ones are unchanged.

    Examples:
        >>> day = quire.ManualClock(1_705_314_600_000)
        >>> with quire.open("trades", clock=day) as trades, trades.appender() as appender:
        ...     for price in (1.1, 1.2, 1.3):
        ...         _ = appender.write_map({"symbol": "EURUSD", "price": price})
        ...         _ = day.advance(86_400_000)
        >>> report = quire.prune("trades", max_cycles=2)
        >>> [(it.file.name, it.reason) for it in report.removed]
        [('20240115F.cq4', 'beyond max_cycles=2')]
        >>> [(it.file.name, it.reason) for it in report.kept]
        [('20240116F.cq4', 'within the limits'), ('20240117F.cq4', 'within the limits')]

    """
    rule = Rule(
        keep=keep,
        max_bytes=max_bytes,
        max_cycles=max_cycles,
        action=action,
        dest=dest,
        stale_after=stale_after,
        on_removed=on_removed,
    )
    arguments.flag("dry_run", dry_run)
    place = queue.path if isinstance(queue, Queue) else arguments.queue_path("queue", queue)
    opened = identity_in(queue) if isinstance(queue, Queue) else None
    return Run(place, rule, clock=clock, progress=progress, opened=opened).apply(dry_run=dry_run)


class Run:
    """One application of a rule to a queue."""

    def __init__(  # noqa: PLR0913 - by keywords
        self,
        path: str,
        rule: Rule,
        *,
        clock: Clock | None = None,
        progress: Progress | None = None,
        open_options: dict[str, Any] | None = None,
        stopped: Callable[[], bool] = lambda: False,
        opened: Identity | None = None,
    ) -> None:
        self._path: Final = path
        self._rule: Final = rule
        check_clock("clock", clock)
        arguments.optional(arguments.function())("progress", progress)
        self._clock: Final = clock
        self._progress: Final = progress
        self._open_options: Final = open_options or {}
        self._stopped: Final = stopped
        self._opened: Final = opened
        self._listed: list[Cycle] = []

    def apply(self, *, dry_run: bool = False) -> PruneReport:
        """Remove cycles that exceed the limits; in a dry run, only report them."""
        check_format(self._path, self._rule.action)
        check_dest(self._rule, self._path)
        report = PruneReport(dry_run=dry_run)
        try:
            if dry_run:
                with opened_to_look(self._path, self._opened) as cycles:
                    found = self._plan(cycles, report)
                report.removed += [cycle.as_pruned(reason) for cycle, reason in found.going]
            else:
                with opened_to_prune(self._path, self._open_options, self._opened) as cycles:
                    self._prune(cycles, report)
                self._count(0, 0, now_ms=max(0, self._now_ms()))
        finally:
            if not dry_run and self._rule.on_removed is not None:
                for cycle in report.removed:
                    self._rule.on_removed(cycle)
        return report

    def _prune(self, cycles: Cycles[Any], report: PruneReport) -> None:
        found = self._plan(cycles, report)
        if not found.going:
            return
        with saver_of(
            self._rule, self._path, cast("SafeFolder", cycles.folder), self._check
        ) as saver:
            for done, (cycle, reason) in enumerate(found.going):
                self._check()
                if self._progress is not None:
                    self._progress(f"{self._rule.action} {cycle.file.name}", done, len(found.going))
                kept = self._remove(cycles, saver, cycle, reason, report)
                if kept is not None:
                    going = [it for it, _ in found.going[done:]]
                    report.kept[:0] = _kept_from(going, kept)
                    return

    def _check(self) -> None:
        if self._stopped():
            raise StoppedError(f"the queue was closed during a run: path={self._path}")

    def _remove(
        self, cycles: Cycles[Any], saver: Saver, cycle: Cycle, reason: str, report: PruneReport
    ) -> str | None:
        """Remove a cycle, or return why it has to be kept now: saving it may have taken long."""
        if saver.takes_long and (kept := self._kept_now(cycles, cycle, report)) is not None:
            return kept
        dest = saver.save(cycles.queue, cycle)
        try:
            kept = self._kept_now(cycles, cycle, report)
        except BaseException:
            saver.undo(cycle)
            raise
        if kept is not None:
            saver.undo(cycle)
            return kept
        try:
            cycles.remove(cycle.number, self._rule.action, saver.moves)
        except OSError as error:
            if not saver.can_save_again(error):
                raise
            return self._remove(cycles, saver, cycle, reason, report)
        report.removed.append(cycle.as_pruned(reason, dest))
        if self._rule.action != "compress":
            self._count(1, cycle.bytes)
        _LOG.info(
            "cycle removed: file=%s bytes=%d action=%s reason=%s",
            cycle.file,
            cycle.bytes,
            self._rule.action,
            reason,
        )
        return None

    def _kept_now(self, cycles: Cycles[Any], cycle: Cycle, report: PruneReport) -> str | None:
        """Return why a cycle has to be kept now, or None; the quickest check comes last."""
        if (kept := _open_in(cycles, cycle)) is not None:
            return kept
        now_ms = self._now_ms()
        holders, stale = without_stale(cycles.holders(), self._listed, self._rule.limits, now_ms)
        kept = self._hidden_in(cycle)
        kept = kept or cycles.growth(cycle, now_ms) or reader_in(holders, cycle.number)
        kept = kept or cycles.moved(cycle)
        if kept is None:
            self._warn_overtaken(stale, cycle.number, report)
        return kept

    def _hidden_in(self, cycle: Cycle) -> str | None:
        """Return why a cycle stays of which not all messages are saved."""
        return reason_hidden(cycle.file) if self._rule.action in {"move", "archive"} else None

    def _warn_overtaken(self, stale: list[Holder], last: int, report: PruneReport) -> None:
        """Report the stale readers that need a cycle up to the last one."""
        if self._rule.action == "compress":
            return  # compressed cycles can still be read
        names = {holder.name for holder in stale if holder.cycle <= last}
        for name in sorted(names - {*report.overtaken}):
            report.overtaken.append(name)
            if not report.dry_run:
                _LOG.warning("a stale reader loses messages: name=%s path=%s", name, self._path)

    def _count(self, cycles: int, freed: int, now_ms: int = 0) -> None:
        """Count for the queue's metrics, if any process keeps them."""
        try:
            count_pruned(self._path, cycles, freed, now_ms)
        except (CorruptError, NotAQueueError, OSError) as error:
            _LOG.warning("retention is not counted: path=%s error=%s", self._path, error)

    def _plan(self, cycles: Cycles[Any], report: PruneReport) -> Plan:
        listed, now_ms = [*cycles.listed()], self._now_ms()
        self._listed = listed
        holders, stale = without_stale(cycles.holders(), listed, self._rule.limits, now_ms)

        def blocked(cycle: Cycle) -> str | None:
            kept = cycles.growth(cycle, now_ms) or reader_in(holders, cycle.number)
            return kept or self._hidden_in(cycle)

        found, report.unseen = _without_open(plan(listed, self._rule, now_ms, blocked), cycles)
        report.kept += found.kept
        self._warn_clock(cycles, found, now_ms)
        if report.dry_run and found.going:
            self._warn_overtaken(stale, found.going[-1][0].number, report)
        return found

    def _warn_clock(self, cycles: Cycles[Any], found: Plan, now_ms: int) -> None:
        """Warn if cycles are removed for their age that are young compared to the newest one."""
        keep_ms = self._rule.limits.keep_ms
        if keep_ms is None or not found.going:
            return
        newest_ms = cycles.queue.cycle_start_ms(self._listed[-1].number)
        young = [
            cycle.file.name
            for cycle, reason in found.going
            if reason.startswith(AGED) and cycle.ended_ms > newest_ms - keep_ms
        ]
        if young:
            _LOG.warning(
                "removing cycles that ended less than keep=%s before the newest one, because the"
                " clock is %.1f days past it: path=%s first=%s last=%s (is the clock right?)",
                self._rule.keep,
                (now_ms - newest_ms) / _DAY_MS,
                self._path,
                young[0],
                young[-1],
            )

    def _now_ms(self) -> int:
        if self._clock is None:
            return time.time_ns() // 1_000_000
        return self._clock()


def _without_open(found: Plan, cycles: Cycles[Any]) -> tuple[Plan, int]:
    """Keep cycles from the first one that a process has open; count processes not examined."""
    if not found.going:
        return found, 0
    files = {cycle.number: identities_of(cycles.files_of(cycle.file)) for cycle, _ in found.going}
    users, unseen = users_of({it for identities in files.values() for it in identities})
    for at, (cycle, _) in enumerate(found.going):
        pids = {user.pid for it in files[cycle.number] for user in users.get(it, ())}
        if pids:
            kept = _kept_from([it for it, _ in found.going[at:]], reason_of(pids))
            return Plan(found.going[:at], kept + found.kept), unseen
    return found, unseen


def _open_in(cycles: Cycles[Any], cycle: Cycle) -> str | None:
    """Return which processes have a cycle open, or None."""
    try:
        files = identities_of(cycles.files_of(cycle.file))
    except FileNotFoundError:
        return None  # removed by hand
    users, _ = users_of(files)
    pids = {user.pid for found in users.values() for user in found}
    return reason_of(pids) if pids else None


def _kept_from(going: list[Cycle], reason: str) -> list[PrunedCycle]:
    """Return cycles to keep: the first for a reason, the others because the first is kept."""
    after = f"kept after an older one that is kept: {going[0].file.name}"
    return [cycle.as_pruned(after if at else reason) for at, cycle in enumerate(going)]
