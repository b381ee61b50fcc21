"""Topics on Spark: the queue in a directory, or every queue below it."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Protocol, cast
from urllib.parse import unquote, urlsplit

import quire
from quire.errors import CorruptError, EncryptionError, NotAQueueError, QuireError
from quire.formats.detection import Format
from quire.formats.remote import AnyRemoteQueue
from quire.opening.discovery import TABLE, check_local, topics_of
from quire.remote.address import is_remote
from quire.remote.place import RemotePlace
from quire.sealed.key_source import KeySource

__all__ = [
    "TABLE",
    "local_path",
    "open_queue",
    "selected_topics",
    "topic_in_errors",
    "topics_of",
]


class Choice(Protocol):
    """Which topics are read."""

    @property
    def topics(self) -> tuple[str, ...] | None:
        """The names of the topics to read; None: all."""
        ...

    @property
    def topics_pattern(self) -> str | None:
        """A regular expression that matches the whole names of topics to read; None: all."""
        ...

    def chooses(self, topic: str) -> bool:
        """Return whether a topic is read."""
        ...


class Opening(Choice, Protocol):
    """How the queues of a read are opened."""

    @property
    def wire_type(self) -> str | None:
        """The wire type; None: the one in the files."""
        ...

    @property
    def queue_format(self) -> Format | None:
        """The only format that queues may have; None: any."""
        ...

    @property
    def key(self) -> KeySource:
        """Where to find the key of encrypted queues."""
        ...

    @property
    def server(self) -> Mapping[str, Any]:
        """The token and ``tls``, if the path is the address of a server."""
        ...


def selected_topics(path: str, choice: Opening, report: Callable[[str], None]) -> dict[str, str]:
    """Return the path of each topic to read; report requested topics that do not exist."""
    known = _known(path, choice)
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


def _known(path: str, options: Opening) -> dict[str, str]:
    if not is_remote(path):
        return topics_of(path)
    with closing(ServedTopics(path, options)) as served:
        return served.found()


class ServedTopics:
    """
    The queues at an address, listed repeatedly over one connection.

    Args:
        address: The address of a server or a queue, or a prefix of addresses of queues.
        options: The options of the read.

    """

    def __init__(self, address: str, options: Opening) -> None:
        self._options = options
        self._place = RemotePlace.of(address, **options.server)
        self._connection = self._place.connected()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the object without its connection."""
        return ServedTopics, (str(self._place), self._options)

    def found(self) -> dict[str, str]:
        """
        Return the address of each queue by its topic, as :func:`topics_of` does.

        Raises:
            NotAQueueError: The address has no queue that the token may read.

        """
        own = self._place.address.topic.rpartition("/")[2]
        queues = self._place.queues(self._connection)
        return {name or own: str(it) for name, it in queues.items()}

    def close(self) -> None:
        """Close the connection; it is opened again when needed."""
        self._connection.drop()


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


def open_queue(path: str, options: Opening) -> quire.Queue:
    """
    Open a queue read-only, also on network file systems and at a server.

    Raises:
        NotAQueueError: There is no queue at *path*, or its format is not *queue_format*.
        UnsupportedError: This kind of queue cannot be read.
        EncryptionError: The queue is encrypted, and the key is missing or wrong.

    """
    if is_remote(path):
        return _open_served(path, options)
    try:
        return quire.open(
            path,
            format=cast("Any", options.queue_format),
            read_only=True,
            create=False,
            wire_type=options.wire_type,
            # What is planned are all messages: those held back would count as lost.
            read_after_replica_acknowledged=False,
            **options.key.opening(path),
        )
    except EncryptionError:
        if options.key.is_known:
            raise
        raise EncryptionError(
            f"the queue is encrypted: path={path} (give the option keyFile or keyVariable, so that"
            " each process of Spark finds the key; KeyRing.as_default() applies only to this one)"
        ) from None


def _open_served(address: str, options: Opening) -> quire.Queue:
    queue = RemotePlace.of(address, **options.server).open(read_only=True, create=False)
    found = queue._link.format  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    if options.queue_format not in {None, found}:
        queue.close()
        raise NotAQueueError(
            f"the queue has another format: path={address} found={found}"
            f" expected={options.queue_format}"
        )
    return queue


def tailer_for(queue: quire.Queue, past: int) -> quire.Tailer:
    """Return a tailer for the messages before an index; at a server, by Flight if available."""
    if isinstance(queue, AnyRemoteQueue):
        found: quire.Tailer = queue._range_tailer(past)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        return found
    return queue.tailer()


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
