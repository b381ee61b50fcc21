"""
Replication over disks that fail, simulated: damage, power cuts and full disks of a seed.

Real sessions and real queues, two to five of them. A message is acknowledged once every sink has
acknowledged it, as ``wait="all"`` has it. Whatever then happens to the disks of all nodes but one,
it is at every later source; a damaged node stops and changes nothing, or gets its messages back.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import quire
from quire.errors import CorruptError, DivergedError, PeerLostError, PeerSilentError, QuireError
from quire.handles.journal.queue import JournalQueue
from quire.replication import aside, promote
from quire.replication.original import Original
from quire.replication.replica import Replica
from quire.replication.sink_session import SinkSession
from quire.replication.source_session import SourceSession
from quire.replication.wire import Place
from simulated_disk import Disk
from simulator import CYCLE_MS, START_MS, Document, SimulationError, Wire, documents

LOOKED_THROUGH = 0.05
RATES = 0.7, 1.4  # of clocks, against the time that passes: far more than any drifts


class ReplicaOnDisk(Replica):
    """A sink's queue, whose disk may be full."""

    def __init__(self, disk: Disk, chance: random.Random) -> None:
        super().__init__(disk.path, {"pretouch": False})
        self._disk, self._random = disk, chance

    def apply(self, documents: bytes, time_ms: int) -> Place:
        if not self._disk.is_full:
            return super().apply(documents, time_ms)
        if self._random.random() < 0.5:
            super().apply(documents, time_ms)  # it was full for what comes next
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def sync(self) -> None:
        super().sync()
        self._disk.note_synced()


@dataclass
class Node:
    """
    A machine.

    Attributes:
        rate: How fast its clock goes.
        is_intact: Its disk has all that it acknowledged.
        has: The index after what it acknowledged to the source that there is.

    """

    disk: Disk
    level: str
    rate: float
    replica: ReplicaOnDisk | None = None
    session: SinkSession | None = None
    peer: SourceSession | None = None
    wire: Wire = field(default_factory=Wire)
    is_partitioned: bool = False
    is_intact: bool = False
    has: int = 0

    @property
    def name(self) -> str:
        return self.disk.path.name


