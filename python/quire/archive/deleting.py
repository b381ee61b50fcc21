"""Deleting from a queue the cycles that its archive holds."""

from __future__ import annotations

from pathlib import Path

from quire.archive.cycles import end_of
from quire.archive.folders import Topic
from quire.archive.reports import Failure, Report
from quire.archive.verifying import check_file, check_live
from quire.durable import sync
from quire.errors import QuireError
from quire.queue import Queue
from quire.queue import open as open_queue

_TAILER = "index."
_KEPT_BESIDE = (".version", ".lock")  # of a tailer whose position is replicated


def delete_archived(topic: Topic, path: str, report: Report, *, force: bool) -> None:
    """
    Delete the cycles of a queue that the archive holds: whole, verified, and done with.

    The newest cycle stays, and so do those that a named tailer has not read to their end, unless
    *force* is given, and those without end-of-file marker. A cycle that does not equal its archive
    byte by byte stays too, and has failed.

    Args:
        topic: What the archive holds of the queue.
        path: The queue; it is opened for writing, to tell others which files are left.
        report: Where to say what was deleted, and what was kept.
        force: Do not ask where the named tailers are.

    """
    with open_queue(path, create=False) as queue:
        gone = 0
        for entry in [topic.entries[it] for it in queue.cycles[:-1] if it in topic.entries]:
            try:
                if end_of(queue, entry.cycle) is None:
                    continue
                reason = _may_grow(queue, entry.cycle)
                if reason is None and not force:
                    reason = _reader_in(queue, entry.cycle)
                if reason is not None:
                    report.kept.append(Failure(topic.name, entry.cycle, reason))
                    continue
                check_file(topic.file(entry), entry)
                check_live(queue, entry, every_byte=True)
                Path(queue.file_for_cycle(entry.cycle)).unlink()
            except (QuireError, OSError) as error:
                report.failed.append(Failure(topic.name, entry.cycle, f"not deleted: {error}"))
            else:
                gone += 1
        if gone:
            sync(Path(path))
            queue.refresh()
        report.deleted += gone


def _may_grow(queue: Queue, cycle: int) -> str | None:
    """Return why a cycle could still get messages; None if it cannot."""
    end = end_of(queue, cycle)
    if end is not None and end.ended:
        return None
    return "kept as it has no end-of-file marker: Java could append (see normalise_eofs)"


def _reader_in(queue: Queue, cycle: int) -> str | None:
    """Return which named tailer has not passed a cycle; None if all have."""
    entries = dict(queue.table_entries())
    for key, index in entries.items():
        is_beside = any(
            key.endswith(end) and key.removesuffix(end) in entries for end in _KEPT_BESIDE
        )
        if key.startswith(_TAILER) and not is_beside:
            at = queue.roll_cycle.to_cycle(index)
            if at <= cycle and not _has_read_all(queue, index, cycle):
                name = key.removeprefix(_TAILER)
                return f"kept for a named tailer: tailer={name} next={index:#x}"
    return None


def _has_read_all(queue: Queue, index: int, cycle: int) -> bool:
    """Return whether the next message to read lies behind a cycle's last."""
    if queue.roll_cycle.to_cycle(index) != cycle:
        return False
    end = end_of(queue, cycle)
    return end is not None and queue.roll_cycle.to_sequence(index) >= end.messages
