"""Whatever is appended, in whichever way: the files are what the format says, and read so."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import quire
from journal_model import CYCLE, SECOND_MS, Entry, several, ways, write
from queues import START_MS, problems_of
from reference import read_queue


@given(st.lists(st.tuples(st.integers(0, 3), ways, several), max_size=12))
def test_whatever_is_appended_is_what_the_reference_reads(
    steps: list[tuple[int, str, list[bytes]]],
) -> None:
    path, clock = Path(tempfile.mkdtemp()), quire.ManualClock(START_MS)
    expected: list[Entry] = []
    with quire.open(path, roll_cycle=CYCLE.name, clock=clock, block_bytes=1) as queue:
        appender, counts = queue.appender(), dict[int, int]()
        for seconds, way, payloads in steps:
            cycle = CYCLE.cycle_at(clock.advance(seconds * SECOND_MS))
            for data in payloads:
                sequence = counts[cycle] = counts.get(cycle, -1) + 1
                expected.append((CYCLE.to_index(cycle, sequence), data))
            last = write(appender, way, payloads)
            assert last == (expected[-1][0] if payloads else None)
        assert [(excerpt.index, excerpt.data) for excerpt in queue.tailer()] == expected
        assert queue.cycles == sorted(counts)
        for start in range(len(expected)):
            assert (
                queue.count_excerpts(expected[start][0], expected[-1][0])
                == len(expected) - start - 1
            )

    if expected:
        assert read_queue(path) == expected
        assert problems_of(path) == []
    shutil.rmtree(path)
