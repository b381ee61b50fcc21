"""Whether a queue is the one that was archived, and whether anything went missing meanwhile."""

from __future__ import annotations

from typing import Any

from quire.archive.cycles import end_of
from quire.archive.folders import Topic
from quire.archive.verifying import check_live
from quire.errors import ArchiveError
from quire.queue import Queue


def check_same(topic: Topic, queue: Queue) -> None:
    """
    Do nothing if the archive holds cycles of this queue, or none yet.

    Raises:
        ArchiveError: It holds those of another one.
        CorruptError: The cycle to compare is damaged.

    """
    facts = facts_of(topic.name, queue)
    if topic.facts and topic.facts != facts:
        differ = [name for name, value in facts.items() if topic.facts.get(name) != value]
        raise ArchiveError(
            f"the archive holds another queue of this name: queue={queue.path}"
            + "".join(f" {name}={facts[name]} archived={topic.facts.get(name)}" for name in differ)
        )
    forget_grown(topic, queue)
    shared = sorted(topic.entries.keys() & {*queue.cycles})
    if shared:
        newest = topic.entries[shared[-1]]
        check_live(queue, newest, every_byte=topic.queue != queue.path)
    elif topic.entries and topic.queue != queue.path:
        raise ArchiveError(
            "the archive was made from another directory, and no cycle of it is here to compare:"
            f" queue={queue.path} archived={topic.queue}"
        )
    topic.queue, topic.facts = queue.path, facts


def facts_of(name: str, queue: Queue) -> dict[str, Any]:
    """Return what a queue was created with."""
    return {
        "topic": name,
        "roll_cycle": queue.roll_cycle.name,
        "epoch_ms": queue.epoch_ms,
    }


def forget_grown(topic: Topic, queue: Queue) -> None:
    """
    Forget cycles without end marker that have more messages than when they were archived.

    Java's writers whose clock is behind can still append there.
    """
    for entry in [each for each in topic.entries.values() if not each.ended]:
        end = end_of(queue, entry.cycle)
        if end is not None and end.messages > entry.messages:
            del topic.entries[entry.cycle]


def note_losses(topic: Topic, queue: Queue) -> None:
    """Note the cycles that were seen and not archived, and are gone."""
    here = {*queue.cycles}
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
