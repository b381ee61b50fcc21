"""Messages of producers that died before their entries were complete, and of Java's that go on."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

import quire
from file_locks import locked
from quick_reference import QuickReference

PAGE = 4096
ENTRY = 16
MESSAGES = [b"first", b"second one", b"third"]


def poke(file: Path, position: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(position)
        opened.write(data)


def entry(begin: int, length: int, *, complete: bool = True) -> bytes:
    return struct.pack("<qi3sB", begin, length, b"0AA", 0x7F if complete else 0)


def pend(path: Path, number: int) -> None:
    """Have an entry as its producer's death leaves it: claimed, and without an address."""
    message = MESSAGES[number]
    poke(path / "0.qmx", ENTRY * number, entry(0, len(message), complete=False))


def profile(path: Path, ends: Sequence[int], last: int) -> None:
    poke(path / "AA0.qm", 0, struct.pack("<qqqq", *ends, last * ENTRY, 0))


def end_of(number: int) -> int:
    return sum(map(len, MESSAGES[: number + 1]))


def read(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [*tailer.payloads()]


def agreed(path: Path) -> list[bytes]:
    """What a tailer delivers, and a reader that was written from the documentation."""
    found = read(path)
    assert [data for _, _, data in QuickReference(path).messages()] == found
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three messages of one producer."""
    with quire.quick_queue.open(tmp_path / "q", page_bytes=PAGE) as queue:
        queue.appender("AA0").write_many(MESSAGES)
    return tmp_path / "q"


def test_a_message_stays_delivered_once_javas_producer_goes_on(path: Path) -> None:
    """It leaves the entry pending, and its profile says nothing of that message any more."""
    pend(path, 1)
    profile(path, (end_of(0), end_of(2)), last=2)
    assert agreed(path) == MESSAGES


def test_it_stays_delivered_while_javas_producer_lives_and_is_idle(path: Path) -> None:
    pend(path, 2)
    profile(path, (end_of(1), end_of(2)), last=2)
    assert agreed(path) == MESSAGES
    with locked(path / "AA0.qm"):
        assert read(path) == MESSAGES


def test_several_of_them_in_a_row_stay_delivered(path: Path) -> None:
    pend(path, 1)
    pend(path, 2)
    profile(path, (end_of(0), end_of(2)), last=2)
    assert agreed(path) == MESSAGES


def test_what_lies_after_a_gap_is_not_taken_for_the_message(path: Path) -> None:
    """Its producer died once more, before it claimed an entry, and Java's kept those bytes."""
    pend(path, 1)
    poke(path / "0.qmx", ENTRY * 2, entry(end_of(1) + 7, len(MESSAGES[2])))
    poke(path / "AA0" / "0.qd", end_of(1) + 7, MESSAGES[2])
    profile(path, (end_of(1) + 7, end_of(2) + 7), last=2)
    assert agreed(path) == [MESSAGES[0], MESSAGES[2]]


def test_a_message_of_a_gap_as_long_as_itself_is_not_taken_for_it(path: Path) -> None:
    length = len(MESSAGES[2])
    pend(path, 2)
    profile(path, (end_of(1) + length, end_of(2) + length), last=0)
    assert agreed(path) == MESSAGES[:2]


def test_a_copy_and_a_check_say_the_same(path: Path, tmp_path: Path) -> None:
    pend(path, 1)
    profile(path, (end_of(0), end_of(2)), last=2)
    quire.copy_queue(path, tmp_path / "copy")
    assert read(tmp_path / "copy") == MESSAGES
    assert [it.kind for it in quire.verify(path).findings] == ["pending-entry"]
    with quire.open(path) as queue, queue.appender("AA0") as appender:  # type: ignore[arg-type, call-arg]
        appender.write_bytes(b"fourth")
    assert agreed(path) == [*MESSAGES, b"fourth"]
