"""Retention: deleting cycles from a queue once its archive holds them."""

from __future__ import annotations

from pathlib import Path

from quire._durable import sync
from quire._formats import CHRONICLE, format_of
from quire._positions import stored_position
from quire.archive.cycles import end_of
from quire.archive.manifest import Topic
from quire.archive.report import Failure, Report
from quire.archive.verification import check_file, check_live
from quire.errors import QuireError, UnsupportedError
from quire.queue import Queue
from quire.queue import open as open_queue


def delete_archived(topic: Topic, path: str, report: Report, *, force: bool) -> None:
    """
    Delete the cycles of a queue that the archive holds: whole, verified, and done with.

    The newest cycle stays, and so do those without end-of-file marker and, unless *force* is
    given, those from the cycle of a named tailer on: services are among these. The cycle it is in
    stays even if it was read to its end, as the tailer could not know that when it is opened again.
    A cycle that does not equal its archive byte by byte stays too, and has failed.

    Args:
        topic: What the archive holds of the queue.
        path: The queue; opened for writing, to update its list of files.
        report: Receives what was deleted and what was kept.
        force: Ignore the positions of named tailers.

    Raises:
        UnsupportedError: The queue is of another format.

    """
    if format_of(path) != CHRONICLE:
        raise UnsupportedError(
            "only cycles of a Chronicle Queue are deleted: nothing ends those of a Vanilla"
            " Chronicle, and Java's writers of a Quick-Queue start at its first page:"
            f" path={path}"
        )
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
    """Return which named tailer still needs a cycle; None if all are in later ones."""
    for name, index in queue.named_tailers():
        if stored_position(queue, index)[0] <= cycle:
            return f"kept for a named tailer: tailer={name} next={index:#x}"
    return None
