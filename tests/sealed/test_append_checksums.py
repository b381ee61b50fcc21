"""Checksums that appenders leave: what is not as it was appended is found before any seal."""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import quire
from queues import START_MS
from quire.maintenance import seal
from quire.sealed.seal_files import SEALS
from reference import content_of
from small_disk import fill as fill_disk
from small_disk import make_room, on_small_disk

DAY_MS: Final = 86_400_000
HEADER: Final = 64
SUFFIX: Final = ".checksums.quire"
KEY: Final = bytes(range(32))
open_any: Any = quire.open


def _table() -> list[int]:
    table = list[int]()
    for byte in range(256):
        state = byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
        table.append(state)
    return table


TABLE: Final = _table()


def crc32c(data: bytes) -> int:
    state = 0xFFFFFFFF
    for byte in data:
        state = state >> 8 ^ TABLE[(state ^ byte) & 0xFF]
    return state ^ 0xFFFFFFFF


def record_of(index: int, stored: bytes) -> int:
    """Return the record of a message, as ``docs/format.md`` has it."""
    length = len(stored)
    return 1 << 63 | length << 32 | crc32c(struct.pack("<qQ", index, length) + stored)


def stored_messages(path: Path) -> dict[int, bytes]:
    """Return the bytes in the files by the indexes of messages."""
    found = dict[int, bytes]()
    with open_any(path, read_only=True, allow_plain=True, key=_key(path)) as queue:
        for cycle in queue.cycles:
            content = content_of(Path(queue.file_for_cycle(cycle)))
            for number in range(queue.end_of_cycle(cycle)[1]):
                index = queue.roll_cycle.to_index(cycle, number)
                at = queue._position_of(index)
                (length,) = struct.unpack_from("<I", content, at)
                found[index] = content[at + 4 : at + 4 + length]
    return found


def _key(path: Path) -> bytes | None:
    return KEY if (path / "keys.quire").exists() else None


def records(path: Path) -> dict[int, int]:
    """Return the records of messages by their indexes."""
    found = dict[int, int]()
    with open_any(path, read_only=True, key=_key(path)) as queue:
        for cycle in queue.cycles:
            file = Path(queue.file_for_cycle(cycle)).with_suffix(SUFFIX)
            content = file.read_bytes() if file.exists() else bytes(HEADER)
            for number, (it,) in enumerate(struct.iter_unpack("<Q", content[HEADER:])):
                if it:
                    found[queue.roll_cycle.to_index(cycle, number)] = it
    return found


def expected(path: Path) -> dict[int, int]:
    return {index: record_of(index, stored) for index, stored in stored_messages(path).items()}


def write(path: Path, count: int = 20, *, day: int = 0, **options: Any) -> list[int]:  # noqa: ANN401
    """Append messages that are not sealed when the queue is closed."""
    options = {"integrity": True, "clock": quire.ManualClock(START_MS + day * DAY_MS)} | options
    with open_any(path, **options) as queue:
        for watch in queue._watches:
            watch._ended.set()  # it seals nothing
        with queue.appender() as appender:
            return [appender.write_text(f"message {it} " + "." * 50) for it in range(count)]


def kinds(path: Path) -> list[str]:
    return [it.kind for it in quire.verify(path).findings]


def change(path: Path, index: int, data: bytes, *, at: int = 5) -> None:
    """Store other bytes in a message."""
    with quire.open(path, read_only=True) as queue:
        file = Path(queue.file_for_cycle(queue.roll_cycle.to_cycle(index)))
        position = queue._position_of(index)
    assert position is not None
    with file.open("r+b") as opened:
        opened.seek(position + at)
        opened.write(data)


def test_every_way_to_append_leaves_a_checksum(tmp_path: Path) -> None:
    path, clock = tmp_path / "q", quire.ManualClock(START_MS)
    with quire.open(path, clock=clock, integrity=True) as queue, queue.appender() as appender:
        appender.write_bytes(b"one")
        appender.write_text("two")
        appender.write_map({"three": 3})
        appender.write_many([b"four", b"five"])
        with appender.writing_document() as document:
            document.write("six", 6)
        with appender.writing_document(metadata=True) as document:
            document.write("note", "not a message")
        appender.write_bytes(os.urandom(300_000))
        appender.write_many([b"%d" % it for it in range(1000)])
        assert records(path) == expected(path)
        assert len(records(path)) == 1007
    assert kinds(path) == []


