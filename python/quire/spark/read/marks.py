"""
Marks: what the messages before an offset were, so that others in their place are noticed.

An index alone does not say that a file lost its tail in a power cut, or was replaced by an older
copy, and was appended to since: its sequence is there again, of another message.
"""

from __future__ import annotations

import hashlib
from typing import Final

import quire
from quire.errors import CorruptError
from quire.formats.adapters import journal_of, numbering_of
from quire.formats.journal import JOURNAL

NONE: Final = ""
_MESSAGES: Final = 16
_BYTES: Final = 4096


def mark_of(queue: quire.Queue, offset: int) -> str:
    """
    Return a digest of the last messages before an offset, in its cycle.

    The empty text if there are none, or the format is an older one.
    """
    numbering = numbering_of(queue)
    sequence = numbering.to_sequence(offset)
    journal = journal_of(queue)
    if journal is None or not sequence:
        return NONE
    digest = hashlib.sha256()
    with JOURNAL.tailer(journal) as tailer:
        try:
            if not tailer.move_to_index(offset - min(sequence, _MESSAGES)):
                return NONE
            while tailer.index < offset:
                with tailer.reading_document() as document:
                    if not document.is_present or document.index >= offset:
                        return NONE
                    data = document.bytes
                    digest.update(b"%d " % len(data))
                    digest.update(data[:_BYTES])
        except CorruptError:
            return NONE  # said when the messages are counted or read
    return digest.hexdigest()[:32]


def differs(queue: quire.Queue, offset: int, mark: str) -> bool:
    """Return whether others are in the place of the messages that had this mark."""
    return mark not in {NONE, mark_of(queue, offset)}
