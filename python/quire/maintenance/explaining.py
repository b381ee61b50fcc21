"""Explaining each byte of a message, and the words of its file that lead to it."""

from __future__ import annotations

from os import PathLike
from typing import Final, Literal, NamedTuple

from quire._common import arguments
from quire.errors import IndexOutOfRangeError
from quire.formats.adapters import adapter_of
from quire.opening.discovery import check_local
from quire.opening.opener import open_without_key as open_queue

_PAST_INDEXES: Final = 2**63


class ExplainedPart(NamedTuple):
    """
    Consecutive bytes of a file that mean one thing.

    Attributes:
        section: ``header``: the word with the message's length; ``payload``; ``next``: what follows
            it; ``index``: the words that lead to the message.
        position: Where the bytes are in the file.
        length: How many there are.
        depth: How many maps, lists and blobs they are inside of.
        data: The bytes; of a long part the first 256.
        code: The BinaryWire code, or the word of the format.
        meaning: What they say.
        file: The file they are in.

    Examples:
        >>> from quire.maintenance import ExplainedPart
        >>> ExplainedPart("payload", 0x10114, 1, 0, b" ", "small integer", "integer 32").code
        'small integer'

    """

    section: Literal["header", "payload", "next", "index"]
    position: int
    length: int
    depth: int
    data: bytes
    code: str
    meaning: str
    file: str = ""


class Explanation(NamedTuple):
    """
    The bytes of one message, from :func:`quire.maintenance.explain`.

    Attributes:
        file: The file it is in, or begins in.
        parts: Its bytes in their order, without a gap, then those of the index. A message of a
            Quick-Queue that is not complete has only the latter.

    Examples:
        >>> quire.maintenance.Explanation("20240115F.cq4", ()).parts
        ()

    """

    file: str
    parts: tuple[ExplainedPart, ...]


def explain(path: str | PathLike[str], index: int) -> Explanation:
    """
    Return what each byte of a message means, and which words lead to it.

    Messages of the older formats are raw bytes: only what surrounds them has a meaning.

    Args:
        path: A queue of any format except Indexed Chronicle, or a file of a Chronicle Queue.
            Nothing is changed.
        index: The index of the message.

    Raises:
        IndexOutOfRangeError: The queue has no message at *index*.
        UnsupportedError: *path* is an Indexed Chronicle.

    Examples:
        >>> index = appender.write_map({"n": 5})
        >>> for part in quire.maintenance.explain(queue.path, index).parts[:4]:
        ...     print(f"{part.data.hex(' '):<12} {part.meaning}")
        08 00 00 00  a message, ready: 8 bytes
        b9 01 6e     event "n"
        a6 05 00 00 00 integer 5
        00 00 00 00  nothing yet

    """
    place = arguments.path("path", path)
    whole = arguments.whole(0, _PAST_INDEXES - 1)("index", index)
    check_local(place)
    with open_queue(place, read_only=True, create=False) as queue:
        found = adapter_of(queue).explain(queue, whole)
        if found is None:
            raise IndexOutOfRangeError(f"no message has this index: index={whole:#x} path={place}")
    file, parts = found
    return Explanation(str(file), tuple(ExplainedPart(*part) for part in parts))
