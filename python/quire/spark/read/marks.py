"""
Marks: digests of the messages before an offset, so that it is noticed if others replaced them.

An offset alone does not show that a file lost its last messages in a power cut, or was replaced by
an older copy, and was appended to since: then the same indexes belong to other messages.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import quire
from quire._native import Queue
from quire.errors import CorruptError
from quire.formats.adapters import journal_of, numbering_of
from quire.formats.journal import JOURNAL
from quire.formats.remote import AnyRemoteQueue

NONE: Final = ""
_MESSAGES: Final = 16
_BYTES: Final = 4096


def mark_of(queue: quire.Queue, offset: int) -> str:
    """
    Return a digest of the last messages before an offset, in its cycle.

    It is empty if there are none, or if the format is an older one.
    """
    numbering = numbering_of(queue)
    sequence = numbering.to_sequence(offset)
    if not sequence:
        return NONE
    if isinstance(queue, AnyRemoteQueue):
        return _remote_mark(queue, offset - min(sequence, _MESSAGES), offset)
    journal = journal_of(queue)
    if journal is None:
        return NONE
    return _near_mark(journal, offset - min(sequence, _MESSAGES), offset)


def _near_mark(journal: Queue, start: int, past: int) -> str:
    digest = hashlib.sha256()
    with JOURNAL.tailer(journal) as tailer:
        try:
            if not tailer.move_to_index(start):
                return NONE
            while tailer.index < past:
                with tailer.reading_document() as document:
                    if not document.is_present or document.index >= past:
                        return NONE
                    _add(digest, document.bytes)
        except CorruptError:
            return NONE  # reported when the messages are counted or read
    return digest.hexdigest()[:32]


def _remote_mark(queue: AnyRemoteQueue, start: int, past: int) -> str:
    columns = queue._range(start, past)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    if columns is None or [*columns.indexes] != [*range(start, past)]:
        return NONE
    digest = hashlib.sha256()
    for number in range(len(columns)):
        _add(digest, columns.payload(number))
    return digest.hexdigest()[:32]


def _add(digest: Any, data: memoryview) -> None:  # noqa: ANN401 - of hashlib
    digest.update(b"%d " % len(data))
    digest.update(data[:_BYTES])


def differs(queue: quire.Queue, offset: int, mark: str) -> bool:
    """Return whether other messages have replaced those that had this mark."""
    return mark not in {NONE, mark_of(queue, offset)}
