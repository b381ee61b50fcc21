"""Deleting cycles from a queue once its archive holds them."""

from __future__ import annotations

from pathlib import Path

from quire._common.file_identity import identity_of
from quire.archive.archive_report import Failure, Report
from quire.archive.checking import check_file, check_live
from quire.archive.cycle_entry import Entry
from quire.archive.finished_cycles import end_of
from quire.archive.manifest import Topic
from quire.errors import QuireError, UnsupportedError
from quire.formats.adapters import adapter_at
from quire.handles.journal.queue import JournalQueue
from quire.maintenance.files import open_reason
from quire.maintenance.holders import GROUP, NAMED_TAILER, growth_of, holders_of, reader_in
from quire.maintenance.removal import check_place, reason_hidden, reason_moved, removal


def delete_archived(topic: Topic, path: str, report: Report, *, force: bool) -> None:
    """
    Delete the cycles of a queue that the archive holds and that nobody needs any more.

    The newest cycle is kept, and so are cycles without an end-of-file marker, cycles that a process
    has open, and all cycles from that of a holder on. Holders are an unfinished write of Spark, the
    drainer of a ring, an in-sync replica and, unless *force* is given, a named tailer (services
    included) or a consumer group. The cycle that a tailer is in is kept even if it was read to its
    end: when it is opened again, the tailer could not know that nothing was lost. A cycle that
    differs from its archive is kept, too, and reported as failed. All archived cycles after one
    that is kept are kept as well, because a queue with a gap would look damaged. Each cycle is
    checked again right before it is deleted.

    Args:
        topic: The queue's topic in the archive.
        path: The queue; opened for writing, to update its list of files.
        report: Receives the deleted and the kept cycles.
        force: Ignore the positions of named tailers and consumer groups.

    Raises:
        UnsupportedError: The queue is not a Chronicle Queue.
        LockHeldError: Another process removes cycles of the queue.

    """
    found = adapter_at(path)
    if found is None or not found.is_wire:
        raise UnsupportedError(
            "only cycles of a Chronicle Queue can be deleted: nothing marks the end of a cycle of a"
            " Vanilla Chronicle, and Java's writers of a Quick-Queue start at its first page:"
            f" path={path}"
        )
    with removal(path) as cycles:
        queue = cycles.queue
        after: str | None = None
        for entry in [topic.entries[it] for it in queue.cycles[:-1] if it in topic.entries]:
            file = Path(queue.file_for_cycle(entry.cycle))
            try:
                if end_of(queue, entry.cycle) is None:
                    continue
                reason = _kept(queue, entry.cycle, force=force) or after
                if reason is None:
                    identity = identity_of(file.lstat())
                    check_archived(topic, queue, entry)  # reads both, which may take long
                    reason = open_reason([file]) or _kept(queue, entry.cycle, force=force)
                    check_place(cycles.folder, path)
                    reason = reason or reason_moved(cycles.folder, file.name, identity)
                    reason = reason or reason_hidden(file)
                if reason is None:
                    cycles.remove(entry.cycle)
            except (QuireError, OSError) as error:
                report.failed.append(Failure(topic.name, entry.cycle, f"not deleted: {error}"))
            else:
                if reason is None:
                    report.deleted += 1
                    continue
                report.kept.append(Failure(topic.name, entry.cycle, reason))
            after = after or f"kept after an older one that is kept: {file.name}"


def check_archived(topic: Topic, queue: JournalQueue, entry: Entry) -> None:
    """
    Check that the archive holds a cycle of a queue, byte by byte.

    Raises:
        ArchiveError: The archive does not hold exactly the messages of the cycle.
        CorruptError: The cycle's roll file is damaged.

    """
    check_file(topic.file(entry), entry)
    check_live(queue, entry, every_byte=True)


def _kept(queue: JournalQueue, cycle: int, *, force: bool) -> str | None:
    """Return why a cycle has to be kept at this moment; None if it can be deleted."""
    passed_over = (NAMED_TAILER, GROUP) if force else ()
    holders = [it for it in holders_of(queue) if it.kind not in passed_over]
    return growth_of(queue, cycle) or reader_in(holders, cycle)
