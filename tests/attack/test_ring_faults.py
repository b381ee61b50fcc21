"""A producer of asynchronous appends dies at any named step of the ring, or its drainer does.

Whatever a write returned for is in the queue once, in its order. The names are those of the
kernel's `fault.rs`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from fault_lives import Life, Lives, crash_at_each, fail_each, points
from ring_life import DIRECT, PACKED
from tally import Tally, limit_s

pytestmark = [pytest.mark.slow, pytest.mark.timeout(limit_s(900, 7200))]

LIFE = "ring_life.py"

FORM = "thread"
# What the queue stores is not what was put in.
STORED_OTHERWISE = ["packed", "zstd", "differences"]
PREFIX = "ring."
PROMISE = "A crash or error at any step of the ring loses, repeats and invents nothing"
# What the drainer does between its note and the slot that it frees.
DRAINING = {
    "lock.take.cas",
    "lock.release.cas",
    "publish.payload.store",
    "publish.header.cas",
    "append.write-position.store",
    "append.sequence.store",
    "index.slot.store",
}
# From the moment the messages are in the queue until their slots are free.
SETTLED = DRAINING - {"lock.take.cas", "publish.payload.store"} | {
    "ring.noted.store",
    "ring.drained-bytes.store",
    "ring.free.store",
    "ring.drained.store",
}
OF_OTHERS = {"ring.abandon.cas"} | {  # a slot whose producer died; and test_ring_growth_faults.py
    "ring.successor.cas",
    "ring.close.cas",
    "ring.stalls.store",
    "ring.earlier-slots.store",
    "ring.begun.store",
    "ring.dir.sync",
    "ring.file.rename",
    "ring.file.remove",  # handles/test_ring_lost.py
}


@pytest.fixture(scope="module")
def hits(lives: Lives, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    path = tmp_path_factory.mktemp("undisturbed") / "queue"
    lived = lives.live(path, FORM, "only")
    check(path, [lived, lives.live(path, FORM, "second")])
    return {
        name: count
        for name, count in lived.hits.items()
        if name.startswith(PREFIX) or name in DRAINING
    }


def check(path: Path, lived: list[Life]) -> None:
    if len(lived) == 1:
        return  # the next one drains what it left
    with quire.open(path, read_only=True) as queue:
        found = [excerpt.data for excerpt in queue.tailer()]
        assert queue.metrics().ring is not None
    texts = [unwrapped(data) for data in found if DIRECT.encode() not in data]
    begun = [text for life in lived for what, text in pairs(life) if what == "puts"]
    returned = {text for life in lived for what, text in pairs(life) if what == "put"}
    there = {*texts}
    assert returned <= there, "lost"
    assert texts == [text for text in begun if text in there], "repeated, invented or out of order"
    refused = sum(it == ["full"] for life in lived for it in life.said)
    cut_short = sum(life.is_cut_short for life in lived)
    assert len(begun) - len(returned) <= refused + cut_short


def unwrapped(data: bytes) -> str:
    head = len(PACKED) + 4 + 2  # the length, and the two bytes of a payload that is stored whole
    return (data[head:] if data.startswith(PACKED) else data).decode()


def pairs(life: Life) -> list[tuple[str, str]]:
    return [(it[0], it[1]) for it in life.said if it[0] in {"puts", "put"}]


def test_every_point_is_hit(lives: Lives, tmp_path: Path) -> None:
    assert points(PREFIX) - {*lives.live(tmp_path / "queue", FORM, "only").hits} == OF_OTHERS


def test_a_slot_that_a_dead_producer_took_is_abandoned(lives: Lives, tmp_path: Path) -> None:
    first = lives.live(tmp_path / "queue", FORM, "first", "ring.claim.cas:3:kill")
    assert first.is_cut_short
    second = lives.live(tmp_path / "queue", FORM, "second")
    assert second.hits["ring.abandon.cas"] == 1
    check(tmp_path / "queue", [first, second])


def test_a_crash_at_any_point_loses_nothing(
    lives: Lives, hits: dict[str, int], tmp_path: Path, tally: Tally
) -> None:
    tally(PROMISE, crash_at_each(lives, FORM, hits, tmp_path, check), "crashes")


@pytest.mark.parametrize("otherwise", STORED_OTHERWISE)
def test_a_crash_repeats_nothing_that_is_stored_otherwise(
    lives: Lives, tmp_path: Path, tally: Tally, otherwise: str
) -> None:
    lived = lives.live(tmp_path / "undisturbed", otherwise, "only")
    hits = {name: lived.hits[name] for name in SETTLED}
    tally(PROMISE, crash_at_each(lives, otherwise, hits, tmp_path, check), "crashes")


def test_a_call_that_fails_loses_nothing(
    lives: Lives, hits: dict[str, int], tmp_path: Path, tally: Tally
) -> None:
    tally(PROMISE, fail_each(lives, FORM, hits, tmp_path, check), "calls that failed")
