"""The shared state of one remote queue's handles: its address, facts and connection."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

from quire._native import Excerpt, QuickExcerpt, VanillaExcerpt
from quire.errors import ClosedError, IndexOutOfRangeError, UnsupportedError
from quire.formats.detection import CHRONICLE
from quire.handles.journal.replicas import Replica
from quire.remote.address import RemoteAddress, is_remote, parse
from quire.remote.connection import Connection, server_at
from quire.remote.lacking import FORMAT

_EXCERPTS: Final[dict[str, Any]] = {
    "chronicle": Excerpt,
    "vanilla": VanillaExcerpt,
    "indexed": VanillaExcerpt,
    "quick-queue": QuickExcerpt,
}
_CYCLES: Final = 2**31


def _replica(facts: Mapping[str, Any]) -> Replica:
    return Replica(
        name=facts["name"].decode(),
        address=facts["address"].decode(),
        in_sync=bool(facts["in_sync"]),
        acknowledged_index=facts["acknowledged_index"],
        lag_messages=facts["lag_messages"],
        lag_bytes=facts["lag_bytes"],
        lag_s=float(facts["lag_s"]),
        level=facts["level"].decode(),
        connected=bool(facts["connected"]),
    )


class RemoteLink:
    """
    An open queue on a server.

    Args:
        address: Its address.
        options: The options of :func:`quire.open` that a remote queue takes.
        created_with: The options to create it with if it does not exist.

    """

    def __init__(
        self, address: RemoteAddress, options: Mapping[str, Any], created_with: Mapping[str, Any]
    ) -> None:
        self.topic = address.topic
        self.connection = Connection(server_at(address, options))
        words: list[bytes | str | int] = ["QUIRE.OPEN", self.topic]
        if options.get("create", True) and not options.get("read_only"):
            words.append("CREATE")
            for name, value in created_with.items():
                words += name, value
        try:
            self.facts: dict[str, Any] = self.connection.call(*words)
        except BaseException:
            self.connection.close()
            raise
        self.server = self.connection.server  # to which another one may have sent the client
        self.address = self.server.address
        self.format: str = self.facts["format"].decode()
        self.is_wire = bool(self.facts["wire"])
        self.wire_type: str = self.facts.get("wire_type", b"").decode()
        self.is_fieldless: bool = self.wire_type == "FIELDLESS_BINARY"
        self.source_id = int(self.facts.get("source_id", 0))

    @property
    def url(self) -> str:
        """The address of the queue."""
        return self.address.url

    @property
    def closed(self) -> bool:
        """Whether the queue was closed."""
        return self.connection.closed

    def ask(self, *words: bytes | str | int) -> Any:  # noqa: ANN401 - whatever the server says
        """
        Ask the server.

        Raises:
            ClosedError: The queue was closed.

        """
        if self.closed:
            raise ClosedError(f"the queue is closed: path={self.url}")
        return self.connection.call(*words)

    def ask_long(self, more_s: float, *words: bytes | str | int) -> Any:  # noqa: ANN401 - whatever the server says
        """Send a command that may take some seconds longer, on a connection of its own."""
        with closing(Connection(self.server)) as connection:
            return connection.call(*words, more_s=more_s)

    def info(self) -> dict[str, Any]:
        """Return the current facts about the queue."""
        found: dict[str, Any] = self.ask("QUIRE.INFO", self.topic)
        return found

    def replicas(self) -> list[Replica]:
        """Return the queue's replicas, with what each has acknowledged."""
        return [_replica(it) for it in self.ask("QUIRE.REPLICAS", self.topic)]

    def need_wire(self, name: str) -> None:
        """
        Check that messages are BinaryWire.

        Raises:
            UnsupportedError: The messages of the format are raw bytes.

        """
        if not self.is_wire:
            raise UnsupportedError(
                f"not supported in a {self.format} queue: {name} (messages are raw bytes)"
            )

    def check_index(self, index: int) -> None:
        """
        Check that an index is possible in the queue.

        Raises:
            IndexOutOfRangeError: No message can have the index.

        """
        if self.format == CHRONICLE and not 0 <= index >> self.facts["bits"] < _CYCLES:
            raise IndexOutOfRangeError(f"index out of range: index={index:#x} path={self.url}")

    def has_cycle_of(self, index: int) -> bool:
        """Return whether the cycle of an index has messages; True in the older formats."""
        bits = self.facts["bits"]
        first, past = index >> bits << bits, min(((index >> bits) + 1) << bits, 2**63 - 1)
        if self.format != CHRONICLE or first <= self.info()["end"] < past:
            return True
        limits = ["TO", past, "COUNT", 1, "BYTES", 1, "PACKED"]
        return bool(self.ask("QUIRE.READ", self.topic, "FROM", first, *limits)[1])

    def excerpt(self, index: int, data: bytes) -> Any:  # noqa: ANN401 - of the format
        """Return a message as a tailer of the format would."""
        if self.is_fieldless:
            return Excerpt(index, data, fieldless=True)
        return _EXCERPTS[self.format](index, data)

    def neighbour(self, queue: Any) -> str:  # noqa: ANN401 - a queue, or its address
        """
        Return the name of another queue on the same server.

        Raises:
            UnsupportedError: The queue is not on this server.

        """
        found = queue if isinstance(queue, str) else getattr(queue, "path", None)
        if not is_remote(found):
            raise UnsupportedError(
                f"not supported in a {FORMAT}: a queue elsewhere (give one on the same server)"
            )
        address = parse(str(found))
        if address[:2] != self.address[:2]:
            raise UnsupportedError(
                f"not supported in a {FORMAT}: a queue of another server: queue={address.url}"
            )
        return address.topic
