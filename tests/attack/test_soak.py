"""A queue in use for long: what the process holds in the end is what it held after warm-up."""

from __future__ import annotations

import ctypes
import gc
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import quire
from queues import START_MS
from tally import Tally, limit_s, scaled

pytestmark = [pytest.mark.slow, pytest.mark.timeout(limit_s(900, 36_000))]

APPENDS = scaled(5_000_000, 100_000_000)
ROLLS = scaled(500, 5000)
RUNS_S = scaled(0, 600)  # at least
WARM_UP = 50  # rolls
LEAK_KIB = 1024
KEPT = 3  # newest roll files; older ones are deleted as readers are through
SECOND_MS = 1000
BULK = 500


class Held(NamedTuple):
    """What a process holds."""

    private_kib: int  # resident, and not of the page cache: the queue's mapped pages do not count
    descriptors: int
    mappings: int  # of files of the queue
    all_mappings: int

    @classmethod
    def now(cls, path: Path) -> Held:
        gc.collect()
        if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
            trim(0)  # what was freed would hide what leaked
        maps = Path("/proc/self/maps").read_text("utf-8", errors="replace")
        rollup = Path("/proc/self/smaps_rollup").read_text("utf-8")
        anonymous = next(line for line in rollup.splitlines() if line.startswith("Anonymous:"))
        return cls(
            int(anonymous.split()[1]),
            len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - the count alone
            maps.count(str(path)),
            maps.count("\n"),
        )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue"


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's /proc")
def test_nothing_grows_in_a_long_run(path: Path, tally: Tally) -> None:
    """Two processes would each be tried less: appender, tailers and openers are all this one."""
    clock = quire.ManualClock(START_MS)
    per_roll = APPENDS // ROLLS
    start, rolls = time.monotonic(), 0
    warm = held = None
    with quire.open(
        path,
        roll_cycle="TEST_SECONDLY",
        layout=quire.LayoutOptions(index_count=1024),
        clock=clock,
        block_bytes=2**20,
    ) as queue:
        appender, tailer, named = queue.appender(), queue.tailer(), queue.tailer("soak")
        while rolls < ROLLS or time.monotonic() - start < RUNS_S:
            count = 0
            for bulk in bulks(rolls, per_roll):
                appender.write_many(bulk)
                count += read(tailer, bulk)
                assert named.read_many(BULK) == bulk
            assert count == per_roll
            visit(path, clock)
            delete_old(path)
            clock.advance(SECOND_MS)
            rolls += 1
            if rolls == WARM_UP:
                warm = Held.now(path)
        held = Held.now(path)
        queue.refresh()
        assert queue.cycles[-1] - queue.cycles[0] < KEPT
    assert warm is not None
    print(warm, held)  # noqa: T201 - the figures are part of the test's report
    assert held.private_kib <= warm.private_kib + LEAK_KIB, (warm, held)
    assert held.descriptors <= warm.descriptors, (warm, held)
    assert held.mappings == warm.mappings, (warm, held)
    promise = "Nothing grows: memory, descriptors and mappings stay as after warm-up."
    tally(promise, rolls * per_roll, "appends in one run")
    tally(promise, rolls, "rolls in one run")


def bulks(roll: int, count: int) -> Iterator[list[bytes]]:
    for first in range(0, count, BULK):
        yield [b"%d of roll %d" % (number, roll) for number in range(first, first + BULK)]


def read(tailer: quire.JournalTailer, expected: list[bytes]) -> int:
    """Read with another call each time."""
    half = len(expected) // 2
    assert [excerpt.data for _, excerpt in zip(range(half), tailer, strict=False)] == expected[
        :half
    ]
    found = list(tailer.payloads())
    assert found == expected[half:]
    return half + len(found)


def visit(path: Path, clock: quire.ManualClock) -> None:
    """Come and go, as short-lived users of the queue do."""
    with quire.open(path, clock=clock, block_bytes=2**20) as queue:
        queue.appender()
        assert queue.entry_count > 0
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        tailer.to_end()
        assert tailer.read() is None
        assert queue.last_index is not None
        assert tailer.move_to_index(queue.last_index)


def delete_old(path: Path) -> None:
    for file in sorted(path.glob("*.cq4"))[:-KEPT]:
        file.unlink()
