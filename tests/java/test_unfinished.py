"""Roll files whose creator died: Java and Quire put the same ones aside."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from java_peer import JavaPeer
from queues import DAY_MS

pytestmark = pytest.mark.java

START = 1_700_000_000_000
BLOCK = 65536


@pytest.mark.parametrize("header", ["00000080", "000000c0"])
def test_a_first_header_that_is_not_ready_is_that_of_a_dead_creator(
    header: str, tmp_path: Path
) -> None:
    java = JavaPeer("5.27ea11")
    clock = quire.ManualClock(START)
    with quire.open(tmp_path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=BLOCK) as queue:
        queue.appender().write_text("first")
        clock.advance(DAY_MS)
        unfinished = Path(queue.file_for_cycle(queue.current_cycle))
        unfinished.write_bytes(bytes.fromhex(header).ljust(BLOCK, b"\0"))
        listed = java.run("list", dir=tmp_path, roll_cycle="TEST4_DAILY", block_size=BLOCK)
        assert len(listed) == 1
        java.run(
            "write",
            dir=tmp_path,
            count=1,
            start=clock.now_ms,
            roll_cycle="TEST4_DAILY",
            block_size=BLOCK,
            timeout_ms=500,
        )
        assert len([*tmp_path.glob("*.discard")]) == 1
        assert queue.entry_count == 2
        clock.advance(DAY_MS)
        unfinished = Path(queue.file_for_cycle(queue.current_cycle))
        unfinished.write_bytes(bytes.fromhex(header).ljust(BLOCK, b"\0"))
        assert len([*queue.tailer().payloads()]) == 2
        queue.appender().write_text("last")
        assert len([*tmp_path.glob("*.discard")]) == 2
    listed = java.run("list", dir=tmp_path, roll_cycle="TEST4_DAILY", block_size=BLOCK)
    assert len(listed) == 3
