"""Missing cycles: deleted from the queue before they were archived, or gone from the archive."""

from __future__ import annotations

from pathlib import Path

from quire.archive.cycle_entry import Entry
from quire.archive.finished_cycles import end_of
from quire.archive.manifest import Topic
from quire.errors import CorruptError
from quire.formats.adapters import cycles_of
from quire.handles.base import Queue


def record_losses(topic: Topic, queue: Queue) -> None:
    """Record the cycles that were seen, but are gone and were not archived."""
    here = {*cycles_of(queue)}
    noted = {cycle for cycle, _ in topic.lost}
    gone = topic.seen - topic.entries.keys() - here - noted
    topic.lost += [(cycle, "deleted before it was archived") for cycle in sorted(gone)]
    newest = topic.newest_known
    if newest is None or newest in here or newest in noted | gone:
        return
    later = [cycle for cycle in here if cycle > newest]
    if later:
        topic.lost.append(
            (None, f"cycles between {newest} and {min(later)} may have come and gone unseen")
        )


def record_deletion(topic: Topic) -> None:
    """Record the losses of a queue that is gone."""
    newest = topic.newest_known
    if topic.gone or newest is None:
        return
    noted = {cycle for cycle, _ in topic.lost}
    gone = topic.seen - topic.entries.keys() - noted
    topic.lost += [(cycle, "deleted before it was archived") for cycle in sorted(gone)]
    loss = (None, f"the queue is gone, with any cycles after {newest}: path={topic.queue}")
    if None not in noted:
        topic.lost.append(loss)


def is_gone(topic: Topic) -> bool:
    """Return whether a queue is gone although the directory above it exists."""
    if not topic.queue or Path(topic.queue).is_dir():
        return False
    return Path(topic.root).is_dir() or Path(topic.queue).parent.is_dir()


def drop_missing(topic: Topic, queue: Queue | None) -> list[tuple[int, str]]:
    """
    Forget cycles whose files are gone or truncated, so that they are archived again.

    If the queue no longer has such a cycle, a missing file is recorded as lost. Return the cycles
    of truncated files that cannot be archived again, with the reason.
    """
    failed: list[tuple[int, str]] = []
    for cycle, entry in sorted(topic.entries.items()):
        file = topic.file(entry)
        wrong = _wrong_with(file, entry)
        if wrong is None:
            continue
        if not _is_live(queue, cycle):
            if file.exists():
                failed.append((cycle, f"{wrong}, and the queue no longer has the cycle"))
                continue
            topic.lost.append((cycle, f"{wrong}, and the queue no longer has the cycle"))
        topic.seen.add(cycle)
        del topic.entries[cycle]
    return failed


def _wrong_with(file: Path, entry: Entry) -> str | None:
    try:
        size = file.stat().st_size
    except FileNotFoundError:
        return f"the file is gone from the archive: file={file}"
    if entry.size in {0, size}:
        return None
    return f"the file has another length: file={file} found={size} expected={entry.size}"


def _is_live(queue: Queue | None, cycle: int) -> bool:
    try:
        return queue is not None and end_of(queue, cycle) is not None
    except CorruptError:
        return True  # reported when it is archived
