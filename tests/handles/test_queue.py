"""Opening queues: what is created, which options hold, what a queue tells about itself."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import quire
from queues import (
    DAY_MS,
    START_MS,
    UNLOCKED,
    WRITE_LOCK,
    exit_code,
    fork,
    payloads,
    poke,
    problems_of,
)
from quire import LayoutOptions
from quire._native import Dump
from reference import Store, open_queue
from reference_writer import NEW_TABLE


@pytest.fixture
def umask_of_zero() -> Iterator[None]:
    """Modes are what is asked for, whatever the user's umask."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(path: Path) -> set[tuple[str, int]]:
    return {(file.suffix, file.stat().st_mode & 0o7777) for file in [path, *path.iterdir()]}


def test_a_queue_is_created_where_there_was_none(tmp_path: Path) -> None:
    path = tmp_path / "not" / "yet" / "there"
    with quire.open(path) as queue:
        assert queue.path == str(path)
        assert queue.roll_cycle.name == "FAST_DAILY"
        assert (queue.epoch_ms, queue.source_id, queue.wire_type) == (0, 0, "BINARY_LIGHT")
        assert queue.block_bytes == 2**26
        assert not queue.read_only
        assert repr(queue) == f"JournalQueue({path}, roll_cycle=FAST_DAILY)"

    assert [file.name for file in path.iterdir()] == ["metadata.cq4t"]
    entries = Store((path / "metadata.cq4t").read_bytes()).entries()
    assert {key: value for key, (_, value) in entries.items()} == NEW_TABLE


def test_the_first_file_is_created_with_the_first_message(path: Path) -> None:
    with quire.open(path, clock=quire.ManualClock(START_MS)) as queue:
        queue.appender()
        assert queue.cycles == []
        queue.appender().write_bytes(b"x")
        assert queue.cycles == [19737]
        assert Path(queue.file_for_cycle(19737)) == path / "20240115F.cq4"
        assert Path(queue.file_for_cycle(19737)).stat().st_size == 2**26 + 2**24
        assert Path(queue.file_for_cycle(19738)) == path / "20240116F.cq4"


def test_a_path_may_be_text_or_a_path_and_hold_any_character(tmp_path: Path) -> None:
    for name in ("plain", "späce and \u20ac", "new\nline", os.fsdecode(b"no utf-8 \xff")):
        path = tmp_path / name
        with quire.open(str(path)) as queue:
            queue.appender().write_bytes(b"x")
        with quire.open(path) as queue:
            assert Path(queue.path) == path
            assert payloads(queue) == [b"x"]


def test_without_leave_nothing_is_created(tmp_path: Path) -> None:
    with pytest.raises(quire.errors.NotAQueueError, match="no such directory"):
        quire.open(tmp_path / "none", create=False)
    with pytest.raises(quire.errors.NotAQueueError, match="no such directory"):
        quire.open(tmp_path / "none", read_only=True)
    assert list(tmp_path.iterdir()) == []


NINE = quire.RollOptions(roll_time="21:00")


def test_what_the_first_opener_chose_holds(path: Path) -> None:
    chosen: dict[str, Any] = {
        "roll_cycle": quire.RollCycle("TEST2_DAILY"),
        "epoch_ms": 7,
        "source_id": 3,
    }
    quire.open(path, **chosen).close()

    others: list[dict[str, Any]] = [{}, {"epoch_ms": 5, "source_id": 9}, {"roll": NINE}]
    others.append({"read_only": True})
    for options in others:
        with quire.open(path, format="chronicle", **options) as queue:
            assert queue.roll_cycle.name == "TEST2_DAILY"
            assert (queue.epoch_ms, queue.source_id) == (7, 3)


