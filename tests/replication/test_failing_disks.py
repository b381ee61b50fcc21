"""Replication over disks that are damaged, full, or lose what was not synced; bugs it finds."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import quire
from failing_disks import simulate_failing_disks
from queues import problems_of
from quire.replication.digests import CycleDigests
from quire.replication.original import Original
from quire.replication.replica import Replica
from quire.replication.sink_session import SinkSession
from quire.replication.source_session import SourceSession
from quire.replication.wire import Place
from simulator import SimulationError
from tally import RUN, Tally, scaled

SEED = os.environ.get("QUIRE_SEED")
QUICK = range(2)
FIRST = 2 + 20_000 * RUN
CHECKED = range(FIRST, FIRST + scaled(40, 20_000))
PROMISE = "Replicas whose disks fail, fill, flip or are cut hand no damage on"
PARTS = 2


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level("CRITICAL", logger="quire"):
        yield


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory, if the system has one."""
    shared = Path("/dev/shm")  # noqa: S108 - the directory below it has a name of its own
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else tmp_path) as path:
        yield Path(path)


@pytest.mark.parametrize("seed", QUICK if SEED is None else [int(SEED)])
def test_a_seed(memory: Path, seed: int) -> None:
    simulate_failing_disks(seed, memory / "simulation")


@pytest.mark.check
@pytest.mark.parametrize("part", range(PARTS))
def test_many_seeds(memory: Path, part: int, tally: Tally) -> None:
    met = Counter[str]()
    for seed in CHECKED[part::PARTS]:
        met.update(simulate_failing_disks(seed, memory / str(seed)))
    wanted = {"power cut", "full disk", "flipped", "truncated", "repaired", "fail-over", "refused"}
    assert wanted <= met.keys()
    tally(PROMISE, len(CHECKED[part::PARTS]), "simulated replicas on failing disks")


def is_found(path: Path) -> bool:
    """Whether one of some seeds finds a bug."""
    for seed in range(1, 12):
        try:
            simulate_failing_disks(seed, path / str(seed))
        except SimulationError:
            return True
    return False


@pytest.mark.check
def test_an_acknowledgement_before_the_sync_is_found(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def eager(self: SinkSession) -> bytes:
        self._acknowledge()  # pyright: ignore[reportPrivateUsage]
        return super(SinkSession, self).outgoing()

    monkeypatch.setattr(SinkSession, "outgoing", eager)
    assert is_found(memory)


@pytest.mark.check
def test_a_sink_that_takes_its_files_for_whole_is_found(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trusting(self: SinkSession, end: Place) -> None:
        self._start(end)  # pyright: ignore[reportPrivateUsage]

    monkeypatch.setattr(SinkSession, "_compare_older", trusting)
    assert is_found(memory)


@pytest.mark.check
def test_digests_that_are_believed_whatever_became_of_a_file_are_found(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def same(self: CycleDigests, cycle: int) -> tuple[int, int, int]:
        del self, cycle
        return 1, 1, 1

    monkeypatch.setattr(CycleDigests, "_identity", same)
    assert is_found(memory)


def test_what_a_killed_process_stored_is_synced_before_it_counts(tmp_path: Path) -> None:
    synced = list[Place | None]()

    class Counted(Replica):
        def sync(self) -> None:
            super().sync()
            synced.append(self.end)

    def converse(replica: Replica, *, lasts: int) -> None:
        sink = SinkSession(replica, name="b", peer="source", level="synced", now_ns=0)
        source = SourceSession(original, "b", 0)
        for _ in range(lasts):
            source.receive(sink.outgoing(), 0)
            source.pull(0, 0)
            sink.receive(source.outgoing(), 0)
        acknowledged.append(source.acknowledged)
        source.close()
        replica.close()

    acknowledged = list[Place | None]()
    with quire.open(tmp_path / "source") as queue:
        last = queue.appender().write_bytes(b"one")
        original = Original(queue)
        converse(Counted(tmp_path / "copy", {}), lasts=4)  # killed before it synced
        assert (synced, acknowledged) == ([], [None])
        converse(Counted(tmp_path / "copy", {}), lasts=6)
    end = Place(last + 1, 0, is_ended=False)
    assert (synced, acknowledged[1]) == ([end], end)


def test_a_copy_that_lost_its_end_can_be_read_while_it_comes_again(tmp_path: Path) -> None:
    """A power cut took pages, but not the word that says where the last message is."""
    path, size = tmp_path / "copy", 1000
    payloads = [b"%d:" % it + b"." * size for it in range(600)]  # more than one batch
    with quire.open(tmp_path / "source", roll_cycle="FAST_DAILY", block_bytes=1 << 20) as queue:
        queue.appender().write_many(payloads)
        original = Original(queue)
        applied = converse(original, path)
        assert applied > 1
        [file] = path.glob("*.cq4")
        content = file.read_bytes()
        with file.open("r+b") as opened:
            start = content.index(payloads[3]) - 4
            opened.seek(start)
            opened.write(bytes(len(content) - start))
        assert converse(original, path, most=1) == 1
        with quire.open(path, read_only=True) as copy, copy.tailer() as tailer:
            held = list(tailer.payloads())
            assert copy.last_index == (copy.first_index or 0) + len(held) - 1
        assert 3 < len(held) < len(payloads)
        assert held == payloads[: len(held)]
        converse(original, path)
    with quire.open(path, read_only=True) as copy, copy.tailer() as tailer:
        assert list(tailer.payloads()) == payloads
    assert problems_of(path) == []


def converse(original: Original, path: Path, *, most: int = 100) -> int:
    """Have a sink follow until it has all, or n batches; return how many there were."""
    replica = Replica(path, {})
    sink = SinkSession(replica, name="b", peer="source", level="stored", now_ns=0)
    source, applied = SourceSession(original, "b", 0), 0
    while applied < most and not (applied and source.has_all):
        source.receive(sink.outgoing(), 0)
        applied += source.pull(0, 0)
        sink.receive(source.outgoing(), 0)
    source.close()
    replica.close()
    return applied
