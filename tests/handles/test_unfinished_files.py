"""Tables and roll files that were never completed: nothing is lost, and nobody waits for ever."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
from journal_damages import half_document
from parameters import some
from queues import DAY_MS, payloads, problems_of, snapshot

TABLE = "metadata.cq4t"
OLD = [b"one", b"two", b"three"]
DEAD_HEADERS = [b"\0\0\0\x80", b"\0\0\0\xc0", b"\x94\0\0\x80", b"\x94\0\0\xc0", b"\xd2\x04\0\x80"]
Damage = Callable[[Path], object]


def cut_to(length: int) -> Damage:
    return lambda path: os.truncate(path, length)


def begin_with(header: bytes) -> Damage:
    def damage(path: Path) -> None:
        path.write_bytes(header + bytes(2**16))

    return damage


UNFINISHED: dict[str, Damage] = {
    "empty": cut_to(0),
    "a part of a word": cut_to(2),
    "a part of the document": cut_to(50),
    "zeros": begin_with(bytes(4)),
} | {f"header {header.hex()}": begin_with(header) for header in DEAD_HEADERS}
FEW = some(UNFINISHED.values(), keep=[0, 2, 4])


@pytest.fixture
def filled(queue: quire.JournalQueue, path: Path, clock: quire.ManualClock) -> Path:
    """Two days: the first is ended, the second has nothing but its file."""
    appender = queue.appender()
    appender.write_many(OLD)
    clock.advance(DAY_MS)
    appender.write_bytes(b"in the newest file")
    queue.close()
    return path


@pytest.mark.parametrize("damage", FEW, ids=UNFINISHED.keys())
def test_a_table_that_was_never_completed_is_made_again(
    damage: Damage, filled: Path, clock: quire.ManualClock
) -> None:
    damage(filled / TABLE)
    with quire.open(filled, clock=clock) as queue:
        assert queue.roll_cycle.name == "TEST4_DAILY"
        queue.tailer("risk").close()
        queue.appender().write_bytes(b"new")
        assert payloads(queue) == [*OLD, b"in the newest file", b"new"]
    with quire.open(filled, clock=clock) as queue:
        assert queue.table_value("index.risk") is not None
        assert queue.entry_count == len(OLD) + 2
    assert problems_of(filled) == []


@pytest.mark.parametrize("damage", UNFINISHED.values(), ids=UNFINISHED.keys())
def test_reading_only_goes_without_such_a_table(
    damage: Damage, filled: Path, caplog: pytest.LogCaptureFixture
) -> None:
    damage(filled / TABLE)
    before = snapshot(filled)
    with quire.open(filled, read_only=True) as queue:
        assert payloads(queue) == [*OLD, b"in the newest file"]
        assert queue.entry_count == len(OLD) + 1
    assert "never completed" in caplog.text
    assert snapshot(filled) == before


def test_a_table_that_was_cut_after_its_header_is_read_and_mended(
    filled: Path, clock: quire.ManualClock
) -> None:
    """The part of a key that is left holds a lock word of 0, which no process has."""
    os.truncate(filled / TABLE, 300)
    with quire.open(filled, read_only=True) as queue:
        assert payloads(queue) == [*OLD, b"in the newest file"]
    with quire.open(filled, clock=clock, timeout_s=0) as queue:
        queue.appender().write_bytes(b"new")
        assert payloads(queue) == [*OLD, b"in the newest file", b"new"]


@pytest.mark.parametrize("damage", FEW, ids=UNFINISHED.keys())
@pytest.mark.parametrize("table", some(["with a table", "without"], keep=[1]))
def test_appends_go_on_after_a_newest_file_that_was_never_completed(
    table: str,
    damage: Damage,
    filled: Path,
    clock: quire.ManualClock,
) -> None:
    damage(max(filled.glob("*.cq4")))
    if table == "without":
        os.truncate(filled / TABLE, 0)
    with quire.open(filled, clock=clock) as queue:
        queue.appender().write_bytes(b"new")
        assert payloads(queue) == [*OLD, b"new"]
    with quire.open(filled, clock=clock) as queue:
        queue.appender().write_bytes(b"newer")
        assert payloads(queue) == [*OLD, b"new", b"newer"]
    assert problems_of(filled) == []


@pytest.mark.parametrize("damage", UNFINISHED.values(), ids=UNFINISHED.keys())
def test_an_older_file_that_was_never_completed_holds_no_appender_up(
    damage: Damage, filled: Path, clock: quire.ManualClock
) -> None:
    damage(max(filled.glob("*.cq4")))
    clock.advance(DAY_MS)
    with quire.open(filled, clock=clock) as queue:
        queue.appender().write_bytes(b"new")
        assert payloads(queue) == [*OLD, b"new"]
    assert len([*filled.glob("*.discard")]) == 1


def test_a_roll_replaces_a_document_that_was_never_completed_at_once(
    filled: Path, clock: quire.ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    half_document(max(filled.glob("*.cq4")))
    clock.advance(DAY_MS)
    with quire.open(filled, clock=clock, timeout_s=86_400) as queue:
        queue.appender().write_bytes(b"on the third day")
        assert payloads(queue) == [*OLD, b"in the newest file", b"on the third day"]
    assert "an unfinished document was closed by the end-of-file marker" in caplog.text
    assert not problems_of(filled)
