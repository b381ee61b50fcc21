"""
Replication, simulated: real sessions, real queues, and a network, clocks and crashes of a seed.

Nothing waits and no time passes but the simulated one, so that a seed always does the same. After
each step the copies are prefixes of the source, and hold whatever was acknowledged.
"""

from __future__ import annotations

import random
import shutil
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import quire
from quire.errors import PeerLostError, PeerSilentError, QuireError
from quire.handles.journal.queue import JournalQueue
from quire.replication.original import Original
from quire.replication.replica import Replica
from quire.replication.sink_session import SinkSession
from quire.replication.source_session import SourceSession

START_MS = 1_700_000_000_000
CYCLE_MS = 60_000
_LOOKED_THROUGH = 0.03

Document = tuple[int, bool, bytes]


class SimulationError(AssertionError):
    """A promise was broken; the text says how to see it again."""


@dataclass
class Wire:
    """A connection: bytes under way in both directions, which may be cut anywhere."""

    to_sink: deque[bytes] = field(default_factory=deque[bytes])
    to_source: deque[bytes] = field(default_factory=deque[bytes])


@dataclass
class Machine:
    """A sink's machine."""

    path: Path
    name: str
    level: str
    replica: Replica | None = None
    session: SinkSession | None = None
    peer: SourceSession | None = None
    wire: Wire = field(default_factory=Wire)
    partitioned: bool = False
    acknowledged: int = 0


