"""
A party stops at a step, another one does all that it came for, and the first one goes on.

Whatever was acknowledged is there once, in its order and at its index; the reference, `verify`, the
named tailer, the consumer group and the next append agree. `meeting_parties.py` has the parties.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from meetings import Combination, Meetings, every, pairs, sampled
from tally import RUN, TORTURE, Tally, limit_s, scaled

pytestmark = [pytest.mark.slow, pytest.mark.timeout(limit_s(900, 4 * 3600))]

PARTS = 4
COUNT = 300  # of all parts together, in `make check`
SEED = "meetings"
PROMISE = "A party that stops at any step while another one runs loses and repeats nothing"


def wrong(meetings: Meetings, asked: Iterable[Combination]) -> tuple[list[str], int, int]:
    """Return what went wrong, how many meetings there were, and at how many of them one waited."""
    found: list[str] = []
    count = waited = 0
    for combination in asked:
        try:
            met = meetings.check(combination)
        except Exception as error:  # noqa: BLE001 - all of them are shown at the end
            found.append(f"{combination}\n    {error!r:.2000}")
        else:
            count += met.reached
            waited += met.waited
    return found, count, waited


@pytest.mark.parametrize("part", range(PARTS))
def test_a_party_that_stops_at_any_step_costs_nobody_a_message(
    part: int, tmp_path: Path, tally: Tally
) -> None:
    chosen = pairs()
    random.Random(SEED + str(RUN or "")).shuffle(chosen)  # noqa: S311 - the same sample each time
    mine = (chosen[: scaled(COUNT, len(chosen))])[part::PARTS]
    with Meetings(tmp_path) as meetings:
        asked = every(meetings, mine) if TORTURE else sampled(meetings, mine)
        found, count, waited = wrong(meetings, asked)
    assert not found, "\n".join(found)
    tally(PROMISE, count, "meetings")
    tally(PROMISE, waited, "meetings at which the other party waited")


def stops(first: str, point: str, other: str, *, beside: bool = False) -> list[Combination]:
    return [Combination("chronicle", first, other, point, nth, "before", beside) for nth in (1, 2)]


# The defects that pause points found first, brought back: what the matrix is for.
UNMENDED = {
    "window.grow": stops("pretouch", "window.grow", "grow", beside=True),
    "retention": stops("prune", "audit:os.remove:.cq4", "hold"),
}


@pytest.mark.parametrize("defect", UNMENDED)
def test_the_matrix_finds_defects_that_were_mended(defect: str, tmp_path: Path) -> None:
    with Meetings(tmp_path, unmended=defect) as meetings:
        found, _, _ = wrong(meetings, UNMENDED[defect])
    assert found


def test_without_the_defect_of_growth_the_same_meetings_are_good(tmp_path: Path) -> None:
    with Meetings(tmp_path) as meetings:
        assert wrong(meetings, UNMENDED["window.grow"])[0] == []
