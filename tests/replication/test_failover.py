"""Fail-over under a seeded network, crashes and an etcd that is away; bugs that this finds."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import quire
from failover import Machine, simulate_failover
from quire.replication import Sink, Source
from quire.replication.election import Candidate
from quire.replication.register import View
from simulator import START_MS, SimulationError
from tally import RUN, Tally, scaled

SEED = os.environ.get("QUIRE_SEED")
QUICK = range(4)
FIRST = 4 + 20_000 * RUN
CHECKED = range(FIRST, FIRST + scaled(60, 20_000))
PROMISE = "Nodes that fail over lose nothing acknowledged, and have one writer an epoch"


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
    simulate_failover(seed, memory / "simulation")


@pytest.mark.check
@pytest.mark.parametrize("part", range(2))
def test_many_seeds(memory: Path, part: int, tally: Tally) -> None:
    reigns = sum(simulate_failover(seed, memory / str(seed)) for seed in CHECKED[part::2])
    assert reigns > len(CHECKED) // 2
    tally(PROMISE, len(CHECKED[part::2]), "simulated clusters")
    tally(PROMISE, reigns, "simulated reigns")


def is_found(path: Path) -> bool:
    """Whether one of some seeds finds a bug."""
    for seed in range(100, 400):
        try:
            simulate_failover(seed, path / str(seed))
        except SimulationError:
            return True
    return False


@pytest.mark.check
def test_a_source_without_the_set_is_found(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any node is promoted, in the in-sync set or not."""
    campaign = Candidate._campaign  # pyright: ignore[reportPrivateUsage]

    def anybody(self: Candidate, view: View, own_epoch: int, *, is_first: bool) -> None:
        members = view.in_sync | set("abc")
        campaign(self, replace(view, in_sync=members), own_epoch, is_first=is_first)

    monkeypatch.setattr(Candidate, "_campaign", anybody)
    assert is_found(memory)


@pytest.mark.check
def test_a_lease_that_never_ends_is_found(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Appends do not look at the end of the lease."""

    def is_open(self: Machine) -> bool:
        return self.reign is not None and self.standpoint.is_own

    monkeypatch.setattr(Machine, "is_open", property(is_open))
    assert is_found(memory)


@pytest.mark.check
def test_a_restored_directory_is_found(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node is promoted with an older copy of its directory."""

    def counts_on(*_: object) -> bool:
        return True

    monkeypatch.setattr(Candidate, "counts_on", counts_on)
    assert is_found(memory)


def test_a_source_that_has_not_heard_of_the_end_of_a_cycle(tmp_path: Path) -> None:
    """It was promoted before, and appends to the cycle; what the copy has is put aside."""
    first, second, copy = tmp_path / "first", tmp_path / "second", tmp_path / "copy"
    clock = quire.ManualClock(START_MS)

    async def follow(path: Path) -> None:
        with quire.open(path, clock=clock) as queue:
            async with (
                Source(queue) as source,
                Sink(copy, port=source.address[1], repair=True) as sink,
            ):
                await sink.stored(queue.last_index or 0)

    with quire.open(first, roll_cycle="MINUTELY", clock=clock) as queue:
        queue.appender().write_bytes(b"one")
    asyncio.run(follow(first))
    shutil.copytree(first, second)
    clock.now_ms += 70_000
    with quire.open(first, clock=clock) as queue:
        queue.appender().write_bytes(b"two")
    asyncio.run(follow(first))
    clock.now_ms = START_MS
    with quire.open(second, clock=clock) as queue:
        queue.appender().write_bytes(b"another two")
    asyncio.run(follow(second))
    with quire.open(copy, read_only=True) as queue, queue.tailer() as tailer:
        assert list(tailer.payloads()) == [b"one", b"another two"]