class Simulation:
    """
    One source, some sinks, and what happens to them.

    Args:
        seed: What decides.
        path: An empty directory.

    """

    def __init__(self, seed: int, path: Path) -> None:
        self._random = random.Random(seed)  # noqa: S311 - it has to repeat
        self._seed = seed
        self._path = path
        self._now_ns = 1_000_000_000
        self._clock = quire.ManualClock(START_MS)
        self._source: JournalQueue
        self._original: Original
        self._open_source()
        self._sinks = [
            Machine(
                path / f"sink{number}", f"sink{number}", self._random.choice(("stored", "synced"))
            )
            for number in range(self._random.randint(1, 3))
        ]
        self._written = 0

    def run(self, steps: int) -> None:
        """Do so many things, then let everybody catch up."""
        for _ in range(steps):
            self._step()
            self._check()
        self._settle()

    def close(self) -> None:
        """Close what is open."""
        for sink in self._sinks:
            self._crash(sink)
        self._source.close()

    def _open_source(self) -> None:
        self._source = quire.open(self._path / "source", roll_cycle="MINUTELY", clock=self._clock)
        self._appender = self._source.appender()
        self._original = Original(self._source)

    def _step(self) -> None:
        do: list[tuple[int, Callable[[], None]]] = [
            (30, self._append),
            (4, self._append_metadata),
            (40, self._deliver_some),
            (3, self._pass_time),
            (2, self._roll),
            (3, lambda: self._crash(self._any())),
            (2, lambda: self._cut(self._any())),
            (2, self._partition),
            (1, self._restart_source),
        ]
        [action] = self._random.choices([it for _, it in do], [weight for weight, _ in do])
        action()
        self._now_ns += self._random.randint(1, 50_000_000)

    def _any(self) -> Machine:
        return self._random.choice(self._sinks)

    def _append(self) -> None:
        for _ in range(self._random.choice((1, 1, 1, 7, 40))):
            self._written += 1
            size = self._random.choice((1, 8, 40, 3000))
            self._appender.write_bytes(f"{self._written}:".encode().ljust(size, b"."))

    def _append_metadata(self) -> None:
        with self._appender.writing_document(metadata=True) as document:
            document.write("note", self._written)

    def _pass_time(self) -> None:
        self._now_ns += self._random.choice((10**9, 5 * 10**9, 12 * 10**9))

    def _roll(self) -> None:
        self._clock.now_ms += CYCLE_MS * self._random.choice((1, 1, 3))

    def _partition(self) -> None:
        sink = self._any()
        sink.partitioned = not sink.partitioned

    def _restart_source(self) -> None:
        """Kill the source's process: connections end, its queue is opened again."""
        for sink in self._sinks:
            self._cut(sink)
        self._source.close()
        self._open_source()

    def _crash(self, sink: Machine) -> None:
        """Kill a sink's process: what it did not send is lost."""
        self._cut(sink)
        if sink.replica is not None:
            sink.replica.close()
            sink.replica = None

    def _cut(self, sink: Machine) -> None:
        """Lose the connection: what is under way arrives in part, or not at all."""
        if sink.peer is not None:
            self._deliver_part(sink)
        self._drop(sink)

    def _deliver_part(self, sink: Machine) -> None:
        """Have a peer see the beginning of what was under way when the connection was lost."""
        under_way = b"".join(sink.wire.to_sink)
        if under_way and sink.session is not None and self._random.random() < 0.5:
            part, session = under_way[: self._random.randint(0, len(under_way))], sink.session
            self._guarded(sink, lambda: session.receive(part, self._now_ns))

    def _drop(self, sink: Machine) -> None:
        if sink.peer is not None:
            sink.peer.close()
        sink.session = sink.peer = None
        sink.wire = Wire()

    def _deliver_some(self) -> None:
        for _ in range(self._random.randint(1, 12)):
            sink = self._any()
            if not sink.partitioned:
                self._converse(sink)

    def _connect(self, sink: Machine) -> None:
        if sink.replica is None:
            sink.replica = Replica(sink.path, {})
        sink.session = SinkSession(
            sink.replica, name=sink.name, peer="source", level=sink.level, now_ns=self._now_ns
        )
        compress = self._random.random() < 0.5
        sink.peer = SourceSession(self._original, sink.name, self._now_ns, compress=compress)

    def _converse(self, sink: Machine) -> None:
        """Move some bytes between a sink and the source, in pieces of any size."""
        if sink.session is None:
            self._connect(sink)
        self._guarded(sink, lambda: self._exchange(sink))

    def _exchange(self, sink: Machine) -> None:
        session, peer = sink.session, sink.peer
        if session is None or peer is None:
            return
        session.tick(self._now_ns)
        peer.tick(self._now_ns)
        peer.pull(self._clock.now_ms * 1_000_000, self._now_ns)
        _push(sink.wire.to_sink, peer.outgoing())
        if session.awaits_sync:
            session.sync()
        _push(sink.wire.to_source, session.outgoing())
        if piece := self._piece(sink.wire.to_sink):
            session.receive(piece, self._now_ns)
        if piece := self._piece(sink.wire.to_source):
            peer.receive(piece, self._now_ns)
            if peer.acknowledged is not None:
                sink.acknowledged = max(sink.acknowledged, peer.acknowledged.next)

    def _piece(self, under_way: deque[bytes]) -> bytes:
        if not under_way:
            return b""
        first = under_way.popleft()
        cut = self._random.choice((len(first), self._random.randint(1, len(first))))
        if first[cut:]:
            under_way.appendleft(first[cut:])
        return first[:cut]

    def _guarded(self, sink: Machine, action: Callable[[], None]) -> None:
        try:
            action()
        except (PeerLostError, PeerSilentError):
            self._drop(sink)
        except QuireError as error:
            raise self._broken(f"{sink.name} failed: {error!r}") from error

    def _settle(self) -> None:
        """Let the network heal: every copy gets all there is."""
        for sink in self._sinks:
            sink.partitioned = False
        wanted = documents(self._source)
        for _ in range(2_000):
            for sink in self._sinks:
                self._converse(sink)
            self._now_ns += 1_000_000
            if all(self._has_all(sink, wanted) for sink in self._sinks):
                return
        raise self._broken("a copy did not catch up")

    def _check(self) -> None:
        """Check that copies are prefixes, and have what was acknowledged."""
        for sink in self._sinks:
            if sink.replica is None or sink.replica.queue is None:
                continue
            end = sink.replica.end
            if sink.acknowledged and (end is None or end.next < sink.acknowledged):
                raise self._broken(f"{sink.name} lost what it had acknowledged: {end}")
            if self._random.random() < _LOOKED_THROUGH:
                held, all_of_them = self._held(sink), documents(self._source)
                if held != all_of_them[: len(held)]:
                    raise self._broken(f"{sink.name} is no prefix of the source")

    def _has_all(self, sink: Machine, wanted: list[Document]) -> bool:
        if sink.peer is None or not sink.peer.has_all or sink.peer.sent is None:
            return not wanted
        is_sent = sink.peer.sent.next > max((it[0] for it in wanted if not it[1]), default=-1)
        return is_sent and self._held(sink) == wanted

    def _held(self, sink: Machine) -> list[Document]:
        queue = sink.replica and sink.replica.queue
        return documents(queue) if queue else []

    def _broken(self, what: str) -> SimulationError:
        again = f"QUIRE_SEED={self._seed} pytest tests/replication/test_simulation.py -k a_seed"
        return SimulationError(f"seed {self._seed}: {what}; again by: {again}")


def _push(under_way: deque[bytes], data: bytes) -> None:
    if data:
        under_way.append(data)


def documents(queue: JournalQueue) -> list[Document]:
    """Return every document of a queue: the index, whether it is metadata, and its bytes."""
    found: list[Document] = []
    with queue.tailer() as tailer:
        while True:
            with tailer.reading_document(include_metadata=True) as document:
                if not document.is_present:
                    return found
                is_metadata = document.is_metadata
                data = bytes(document.bytes)
                if not is_metadata or not _is_of_file(data):
                    found.append((document.index, is_metadata, data))


def _is_of_file(data: bytes) -> bool:
    return any(data.startswith(bytes([0xB9, len(name)]) + name) for name in _OF_FILE)


_OF_FILE = (b"header", b"index", b"index2index")


def simulate(seed: int, path: Path, *, steps: int = 120) -> None:
    """Run the simulation of a seed in an empty directory, and remove it if nothing was wrong."""
    path.mkdir()
    simulation = Simulation(seed, path)
    try:
        simulation.run(steps)
    finally:
        simulation.close()
    shutil.rmtree(path)
