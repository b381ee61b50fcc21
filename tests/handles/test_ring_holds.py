"""The cycle where a drainer has noted what it appends is kept until the ring is free of it."""

from __future__ import annotations

from pathlib import Path

import quire
from pause_points import Party
from queues import DAY_MS, START_MS, payloads
from quire.archive import archive

DRAINS = """
clock = quire.ManualClock(int(sys.argv[2]))
queue = quire.open(sys.argv[1], buffer_mode="async", clock=clock, roll_cycle="FAST_DAILY")
appender = queue.appender()
appender.write_bytes(b"up")
queue.ring.flush()
arm()
appender.write_bytes(b"noted")
queue.ring.flush()
"""


def test_a_cycle_that_a_drainer_appends_to_is_kept_until_its_ring_is_free_of_it(
    path: Path, tmp_path: Path
) -> None:
    with Party(DRAINS, path, START_MS, point="ring.free.store") as party:
        party.wait_until_stopped()
        later = quire.ManualClock(START_MS + DAY_MS)
        with quire.open(path, clock=later) as queue:
            queue.appender().write_bytes(b"later")
            queue.appender().normalise_eofs()
        [kept, _] = quire.prune(path, max_cycles=1, clock=later).kept
        assert "ring drainer" in str(kept.reason)
        assert not quire.prune(path, max_cycles=1, clock=later).removed
        report = archive(path, tmp_path / "archived", delete=True)
        assert report.deleted == 0
        assert "ring drainer" in report.kept[0].reason
        party.kill()
    with quire.open(path, clock=later) as queue:
        assert payloads(queue) == [b"up", b"noted", b"later"]
    assert len(quire.prune(path, max_cycles=1, clock=later).removed) == 1
