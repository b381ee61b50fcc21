"""What handles keep in memory does not grow with what was looked at."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import quire

MESSAGES = 200_000
STATUS = Path("/proc/self/status")


def own_memory() -> int:
    """Bytes of memory that are this process's alone, files that are mapped left out."""
    found = re.search(r"RssAnon:\s+(\d+) kB", STATUS.read_text("utf-8"))
    assert found
    return int(found[1]) << 10


@pytest.mark.skipif(not STATUS.exists(), reason="tells by /proc")
def test_seeks_keep_no_entry_for_each_slot_of_the_index(path: Path) -> None:
    with (
        quire.open(path, layout=quire.LayoutOptions(index_spacing=1)) as queue,
        queue.appender() as appender,
    ):
        last = appender.write_many([b"x"] * MESSAGES)
        assert last is not None
        first = last - MESSAGES + 1
        tailer = queue.tailer()
        for index in range(first, first + 10_000):
            assert tailer.move_to_index(index)
        before = own_memory()

        for index in range(first, last + 1):
            assert tailer.move_to_index(index)

        assert own_memory() - before < 2 << 20
