"""Comparing messages with the checksums that their appenders left."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from quire._common.durable import SafeFolder
from quire._common.roll_file_names import checksums_file
from quire.errors import CorruptError
from quire.sealed.seal_check import Row
from quire.sealed.seal_files import NONE_YET
from quire.sealed.sealer import steps_of

if TYPE_CHECKING:
    from quire._native import Queue


def check_appended(queue: Queue, folder: SafeFolder, known: Collection[str]) -> Iterator[Row]:
    """
    Yield which messages are not what was appended: of each file the first.

    Args:
        queue: The queue.
        folder: Its directory.
        known: Roll files of which a changed message is known already.

    """
    for cycle in queue.cycles:
        file = Path(queue.file_for_cycle(cycle))
        if folder.has(checksums_file(file.name)):
            yield from _check_cycle(queue, cycle, file, skips=str(file) in known)


def _check_cycle(queue: Queue, cycle: int, file: Path, *, skips: bool) -> Iterator[Row]:
    """Check a cycle; without the first changed message, if that is known already."""
    count, changed, is_cut, problem = 0, None, False, None
    try:
        for step in steps_of(queue, cycle, NONE_YET):
            # The last step knows whether messages are missing, and of any problem.
            count, (_, found, is_cut, problem) = step.count, step.appended
            changed = changed or found
    except CorruptError:
        return  # which is another finding
    if problem is not None:
        expected = "the checksums of the messages"
        yield "checksums", checksums_file(str(file)), None, problem, expected
    if changed is not None and not skips:
        number, is_torn = changed
        index = queue.roll_cycle.to_index(cycle, number)
        kind = "torn-message" if is_torn else "changed-message"
        yield kind, str(file), None, f"index={index:#x}", "the message that was appended"
    if is_cut:
        yield "cut-messages", str(file), None, f"messages={count}", "those that were appended"
