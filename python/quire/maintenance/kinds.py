"""The meaning of each kind of finding, and what a repair does about it."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "note"]


class Kind(NamedTuple):
    """
    A rule that was broken.

    Attributes:
        severity: ``error`` where messages cannot be read or the queue cannot be used; ``warning``
            for damage that hides no message; ``note`` for what needs no action.
        meaning: What follows from it.
        remedy: What :func:`quire.repair` does; None if it leaves it alone.

    """

    severity: Severity
    meaning: str
    remedy: str | None


_BY_HAND: Final = "replace the file by a good copy, or move it out of the directory"

KINDS: Final[dict[str, Kind]] = {
    "unreadable-file": Kind("error", f"no message of this file can be read: {_BY_HAND}", None),
    "lost-header": Kind(
        "error",
        "the file holds messages, and its first header is damaged: they cannot be read in order",
        "restore the header, if the index arrays after it prove what it was",
    ),
    "unfinished-file": Kind(
        "warning",
        "a process died while it made the file: it holds no message, and readers wait for it",
        "put the file aside as .discard",
    ),
    "wrong-name": Kind(
        "error",
        "the name belongs to no cycle: Java and Quire refuse the queue; move the file away",
        None,
    ),
    "gap": Kind(
        "error",
        "messages are missing here; later ones can be reached by index, and stay where they are",
        None,
    ),
    "lost-end": Kind(
        "error",
        "the last messages of the file are lost: nothing after this position can be read",
        "cut off what follows the last message, and keep it in a side file",
    ),
    "unmarked-message": Kind(
        "error",
        "a whole message is marked as not complete: it and those after it cannot be read in order",
        "mark it as complete, as the messages after it prove",
    ),
    "dead-header": Kind(
        "warning",
        "a process died while it wrote a document: readers do not see it",
        "set the header to 0, and keep its bytes in a side file",
    ),
    "missing-end-mark": Kind(
        "warning",
        "readers wait for the grace time before they leave the file; those of Java do not leave it",
        "write the end-of-file marker",
    ),
    "write-position": Kind(
        "warning",
        "the write position is not that of the last message: appends and reads at the end search",
        "store the position of the last message",
    ),
    "sequence-word": Kind(
        "warning",
        "the number of the last message is not known: appends and reads at the end search",
        "store the number of the last message",
    ),
    "index-hole": Kind(
        "warning",
        "messages have no index entry: moving to them takes longer",
        "store the entries",
    ),
    "index-entry": Kind(
        "warning",
        "index entries do not lead to their messages: readers skip such entries, Java may not",
        "store the entries",
    ),
    "index-array": Kind(
        "warning",
        "messages have no index array: moving to them takes longer",
        "link the array, or add one if the file is not ended",
    ),
    "index-count": Kind(
        "warning",
        "a count of the index is wrong: searches may take longer, and Java may add no entries",
        "store the count",
    ),
    "no-table": Kind(
        "warning",
        "locks and named tailers have no place: the queue can be read, not written",
        "make a table with the roll cycle of the file names; positions of tailers are lost",
    ),
    "unreadable-table": Kind(
        "error",
        "the queue cannot be opened",
        "build the table again with every key that can be read, and keep the old one as .discard",
    ),
    "table-entry": Kind(
        "error",
        "an entry of the table cannot be read, nor those after it",
        "build the table again with every key that can be read, and keep the old one as .discard",
    ),
    "table-key": Kind("warning", "the next process that opens the queue adds the key", "add it"),
    "stale-lock": Kind(
        "warning",
        "a process died with the lock: Quire takes it over, Java waits for its timeout first",
        "unlock",
    ),
    "listing": Kind(
        "warning",
        "the table names other files than the directory has: readers of Java may miss some",
        "list the directory again",
    ),
    "tailer-position": Kind(
        "note",
        "a named tailer is ahead of the messages, as after a power cut: its next reader goes back",
        None,
    ),
    "plain-messages": Kind(
        "note",
        "Java, or a writer without the key, appended these, or they are older than the key: reading"
        " them raises, unless the queue is opened with allow_plain=True",
        None,
    ),
    "hidden-messages": Kind(
        "error",
        "the cycle has a roll file, too, as of a Java writer whose clock is late, and that one is"
        " read: move one of the two away",
        None,
    ),
    "table-full": Kind(
        "warning",
        "little room is left for names of tailers: delete unused ones, end every process that has"
        " the queue open, and open it again",
        None,
    ),
    "restart": Kind(
        "warning",
        "the examination of files after a restart of the machine was interrupted",
        "examine the files",
    ),
    "pending-ring": Kind(
        "note",
        "messages that programs have appended asynchronously are not in the queue yet: copies of"
        " its roll files lack them (`quire drain PATH --once` appends them)",
        None,
    ),
    "unreadable-ring": Kind(
        "warning",
        "what waits in the ring of asynchronous appends is not in the queue, and the queue cannot"
        " be opened for writing: open it with the Quire that made the ring, or move the file away",
        None,
    ),
    "lock-held": Kind(
        "note",
        "a process held the write lock all the time: what it may be writing was not judged",
        None,
    ),
    "entry-without-record": Kind(
        "error", "an index entry names no message: readers stop there", "rebuild the index"
    ),
    "repeated-entry": Kind(
        "error", "two index entries name one message: it is read twice", "rebuild the index"
    ),
    "record-without-entry": Kind(
        "warning",
        "a complete message that no reader sees: its index entry is missing",
        "rebuild the index",
    ),
    "free-entries": Kind(
        "warning", "free index entries before taken ones, which readers skip", "rebuild the index"
    ),
    "page": Kind("error", f"messages cannot be read: {_BY_HAND}", None),
    "entry": Kind("error", "an index entry names no message: readers stop there", None),
    "pending-entry": Kind(
        "note",
        "a producer died while it wrote a message; opened again, it completes the entry",
        None,
    ),
}

SEAL_KINDS: Final[dict[str, Kind]] = {
    "changed-message": Kind(
        "error",
        "a message, or its place, is not what was sealed, or not what was appended: it or one after"
        " it was changed, inserted, moved or cut off",
        None,
    ),
    "torn-message": Kind(
        "error",
        "a message of which a page was never written, as a power cut leaves it: its appender's"
        " checksum is another",
        None,
    ),
    "cut-messages": Kind(
        "warning",
        "messages that were appended after the last one are gone, as after a power cut",
        None,
    ),
    "sealed-cycle": Kind("error", f"a cycle that was sealed is gone: {_BY_HAND}", None),
    "seals": Kind(
        "error",
        "the seals were changed or damaged: what follows the last good checkpoint proves nothing",
        None,
    ),
    "no-seals": Kind("error", "nothing is sealed (`quire seal PATH` does)", None),
    "rolled-back": Kind(
        "error",
        "the queue and its seals are older than the checkpoint kept elsewhere, or another queue's",
        None,
    ),
    "unsigned": Kind("error", "the key vouches for nothing here (`quire seal --sign`)", None),
    "forged": Kind("error", "a signature or a root is not what the key signed", None),
    "checksums": Kind(
        "warning",
        "the messages are as sealed, but the file that says which one changed is damaged",
        None,
    ),
    "torn-seal": Kind("note", "a seal was interrupted: the next one takes its place", None),
    "unsealed": Kind(
        "note",
        "messages after the last seal: only those with checksums of their appenders are known to be"
        " right",
        None,
    ),
    "seal-time": Kind(
        "warning",
        "the newest seal is dated in the future: a clock was wrong, or it is forged",
        None,
    ),
    "unsigned-seals": Kind("note", "the latest seals are not signed by the key", None),
    "pruned-seals": Kind(
        "note", "the oldest cycles are gone; their roots still prove the rest", None
    ),
}
"""About seals: ``docs/integrity.md`` lists them."""
ALL_KINDS: Final = KINDS | SEAL_KINDS
