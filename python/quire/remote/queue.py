"""Handles of remote queues."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from quire._common import arguments
from quire._native import RollCycle
from quire.errors import ClosedError, ReadOnlyError, RollCycleMismatchError, UnsupportedError
from quire.formats.adapters import adapter_named
from quire.formats.columns import Columns
from quire.formats.detection import CHRONICLE
from quire.formats.missing import Handle
from quire.formats.numbering import Numbering, Periods
from quire.formats.remote import AnyRemoteQueue
from quire.handles.base import Queue
from quire.remote.address import RemoteAddress, parse
from quire.remote.appender import RemoteAppender
from quire.remote.group import RemoteGroup, state_of
from quire.remote.lacking import FORMAT, REASONS
from quire.remote.link import RemoteLink
from quire.remote.tailer import RemoteTailer

if TYPE_CHECKING:
    from quire.arrow.schema import SchemaLike
    from quire.dataframes.scan import Scan
    from quire.groups.states import GroupState
    from quire.handles.journal.acknowledging import Wait
    from quire.handles.journal.replicas import Replica
    from quire.remote.flight_client import FlightPlace

_LIMIT: Final = arguments.optional(arguments.whole(1, 2**31 - 1))
_MISSING: Final = arguments.one_of("raise", "warn", "skip")
_NAME: Final = arguments.optional(arguments.text)
_REACHING: Final = ("token", "tls", "timeout_s")
_CREATION: Final = (
    "format",
    "roll_cycle",
    "time_zone",
    "epoch_ms",
    "wire_type",
    "source_id",
    "block_bytes",
)


class RemoteQueue(Queue, AnyRemoteQueue, Handle):
    """
    A queue on a server, from ``quire.open("quire://HOST:PORT/QUEUE")``.

    It is pickled as its address and options, token included, unless *tls* is a context.

        with quire.open("quire://127.0.0.1:7000/orders", token=token) as queue:
            queue.appender().write_text("hello")
    """

    _format, _missing = FORMAT, REASONS

    def __init__(
        self, address: RemoteAddress, options: Mapping[str, Any], created_with: Mapping[str, Any]
    ) -> None:
        self._options = dict(options)
        self._read_only = bool(options.get("read_only"))
        self._handles: list[RemoteAppender | RemoteTailer | RemoteQueue] = []
        self._counts: dict[int, int] = {}
        self._link = RemoteLink(address, options, created_with)
        self._facts = self._link.facts
        self._check_roll_cycle(created_with.get("roll_cycle"))

    @classmethod
    def _reopen(cls, path: Any, options: dict[str, Any]) -> Self:  # noqa: ANN401 - an address
        return cls(parse(str(path)), options, {})

    # Its state.

    @property
    def path(self) -> str:
        """Its address."""
        return self._link.url

    @property
    def closed(self) -> bool:
        """Whether the queue was closed."""
        return self._link.closed

    @property
    def read_only(self) -> bool:
        """Whether the queue was opened read-only, here or at the server."""
        return self._read_only or not self._facts["writable"]

    @property
    def first_index(self) -> int | None:
        """The index of the first message; None if there is none."""
        found: int | None = self._link.info()["first"]
        return found

    @property
    def last_index(self) -> int | None:
        """The index of the last message; None if there is none."""
        found: int | None = self._link.info()["last"]
        return found

    @property
    def entry_count(self) -> int:
        """The number of messages, by the queue's own index."""
        return int(self._link.info()["count"])

    @property
    def cycles(self) -> list[int]:
        """The cycles of the queue, in order."""
        return [*self._cycle_counts()]

    @property
    def roll_cycle(self) -> RollCycle:
        """How the queue is divided into files on the server."""
        self._link.need_wire("roll_cycle")
        return RollCycle(self._facts["cycles"].decode())

    @property
    def epoch_ms(self) -> int:
        """Start of cycle 0 in epoch milliseconds."""
        return int(self._facts.get("epoch_ms", 0))

    @property
    def roll_time_zone(self) -> str:
        """The zone of the roll time; only UTC can be reported by a remote queue."""
        if self._facts.get("zoned"):
            raise UnsupportedError(f"not supported in a {FORMAT}: roll_time_zone (ask there)")
        return "UTC"

    @property
    def wire_type(self) -> str:
        """The wire type of the queue."""
        self._link.need_wire("wire_type")
        return self._link.wire_type

    @property
    def source_id(self) -> int:
        """The queue's id in message history."""
        self._link.need_wire("source_id")
        return self._link.source_id

    @property
    def block_bytes(self) -> int:
        """By how much the queue's files grow."""
        return int(self._facts.get("block_bytes", 0))

    @property
    def last_acknowledged_index(self) -> int | None:
        """The index up to which Java's replicas have the messages: see :class:`JournalQueue`."""
        self._link.need_wire("last_acknowledged_index")
        found: int | None = self._link.info()["acknowledged"]
        return found

    @property
    def replicas(self) -> list[Replica]:
        """The queue's replicas, and what each has acknowledged, as the server knows it."""
        return self._link.replicas()

    def count_excerpts(self, from_index: int, to_index: int) -> int:
        """Return how many messages lie between two indexes, by the queue's own index."""
        numbering = self._numbering()
        low, high = sorted((from_index, to_index))
        counts = self._cycle_counts()

        def before(index: int) -> int:
            cycle = numbering.to_cycle(index)
            whole = sum(count for it, count in counts.items() if it < cycle)
            return whole + min(numbering.to_sequence(index), counts.get(cycle, 0))

        return before(high) - before(low)

    # Handles.

    def appender(self, *, limit: int | None = None, wait: Wait | None = None) -> RemoteAppender:
        """
        Return a new appender, with a connection of its own.

        Args:
            limit: How many asynchronous appends may be in progress at once in an event loop.
            wait: The replicas that each append waits for: see :meth:`RemoteAppender.write_bytes`.

        Raises:
            ReadOnlyError: The queue was opened read-only.
            ReplicationError: *wait* was given, and the queue is not replicated.

        """
        if self.read_only:
            raise ReadOnlyError(f"the queue was opened read-only: path={self.path}")
        made = RemoteAppender(self._link, _LIMIT("limit", limit), wait)
        self._keep(made)
        return made

    def tailer(
        self,
        name: str | None = None,
        *,
        on_missing: Literal["raise", "warn", "skip"] = "skip",
        shared: bool = False,
    ) -> RemoteTailer:
        """
        Return a new tailer, at the first message, with a connection of its own.

        Args:
            name: Store the position in the queue under this name, and resume there.
            on_missing: Only ``skip``: messages that were deleted are skipped.
            shared: Use the name even while other tailers use it.

        Raises:
            TailerInUseError: Another tailer uses the name.
            UnsupportedError: Another *on_missing* was given.
            ValueError: The name is not valid.

        """
        if _MISSING("on_missing", on_missing) == "raise":
            raise UnsupportedError(
                "not supported: tailer(on_missing=) of a RemoteQueue (the"
                " server skips missing cycles)"
            )
        made = RemoteTailer(self._link, self, _NAME("name", name), shared=shared)
        self._keep(made)
        return made

    def _range(self, start: int, past: int) -> Columns | None:
        """Return the range between two indexes, for one answer; None for an older format."""
        if self._link.format != CHRONICLE:
            return None
        words = ("QUIRE.READ", self._link.topic, "FROM", start, "TO", past, "PACKED")
        _, *columns = self._link.ask(*words)
        return Columns.of(*columns)

    def _range_tailer(self, past: int) -> RemoteTailer:
        """Return a tailer for the messages before an index, by Flight if the server offers it."""
        place = self._flight() if self._numbering().is_dense else None
        if place is None:
            return self.tailer()
        from quire.remote.flight_tailer import FlightTailer

        made = FlightTailer(self._link, self, place, past)
        self._keep(made)
        return made

    def _check_roll_cycle(self, asked: str | None) -> None:
        if asked is None or self._facts["first"] is None or RollCycle(asked) == self.roll_cycle:
            return
        self.close()
        raise RollCycleMismatchError(
            f"the queue has another roll cycle: asked={asked} found={self.roll_cycle.name}"
            f" path={self.path} (omit roll_cycle to open it with its own)"
        )

    def _beside(self, url: str, *, read_only: bool = False) -> RemoteQueue:
        """Open another queue on the same server, which is closed with this one."""
        address = self._link.address._replace(topic=self._link.neighbour(url))
        options = {name: it for name, it in self._options.items() if name in _REACHING}
        made = RemoteQueue(address, options | {"read_only": read_only}, {})
        self._keep(made)
        return made

    def _keep(self, handle: RemoteAppender | RemoteTailer | RemoteQueue) -> None:
        if self.closed:
            handle.close()
            raise ClosedError(f"the queue is closed: path={self.path}")
        self._handles = [it for it in self._handles if not it.closed]
        self._handles.append(handle)

    def group(self, name: str, **options: Any) -> RemoteGroup:  # noqa: ANN401 - those of queues
        """Return a group of consumers: see :meth:`quire.Queue.group`."""
        return RemoteGroup(self._link, name, **options)

    def groups(self) -> list[GroupState]:
        """Return the groups that consumers joined, with their lag, position and members."""
        return [state_of(it) for it in self._link.ask("QUIRE.GROUP", "LIST", self._link.topic)]

    def named_tailers(self) -> list[tuple[str, int]]:
        """Return the name of each named tailer, with the index that it stored."""
        found = self._link.ask("QUIRE.TAILER", "LIST", self._link.topic)
        return [(name.decode(), index) for name, index in found]

    def delete_tailer(self, name: str) -> bool:
        """Delete the position of a named tailer; return whether there was one."""
        return bool(self._link.ask("QUIRE.TAILER", "DELETE", self._link.topic, name))

    def rename_tailer(self, name: str, new_name: str) -> bool:
        """Rename a named tailer; return whether there was one."""
        return bool(self._link.ask("QUIRE.TAILER", "RENAME", self._link.topic, name, new_name))

    def close(self) -> None:
        """Close the queue and all its appenders and tailers. Idempotent."""
        handles, self._handles = self._handles, []
        for handle in handles:
            if isinstance(handle, RemoteTailer):
                handle._leave()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            else:
                handle.close()
        self._link.connection.close()

    # What data frames ask.

    def _scan(self, schema: SchemaLike | None, **options: Any) -> Scan:  # noqa: ANN401 - see scan
        from quire.remote.flight_scan import FlightScan

        return FlightScan.of(self, schema, **options)

    def _flight(self) -> FlightPlace | None:
        from quire.remote.flight_client import FlightPlace

        return FlightPlace.of(self._link, self._options.get("tls"))

    # What the package asks.

    def _numbering(self) -> Numbering:
        facts = self._facts
        return Numbering(facts["bits"], facts["step"], bool(facts["dense"]))

    def _periods(self) -> Periods:
        facts = self._facts
        if "length_ms" not in facts:
            raise UnsupportedError(
                f"the queue has no cycles, so no time is known without a field: path={self.path}"
            )
        return Periods(facts["epoch_ms"], facts["length_ms"], facts["cycles"].decode())

    def _cycle_counts(self) -> dict[int, int]:
        cycles, counts = (array("q", it) for it in self._link.ask("QUIRE.CYCLES", self._link.topic))
        self._counts = dict(zip(cycles, counts, strict=True))
        return self._counts

    def _count(self, cycle: int) -> int:
        known = self._counts  # of all but the last cycle, from when they were listed
        if cycle not in known or cycle == max(known):
            known = self._cycle_counts()
        return known.get(cycle, 0)

    @property
    def _is_wire(self) -> bool:
        return self._link.is_wire

    @property
    def _appends_late(self) -> bool:
        return adapter_named(self._link.format).has_late_appends

    def _excerpt(self, index: int, data: bytes) -> Any:  # noqa: ANN401 - of the format
        return self._link.excerpt(index, data)

    def __repr__(self) -> str:
        """Return the address."""
        return f"RemoteQueue({self.path!r}{', closed' if self.closed else ''})"


def open_remote(url: str, given: dict[str, Any]) -> RemoteQueue:
    """
    Open a remote queue with the keywords of :func:`quire.open`.

    Raises:
        UnsupportedError: An option applies only to local queues.
        RollCycleMismatchError: The queue has another roll cycle.

    """
    options: dict[str, Any] = {
        name: given.pop(name) for name in (*_REACHING, "read_only", "create") if name in given
    }
    created = {name: given.pop(name) for name in _CREATION if given.get(name) is not None}
    if "roll_cycle" in created:
        created["roll_cycle"] = getattr(created["roll_cycle"], "name", created["roll_cycle"])
    left = {name for name, value in given.items() if value is not None and value is not False}
    if left:
        raise UnsupportedError(
            f"not an option of a {FORMAT}: {', '.join(sorted(left))} (the server opens the files)"
        )
    return RemoteQueue(parse(url), options, created)
