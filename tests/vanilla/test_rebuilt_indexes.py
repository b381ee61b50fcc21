"""A rebuilt index of a Vanilla Chronicle: its named tailers, its owner and permissions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import quire
from any_format import open_vanilla

START_MS = 20_000 * 86_400_000
ENTRY = 8
HEADER = 4
RECORD = 8  # of a message of 2 or 3 bytes
COUNT = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A queue whose tailer `risk` has read 15 of its 20 messages."""
    path, clock = tmp_path / "queue", quire.ManualClock(START_MS)
    with open_vanilla(path, clock=clock, index_block_bytes=4096, data_block_bytes=4096) as queue:
        queue.appender().write_many([b"m%02d" % number for number in range(COUNT)])
    with quire.open(path) as opened, opened.tailer("risk") as tailer:
        assert len(tailer.read_many(15)) == 15
    return path


def lose(path: Path, first: int, past: int, *, records: bool) -> None:
    """Lose entries of the index, and their records if asked, as in a power cut."""
    [index] = path.glob("*/index-0")
    with index.open("r+b") as file:
        file.seek(first * ENTRY)
        file.write(bytes((past - first) * ENTRY))
    [data] = path.glob("*/data-*")
    with data.open("r+b") as file:
        for number in range(first, past) if records else ():
            file.seek(number * RECORD)
            file.write(bytes(HEADER))


def rest_of(path: Path) -> list[bytes]:
    with quire.open(path) as queue, queue.tailer("risk") as tailer:
        return [*tailer.payloads()]


def all_of(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True) as queue:
        return [*queue.tailer().payloads()]


def test_a_named_tailer_goes_on_where_it_was_when_free_entries_are_closed_up(path: Path) -> None:
    lose(path, 3, 8, records=True)
    report = quire.repair(path, dry_run=False)
    assert any("other indexes" in action.done for action in report.actions)
    kept = [b"m%02d" % number for number in range(COUNT) if not 3 <= number < 8]
    assert all_of(path) == kept
    with quire.open(path, clock=quire.ManualClock(START_MS)) as queue:
        queue.appender().write_bytes(b"new")
    assert rest_of(path) == [*kept[-5:], b"new"]


def test_a_named_tailer_misses_nothing_that_gets_the_place_of_lost_messages(path: Path) -> None:
    lose(path, 12, COUNT, records=True)
    [index] = path.glob("*/index-0")
    with index.open("r+b") as file:  # an entry of the lost ones is left
        file.seek(14 * ENTRY)
        file.write(((1 << 48) + 14 * RECORD + HEADER).to_bytes(ENTRY, "little"))
    quire.repair(path, dry_run=False)
    with quire.open(path, clock=quire.ManualClock(START_MS)) as queue:
        queue.appender().write_many([b"n%02d" % number for number in range(5)])
    assert rest_of(path) == [b"n%02d" % number for number in range(5)]


def test_a_named_tailer_reads_again_what_may_have_another_order(path: Path) -> None:
    lose(path, 10, COUNT, records=False)
    quire.repair(path, dry_run=False)
    assert rest_of(path) == [b"m%02d" % number for number in range(10, COUNT)]


def test_a_named_tailer_that_read_past_what_is_recovered_stays(path: Path) -> None:
    lose(path, 3, 8, records=False)
    quire.repair(path, dry_run=False)
    assert all_of(path) == [b"m%02d" % number for number in range(COUNT)]
    assert rest_of(path) == [b"m%02d" % number for number in range(15, COUNT)]


def test_messages_do_not_move_under_a_named_tailer_that_is_open(path: Path) -> None:
    lose(path, 3, 8, records=True)
    [index] = path.glob("*/index-0")
    before = index.read_bytes()
    with quire.open(path) as queue, queue.tailer("risk") as tailer:
        with pytest.raises(quire.errors.TailerInUseError):
            quire.repair(path, dry_run=False)
        assert index.read_bytes() == before
        assert [*tailer.payloads()] == [b"m%02d" % number for number in range(15, COUNT)]


def test_who_could_use_the_index_still_can(path: Path) -> None:
    lose(path, 3, 8, records=False)
    [index] = path.glob("*/index-0")
    index.chmod(0o664)
    if os.geteuid() == 0:
        os.chown(index, 4242, 4243)
    before = index.stat()
    quire.repair(path, dry_run=False)
    after = index.stat()
    assert after.st_ino != before.st_ino
    assert (after.st_mode, after.st_uid) == (before.st_mode, before.st_uid)
    assert after.st_gid == before.st_gid
