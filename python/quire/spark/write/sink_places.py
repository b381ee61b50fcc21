"""The destination of a write: a queue of this machine, or of a server."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from quire.errors import LockTimeoutError
from quire.remote.connection import packed
from quire.remote.place import RemotePlace
from quire.staged import commits
from quire.staged.batch_target import Target
from quire.staged.staging import Part, PartWriter

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from quire.remote.connection import Connection

_BYTES: Final = 1 << 20
_COMMIT_S: Final = 600.0


class Staging(Protocol):
    """The part of one task, which is dropped if the task fails."""

    def write(self, messages: pa.Array[Any]) -> None:
        """Add messages, a ``large_binary`` array."""
        ...

    def finish(self) -> Part | None:
        """Make the part durable; return None if there was no message."""
        ...


class Place(Protocol):
    """A queue to which batches are appended, each once."""

    def staging(
        self, writer: str, batch: int, partition: int, longest: int | None
    ) -> AbstractContextManager[Staging]:
        """Stage the messages of a task."""
        ...

    def commit(self, writer: str, batch: int, parts: Sequence[Part], *, kept: bool = True) -> bool:
        """Append a batch unless the queue has it; return whether it was new."""
        ...

    def abort(self, writer: str, batch: int) -> None:
        """Remove the staged messages of a batch."""
        ...


@dataclass(frozen=True, slots=True)
class LocalPlace:
    """
    A queue of this machine.

    Attributes:
        target: The queue.

    """

    target: Target

    def staging(
        self, writer: str, batch: int, partition: int, longest: int | None
    ) -> AbstractContextManager[Staging]:
        """Stage the messages of a task in a file."""
        target = self.target
        return PartWriter(target.staging.batch(writer, batch), partition, longest, target.ring())

    def commit(self, writer: str, batch: int, parts: Sequence[Part], *, kept: bool = True) -> bool:
        """Append a batch unless the queue has it; return whether it was new."""
        return commits.commit(self.target, writer, batch, parts, kept=kept)

    def abort(self, writer: str, batch: int) -> None:
        """Remove the staged messages of a batch."""
        commits.abort(self.target, writer, batch)


@dataclass(frozen=True, slots=True)
class ServedPlace:
    """
    A queue of a server, which stages and commits on its own machine in the same way.

    Attributes:
        address: The address of the queue.
        server: The token and ``tls``. Never shown.
        made: The options to create the queue with if it does not exist.
        sync: Make each batch durable before it is recorded as done.

    """

    address: str
    server: Mapping[str, Any] = field(repr=False)
    made: Mapping[str, str] = field(default_factory=dict[str, str])
    sync: bool = True

    @contextmanager
    def _connected(self) -> Generator[tuple[Connection, str]]:
        place = RemotePlace.of(self.address, **self.server)
        with closing(place.connected()) as connection:
            made = [word for it in self.made.items() for word in it]
            connection.call("QUIRE.OPEN", place.address.topic, "CREATE", *made)
            yield connection, place.address.topic

    @contextmanager
    def staging(
        self, writer: str, batch: int, partition: int, longest: int | None
    ) -> Generator[Staging]:
        """Stage the messages of a task at the server, which checks their lengths."""
        del longest
        with self._connected() as (connection, topic):
            number = connection.call("QUIRE.SINK", "OPEN", topic, writer, batch, partition)
            yield _ServedPart(connection, topic, number, partition)

    def commit(self, writer: str, batch: int, parts: Sequence[Part], *, kept: bool = True) -> bool:
        """
        Append a batch unless the queue has it; return whether it was new.

        The record is always kept, so that the request can be repeated if the answer was lost.
        """
        del kept
        words: list[str | int] = [] if self.sync else ["NOSYNC"]
        for part in parts:
            words += part.file, part.partition, part.rows
        ends = monotonic() + _COMMIT_S
        with self._connected() as (connection, topic):
            while True:
                try:
                    return bool(
                        connection.call(
                            *("QUIRE.SINK", "COMMIT", topic, writer, batch, *words),
                            more_s=max(0.0, ends - monotonic()),
                        )
                    )
                except LockTimeoutError:  # another commit, perhaps the first try of this one
                    if monotonic() > ends:
                        raise

    def abort(self, writer: str, batch: int) -> None:
        """Remove the staged messages of a batch."""
        with self._connected() as (connection, topic):
            connection.call("QUIRE.SINK", "ABORT", topic, writer, batch)


class _ServedPart:
    """A task's part at the server, which drops it with the connection unless it was finished."""

    def __init__(self, connection: Connection, topic: str, number: int, partition: int) -> None:
        self._connection, self._topic = connection, topic
        self._number, self._partition = number, partition

    def write(self, messages: pa.Array[Any]) -> None:
        """Send messages, about a megabyte at a time."""
        start, size = 0, 0
        for place, message in enumerate(messages):
            size += len(message.as_buffer())
            if size >= _BYTES:
                self._send(messages[start : place + 1])
                start, size = place + 1, 0
        if start < len(messages):
            self._send(messages[start:])

    def _send(self, messages: pa.Array[Any]) -> None:
        rows: Any = pa.concat_arrays([messages.cast(pa.binary())])
        _, offsets, data = rows.buffers()
        places = memoryview(offsets).cast("i")[rows.offset : rows.offset + len(rows) + 1]
        first = places[0]
        content = b"" if data is None else bytes(memoryview(data)[first : places[-1]])
        starts: Any = pa.array([it - first for it in places], pa.int32()).buffers()[1]
        own = bytes(memoryview(starts)[: 4 * len(places)])
        self._ask("WRITE", self._topic, self._number, own, content)

    def finish(self) -> Part | None:
        """Make the part durable at the server; return None if there was no message."""
        found = self._ask("CLOSE", self._topic, self._number)
        return None if found is None else Part(found[0].decode(), self._partition, found[1])

    def _ask(self, *words: str | int | bytes) -> Any:  # noqa: ANN401 - whatever the server says
        """Send a request once: a part is lost with its connection, and Spark repeats the task."""
        ends = self._connection.deadline()
        self._connection.send(packed(("QUIRE.SINK", *words)), ends)
        return self._connection.receive(ends)
