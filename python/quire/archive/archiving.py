"""A run of archiving: each finished cycle that an archive lacks becomes one of its files."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedWriter
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

from quire._common import arguments
from quire._common.durable import Access, SafeFolder, named_error
from quire.archive.archive_report import Failure, Progress, ProgressCounter, Report, no_progress
from quire.archive.archived_columns import Columns, CycleReader, misfits_in
from quire.archive.checking import check_file
from quire.archive.cycle_entry import LAYOUT, Entry, completed
from quire.archive.cycle_file import Writer
from quire.archive.decoding import decoding_of
from quire.archive.deletion import delete_archived
from quire.archive.digest import Digest
from quire.archive.finished_cycles import Cycle, Look, check_unchanged, look, name_of
from quire.archive.gaps import drop_missing, record_deletion, record_losses
from quire.archive.identity import check_identity, is_same_place
from quire.archive.manifest import Archive, Topic, file_name
from quire.arrow.schema import Schema
from quire.errors import ArchiveError, NotAQueueError, QuireError
from quire.formats.detection import format_of
from quire.handles.base import Queue
from quire.maintenance.left_out import warn_pending, warn_plain
from quire.opening.discovery import check_local, topics_of
from quire.opening.opener import open_whole
from quire.ranges.event_time import TimeField


def archive(  # noqa: PLR0913 - by keywords
    path: str | PathLike[str],
    dest: str | PathLike[str],
    *,
    schema: Schema | Literal["infer"] | None = None,
    method: str | None = None,
    timed: TimeField | None = None,
    sample: int = 1000,
    grace_s: float = 1.0,
    delete: bool = False,
    force: bool = False,
    accept_loss: bool = False,
    progress: Progress = no_progress,
) -> Report:
    """
    Archive the finished cycles of a queue, or of each queue in a directory of queues.

    A cycle is finished when an end-of-file marker closes it, or when a later cycle has a message
    and the cycle has not changed for the grace time. Each file is read again and compared before it
    gets its name; files of earlier runs stay unchanged. If a run is killed, at any moment, its
    finished files remain, and the next run continues.

    Args:
        path: The queue, or the directory of queues. Only *delete* changes it.
        dest: The archive's directory, created if it does not exist.
        schema: The structure of the messages, whose fields become typed columns in addition to the
            payload. ``infer``: sample the messages of each queue. None: as in the previous run. A
            malformed message has the reason in ``_error``.
        method: One method of a schema of methods: only its arguments are columns, null in the rows
            of other methods.
        timed: The field for a column ``_timestamp``; the name ``history`` means the history.
        sample: How many messages to infer from.
        grace_s: How long a cycle without an end-of-file marker must stay unchanged, in seconds.
        delete: Delete archived cycles from the queue, after comparing both again. The newest cycle
            is kept, and cycles that a named tailer, a consumer group or another holder needs.
        force: Also delete cycles that named tailers and consumer groups have not read.
        accept_loss: Forget the losses reported, in this run and later ones.
        progress: Called from time to time.

    Raises:
        NotAQueueError: There is no queue at *path*, and the archive holds no cycle of one.
        ValueError: *dest* is the directory of a queue, or lies in that of an archived one, whose
            copies would lack it.
        ArchiveError: Another run is working on the archive.

    Examples:
        >>> import quire.archive
        >>> day = quire.ManualClock(1_705_314_600_000)
        >>> with quire.open("trades", clock=day) as trades, trades.appender() as appender:
        ...     _ = appender.write_map({"symbol": "EURUSD", "price": 1.1})
        ...     _ = day.advance(86_400_000)  # the first cycle is finished
        ...     _ = appender.write_map({"symbol": "EURUSD", "price": 1.2})
        >>> report = quire.archive.archive("trades", "archive")
        >>> report.messages, report.unfinished, report.is_complete
        (1, 1, True)

    """
    given = {name: arguments.path(name, it) for name, it in (("path", path), ("dest", dest))}
    for each in given.values():
        check_local(each)
    for name, flag in (("delete", delete), ("force", force), ("accept_loss", accept_loss)):
        arguments.flag(name, flag)
    arguments.seconds("grace_s", grace_s)
    arguments.function()("progress", progress)
    arguments.optional(arguments.instance(TimeField, "a TimeField or None"))("timed", timed)
    root = Path(given["path"]).absolute()
    kept = Archive(Path(given["dest"]))
    if format_of(str(kept.path)) is not None:
        raise ValueError(f"invalid dest: expected no queue's own directory, found {kept.path}")
    report = Report(kept.path)
    queues = _queues_of(root, kept)
    if any(kept.path.resolve().is_relative_to(Path(it).resolve()) for it in queues.values()):
        raise ValueError(f"invalid dest: expected a directory outside the queue, found {kept.path}")
    access = Access.of(root)
    for queue in queues.values():
        access &= Access.of(queue)
    asked: dict[str, Any] = {"schema": schema, "method": method, "timed": timed, "sample": sample}
    with kept.held(access):
        for name, queue in queues.items():
            try:
                topic = kept.topic(name)
            except (QuireError, OSError) as error:
                report.failed.append(Failure(name, None, f"{error}"))
                continue
            run = _TopicRun(kept, topic, _Source(queue, str(root)), report, progress)
            run.run(grace_s, asked, accept_loss=accept_loss)
            if delete:
                run.delete(force=force)
        for topic in _gone_below(root, queues, kept, report):
            _TopicRun(kept, topic, _Source("", str(root)), report, progress).lose(
                accept_loss=accept_loss
            )
    return report


def _queues_of(root: Path, kept: Archive) -> dict[str, str]:
    """
    Return the queues by topic; none if all queues that were archived are gone.

    Raises:
        NotAQueueError: There is no queue below *root*, and the archive holds no topic.

    """
    try:
        return topics_of(root)
    except NotAQueueError:
        if not kept.exists or not any(_gone_below(root, {}, kept, Report(kept.path))):
            raise
        return {}


def _gone_below(
    root: Path, queues: Mapping[str, str], kept: Archive, report: Report
) -> Iterator[Topic]:
    """Yield the archived topics whose queues were below a directory and are gone."""
    for name in kept.topics():
        if name in queues:
            continue
        try:
            topic = kept.topic(name)
        except (QuireError, OSError) as error:
            report.failed.append(Failure(name, None, f"{error}"))
            continue
        is_here = any(is_same_place(topic.queue, it) for it in queues.values())
        if topic.queue and _is_below(Path(topic.queue), root) and not is_here:
            yield topic


def _is_below(path: Path, root: Path) -> bool:
    """Return whether a path leads below a directory, as it is written or with links followed."""
    return path.is_relative_to(root) or path.resolve().is_relative_to(root.resolve())


class _Source(NamedTuple):
    path: str
    root: str
    """The path given by the user: that of the queue, or a directory above it."""


class _TopicRun:
    def __init__(
        self, kept: Archive, topic: Topic, source: _Source, report: Report, progress: Progress
    ) -> None:
        self._archive = kept
        self._topic = topic
        self._path = source.path
        self._root = source.root
        self._report = report
        self._progress = progress
        self._is_same = False
        self._columns = Columns(topic.name)
        self._decoding = 0

    def run(self, grace_s: float, asked: Mapping[str, Any], *, accept_loss: bool) -> None:
        """Archive a queue; failures go into the report."""
        topic = self._topic
        try:
            self._adopt()
            warn_pending(self._path, "archive")
            with open_whole(self._path) as queue:
                warn_plain(self._path, "archive")
                damaged = check_identity(topic, queue)
                topic.root = self._root
                decoding = decoding_of(queue, topic.decodings, **asked)
                self._columns = Columns(topic.name, decoding)
                self._decoding = topic.use(decoding)
                self._is_same = True
                self._fail_each([*damaged.items(), *drop_missing(topic, queue)])
                record_losses(topic, queue)
                if accept_loss:
                    topic.lost.clear()
                self._report.present += len(topic.entries)
                self._archive_all(queue, grace_s)
        except (QuireError, OSError) as error:
            self._fail(None, error)
            self._is_same = False  # after a failure such as a full disk, this run deletes nothing
        self._warn_lost()

    def lose(self, *, accept_loss: bool) -> None:
        """Report the losses of a queue that is gone."""
        topic = self._topic
        try:
            self._adopt()
            self._fail_each(drop_missing(topic, None))
            record_deletion(topic)
            if accept_loss:
                topic.lost.clear()
                topic.seen.clear()
                topic.gone = True
            self._report.present += len(topic.entries)
            self._archive.keep(topic)
        except (QuireError, OSError) as error:
            self._fail(None, error)
        self._warn_lost()

    def _warn_lost(self) -> None:
        topic = self._topic
        self._report.lost += [Failure(topic.name, cycle, why) for cycle, why in topic.still_lost]

    def delete(self, *, force: bool) -> None:
        """Delete archived cycles from the queue."""
        if not self._is_same:
            return
        try:
            delete_archived(self._topic, self._path, self._report, force=force)
        except (QuireError, OSError) as error:
            self._fail(None, error)

    def _archive_all(self, queue: Queue, grace_s: float) -> None:
        topic = self._topic
        found = look(queue, topic.entries)
        self._report.unfinished += len(found.unfinished)
        self._fail_each(found.damaged.items())
        topic.seen = {*found.unfinished, *found.damaged, *(it.number for it in found.finished)}
        with self._archive.made(topic, Access.of(queue.path)) as folder:
            folder.sweep()
            # Stored first, so that a cycle which is deleted before its turn is reported as lost.
            self._archive.keep(topic)
            self._archive_each(folder, queue, found, grace_s)
        topic.seen -= topic.entries.keys()
        self._archive.keep(topic)

    def _adopt(self) -> None:
        """Complete the entries of files that a killed run published but did not list."""
        topic = self._topic
        self._fail_each((None, problem) for problem in topic.problems)
        for entry in [each for each in topic.entries.values() if not each.sha256]:
            file = topic.file(entry)
            try:
                check_file(file, entry)
                topic.entries[entry.cycle] = completed(entry, file)
            except (QuireError, OSError) as error:
                self._fail(entry.cycle, error)
                del topic.entries[entry.cycle]
                topic.seen.add(entry.cycle)

    def _archive_each(self, folder: SafeFolder, queue: Queue, found: Look, grace_s: float) -> None:
        topic = self._topic
        total, done = sum(cycle.end.past for cycle in found.finished), 0
        for cycle in found.finished:
            progress = ProgressCounter(
                self._progress, f"{topic.name} {name_of(queue, cycle.number)}", done, total
            )
            try:
                with self._written(folder, queue, cycle, progress) as (temporary, entry):
                    check_unchanged(queue, cycle, grace_s)
                    folder.publish(temporary, entry.file)
            except (QuireError, FileNotFoundError) as error:
                self._fail(cycle.number, error)
            except OSError as error:
                raise named_error(
                    error, folder.path / file_name(name_of(queue, cycle.number))
                ) from None
            else:
                topic.entries[cycle.number] = entry
                self._report.archived.setdefault(topic.name, []).append(entry)
                self._report.bytes += entry.size
            done += cycle.end.past

    @contextmanager
    def _written(
        self, folder: SafeFolder, queue: Queue, cycle: Cycle, progress: ProgressCounter
    ) -> Generator[tuple[str, Entry]]:
        """Write a cycle under a temporary name and check it; remove it unless it was published."""
        temporary = folder.temporary(file_name(name_of(queue, cycle.number)))
        try:
            entry = self._write(folder.create(temporary), queue, cycle, progress)
            path = folder.path / temporary
            check_file(path, entry)
            yield temporary, completed(entry, path)
        finally:
            folder.remove(temporary)

    def _write(
        self, file: BufferedWriter, queue: Queue, cycle: Cycle, progress: ProgressCounter
    ) -> Entry:
        """Write a cycle's file, and return its entry."""
        digest, rows, misfits = Digest(), 0, 0
        with Writer(file, self._columns.schema) as writer:
            reader = CycleReader(queue, self._columns, cycle)
            for batch in reader:
                before = digest.messages
                digest.add(batch)
                writer.write(batch)
                rows += batch.num_rows
                misfits += misfits_in(batch)
                progress.add(digest.messages - before)
            entry = Entry(
                cycle=cycle.number,
                file=file_name(name_of(queue, cycle.number)),
                messages=digest.messages,
                rows=rows,
                misfits=misfits,
                first_index=digest.first_index,
                last_index=digest.last_index,
                digest=digest.hex,
                payload_bytes=digest.payload_bytes,
                past=None if cycle.end.past == digest.messages else cycle.end.past,
                ended=cycle.end.ended,
                previous=cycle.previous,
                decoding=self._decoding,
                layout=LAYOUT,
            )
            if digest.messages != reader.messages:
                raise ArchiveError(
                    f"row count differs from message count: file={cycle.file}"
                    f" rows={digest.messages}"
                    f" expected={reader.messages}"
                )
            writer.close(entry.metadata(self._topic.facts))
        return entry

    def _fail_each(self, failed: Iterable[tuple[int | None, str]]) -> None:
        for cycle, reason in failed:
            self._fail(cycle, reason)

    def _fail(self, cycle: int | None, error: Exception | str) -> None:
        where = ""
        if isinstance(error, OSError) and error.filename is None:
            where = f": dest={self._archive.path}"
        self._report.failed.append(Failure(self._topic.name, cycle, f"{error}{where}"))
