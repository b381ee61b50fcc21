"""Rewriting: replacing files of earlier versions by files with today's layout."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path

from quire._common import arguments
from quire._common.durable import Access, SafeFolder
from quire.archive.archive_report import Failure, Progress, ProgressCounter, Rewritten, no_progress
from quire.archive.checking import check_file
from quire.archive.cycle_entry import LAYOUT, Entry, completed
from quire.archive.cycle_file import rewrite_in
from quire.archive.manifest import LISTS, Archive, Topic
from quire.errors import QuireError


def rewrite(dest: str | PathLike[str], *, progress: Progress = no_progress) -> Rewritten:
    """
    Replace each file that an earlier version of Quire wrote by one with today's layout.

    Files of earlier versions have the minimum and maximum of float columns, which ignore NaN, so
    Spark's filters skip rows that they should find. Each new file is read again and compared before
    it replaces the old one. A run that is killed leaves every file whole, old or new, and the next
    run continues.

    Args:
        dest: The archive.
        progress: Called from time to time.

    Raises:
        ArchiveError: There is no archive, or another run is working on the archive.

    Examples:
        >>> import quire.archive
        >>> _ = quire.archive.archive("orders", "archive")
        >>> quire.archive.rewrite("archive").cycles
        0

    """
    arguments.function()("progress", progress)
    kept, report = Archive(Path(arguments.path("dest", dest))), Rewritten()
    kept.topics()  # raises if there is no archive, before anything is created
    with kept.held(Access.of(kept.path / LISTS)):
        for name in kept.topics():
            try:
                topic = kept.topic(name)
                report.failed += [Failure(name, None, problem) for problem in topic.problems]
                _rewrite_topic(kept, topic, report, progress)
            except (QuireError, OSError) as error:
                report.failed.append(Failure(name, None, f"{error}"))
    return report


def _rewrite_topic(kept: Archive, topic: Topic, report: Rewritten, progress: Progress) -> None:
    kept.keep(topic)
    older = [it for _, it in sorted(topic.entries.items()) if it.sha256 and it.layout < LAYOUT]
    if not older:
        return
    counted = ProgressCounter(progress, topic.name, 0, sum(it.messages for it in older))
    with SafeFolder.at(kept.path) as root, root.sub(topic.folder.name) as folder:
        folder.sweep()
        for entry in older:
            try:
                _replace(kept, topic, entry, folder)
                report.cycles += 1
                report.messages += entry.messages
            except (QuireError, FileNotFoundError) as error:
                report.failed.append(Failure(topic.name, entry.cycle, f"{error}"))
            counted.add(entry.messages)


def _replace(kept: Archive, topic: Topic, entry: Entry, folder: SafeFolder) -> None:
    """Replace one file; its new entry is listed first, so that a killed run leaves a valid one."""
    path = topic.file(entry)
    check_file(path, entry)
    new = replace(entry, sha256="", size=0, layout=LAYOUT)
    temporary = folder.temporary(entry.file)
    try:
        rewrite_in(path, folder.create(temporary), new.metadata(topic.facts))
        check_file(folder.path / temporary, new)
        new = completed(new, folder.path / temporary)
        topic.rewriting = {entry.cycle: new}
        kept.keep(topic)
        folder.publish(temporary, entry.file)
    finally:
        folder.remove(temporary)
        topic.rewriting = {}
    topic.entries[entry.cycle] = new
    kept.keep(topic)
