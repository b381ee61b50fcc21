"""A member of a group is for one thread at a time; the others of Python go on meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from pause_points import Party

pytestmark = pytest.mark.check

SCRIPT = """
import threading
from array import array
from quire import _native
from pause_points import Stop

LIMIT_S = 300  # of a hang
uses = {
    "frontier": lambda member, claim: member.frontier(),
    "acknowledge": lambda member, claim: member.acknowledge([(claim, 1)]),
    "deliver": lambda member, claim: member.deliver([(claim, 1)]),
    "extend": lambda member, claim: member.extend(claim, 1),
    "give back": lambda member, claim: member.give_back(claim),
    "unconfirmed": lambda member, claim: member.unconfirmed(),
    "confirm": lambda member, claim: member.confirm([claim]),
    "close": lambda member, claim: member.close(),
}
group = _native.Group(sys.argv[1], "billing")
member = group._join("one", 3_600_000, 0)
held = [member.hold(member.frontier(), array("Q", [it])) for it in (0, 1)]
member.give_back(held[1][0])
stop = Stop("group.take.cas")
_native.set_fault(stop.fault)
took = []
taking = threading.Thread(target=lambda: took.extend(member.take(1)))
taking.start()
assert stop.has_stopped(LIMIT_S)
other = threading.Thread(target=uses[sys.argv[2]], args=(member, held[0][0]))
other.start()
for _ in range(20):  # this thread is stopped by a call that keeps the interpreter
    other.join(0.005)
say(other.is_alive())
stop.go_on()
for it in (taking, other):
    it.join(LIMIT_S)
say([len(took), taking.is_alive(), other.is_alive()])
stop.close()
"""
USES = (
    "frontier",
    "acknowledge",
    "deliver",
    "extend",
    "give back",
    "unconfirmed",
    "confirm",
    "close",
)


@pytest.mark.parametrize("use", USES)
def test_a_call_that_waits_for_another_of_the_same_member_holds_up_nobody(
    use: str, path: Path
) -> None:
    quire.open(path).close()
    with Party(SCRIPT, path, use) as party:
        assert party.result() == [True, [1, False, False]]
