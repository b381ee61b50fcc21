"""A process that reads through the ring dies at any step of draining it."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from fault_lives import Life, Lives, crash_at_each
from ring_reader_life import DIRECT
from tally import Tally, limit_s

pytestmark = [pytest.mark.slow, pytest.mark.timeout(limit_s(600, 7200))]

LIFE = "ring_reader_life.py"

READS, POLLS = "read", "poll"
PROMISE = "A crash of a reader at any step of the ring loses, repeats and invents nothing"
DRAINING = {
    "ring.intent.store",
    "ring.drained-bytes.store",
    "ring.free.store",
    "ring.drained.store",
    "ring.abandon.cas",
    "lock.take.cas",
    "lock.release.cas",
    "publish.payload.store",
    "publish.header.cas",
    "append.write-position.store",
    "append.sequence.store",
    "index.slot.store",
}


def check(path: Path, lived: list[Life]) -> None:
    """What was put in is there once, in its order, and was read at its index."""
    if len(lived) == 1:
        return  # the next one drains what it left
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        found = {it.index: it.data.decode("latin-1") for it in tailer}
    said = [it for life in lived for it in life.said]
    for what, *rest in said:
        if what == "got":
            index, text = rest
            assert found[index] == text
    texts = [text for text in found.values() if DIRECT not in text]
    begun = [it[1] for it in said if it[0] == "puts"]
    returned = {it[1] for it in said if it[0] == "put"}
    assert returned <= {*texts}, "lost"
    assert texts == [text for text in begun if text in texts], "repeated or out of order"
    assert {*texts} <= returned, "a child died before it had put this in"


def test_a_crash_at_any_point_loses_nothing(lives: Lives, tmp_path: Path, tally: Tally) -> None:
    undisturbed = tmp_path / "undisturbed"
    first = lives.live(undisturbed, READS, "first")
    check(undisturbed, [first, lives.live(undisturbed, READS, "second")])
    hits = {name: first.hits[name] for name in DRAINING}
    tally(PROMISE, crash_at_each(lives, READS, hits, tmp_path, check), "crashes")


def test_a_poll_at_the_end_leaves_the_ring_alone(lives: Lives, tmp_path: Path) -> None:
    polled = lives.live(tmp_path / "queue", POLLS, "only")
    assert ["polled", True] in polled.said
