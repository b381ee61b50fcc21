"""A thousand tailers and a thousand appenders on one queue: what they hold open does not grow."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

import quire
from queues import problems_of
from tally import Tally

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc"),
]

HANDLES = 1000


def held(path: Path) -> tuple[int, int]:
    """Return how many descriptors and mappings of a queue's files this process has."""
    links = [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    return sum(link.startswith(str(path)) for link in links), maps.count(str(path))


def test_a_thousand_tailers_and_appenders_share_descriptors_and_mappings(
    path: Path, tally: Tally
) -> None:
    with quire.open(path, block_bytes=1) as queue:
        one_appender, one_tailer = queue.appender(), queue.tailer()
        one_appender.write_bytes(b"first")
        assert one_tailer.read_bytes() == b"first"
        with_one = held(path)
        appenders = [queue.appender() for _ in range(HANDLES)]
        tailers = [queue.tailer() for _ in range(HANDLES)]
        named = [queue.tailer(f"name{number}") for number in range(HANDLES // 10)]
        threads = threading.active_count()
        for number, appender in enumerate(appenders):
            appender.write_bytes(b"%d" % number)
        expected = [b"first", *(b"%d" % number for number in range(HANDLES))]
        for tailer in [*tailers, *named]:
            assert list(tailer.payloads()) == expected
        descriptors, mappings = held(path)
        assert (descriptors, with_one[0]) == (2, 2), "the table and the roll file"
        assert mappings == with_one[1]
        assert threading.active_count() <= threads
        assert queue.entry_count == HANDLES + 1
    assert held(path)[0] == 0
    assert problems_of(path) == []
    promise = "A thousand handles of a queue hold two descriptors and two mappings"
    tally(promise, len(appenders) + len(tailers) + len(named), "handles on one queue")
