"""What `Appender.sync()` covers, and when it may not say that all is well."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from queues import DAY_MS, payloads

SYNCED = "chronicle.lastIndexMSynced"
SECOND_MS = 1000


def test_an_idle_appender_syncs_after_its_ended_file_was_deleted(
    queue: quire.JournalQueue, path: Path, clock: quire.ManualClock
) -> None:
    idle = queue.appender()
    idle.write_bytes(b"archived")
    (ended,) = path.glob("*.cq4")
    clock.advance(DAY_MS)
    with quire.open(path, clock=clock) as other, other.appender() as appender:
        last = appender.write_bytes(b"today")
    ended.unlink()

    idle.sync()

    assert queue.table_value(SYNCED) == last
    assert idle.write_bytes(b"goes on") == last + 1
    idle.sync()
    assert queue.table_value(SYNCED) == last + 1


def test_a_deleted_file_is_no_loss_where_all_of_it_was_synced(
    appender: quire.JournalAppender, path: Path
) -> None:
    appender.write_bytes(b"synced")
    appender.sync()
    (file,) = path.glob("*.cq4")
    file.unlink()

    appender.sync()


def test_messages_that_were_deleted_unsynced_are_reported_once(
    queue: quire.JournalQueue, appender: quire.JournalAppender, path: Path, clock: quire.ManualClock
) -> None:
    appender.write_bytes(b"synced")
    appender.sync()
    appender.write_bytes(b"lost")
    (file,) = path.glob("*.cq4")
    file.unlink()
    clock.advance(SECOND_MS)
    appender.write_bytes(b"in the next file")

    with pytest.raises(FileNotFoundError, match="cannot sync a removed file") as caught:
        appender.sync()

    assert Path(caught.value.filename) == file
    appender.sync()
    assert queue.table_value(SYNCED) == appender.last_index_appended


def test_the_synced_index_never_speaks_of_messages_to_come(
    path: Path, clock: quire.ManualClock
) -> None:
    with quire.open(path, roll_cycle="TEST4_DAILY", clock=clock) as queue:
        clock.advance(DAY_MS)
        with queue.appender() as appender:
            appender.write_bytes(b"of a clock that was ahead")
            appender.sync()
    (ahead,) = path.glob("*.cq4")
    ahead.unlink()
    clock.advance(-DAY_MS)
    with quire.open(path, clock=clock) as queue, queue.appender() as appender:
        index = appender.write_bytes(b"in time")
        appender.sync()
        assert queue.table_value(SYNCED) == index


def test_files_that_come_or_go_are_seen_without_a_refresh(
    queue: quire.JournalQueue, clock: quire.ManualClock
) -> None:
    with queue.appender() as appender:
        for number in range(3):
            appender.write_bytes(b"%d" % number)
            clock.advance(DAY_MS)
    cycles = queue.cycles
    kept = Path(queue.file_for_cycle(cycles[1]))
    content = kept.read_bytes()
    with queue.tailer() as tailer:
        kept.unlink()
        assert queue.cycles == [cycles[0], cycles[2]]
        assert list(tailer.payloads()) == [b"0", b"2"]
    kept.write_bytes(content)
    assert payloads(queue) == [b"0", b"1", b"2"]