class FailingDisks:
    """
    Two to five nodes, and what happens to their disks.

    Args:
        seed: What decides.
        path: An empty directory.

    """

    def __init__(self, seed: int, path: Path) -> None:
        self._random, self._seed = random.Random(seed), seed  # noqa: S311 - it has to repeat
        self._now_ns = 1_000_000_000
        self._clock = quire.ManualClock(START_MS)
        self._nodes = [
            Node(
                Disk(path / name, self._random),
                self._random.choice(("stored", "synced")),
                self._random.uniform(*RATES),
            )
            for name in "abcde"[: self._random.randint(2, 5)]
        ]
        self._queue: JournalQueue
        self._source: Node
        self._written = 0
        self._acknowledged: dict[int, bytes] = {}
        self._appended: dict[int, bytes] = {}
        self._ever: set[tuple[int, bytes]] = set()
        self._is_damaged = False
        self.met: dict[str, int] = {}
        self._begin_reign(self._nodes[0])

    @property
    def _sinks(self) -> list[Node]:
        return [it for it in self._nodes if it is not self._source]

    def run(self, steps: int) -> None:
        """Do n things, then let everybody catch up."""
        for _ in range(steps):
            self._step()
            self._check()
        self._settle()

    def close(self) -> None:
        for node in self._sinks:
            self._stop(node)
        self._queue.close()

    # What happens.

    def _step(self) -> None:
        sink = self._random.choice(self._sinks)
        do: list[tuple[int, Callable[[], None]]] = [
            (30, self._append),
            (45, self._converse_some),
            (3, self._move_clock),
            (2, self._pass_time),
            (3, lambda: self._stop(sink)),
            (2, lambda: self._drop(sink)),
            (2, lambda: self._partition(sink)),
            (2, lambda: self._back_up(self._random.choice(self._nodes))),
            (3, lambda: self._damage(sink)),
            (3, lambda: self._cut_power(sink)),
            (3, lambda: self._fill(sink)),
            (1, self._sync_source),
            (1, self._lose_source),
            (1, self._fail_over),
        ]
        [action] = self._random.choices([it for _, it in do], [weight for weight, _ in do])
        action()
        self._now_ns += self._random.randint(1, 50_000_000)

    def _append(self) -> None:
        for _ in range(self._random.choice((1, 1, 7, 30))):
            self._written += 1
            size = self._random.choice((1, 8, 40, 3000))
            data = f"{self._written}:".encode().ljust(size, b".")
            index = self._appender.write_bytes(data)
            self._appended[index] = data
            self._ever.add((index, data))

    def _move_clock(self) -> None:
        """Let the wall clock go on, or step back."""
        self._clock.now_ms += self._random.choice((CYCLE_MS, CYCLE_MS, 3 * CYCLE_MS, -CYCLE_MS))

    def _pass_time(self) -> None:
        self._now_ns += self._random.choice((10**9, 12 * 10**9))

    def _partition(self, node: Node) -> None:
        node.is_partitioned = not node.is_partitioned

    def _back_up(self, node: Node) -> None:
        node.disk.back_up()

    def _fill(self, node: Node) -> None:
        node.disk.is_full = not node.disk.is_full

    def _sync_source(self) -> None:
        self._appender.sync()
        self._source.disk.note_synced()

    def _damage(self, node: Node) -> None:
        if not self._others_have_all(node):
            return
        self._stop(node)
        self._note(node.disk.damage())
        node.is_intact, node.has = False, 0

    def _cut_power(self, node: Node) -> None:
        """Lose what was not synced; what a sink acknowledged as synced is there after it."""
        if not self._others_have_all(node):
            return
        self._stop(node)
        node.disk.cut_power()
        self._note("power cut")
        if node.level == "synced" and node.is_intact:
            self._check_synced(node)
        node.is_intact, node.has = False, 0

    def _lose_source(self) -> None:
        """Damage the source's disk, or cut its power: sinks that have more than it refuse it."""
        source = self._source
        if not self._others_have_all(source):
            return
        self._close_source()
        self._note(f"source: {self._break(source.disk)}")
        source.is_intact, self._is_damaged = False, True
        self._serve_damaged(source)
        self._fail_over()

    def _break(self, disk: Disk) -> str:
        if self._random.random() < 0.5:
            return disk.damage()
        disk.cut_power()
        return "power cut"

    def _serve_damaged(self, source: Node) -> None:
        """Start the source's process again, if it starts; no sink loses anything by it."""
        try:
            self._open_source(source)
            # What its disk made up, and a sink that lacks it takes as the source's word.
            self._ever |= {(index, data) for index, _, data in documents(self._queue)}
            for _ in range(20):
                self._converse_some()
        except (QuireError, OSError):
            self._note("source: unreadable")
        finally:
            self._close_source()

    def _fail_over(self) -> None:
        """Promote the intact sink that has most, by hand."""
        intact = [it for it in self._sinks if it.is_intact]
        if not intact:
            return
        before = self._source
        self._close_source()
        for node in self._nodes:
            self._stop(node)
        best = max(intact, key=lambda it: self._last(it.disk.path))
        promote(best.disk.path)
        self._note("fail-over")
        self._begin_reign(best)
        before.is_intact = False  # until it has what the new source has

    # What the drivers do.

    def _open_source(self, node: Node) -> None:
        self._queue = quire.open(
            node.disk.path,
            clock=self._clock,
            roll_cycle="MINUTELY",
            block_bytes=1 << 16,
            pretouch=False,
        )
        self._appender = self._queue.appender()
        self._original = Original(self._queue)

    def _begin_reign(self, node: Node) -> None:
        self._source, self._is_damaged = node, False
        node.is_intact = True
        self._open_source(node)
        self._appended = {}
        for each in self._nodes:
            each.has = 0
        held = payloads(self._queue)
        lost = {it for it, data in self._acknowledged.items() if held.get(it) != data}
        if lost:
            raise self._broken(f"{node.name} lacks what was acknowledged: {sorted(lost)[:3]}")

    def _close_source(self) -> None:
        for node in self._sinks:
            self._drop(node)
        self._queue.close()

    def _stop(self, node: Node) -> None:
        """Kill a sink's process."""
        self._drop(node)
        if node.replica is not None:
            node.replica.close()
            node.replica = None

    def _drop(self, node: Node) -> None:
        if node.peer is not None:
            node.peer.close()
        node.session = node.peer = None
        node.wire = Wire()

    def _converse_some(self) -> None:
        for _ in range(self._random.randint(1, 12)):
            node = self._random.choice(self._sinks)
            if not node.is_partitioned:
                self._converse(node)

    def _converse(self, node: Node) -> None:
        try:
            self._connect(node)
            self._exchange(node)
        except DivergedError as error:
            self._repair(node, error.index or 0)
        except (PeerLostError, PeerSilentError):
            self._drop(node)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            self._note("full disk")
            self._stop(node)
        except QuireError as error:
            self._give_up(node, error)

    def _connect(self, node: Node) -> None:
        if node.session is not None:
            return
        if node.replica is None:
            node.replica = ReplicaOnDisk(node.disk, self._random)
        node.session = SinkSession(
            node.replica, name=node.name, peer="source", level=node.level, now_ns=self._now_at(node)
        )
        node.peer = SourceSession(self._original, node.name, self._now_at(self._source))

    def _exchange(self, node: Node) -> None:
        session, peer = node.session, node.peer
        assert session is not None
        assert peer is not None
        sink_ns, source_ns = self._now_at(node), self._now_at(self._source)
        session.tick(sink_ns)
        peer.tick(source_ns)
        peer.pull(self._clock.now_ms * 1_000_000, source_ns)
        _push(node.wire.to_sink, peer.outgoing())
        _push(node.wire.to_source, session.outgoing())
        if session.awaits_sync and self._random.random() < 0.7:
            session.sync()
        if piece := self._piece(node.wire.to_sink):
            session.receive(piece, sink_ns)
        if piece := self._piece(node.wire.to_source):
            peer.receive(piece, source_ns)
        if session.lacks is not None:
            self._repair(node, session.lacks)
        elif peer.acknowledged is not None:
            self._note_acknowledged(node, peer)

    def _now_at(self, node: Node) -> int:
        """Return what the clock of a node shows, which drifts."""
        return int(self._now_ns * node.rate)

    def _piece(self, under_way: deque[bytes]) -> bytes:
        if not under_way:
            return b""
        first = under_way.popleft()
        cut = self._random.choice((len(first), self._random.randint(1, len(first))))
        if first[cut:]:
            under_way.appendleft(first[cut:])
        return first[:cut]

    def _repair(self, node: Node, index: int) -> None:
        """As ``--repair`` does; but no sink that has all gives anything up for a damaged source."""
        self._drop(node)
        if self._is_damaged or node.replica is None:
            self._note("refused")
            return
        if node.is_intact and index < node.has:
            raise self._broken(f"{node.name} is intact, and differs at {index:#x}")
        self._note("repaired")
        try:
            with patch.object(aside, "_make_table"):  # it waits for other makers, in real time
                node.replica.put_aside(index)
            node.disk.note_synced()
        except QuireError as error:
            self._give_up(node, error)

    def _give_up(self, node: Node, error: QuireError) -> None:
        """What cannot be mended is replaced, where that is to be expected."""
        self._stop(node)
        if self._is_damaged:
            self._note("source: unreadable")
        elif node.is_intact:
            raise self._broken(f"{node.name} is intact, and failed: {error!r}") from error
        else:
            self._note("replaced")
            node.disk.replace()

    def _note_acknowledged(self, node: Node, peer: SourceSession) -> None:
        if peer.acknowledged is not None:
            node.has = max(node.has, peer.acknowledged.next)
        if self._is_damaged:
            return
        last = self._queue.last_index
        if peer.has_all and last is not None and node.has > last:
            node.is_intact = True
        end = min(it.has for it in self._sinks)
        for index in [it for it in self._appended if it < end]:
            self._acknowledged[index] = self._appended.pop(index)

    # What has to hold.

    def _others_have_all(self, node: Node) -> bool:
        return any(it.is_intact for it in self._nodes if it is not node)

    def _last(self, path: Path) -> int:
        with quire.open(path, read_only=True, clock=self._clock) as queue:
            return -1 if queue.last_index is None else queue.last_index

    def _check_synced(self, node: Node) -> None:
        with quire.open(node.disk.path, read_only=True, clock=self._clock) as queue:
            held = payloads(queue)
        lost = [it for it in self._acknowledged if it < node.has and it not in held]
        if lost:
            raise self._broken(f"{node.name} lost what it had synced: {lost[:3]}")

    def _check(self) -> None:
        for node in self._sinks:
            is_compared = node.session is not None and node.session.is_started
            if node.replica is None or node.replica.queue is None or not is_compared:
                continue
            end = node.replica.end
            if node.is_intact and node.has and (end is None or end.next < node.has):
                raise self._broken(f"{node.name} lost what it had acknowledged: {end}")
            if self._random.random() < LOOKED_THROUGH:
                self._check_prefix(node, node.replica.queue)

    def _check_prefix(self, node: Node, queue: JournalQueue) -> None:
        try:
            held, source = documents(queue), documents(self._queue)
        except CorruptError as error:
            if node.is_intact:
                raise self._broken(f"{node.name} is intact, and cannot be read: {error}") from error
            return  # it says what it lacks until the source has sent that
        if held != source[: len(held)]:
            differs = first_difference(held, source)
            raise self._broken(f"{node.name} is no prefix of the source: {differs}")
        invented = {(index, data) for index, _, data in held} - self._ever
        if invented:
            raise self._broken(f"{node.name} has what nobody appended: {sorted(invented)[:3]}")

    def _settle(self) -> None:
        """Let everything heal: all have the same, with all that was acknowledged."""
        for node in self._nodes:
            node.is_partitioned = node.disk.is_full = node.is_intact = False
        wanted = documents(self._queue)
        for _ in range(3_000):
            for node in self._sinks:
                self._converse(node)
            self._now_ns += 1_000_000
            if not wanted or all(it.is_intact for it in self._sinks):
                break
        for node in self._sinks:
            queue = node.replica and node.replica.queue
            try:
                held = documents(queue) if queue else []
            except CorruptError as error:
                raise self._broken(f"{node.name} kept its damage: {error}") from error
            if held != wanted:
                raise self._broken(
                    f"{node.name} did not catch up: {first_difference(held, wanted)}"
                )

    def _note(self, what: str) -> None:
        self.met[what] = self.met.get(what, 0) + 1

    def _broken(self, what: str) -> SimulationError:
        again = f"QUIRE_SEED={self._seed} pytest tests/replication/test_failing_disks.py -k a_seed"
        return SimulationError(f"seed {self._seed}: {what}; again by: {again}")


def payloads(queue: JournalQueue) -> dict[int, bytes]:
    """Return the messages of a queue by their indexes."""
    return {index: data for index, is_metadata, data in documents(queue) if not is_metadata}


def first_difference(held: list[Document], source: list[Document]) -> str:
    """Say where two queues begin to differ."""
    shorter = min(len(held), len(source))
    at = next((it for it in range(shorter) if held[it] != source[it]), shorter)
    shown = [(it[0], it[2][:8]) for it in (*held[at : at + 1], *source[at : at + 1])]
    return f"at={at} own_count={len(held)} source_count={len(source)} {shown}"


def _push(under_way: deque[bytes], data: bytes) -> None:
    if data:
        under_way.append(data)


def simulate_failing_disks(seed: int, path: Path, *, steps: int = 150) -> dict[str, int]:
    """Run a seed in an empty directory, removed if nothing was wrong; return what was met."""
    path.mkdir()
    simulation = FailingDisks(seed, path)
    try:
        simulation.run(steps)
    finally:
        simulation.close()
    shutil.rmtree(path)
    return simulation.met
