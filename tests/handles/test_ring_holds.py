"""What a drainer has noted that it appends: its cycle is kept, and what repair cut is not lost."""

from __future__ import annotations

from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("point", "is_noted"), [("ring.noted.store", False), ("ring.free.store", True)]
)
def test_what_repair_cut_is_appended_again_unless_it_was_noted_as_appended(
    path: Path, point: str, *, is_noted: bool
) -> None:
    """From the note on it is the queue's, where a power cut may take what was not synced."""
    with Party(DRAINS, path, START_MS, point=point) as party:
        party.wait_until_stopped()
        party.kill()
    [file] = path.glob("*.cq4")
    content = bytearray(file.read_bytes())
    last = content.rindex(b"noted")
    content[last - 4 : last + 5] = bytes(9)  # as a power cut leaves the last message
    file.write_bytes(content)
    assert quire.repair(path, dry_run=False).actions
    clock = quire.ManualClock(START_MS)
    with quire.open(path, clock=clock, read_only=True) as queue:
        assert payloads(queue) == [b"up"]
    with quire.open(path, clock=clock, buffer_mode="async") as queue:
        assert queue.ring is not None
        queue.ring.flush(timeout_s=300)
        assert payloads(queue) == ([b"up"] if is_noted else [b"up", b"noted"])
    assert quire.verify(path).ok
