"""Verifying an archive against its own manifest and against the queue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from os import PathLike
from pathlib import Path

from quire._common import arguments
from quire.archive.archive_report import Failure, Progress, ProgressCounter, Verified, no_progress
from quire.archive.archived_columns import Columns, CycleReader
from quire.archive.cycle_entry import Entry
from quire.archive.cycle_file import digest_in
from quire.archive.digest import Digest, sha256_of
from quire.archive.finished_cycles import Cycle, end_of, file_of
from quire.archive.gaps import is_gone, record_deletion
from quire.archive.manifest import Archive, Topic, read_entry
from quire.errors import ArchiveError, QuireError
from quire.formats.adapter import End
from quire.handles.base import Queue
from quire.opening.discovery import topics_of
from quire.opening.opener import open_whole


def verify(
    dest: str | PathLike[str],
    queue: str | PathLike[str] | None = None,
    *,
    progress: Progress = no_progress,
) -> Verified:
    """
    Compare all files of an archive with its manifest and with the queue.

    Args:
        dest: The archive.
        queue: The queue, or the directory of queues; None: the path that was archived.
        progress: Called from time to time.

    Raises:
        ArchiveError: There is no archive at *dest*.
        NotAQueueError: There is no queue at *queue*.

    Examples:
        >>> import quire.archive
        >>> day = quire.ManualClock(1_705_314_600_000)
        >>> with quire.open("trades", clock=day) as trades, trades.appender() as appender:
        ...     _ = appender.write_map({"symbol": "EURUSD", "price": 1.1})
        ...     _ = day.advance(86_400_000)  # the first cycle is finished
        ...     _ = appender.write_map({"symbol": "EURUSD", "price": 1.2})
        >>> _ = quire.archive.archive("trades", "archive")
        >>> verified = quire.archive.verify("archive", "trades")
        >>> verified.cycles, verified.compared, verified.failed
        (1, 1, [])

    """
    kept, verified = Archive(Path(arguments.path("dest", dest))), Verified()
    queues = None if queue is None else topics_of(arguments.path("queue", queue))
    topics = [*_topics_of(kept, verified)]
    total = sum(entry.messages for topic in topics for entry in topic.entries.values())
    for topic in topics:
        if queues is None:
            path = topic.queue if topic.queue and Path(topic.queue).is_dir() else None
            if is_gone(topic):
                record_deletion(topic)
        elif (path := queues.get(topic.name)) is None and not topic.gone:
            verified.failed.append(Failure(topic.name, None, f"no such queue: path={queue}"))
        verified.failed += [Failure(topic.name, cycle, f"lost: {why}") for cycle, why in topic.lost]
        verified.failed += [Failure(topic.name, None, problem) for problem in topic.problems]
        counted = ProgressCounter(progress, topic.name, verified.messages, total)
        _verify_topic(topic, path, verified, counted)
    return verified


def _topics_of(kept: Archive, verified: Verified) -> Iterator[Topic]:
    for name in kept.topics():
        try:
            yield kept.topic(name)
        except (QuireError, OSError) as error:
            verified.failed.append(Failure(name, None, str(error)))


def _verify_topic(
    topic: Topic, path: str | None, verified: Verified, progress: ProgressCounter
) -> None:
    try:
        opened = nullcontext() if path is None else open_whole(path)
    except (QuireError, OSError) as error:
        verified.failed.append(Failure(topic.name, None, str(error)))
        opened = nullcontext()
    with opened as queue:
        for _, entry in sorted(topic.entries.items()):
            try:
                check_file(topic.file(entry), entry)
                if queue is not None:
                    verified.compared += check_live(queue, entry, every_byte=True)
            except (QuireError, OSError) as error:
                verified.failed.append(Failure(topic.name, entry.cycle, str(error)))
            verified.cycles += 1
            verified.messages += entry.messages
            progress.add(entry.messages)


def check_file(path: Path, entry: Entry) -> None:
    """
    Check that a file holds the messages that its entry describes.

    Raises:
        ArchiveError: The file is missing, or its content differs from *entry*.

    """
    if not path.exists():
        raise ArchiveError(f"the file is missing: file={path}")
    if entry.sha256 and sha256_of(path) != entry.sha256:
        raise ArchiveError(f"the file's bytes are not those that were written: file={path}")
    found = read_entry(path)
    if found is None or found.recorded != entry.recorded:
        raise ArchiveError(f"the file's metadata differs from the manifest: file={path}")
    digest, rows = digest_in(path)
    _check(f"file={path}", digest, entry)
    if rows != entry.rows:
        raise ArchiveError(f"rows are missing: file={path} found={rows} expected={entry.rows}")


def check_live(queue: Queue, entry: Entry, *, every_byte: bool) -> bool:
    """
    Compare a cycle of the queue with its entry; return False if the queue lacks the cycle.

    Raises:
        ArchiveError: The cycle's messages differ from *entry*; without *every_byte*, only their
            number is compared.
        CorruptError: The cycle's roll file is damaged.

    """
    end = end_of(queue, entry.cycle)
    if end is None:
        return False
    file = file_of(queue, entry.cycle)
    if end.past != entry.end:
        raise ArchiveError(
            "the queue's cycle and its archive have different numbers of messages:"
            f" file={file} found={end.past} archived={entry.end}"
        )
    if every_byte:
        check_messages(queue, entry, end)
    return True


def check_messages(queue: Queue, entry: Entry, end: End) -> None:
    """
    Compare the messages of a cycle of the queue, up to an end, with its entry, byte by byte.

    Raises:
        ArchiveError: The messages differ from *entry*.
        CorruptError: The cycle's roll file is damaged.

    """
    digest, file = Digest(), file_of(queue, entry.cycle)
    for batch in CycleReader(queue, Columns(""), Cycle(entry.cycle, file, end, None, 0)):
        digest.add(batch)
    _check(f"file={file}", digest, entry)


def _check(where: str, digest: Digest, entry: Entry) -> None:
    found = (digest.messages, digest.first_index, digest.last_index, digest.hex)
    if found != (entry.messages, entry.first_index, entry.last_index, entry.digest):
        raise ArchiveError(
            f"the messages differ from those that were archived: {where} messages={digest.messages}"
            f" expected={entry.messages} digest={digest.hex[:16]} expected={entry.digest[:16]}"
        )
