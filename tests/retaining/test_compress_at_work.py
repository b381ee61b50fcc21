"""Cycles that are compressed while a reader stands between two of its steps."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

import quire
from pause_points import NotStoppedError, Party
from queues import DAY_MS, START_MS
from quire._common.file_identity import Identity

DAYS = 4
MESSAGES = 3  # of a day
CLOCK = quire.ManualClock(START_MS + (DAYS - 1) * DAY_MS)

READER = """
path, way = sys.argv[1:]
queue = quire.open(path, read_only=True)
indexes = json.loads(os.environ["INDEXES"])
tailer = queue.tailer()
if way == "backward":
    tailer.direction = "backward"
    tailer.to_end()
arm()
if way == "index":
    read = []
    for index in indexes:
        assert tailer.move_to_index(index), hex(index)
        read.append(tailer.read_text())
else:
    read = list(iter(tailer.read_text, None))
say(read)
"""


def three_days(path: Path) -> tuple[list[int], list[str]]:
    """Make a queue of finished cycles; its indexes and texts."""
    clock = quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="FAST_DAILY", clock=clock) as queue:
        with queue.appender() as appender:
            for day in range(DAYS):
                for number in range(MESSAGES):
                    appender.write_text(f"{day}.{number}")
                clock.advance(DAY_MS)
        with queue.tailer() as tailer:
            indexes = [excerpt.index for excerpt in tailer]
    return indexes, [f"{day}.{number}" for day in range(DAYS) for number in range(MESSAGES)]


def nobody(_files: object) -> tuple[dict[Identity, list[quire.maintenance.FileUser]], int]:
    """Say that no process has a file open, as where /proc does not show it."""
    return {}, 1


@pytest.mark.slow
@pytest.mark.parametrize("way", ["forward", "backward", "index"])
@pytest.mark.parametrize("point", ["file.open", "listing.file.stat"])
def test_a_reader_misses_nothing_of_cycles_compressed_between_its_steps(
    tmp_path: Path, way: str, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As from another container, which does not see the reader's open files.
    monkeypatch.setattr("quire.retaining.pruning.users_of", nobody)
    stops = 0
    for nth in itertools.count(1):
        path = tmp_path / str(nth)
        indexes, texts = three_days(path)
        environment = {"INDEXES": json.dumps(indexes)}
        with Party(READER, path, way, point=point, nth=nth, environment=environment) as reader:
            try:
                reader.wait_until_stopped()
            except NotStoppedError:
                break
            report = quire.prune(path, max_cycles=1, action="compress", clock=CLOCK)
            assert len(report.removed) == DAYS - 1
            reader.go_on()
            (read,) = reader.result()
            assert read == (texts[::-1] if way == "backward" else texts), nth
        stops += 1
    assert stops or point == "listing.file.stat"
