"""The queues below a server's directory, by their names."""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, cast

from quire._common.durable import SafeFolder
from quire.errors import (
    ClosedError,
    CorruptError,
    NotAQueueError,
    QuireError,
    ReadOnlyError,
    RefusedError,
    TableLostError,
    UnsafePathError,
)
from quire.formats.detection import format_of
from quire.handles.base import Queue
from quire.opening.opener import open as open_queue
from quire.server.errors_for_clients import ErrorsForClients
from quire.server.peer_servers import Peers
from quire.server.served_queue import ServedQueue
from quire.server.topic_names import topic_of

_log = logging.getLogger("quire")
_MOST_NAMES: Final = 100_000
_MOST_UNNAMED: Final = 100


class Queues:
    """
    The queues below one directory. Names cannot lead out of it; links in it are not followed.

    Args:
        root: The directory.
        most: How many queues may be open at once.
        peers: Other servers, and which queues are theirs.

    Attributes:
        errors: The texts of errors, as clients see them.
        in_use: Returns the names of queues that clients use, which stay open.
        forgotten: Called with the name of a queue before it is closed.
        asked_for: A list that collects the names of requested queues; None: they are not collected.

    Raises:
        NotAQueueError: The directory does not exist, or is a queue itself.

    """

    def __init__(
        self, root: str | os.PathLike[str], most: int = 1000, peers: Peers | None = None
    ) -> None:
        self.path: Final = Path(root).absolute()
        self.peers: Final = peers or Peers()
        self.errors: Final = ErrorsForClients(self.path)
        self._most = most
        self._open: OrderedDict[str, ServedQueue] = OrderedDict()
        self.in_use: Callable[[], Iterable[str]] = tuple
        self.forgotten: Callable[[str], object] = lambda _topic: None
        self.asked_for: list[str] | None = None
        self._unnamed: set[str] = set()
        if not self.path.is_dir():
            raise NotAQueueError(
                f"no such directory: path={self.path} (make it, or name one with queues below it)"
            )
        if format_of(str(self.path)) is not None:
            raise NotAQueueError(
                f"a queue, not a directory of queues: path={self.path} (give its parent directory)"
            )

    def get(self, topic: str) -> ServedQueue | None:
        """
        Return a queue by its name, which was checked before; None: it does not exist.

        Raises:
            MovedError: A peer serves the queue.
            RefusedError: The queue cannot be opened.

        """
        if self.asked_for is not None:
            self.asked_for.append(topic)
        self.forget_moved(topic)
        found = self._open.get(topic)
        if found is not None and not found.queue.closed:
            self._open.move_to_end(topic)
            return found
        self.peers.check(topic)
        if not self._is_there(topic.split("/")):
            return None
        return self._opened(topic, {"create": False})

    def forget_moved(self, topic: str) -> None:
        """Close a queue whose directory was removed or replaced."""
        found = self._open.get(topic)
        if found is not None and not found.queue.closed and not found.is_in_place():
            _log.warning("a queue was removed or replaced: name=%s", topic)
            self.forget(topic)

    def create(self, topic: str, options: dict[str, Any]) -> ServedQueue:
        """
        Return a queue by its name; if it does not exist, create it with these options.

        Raises:
            RefusedError: The queue cannot be created.

        """
        found = self.get(topic)
        if found is not None:
            return found
        *above, name = topic.split("/")
        for depth in range(1, len(above) + 1):
            if self._is_there(above[:depth]):
                queue = "/".join(above[:depth])
                raise RefusedError(f"a queue holds no other queue: name={topic} queue={queue}")
        try:
            with SafeFolder.at(self.path) as root, root.below(above, make=True) as folder:
                if folder.has(name):
                    with folder.sub(name) as taken:
                        if taken.names():
                            raise RefusedError(
                                f"not a queue, but a directory of others: name={topic}"
                            )
        except OSError as error:
            raise RefusedError(
                f"cannot create the queue: name={topic} error={error.strerror}"
            ) from None
        return self._opened(topic, options)

    def _is_there(self, parts: list[str]) -> bool:
        """Return whether a name is a queue's, and neither a link nor inside another queue."""
        try:
            with SafeFolder.at(self.path) as root:
                return _descends(root, parts)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except UnsafePathError:
            _log.warning("refused a link or a foreign folder: name=%s", "/".join(parts))
            return False

    def _is_folder(self, parts: list[str]) -> bool:
        """Return whether a name is a folder's, as of a new queue of an older format."""
        try:
            with SafeFolder.at(self.path) as root, root.below(parts):
                return True
        except OSError:
            return False

    def _opened(self, topic: str, options: dict[str, Any]) -> ServedQueue:
        if len(self._open) >= self._most:
            self._make_room()
        path = self.path.joinpath(*topic.split("/"))
        try:
            queue = self._handle(path, options)
        except (QuireError, OSError, ValueError, TypeError) as error:
            raise RefusedError(f"cannot open the queue: name={topic} error={error}") from None
        is_new = options.get("create", True) and self._is_folder(topic.split("/"))
        if not is_new and not self._is_there(topic.split("/")):  # replaced meanwhile
            queue.close()
            raise RefusedError(f"the queue was removed: name={topic}")
        found = self._open[topic] = ServedQueue(topic, queue)
        return found

    @staticmethod
    def _handle(path: Path, options: dict[str, Any]) -> Queue:
        try:
            return cast("Queue", open_queue(path, **options))
        except (PermissionError, ReadOnlyError):
            if options.get("create", True):
                raise
            return open_queue(path, create=False, read_only=True)

    def forget(self, topic: str) -> None:
        """Close a queue that failed: the next command opens it again."""
        found = self._open.pop(topic, None)
        if found is not None:
            self.forgotten(topic)
            with suppress(QuireError, OSError):
                found.close()

    @contextmanager
    def using(self, *queues: ServedQueue) -> Generator[None]:
        """Keep queues open while they are used."""
        user = object()
        for it in queues:
            it.users.add(user)
        try:
            yield
        finally:
            for it in queues:
                it.users.discard(user)

    def check(self, found: ServedQueue, error: Exception) -> None:
        """Close a queue whose files were removed, replaced or damaged."""
        is_lost = isinstance(error, CorruptError | NotAQueueError | TableLostError | ClosedError)
        if is_lost and self._open.get(found.topic) is found:
            self.forget(found.topic)

    def current(self, topic: str) -> ServedQueue | None:
        """
        Return a queue by its name as :meth:`get` does, unless its directory was removed.

        Raises:
            RefusedError: The queue cannot be opened.

        """
        found, parts = self._open.get(topic), topic.split("/")
        if found is not None and not self._is_there(parts) and not self._is_new(found, parts):
            self.forget(topic)
        return self.get(topic)

    def may_look(self, topic: str) -> bool:
        """Return whether a queue is open, or may be opened for a list: few queues are open."""
        return topic in self._open or 2 * len(self._open) < self._most

    def _is_new(self, found: ServedQueue, parts: list[str]) -> bool:
        """Return whether a queue is a new one of an older format, which has no files yet."""
        return found.journal is None and found.is_in_place() and self._is_folder(parts)

    def _make_room(self) -> None:
        """
        Close the least recently used queue.

        Raises:
            RefusedError: All open queues are in use.

        """
        for topic in [name for name, it in self._open.items() if it.queue.closed]:
            del self._open[topic]
        if len(self._open) < self._most:
            return
        kept = {*self.in_use(), *(self.asked_for or ())[:1]}  # a command may name a second one
        for topic, it in self._open.items():
            if topic not in kept and not it.users:
                self.forget(topic)
                return
        raise RefusedError(f"too many queues are in use: limit={self._most}")

    def topics(self) -> list[str]:
        """Return the names of all queues that are served here, in order."""
        return [it for it in self._below() if self.peers.of(it) is None]

    def hidden(self) -> list[str]:
        """Return the names of queues below the directory that peers serve."""
        return [it for it in self._below() if self.peers.of(it)] if self.peers.all else []

    def _below(self) -> list[str]:
        found: list[str] = []
        for folder, inside, _ in os.walk(self.path, onerror=lambda _: None):
            inside[:] = [it for it in inside if self._is_named(it)]
            if folder == str(self.path):
                continue
            with suppress(NotAQueueError):
                if format_of(folder) is not None:
                    inside.clear()  # a queue holds no queues
                    found.append(Path(folder).relative_to(self.path).as_posix())
            if len(found) >= _MOST_NAMES:
                break
        return sorted(found)

    def _is_named(self, name: str) -> bool:
        """Return whether a folder's name is valid for clients; log it if not, unless hidden."""
        if name.startswith("."):
            return False
        with suppress(RefusedError):
            topic_of(os.fsencode(name))
            return True
        if name not in self._unnamed and len(self._unnamed) < _MOST_UNNAMED:
            self._unnamed.add(name)
            _log.warning(
                "a directory is not served, as its name is not valid for a queue: name=%r", name
            )
        return False

    @property
    def opened(self) -> list[ServedQueue]:
        """The queues that are open."""
        return [*self._open.values()]

    def close(self) -> None:
        """Close all queues."""
        for topic in [*self._open]:
            self.forget(topic)


def _descends(folder: SafeFolder, parts: list[str]) -> bool:
    first, *others = parts
    with folder.sub(first) as found:
        is_queue = format_of(str(found.path)) is not None
        if not others:
            return is_queue
        return not is_queue and _descends(found, others)
