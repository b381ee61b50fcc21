"""Topics on Spark: the queue in a directory, or every queue below it."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, Protocol, cast
from urllib.parse import unquote, urlsplit

import quire
from quire._common.durable import SafeFolder
from quire.errors import CorruptError, QuireError
from quire.formats.detection import Format
from quire.opening.discovery import TABLE, check_local, topics_of

__all__ = [
    "TABLE",
    "local_path",
    "open_queue",
    "selected_topics",
    "stored_wire_type",
    "topic_in_errors",
    "topics_of",
]

FIELDLESS: Final = "FIELDLESS_BINARY"
_HEADER_BYTES: Final = 256


class Choice(Protocol):
    """Which topics are read."""

    @property
    def topics(self) -> tuple[str, ...] | None:
        """The only ones, by name; None: any."""
        ...

    @property
    def topics_pattern(self) -> str | None:
        """A regular expression of the whole name; None: any."""
        ...

    def chooses(self, topic: str) -> bool:
        """Return whether a topic is read."""
        ...


def selected_topics(path: str, choice: Choice, report: Callable[[str], None]) -> dict[str, str]:
    """Return the directory of each topic that is read; report those that are missing."""
    known = topics_of(path)
    found = {topic: path for topic, path in known.items() if choice.chooses(topic)}
    for topic in choice.topics or ():
        if topic not in known:
            report(f"no such topic in topics: topic={topic} known={', '.join(known)}")
    if choice.topics_pattern is not None and not found:
        report(
            f"no topic matches topicsPattern: topicsPattern={choice.topics_pattern}"
            f" known={', '.join(known)}"
        )
    return found


@contextmanager
def topic_in_errors(topic: str) -> Generator[None]:
    """Add the topic to errors."""
    try:
        yield
    except CorruptError as error:
        raise CorruptError(f"{error} topic={topic}", *error.args[1:]) from None
    except (QuireError, ValueError) as error:
        if "topic=" in str(error):
            raise
        raise type(error)(f"{error} topic={topic}") from None


def open_queue(path: str, wire_type: str | None, kind: Format | None) -> quire.Queue:
    """
    Open a queue read-only, on network file systems too.

    Raises:
        NotAQueueError: There is no queue at *path*, or one of another format than *kind*.
        UnsupportedError: The queue is of another kind than *kind*.

    """
    return quire.open(
        path,
        format=cast("Any", kind),
        read_only=True,
        create=False,
        wire_type=wire_type,
    )


def stored_wire_type(path: str) -> str | None:
    """Return ``FIELDLESS_BINARY`` if the newest file of a queue is so, else None."""
    with quire.open(path, read_only=True, create=False) as queue:
        for cycle in reversed(queue.cycles):
            folder, name = os.path.split(queue.file_for_cycle(cycle))
            with SafeFolder.at(folder) as safe, safe.open(name) as file:
                header = file.read(_HEADER_BYTES)
            if b"SCQStore" in header:  # else it is just being made
                return None if b"writePosition" in header else FIELDLESS
    return None


def local_path(path: str) -> str:
    """
    Return a path or ``file:`` address as an absolute path.

    Raises:
        UnsupportedError: The address is neither a path nor a ``file:`` address.

    """
    if not path.startswith("file:"):
        check_local(path)
    local = unquote(urlsplit(path).path) if path.startswith("file:") else path
    return os.path.abspath(local) if local else ""  # noqa: PTH100 - without `..`, links kept
