"""A process dies at any step of a ring that grows, or a system call of it fails.

It both puts messages in and drains them. The names are those of the kernel's `fault.rs`, and what
each leaves stands in its `ring/protocol.rs`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from fault_lives import Life, Lives, crash_at_each, fail_each, points
from queues import payloads
from tally import Tally, limit_s

pytestmark = [pytest.mark.slow, pytest.mark.timeout(limit_s(900, 7200))]

LIFE = "ring_growth_life.py"

GROWS = "grow"
UNMET = {"ring.abandon.cas", "ring.file.remove"}  # of a producer that died: test_ring_faults.py
OTHERS = {"file.open", "file.stat", "file.identity.stat", "file.reserve", "map.new"} | {
    "record-lock.take",
    "window.grow",
    "window.read",
    "window.stat",
}
PROMISE = "A crash or error at any step of a ring that grows loses, repeats and reorders nothing"


def check(path: Path, lives: list[Life]) -> None:
    """All that was put in is there once, in its order; the last of a life may not be said."""
    with quire.open(path) as queue:
        found = [payload.decode() for payload in payloads(queue)]
    for life in lives:
        written = list(life.written.values())
        assert found[: len(written)] == written
        del found[: len(written)]
        if life.is_cut_short and found and found[0].split()[0] == "first":
            del found[0]
    assert found == []
    if len(lives) > 1:
        assert [file.name for file in path.glob("async*.ring")] == ["async.ring"]


@pytest.fixture(scope="module")
def hits(lives: Lives, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    path = tmp_path_factory.mktemp("undisturbed") / "queue"
    lived = lives.live(path, GROWS, "first")
    check(path, [lived, lives.live(path, GROWS, "second")])
    return {
        name: count
        for name, count in lived.hits.items()
        if name.startswith("ring.") or name in OTHERS
    }


def test_every_point_is_hit(hits: dict[str, int]) -> None:
    assert points("ring.") - hits.keys() == UNMET


def test_a_crash_at_any_point_loses_nothing(
    lives: Lives, hits: dict[str, int], tmp_path: Path, tally: Tally
) -> None:
    own = {name: count for name, count in hits.items() if name.startswith("ring.")}
    tally(PROMISE, crash_at_each(lives, GROWS, own, tmp_path, check), "crashes")


def test_a_call_that_fails_loses_nothing(
    lives: Lives, hits: dict[str, int], tmp_path: Path, tally: Tally
) -> None:
    tally(PROMISE, fail_each(lives, GROWS, hits, tmp_path, check), "calls that failed")
