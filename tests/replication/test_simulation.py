"""Replication under a seeded network, crashes and clocks, and bugs that this finds."""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from quire.replication.replica import Replica
from quire.replication.sink_session import SinkSession
from quire.replication.source_session import SourceSession
from quire.replication.wire import Place
from simulator import SimulationError, simulate
from tally import RUN, Tally, scaled

SEED = os.environ.get("QUIRE_SEED")
QUICK = range(20)
FIRST = 20 + 100_000 * RUN
CHECKED = range(FIRST, FIRST + scaled(300, 100_000))
PARTS = 4
PROMISE = "Replicas lose nothing acknowledged, invent nothing, and have one writer an epoch"

HEAD, WORD = struct.Struct("<qIII"), struct.Struct("<I")
LENGTH_MASK, METADATA = 0x3FFF_FFFF, 0x4000_0000


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level("ERROR", logger="quire"):
        yield


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory, if the system has one: thousands of files are synced."""
    shared = Path("/dev/shm")  # noqa: S108 - the directory below it has a name of its own
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else tmp_path) as path:
        yield Path(path)


@pytest.mark.parametrize("seed", QUICK if SEED is None else [int(SEED)])
def test_a_seed(memory: Path, seed: int) -> None:
    simulate(seed, memory / "simulation")


@pytest.mark.check
@pytest.mark.parametrize("part", range(PARTS))
def test_many_seeds(memory: Path, part: int, tally: Tally) -> None:
    for seed in CHECKED[part::PARTS]:
        simulate(seed, memory / str(seed))
    tally(PROMISE, len(CHECKED[part::PARTS]), "simulated networks, clocks, crashes and disks")


def end_of(batch: bytes) -> Place:
    """Return where a replica ends with a batch."""
    following, metadata, _, flags = HEAD.unpack_from(batch)
    at = HEAD.size
    while at < len(batch):
        [word] = WORD.unpack_from(batch, at)
        at += WORD.size + (word & LENGTH_MASK)
        is_metadata = bool(word & METADATA)
        following, metadata = following + (not is_metadata), is_metadata * (metadata + 1)
    return Place(following, metadata, bool(flags))


def is_found(path: Path) -> bool:
    """Whether one of some seeds finds a bug."""
    for seed in range(30):
        try:
            simulate(seed, path / str(seed))
        except SimulationError:
            return True
    return False


def test_a_batch_that_the_source_forgets_is_found(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pull, counter = SourceSession.pull, iter(range(1_000_000))

    def forgetful(self: SourceSession, time_ns: int, now_ns: int) -> bool:
        if next(counter) % 50 == 49 and self.reader is not None:
            self.reader.read()
        return pull(self, time_ns, now_ns)

    monkeypatch.setattr(SourceSession, "pull", forgetful)
    assert is_found(memory)


def test_an_acknowledgement_before_it_is_stored_is_found(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply, counter = Replica.apply, iter(range(1_000_000))

    def lazy(self: Replica, documents: bytes, time_ms: int) -> Place:
        if next(counter) % 20 == 19:
            return end_of(documents)
        return apply(self, documents, time_ms)

    monkeypatch.setattr(Replica, "apply", lazy)
    assert is_found(memory)


def test_a_sink_that_goes_on_without_comparing_is_found(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that takes its place for one message further than it is."""
    starts = iter(range(1_000_000))

    def ahead(self: SinkSession, place: Place | None) -> None:
        if place is not None and next(starts) % 3 == 2:
            place = place._replace(metadata=place.metadata + 1)
        start(self, place)

    start = SinkSession._start  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(SinkSession, "_start", ahead)
    assert is_found(memory)