def test_a_roll_time_is_an_epoch_that_is_kept_as_text(path: Path) -> None:
    clock = quire.ManualClock(START_MS)  # 10:30
    with quire.open(path, roll=NINE, time_zone="UTC", clock=clock) as queue:
        assert queue.epoch_ms == 75_600_000
        queue.appender().write_bytes(b"the day before, until nine")
        clock.advance(11 * 3_600_000)
        queue.appender().write_bytes(b"the day after nine")
        assert queue.cycles == [19736, 19737]

    table = Store((path / "metadata.cq4t").read_bytes())
    assert (table.texts["rollTime"], table.texts["rollTimeZone"]) == ("21:00", "UTC")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"roll": NINE, "time_zone": "Mars/Olympus"}, ValueError),
        ({"roll": quire.RollOptions(roll_time="25:00")}, ValueError),
        ({"roll": quire.RollOptions(roll_time="nine")}, ValueError),
        ({"roll_cycle": "NEVER"}, ValueError),
        ({"force_unlock": "maybe"}, ValueError),
        ({"timeout_s": -1.0}, ValueError),
        ({"timeout_s": float("nan")}, ValueError),
        ({"wire_type": "TEXT"}, quire.errors.UnsupportedError),
        ({"wire_type": "JSON"}, quire.errors.UnsupportedError),
        ({"wire_type": "no such"}, quire.errors.UnsupportedError),
        ({"layout": LayoutOptions(index_count=2**21)}, (ValueError, quire.errors.UnsupportedError)),
        (
            {"layout": LayoutOptions(index_spacing=2**31)},
            (ValueError, quire.errors.UnsupportedError),
        ),
        ({"source_id": 2**31}, (ValueError, OverflowError)),
        ({"block_bytes": -1}, (ValueError, OverflowError)),
        ({"block_bytes": 2**64 - 1}, (ValueError, OverflowError)),
        ({"epoch_ms": 2**63}, (ValueError, OverflowError)),
    ],
    ids=str,
)
def test_an_option_that_cannot_be_is_refused_and_nothing_is_created(
    path: Path, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        quire.open(path, **options)
    assert not path.exists()


@pytest.mark.parametrize(
    "wire_type", ["BINARY_LIGHT", "binary", "COMPRESSED_BINARY", "FIELDLESS_BINARY"]
)
def test_a_binary_wire_type_is_taken(path: Path, wire_type: str) -> None:
    with quire.open(path, wire_type=wire_type, block_bytes=1) as queue:
        assert queue.wire_type == wire_type.upper()
        queue.appender().write_text("hello")
    with quire.open(path) as queue:
        assert payloads(queue) == [b"\xe5hello"]
    (file,) = path.glob("*.cq4")
    assert (b"writePosition" in file.read_bytes()) == (wire_type != "FIELDLESS_BINARY")


def test_a_fieldless_queue_is_known_by_its_files(path: Path, clock: quire.ManualClock) -> None:
    with quire.open(path, clock=clock, wire_type="FIELDLESS_BINARY") as queue:
        queue.appender().write_text("first")
        (file,) = path.glob("*.cq4")
    for place in (path, file):
        with quire.open(place, read_only=True) as queue:
            assert queue.wire_type == "FIELDLESS_BINARY"
    clock.advance(DAY_MS)
    with quire.open(path, clock=clock) as queue:
        assert queue.wire_type == "FIELDLESS_BINARY"
        queue.appender().write_text("second")
    assert not any(b"writePosition" in it.read_bytes() for it in path.glob("*.cq4"))
    with quire.open(path, wire_type="BINARY_LIGHT") as queue:
        assert queue.wire_type == "BINARY_LIGHT"
    (path / "metadata.cq4t").unlink()
    with quire.open(path, read_only=True) as queue:
        assert queue.wire_type == "FIELDLESS_BINARY"


@pytest.mark.parametrize(
    ("asked", "count", "spacing"),
    [((16, 2), 16, 2), ((9, 3), 16, 4), ((1, 1), 8, 1), ((64, 16), 64, 16)],
    ids=str,
)
def test_index_arrays_have_the_shape_asked_for(
    path: Path, asked: tuple[int, int], count: int, spacing: int
) -> None:
    with quire.open(
        path,
        roll_cycle="FAST_DAILY",
        layout=quire.LayoutOptions(index_count=asked[0], index_spacing=asked[1]),
        block_bytes=1,
    ) as queue:
        appender = queue.appender()
        indexes = [appender.write_bytes(b"%d" % number) for number in range(min(60, count * 4))]
        tailer = queue.tailer()
        for number, index in enumerate(indexes):
            assert tailer.move_to_index(index)
            assert tailer.read_bytes() == b"%d" % number
        assert queue.roll_cycle.to_sequence(indexes[-1]) == len(indexes) - 1

    (store,) = open_queue(path)[1].values()
    assert (store.numbers["indexCount"], store.numbers["indexSpacing"]) == (count, spacing)
    assert problems_of(path) == []


def test_a_shape_of_more_bits_than_the_roll_cycles_keeps_its_numbers(path: Path) -> None:
    with quire.open(
        path,
        roll_cycle="TEST4_DAILY",
        layout=quire.LayoutOptions(index_count=32_768, index_spacing=2**16),
    ) as queue:
        index = queue.appender().write_many([b"x"] * 100)

    with quire.open(path) as queue, queue.appender() as appender:
        assert index is not None
        assert appender.write_bytes(b"y") == index + 1
        assert queue.entry_count == 101


@pytest.mark.parametrize(
    ("asked", "got"), [(0, 4096), (1, 4096), (4097, 8192), (2**16, 2**16), (2**40, 2**40)]
)
def test_a_block_is_a_whole_number_of_pages(path: Path, asked: int, got: int) -> None:
    with quire.open(path, roll_cycle="TEST4_DAILY", block_bytes=asked) as queue:
        assert queue.block_bytes == got


@pytest.mark.usefixtures("umask_of_zero")
@pytest.mark.parametrize(
    ("options", "file", "directory"),
    [
        ({}, 0o600, 0o700),
        ({"file_mode": 0o640}, 0o640, 0o750),
        ({"file_mode": 0o660}, 0o660, 0o770),
        ({"file_mode": 0o644}, 0o644, 0o755),
    ],
    ids=str,
)
def test_files_are_private_unless_one_says_otherwise(
    path: Path, options: dict[str, Any], file: int, directory: int
) -> None:
    with quire.open(
        path, format="chronicle", clock=quire.ManualClock(START_MS), **options
    ) as queue:
        queue.appender().write_bytes(b"x")
        assert modes(path) == {("", directory), (".cq4", file), (".cq4t", file)}


def test_the_table_answers_for_every_key(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    assert queue.table_value("listing.highestCycle") == -(2**31)
    appender.write_bytes(b"x")
    assert queue.table_value("listing.highestCycle") == 19737
    assert queue.table_value("LISTING.lowestcycle") == 19737
    assert queue.table_value("no.such.key") is None
    assert queue.table_value("") is None


def test_messages_are_counted_over_cycles_and_gaps(
    queue: quire.JournalQueue, appender: quire.JournalAppender, clock: quire.ManualClock
) -> None:
    assert (queue.first_index, queue.last_index, queue.entry_count) == (None, None, 0)
    indexes: list[int] = []
    for days, count in ((0, 3), (1, 5), (4, 2)):
        clock.now_ms = START_MS + days * DAY_MS
        indexes += [appender.write_bytes(b"x") for _ in range(count)]

    assert (queue.first_index, queue.last_index) == (indexes[0], indexes[-1])
    assert queue.entry_count == 10
    for start, from_index in enumerate(indexes):
        for end, to_index in enumerate(indexes[start:], start):
            assert queue.count_excerpts(from_index, to_index) == end - start
    assert queue.count_excerpts(indexes[0], indexes[-1] + 1) == 10
    missing = queue.roll_cycle.to_index(19739, 0)
    for wrong in (missing, indexes[-1] + 2, indexes[2] + 2, -1):
        with pytest.raises(quire.errors.IndexOutOfRangeError):
            queue.count_excerpts(indexes[0], wrong)


def test_the_last_index_never_leads(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    for _ in range(200):
        index = appender.write_bytes(b"x")
        with appender.writing_document() as document:
            document.write_bytes(b"y")
            assert queue.last_index == index
        assert queue.last_index == index + 1


def test_a_dump_shows_every_document(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_bytes(b"\xde\xad\xbe\xef")
    with appender.writing_document(metadata=True) as document:
        document.write_bytes(b"\xca\xfe")
    text = queue.dump()

    assert "## metadata.cq4t\n" in text
    assert "## 20240115T4.cq4\n" in text
    assert "# position: 784, header: 0\n--- !!data #binary\n00000310 " in text
    assert " de ad be ef " in text
    assert "--- !!meta-data #binary\n00000310 " in text
    assert " ca fe " in text


def test_a_file_is_dumped_in_pieces_and_without_its_queue(
    queue: quire.JournalQueue, appender: quire.JournalAppender, tmp_path: Path
) -> None:
    for _ in range(3):
        appender.write_text("x" * 2**15)
    whole = queue.dump()
    file = Path(queue.file_for_cycle(queue.cycles[0]))
    alone = shutil.copy(file, tmp_path / "of_no_queue.cq4")

    pieces = list(Dump(alone))

    assert len(pieces) > 1
    assert whole.startswith(f"## {file.name}\n" + b"".join(pieces).decode())
    table = b"".join(Dump(Path(queue.path) / "metadata.cq4t")).decode()
    assert whole.endswith(f"## metadata.cq4t\n{table}")


def test_only_files_of_a_queue_are_dumped(queue: quire.JournalQueue, tmp_path: Path) -> None:
    with pytest.raises(
        quire.errors.NotAQueueError, match=r"neither metadata\.cq4t nor a \*\.cq4 file"
    ):
        Dump(queue.path)
    for name in ("metadata.cq4t", "20240115T4.cq4"):
        with pytest.raises(FileNotFoundError):
            Dump(tmp_path / name)
    (tmp_path / "metadata.cq4t").write_bytes(b"no table of a queue")
    with pytest.raises(quire.errors.CorruptError, match="not a table store"):
        Dump(tmp_path / "metadata.cq4t")
    (tmp_path / "20240115T4.cq4").touch()
    assert list(Dump(tmp_path / "20240115T4.cq4")) == [b"# no ready header\n"]


def test_the_keys_of_the_table_come_in_the_order_of_their_making(queue: quire.JournalQueue) -> None:
    queue.tailer("z").close()
    queue.tailer("a").close()

    entries = queue.table_entries()

    assert [key for key, _ in entries if key.startswith("index.")] == ["index.z", "index.a"]
    assert all(queue.table_value(key) == value for key, value in entries)


def test_the_end_of_a_cycle_tells_how_it_ends(
    queue: quire.JournalQueue, clock: quire.ManualClock, appender: quire.JournalAppender
) -> None:
    assert queue.end_of_cycle(19_737) is None
    for _ in range(3):
        appender.write_bytes(b"1234")
    assert queue.end_of_cycle(19_737) == (784 + 3 * 8, 3, False)

    clock.advance(DAY_MS)
    appender.write_bytes(b"1234")

    assert queue.end_of_cycle(19_737) == (784 + 3 * 8, 3, True)
    assert queue.end_of_cycle(19_738) == (784 + 8, 1, False)


def test_who_holds_a_lock_is_reported_and_whether_it_lives(
    queue: quire.JournalQueue, appender: quire.JournalAppender, path: Path
) -> None:
    assert queue.lock_holder("no.such.lock") is None
    assert queue.lock_holder(WRITE_LOCK) is None
    with appender.writing_document() as document:
        document.write_bytes(b"x")
        assert queue.lock_holder(WRITE_LOCK) == (os.getpid(), True)
    dead = fork(lambda: None)
    exit_code(dead)
    poke(path, WRITE_LOCK, dead)
    with quire.open(path, read_only=True) as reader:
        assert reader.lock_holder(WRITE_LOCK) == (dead, False)
    poke(path, WRITE_LOCK, UNLOCKED)


def test_closing_a_queue_closes_its_handles(path: Path) -> None:
    with quire.open(path) as queue:
        handles: list[quire.JournalAppender | quire.JournalTailer] = [
            queue.appender(),
            queue.appender(),
        ]
        handles += [queue.tailer(), queue.tailer("name")]
        assert not any(handle.closed for handle in [queue, *handles])
    assert all(handle.closed for handle in [queue, *handles])
    queue.close()
    for handle in handles:
        handle.close()


def test_a_read_only_queue_follows_what_others_write(path: Path, queue: quire.JournalQueue) -> None:
    with quire.open(path, read_only=True) as again, again.tailer() as tailer:
        assert tailer.read() is None
        with pytest.raises(quire.errors.ReadOnlyError, match="read_only=True"):
            again.appender()
        for text in (b"one", b"two"):
            index = queue.appender().write_bytes(text)
            assert tailer.read() == quire.Excerpt(index, text)
        assert again.last_index == queue.last_index
        again.refresh()


def test_a_queue_without_table_is_read_and_gets_one_when_it_is_written_to(
    path: Path, queue: quire.JournalQueue
) -> None:
    queue.appender().write_bytes(b"one")
    queue.close()
    (path / "metadata.cq4t").unlink()

    with quire.open(path, read_only=True) as again:
        assert (payloads(again), again.roll_cycle.name) == ([b"one"], "TEST4_DAILY")
        assert again.table_value("listing.highestCycle") is None
    assert not (path / "metadata.cq4t").exists()
    with quire.open(path, clock=quire.ManualClock(START_MS)) as again:
        again.appender().write_bytes(b"two")
        assert payloads(again) == [b"one", b"two"]


def test_a_file_copied_in_by_hand_is_seen_by_the_next_open(
    path: Path, clock: quire.ManualClock
) -> None:
    with quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**16) as queue:
        queue.appender().write_bytes(b"recorded")
        (cycle,) = queue.cycles
        recorded, later = map(queue.file_for_cycle, (cycle, cycle + 30))
    time.sleep(0.05)  # as long as anybody needs to copy a file
    shutil.copyfile(recorded, later)
    with quire.open(path, clock=clock) as queue:
        assert queue.last_index == queue.roll_cycle.to_index(cycle + 30, 0)
        assert queue.appender().write_bytes(b"later") == queue.last_index
