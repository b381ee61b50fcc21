"""Quire goes on where Java stopped: appends, rolls and limits behind Java's messages."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import quire
from golden_sets import CRASHED, JAVA, delivered, found, name_of
from queues import (
    START_MS,
    Message,
    copy_of,
    forward,
    message,
    problems_of,
)
from reference import open_queue, read_queue

FULL = "index_growth_test_daily"  # 64 messages: its cycle numbers no more
MORE = [b"appended by Quire", b"\x8f", b"x" * 1000]


def last_cycle_ms(golden: Path) -> tuple[int, int]:
    """Return the start of a queue's newest cycle and the length of its cycles."""
    roll_cycle, stores = open_queue(golden)
    return max(stores) * roll_cycle.length_ms + roll_cycle.epoch_ms, roll_cycle.length_ms


def append_to(golden: Path, path: Path, now_ms: int) -> list[Message]:
    """Append to a copy, however Java left the lock, and return what Quire reads afterwards."""
    with quire.open(
        copy_of(golden, path),
        clock=quire.ManualClock(now_ms),
        block_bytes=2**16,
        timeout_s=0.02,
        force_unlock="always",
    ) as queue:
        with queue.appender() as appender:
            appender.write_bytes(MORE[0])
            appender.write_many(MORE[1:])
        return forward(queue)


WITH_FILES = [golden for golden in JAVA if any(golden.glob("*.cq4"))]


@pytest.mark.parametrize(
    "golden", [golden for golden in WITH_FILES if golden.name != FULL], ids=name_of
)
def test_messages_are_appended_after_those_of_java(golden: Path, tmp_path: Path) -> None:
    now_ms, _ = last_cycle_ms(golden)
    before = delivered(golden, "list.jsonl")

    after = append_to(golden, tmp_path / "queue", now_ms)

    new = [message(index, data) for (index, *_), data in zip(after[-3:], MORE, strict=True)]
    assert after == [*before, *new]
    assert [index for index, *_ in new] == list(range(new[0][0], new[0][0] + 3))
    assert found(tmp_path / "queue") == after
    assert bool(problems_of(tmp_path / "queue")) == (golden.name == "l_crash_pos")


@pytest.mark.parametrize("golden", WITH_FILES, ids=name_of)
def test_a_roll_ends_the_file_of_java_and_starts_another(golden: Path, tmp_path: Path) -> None:
    start_ms, length_ms = last_cycle_ms(golden)
    before = delivered(golden, "list.jsonl")

    after = append_to(golden, tmp_path / "queue", start_ms + length_ms)

    roll_cycle, stores = open_queue(tmp_path / "queue")
    cycle = max(open_queue(golden)[1]) + 1
    new = [message(roll_cycle.to_index(cycle, i), data) for i, data in enumerate(MORE)]
    assert after == [*before, *new]
    assert found(tmp_path / "queue") == after
    assert [c for c in sorted(stores) if not stores[c].has_eof] == [cycle]
    assert bool(problems_of(tmp_path / "queue")) == (golden.name in CRASHED)


@pytest.mark.parametrize(
    "golden", [golden for golden in JAVA if golden not in WITH_FILES], ids=name_of
)
def test_the_first_messages_go_into_an_empty_queue_of_java(golden: Path, tmp_path: Path) -> None:
    after = append_to(golden, tmp_path / "queue", START_MS)

    assert [digest for *_, digest in after] == [hashlib.sha256(m).hexdigest() for m in MORE]
    assert found(tmp_path / "queue") == after
    assert not problems_of(tmp_path / "queue")


@pytest.mark.parametrize(
    "golden", [golden for golden in WITH_FILES if golden.name == FULL], ids=name_of
)
def test_a_cycle_that_java_filled_takes_no_more(golden: Path, tmp_path: Path) -> None:
    now_ms, _ = last_cycle_ms(golden)

    with pytest.raises(quire.errors.CycleFullError):
        append_to(golden, tmp_path / "queue", now_ms)

    assert read_queue(tmp_path / "queue") == read_queue(golden)
    assert not problems_of(tmp_path / "queue")