@pytest.mark.check
def test_messages_on_both_sides_of_a_chunk_have_checksums(tmp_path: Path) -> None:
    path, count = tmp_path / "q", 20_000  # a chunk has room for 8,184 of them
    write(path, count)
    found = records(path)
    assert len(found) == count
    assert found == expected(path)


@pytest.mark.parametrize(
    "options", [{"key": KEY}, {"compression": "zstd"}, {"wire_type": "DELTA_BINARY"}]
)
def test_a_checksum_is_of_the_bytes_that_are_stored(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    path = tmp_path / "q"
    write(path, 50, **options)
    assert records(path) == expected(path)
    assert kinds(path) == []


def test_a_changed_message_is_found_without_a_seal(tmp_path: Path) -> None:
    path = tmp_path / "q"
    indexes = write(path)
    assert not (path / SEALS).exists()
    assert kinds(path) == []
    change(path, indexes[7], b"M")
    (finding,) = quire.verify(path).findings
    assert (finding.kind, finding.found) == ("changed-message", f"index={indexes[7]:#x}")
    seal(path)
    assert kinds(path) == ["changed-message"]  # a seal does not make it right


def test_a_torn_message_is_known_for_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "q"
    write(path)
    with quire.open(path, integrity=True, clock=quire.ManualClock(START_MS)) as queue:
        queue._watches[0]._ended.set()  # type: ignore[attr-defined]
        with queue.appender() as appender:
            index = appender.write_bytes(b"x" * 20_000)
    assert kinds(path) == []
    with quire.open(path, read_only=True) as queue:
        position = queue._position_of(index)
    assert position is not None
    change(path, index, bytes(4096), at=8192 - position % 4096)  # a page was never written
    (finding,) = quire.verify(path).findings
    assert (finding.kind, finding.found) == ("torn-message", f"index={index:#x}")


def test_zeros_beside_a_header_are_not_torn(tmp_path: Path) -> None:
    """A message may begin with zeros at the end of a page, which was written with the header."""
    path = tmp_path / "q"
    first = write(path, 1)[0]
    with quire.open(path, read_only=True) as queue:
        at = queue._position_of(first)
        assert at is not None
    end = at + 4 + len(stored_messages(path)[first])
    page = mmap.PAGESIZE
    header = -(-end // page) * page + page - 8  # its payload begins four bytes before a page
    with quire.open(path, integrity=True, clock=quire.ManualClock(START_MS)) as queue:
        queue._watches[0]._ended.set()  # type: ignore[attr-defined]
        with queue.appender() as appender:
            appender.write_bytes(b"f" * (header - -(-end // 4) * 4 - 4))
            index = appender.write_bytes(bytes(4) + b"x" * 500)
    change(path, index, b"M", at=100)
    (finding,) = quire.verify(path).findings
    assert (finding.kind, finding.found) == ("changed-message", f"index={index:#x}")


def test_a_changed_message_stays_known_however_often_the_cycle_is_sealed(tmp_path: Path) -> None:
    path = tmp_path / "q"
    indexes = write(path)
    change(path, indexes[7], b"M")
    seal(path)
    write(path, day=1)  # the first cycle is ended now
    for _ in range(2):
        seal(path)
        assert "changed-message" in kinds(path)


def test_messages_that_are_gone_are_known_until_others_take_their_indexes(tmp_path: Path) -> None:
    path = tmp_path / "q"
    indexes = write(path)
    (file,) = path.glob("*.cq4")
    with quire.open(path, read_only=True) as queue:
        position = queue._position_of(indexes[15])
    content = bytearray(file.read_bytes())
    content[position:] = bytes(len(content) - (position or 0))
    file.write_bytes(content)
    assert "cut-messages" in kinds(path)
    quire.repair(path, dry_run=False)
    assert kinds(path) == []
    assert len(records(path)) == 15
    assert write(path, 3) == indexes[15:18]
    assert records(path) == expected(path)


def test_writers_without_checksums_are_beside_one_with_them(tmp_path: Path) -> None:
    path = tmp_path / "q"
    write(path, 5, integrity=True)
    with quire.open(path, clock=quire.ManualClock(START_MS)) as queue, queue.appender() as other:
        other.write_many([b"as from Java"] * 10)
    last = write(path, 5, integrity=True)
    found = records(path)
    assert len(found) == 10
    assert found[last[0]] == expected(path)[last[0]]
    assert kinds(path) == []
    seal(path)
    assert kinds(path) == []


_WRITER: Final = """
import sys, quire
with quire.open(sys.argv[1], integrity=True) as queue, queue.appender() as appender:
    queue._watches[0]._ended.set()
    for number in range(5000):
        appender.write_text(f"{sys.argv[2]} {number}")
"""


@pytest.mark.check
def test_appenders_of_several_processes_leave_checksums_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "q"
    args = [sys.executable, "-c", _WRITER, str(path)]
    writers = [subprocess.Popen([*args, str(it)]) for it in range(3)]
    assert [it.wait() for it in writers] == [0, 0, 0]
    assert records(path) == expected(path)
    assert len(records(path)) == 15_000


def test_a_seal_of_a_finished_cycle_takes_their_place(tmp_path: Path) -> None:
    path = tmp_path / "q"
    write(path)
    indexes = write(path, day=1)
    assert len([*path.glob("*" + SUFFIX)]) == 2
    seal(path)
    (left,) = path.glob("*" + SUFFIX)
    assert left.name.startswith("20240116")
    write(path, day=1)
    change(path, indexes[3], b"M")
    assert kinds(path).count("changed-message") == 1  # by the seal and the checksum


@pytest.mark.check
def test_copies_have_none_and_retention_takes_them_along(tmp_path: Path) -> None:
    path, copied, moved = tmp_path / "q", tmp_path / "copy", tmp_path / "moved"
    for day in range(4):
        write(path, day=day)
    quire.copy_queue(path, copied)
    assert not [*copied.glob("*" + SUFFIX)]
    quire.prune(path, max_cycles=3, action="compress")
    assert [*path.glob("*.zst")]
    assert len([*path.glob("*" + SUFFIX)]) == 4
    assert kinds(path) == kinds(copied) == []
    quire.prune(path, max_cycles=2, action="move", dest=moved)
    assert len([*moved.glob("*" + SUFFIX)]) == 2
    quire.prune(path, max_cycles=1)
    assert len([*path.glob("*" + SUFFIX)]) == 1


def test_a_ring_is_drained_with_checksums(tmp_path: Path) -> None:
    path = tmp_path / "q"
    with (
        quire.open(path, buffer_mode="async", integrity=True) as queue,
        queue.appender() as appender,
    ):
        for number in range(200):
            appender.write_text(str(number))
        appender.sync()
    assert records(path) == expected(path)
    assert len(records(path)) == 200


def test_a_roll_file_that_is_made_again_begins_without(tmp_path: Path) -> None:
    path = tmp_path / "q"
    write(path)
    for file in path.glob("*.cq4"):
        file.unlink()
    write(path, 3, integrity=False)
    assert records(path) == {}
    assert kinds(path) == []


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "garbage"])
def test_what_is_no_file_of_checksums_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    path = tmp_path / "q"
    write(path, integrity=False)
    (roll_file,) = path.glob("*.cq4")
    file, elsewhere = roll_file.with_suffix(SUFFIX), tmp_path / "elsewhere"
    elsewhere.write_bytes(bytes(100))
    if kind == "link":
        file.symlink_to(elsewhere)
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.write_bytes(b"rubbish!" * 1000)
    write(path, 5)
    assert "append checksums are no longer written" in caplog.text
    assert elsewhere.read_bytes() == bytes(100)
    assert kinds(path) == ["checksums"]
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        assert len([*tailer]) == 25


def test_appends_go_on_where_there_is_no_room_for_their_checksums(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def work(disk: Path) -> int:
        path = disk / "q"
        with quire.open(path, block_bytes=2**16) as queue, queue.appender() as appender:
            appender.write_text("before")
            fill_disk(disk)
            write(path, 3, block_bytes=2**16, clock=None)
            assert "append checksums are no longer written" in caplog.text
            make_room(disk)
            write(path, 3, block_bytes=2**16, clock=None)
        assert kinds(path) == []
        return len(records(path))

    assert on_small_disk(tmp_path / "disk", 1 << 20, work) == 3
