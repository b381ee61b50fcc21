"""A consumer of a group dies at any named step, or a system call of it fails; others go on.

The names are those of the kernel's `fault.rs`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import group_life
import quire
from fault_lives import Life, Lives, crash_at_each, fail_each, points
from group_life import DEAD, KEYED, KEYS, MESSAGES
from tally import TORTURE, Tally, limit_s

pytestmark = [pytest.mark.slow, pytest.mark.timeout(limit_s(900, 7200))]

LIFE = "group_life.py"
FORMS = ("plain", KEYED, DEAD)
PREFIX = "group."
PROMISE = "A crash or error at any step of a group loses nothing, and repeats nothing silently"
# Another member was faster, or stands still between two steps; what a dead one prepared is settled
# by the next one.
OF_OTHERS = {
    "group.unprepare.cas",
    "group.deadline.cas",
    "group.settle.cas",
    "group.end.cas",  # only where the queue lost messages
    "group.known.cas",  # only where the queue lost messages
}


@pytest.fixture(scope="module")
def hits(lives: Lives, form: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    path = tmp_path_factory.mktemp("undisturbed") / "queue"
    lived = lives.live(path, form, "only")
    check(form)(path, [lived, lives.live(path, form, "second")])
    return {name: count for name, count in lived.hits.items() if name.startswith(PREFIX)}


def check(form: str) -> Callable[[Path, list[Life]], None]:
    def check_form(path: Path, lived: list[Life]) -> None:
        acknowledged, begun = course(lived, form)
        if len(lived) == 1:
            return  # it is the next one that gets the rest
        dead = Counter(dead_letters(path) if form == DEAD else [])
        assert {*range(MESSAGES)} <= acknowledged | begun | {*dead}, "lost"
        assert not acknowledged & {*dead}, "acknowledged, and a dead letter"
        crashes = sum(life.is_cut_short for life in lived)
        assert max(dead.values(), default=1) <= 1 + crashes, "dead letters that come again"
        if form == DEAD:
            poison = {number for number in range(MESSAGES) if group_life.is_poison(number)}
            assert poison <= {*dead}
        with quire.open(path, read_only=True) as queue:
            assert queue.group("life").lag == 0

    return check_form


def course(lived: list[Life], form: str) -> tuple[set[int], set[int]]:
    """Check what was delivered, in its order; return what was acknowledged, or was about to be."""
    acknowledged, begun = set[int](), set[int]()
    deliveries: dict[int, int] = {}
    for life in lived:
        for what, number, *rest in life.said:
            if what == "D":
                assert number not in acknowledged, "delivered after it was acknowledged"
                assert rest[0] > deliveries.get(number, 0), "delivered again without saying so"
                deliveries[number] = rest[0]
                if form == KEYED:
                    before = {*range(number % KEYS, number, KEYS)}
                    assert before <= acknowledged | begun, "delivered before those of its key"
            elif what == "A":
                acknowledged.add(number)
                begun.discard(number)
            elif what == "B":
                begun.add(number)
    return acknowledged, begun


def dead_letters(path: Path) -> list[int]:
    with quire.open(group_life.dead_letters(path), read_only=True) as queue:
        return [excerpt.to_dict()["number"] for excerpt in queue.tailer()]


def test_every_point_is_hit(lives: Lives, tmp_path: Path) -> None:
    met = {name for form in FORMS for name in lives.live(tmp_path / form, form, "only").hits}
    assert points(PREFIX) - met == OF_OTHERS


def test_a_claim_that_was_prepared_by_a_dead_consumer_is_settled(
    lives: Lives, tmp_path: Path
) -> None:
    first = lives.live(tmp_path / "queue", "plain", "first", "group.prepare.cas:1:kill")
    assert first.is_cut_short
    second = lives.live(tmp_path / "queue", "plain", "second")
    assert second.hits["group.settle.cas"] == 1
    check("plain")(tmp_path / "queue", [first, second])


def test_a_crash_at_any_point_loses_nothing(
    lives: Lives, form: str, hits: dict[str, int], tmp_path: Path, tally: Tally
) -> None:
    tally(PROMISE, crash_at_each(lives, form, hits, tmp_path, check(form)), "crashes")


def test_a_call_that_fails_loses_nothing(
    lives: Lives, form: str, hits: dict[str, int], tmp_path: Path, tally: Tally
) -> None:
    if form == "plain" or TORTURE:  # the same calls in all forms
        tally(PROMISE, fail_each(lives, form, hits, tmp_path, check(form)), "calls that failed")
