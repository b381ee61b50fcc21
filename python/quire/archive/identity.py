"""Whether a queue is the one that was archived."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from quire.archive.checking import check_live, check_messages
from quire.archive.cycle_entry import Entry
from quire.archive.finished_cycles import damage_text, end_of
from quire.archive.manifest import Topic
from quire.errors import ArchiveError, CorruptError
from quire.formats.adapter import End
from quire.formats.adapters import adapter_of, cycles_of
from quire.handles.base import Queue

Check: TypeAlias = Callable[[Queue, Entry, End], None]


def no_check(_queue: Queue, _entry: Entry, _end: End) -> None:
    """Accept any cycle."""


def check_identity(topic: Topic, queue: Queue) -> dict[int, str]:
    """
    Check that the archive holds no cycles of another queue under this topic.

    The newest cycle that both have is compared; if it is damaged in the queue, the next older one.
    Cycles that grew are forgotten: see :func:`drop_grown`.

    Returns:
        Archived cycles that were found damaged in the queue, with the reason.

    Raises:
        ArchiveError: The archive holds cycles of another queue under this topic.

    """
    facts = facts_of(topic.name, queue)
    if topic.facts and topic.facts != facts:
        differ = [name for name, value in facts.items() if topic.facts.get(name) != value]
        raise ArchiveError(
            f"the archive holds another queue of this name: queue={queue.path}"
            + "".join(f" {name}={facts[name]} archived={topic.facts.get(name)}" for name in differ)
        )
    # The file of one that grew is replaced: it must begin with the archived messages.
    damaged = drop_grown(topic, queue, check_messages)
    is_moved = not is_same_place(topic.queue, queue.path)
    for cycle in sorted(topic.entries.keys() & {*cycles_of(queue)}, reverse=True):
        try:
            if check_live(queue, topic.entries[cycle], every_byte=is_moved or bool(damaged)):
                break
        except CorruptError as error:
            damaged[cycle] = damage_text(queue, cycle, error)
    else:
        if topic.entries and is_moved:
            raise ArchiveError(
                "the archive was made from another directory, and this queue has no archived cycle"
                f" to compare: queue={queue.path} archived={topic.queue}"
                + "".join(f" ({problem})" for problem in damaged.values())
                + " (if it is that queue, moved, make a link to it at the archived path; else use"
                " another DEST)"
            )
    topic.queue, topic.facts, topic.gone = queue.path, facts, False
    return damaged


def is_same_place(path: str, other: str) -> bool:
    """Return whether two paths, which may be written in different ways, are one directory."""
    try:
        return path == other or Path(path).samefile(other)
    except OSError:
        return False


def facts_of(name: str, queue: Queue) -> dict[str, Any]:
    """Return the facts that identify a queue."""
    return {"topic": name, **adapter_of(queue).identity(queue)}


def drop_grown(topic: Topic, queue: Queue, check: Check = no_check) -> dict[int, str]:
    """
    Forget cycles without an end-of-file marker that have grown since they were archived.

    Java writers with a slow clock can still append to them. Return damaged cycles with the reason.

    Args:
        topic: The queue's topic in the archive.
        queue: The queue.
        check: Called for each with its entry and where the archived messages end.

    """
    damaged: dict[int, str] = {}
    for entry in [each for each in topic.entries.values() if not each.ended]:
        try:
            end = end_of(queue, entry.cycle)
            if end is None or end.past <= entry.end:
                continue
            check(queue, entry, end._replace(past=entry.end))
        except CorruptError as error:
            damaged[entry.cycle] = damage_text(queue, entry.cycle, error)
        else:
            del topic.entries[entry.cycle]
    return damaged
