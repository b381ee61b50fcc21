"""A disk filled to the last byte: an error before anything is published, and nothing else."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
from queues import DAY_MS, START_MS, UNLOCKED, WRITE_LOCK, payloads, problems_of
from small_disk import KIB, fill, is_no_space, make_room, on_small_disk, punch_hole
from tally import Tally, scaled

pytestmark = pytest.mark.slow

DISK = 1024 * KIB
BLOCK = 64 * KIB
TABLE_PAGES = 32
PROMISE = "A full disk is an error before anything is published"
Write = Callable[[quire.JournalAppender, bytes], object]


def open_queue(path: Path, clock: quire.ManualClock | None = None) -> quire.JournalQueue:
    return quire.open(
        path,
        roll_cycle="TEST8_DAILY",
        block_bytes=BLOCK,
        clock=clock or quire.ManualClock(START_MS),
    )


def empty(path: Path) -> None:
    """Give the space back: of the files, and of what exceptions still have mapped."""
    for file in path.iterdir():
        file.unlink()
    gc.collect()


def write_document(appender: quire.JournalAppender, message: bytes) -> None:
    with appender.writing_document() as document:
        document.write_bytes(message)


def write_two(appender: quire.JournalAppender, message: bytes) -> None:
    appender.write_many([message, message])


def write_until_full(appender: quire.JournalAppender, write: Write, size: int) -> list[bytes]:
    """Write until an error, which must be the right one; return what was acknowledged."""
    acknowledged: list[bytes] = []
    failed = OSError("the disk never filled up")
    for number in range(100_000):
        message = b"%08d" % number * (size // 8)
        try:
            write(appender, message)
        except OSError as error:
            failed = error
            break
        acknowledged.append(message)
    assert is_no_space(failed, ".cq4"), failed
    return acknowledged


def each_once(messages: list[bytes]) -> list[bytes]:
    """Drop what comes twice in a row: `write_two` may have published the first of its two."""
    return [it for it, before in zip(messages, [None, *messages], strict=False) if it != before]


@pytest.mark.parametrize("size", [8, 104, 3000])
@pytest.mark.parametrize(
    "write",
    [quire.JournalAppender.write_bytes, write_two, write_document],
    ids=["append", "bulk", "document"],
)
def test_appends_end_with_an_error_and_go_on_when_space_returns(
    write: Write, size: int, tmp_path: Path, tally: Tally
) -> None:
    leaves = range(0, scaled(24, 200), scaled(3, 1))

    def work(disk: Path) -> int:
        for leave in leaves:
            one_append(disk, disk / f"queue{leave}", leave)
        return len(leaves)

    def one_append(disk: Path, path: Path, leave: int) -> None:
        with open_queue(path) as queue, queue.appender() as appender, queue.tailer() as attached:
            appender.write_bytes(b"first")
            fill(disk, leave)
            acknowledged = [b"first", *write_until_full(appender, write, size)]
            assert queue.table_value(WRITE_LOCK) == UNLOCKED
            published = payloads(queue)
            # The one that failed may be there in part of a bulk write, but nowhere else.
            extra = 1 if write is write_two else 0
            assert acknowledged == each_once(published)[: len(acknowledged)]
            assert len(each_once(published)) <= len(acknowledged) + extra
            assert list(attached.payloads()) == published
            with quire.open(path, read_only=True) as reader:
                assert payloads(reader) == published
                assert reader.entry_count == len(published)
            with open_queue(path) as another, another.tailer() as fresh:
                assert list(fresh.payloads()) == published
            for _ in range(3):
                with pytest.raises(OSError, match="make room"):
                    appender.write_bytes(b"x" * 15_000)
            make_room(disk)
            appender.write_bytes(b"y" * 15_000)
            write(appender, b"after")
            assert each_once(list(attached.payloads())) == [b"y" * 15_000, b"after"]
        assert problems_of(path) == []
        with open_queue(path) as again:
            again.appender().write_bytes(b"again")
            assert payloads(again)[: len(published)] == published
            assert again.entry_count == len(payloads(again))
        empty(path)

    tally(PROMISE, on_small_disk(tmp_path / "disk", DISK, work), "disks filled under appends")


def test_a_roll_that_finds_no_space_leaves_no_half_file(tmp_path: Path, tally: Tally) -> None:
    leaves = range(scaled(32, 64))

    def work(disk: Path) -> int:
        for leave in leaves:
            one_roll(disk, disk / f"queue{leave}", leave)
        return len(leaves)

    def one_roll(disk: Path, path: Path, leave: int) -> None:
        clock = quire.ManualClock(START_MS)
        with open_queue(path, clock) as queue, queue.appender() as appender:
            attached = queue.tailer()
            acknowledged = [b"first"]
            appender.write_bytes(b"first")
            assert attached.read_bytes() == b"first"
            fill(disk, leave)

            def roll() -> None:
                for day in range(20):
                    clock.advance(DAY_MS)
                    appender.write_bytes(b"%d" % day)
                    acknowledged.append(b"%d" % day)

            with pytest.raises(OSError, match="make room") as caught:
                roll()
            assert is_no_space(caught.value, ".cq4"), caught.value
            assert payloads(queue) == acknowledged
            assert list(attached.payloads()) == acknowledged[1:]
            with quire.open(path, read_only=True) as reader:
                assert payloads(reader) == acknowledged
            assert len([*path.glob("*.cq4")]) == len(acknowledged)
            with open_queue(path, clock) as another, pytest.raises(OSError, match="make room"):
                another.appender().write_bytes(b"x" * 15_000)
            make_room(disk)
            appender.write_bytes(b"after")
            assert list(attached.payloads()) == [b"after"]
            assert payloads(queue) == [*acknowledged, b"after"]
        assert problems_of(path) == []
        assert not [*path.glob("*.discard")]
        empty(path)

    tally(PROMISE, on_small_disk(tmp_path / "disk", DISK, work), "disks filled under rolls")


def test_a_queue_that_could_not_be_made_is_made_when_space_returns(
    tmp_path: Path, tally: Tally
) -> None:
    def make(path: Path) -> OSError | None:
        try:
            with open_queue(path) as queue:
                queue.appender().write_bytes(b"x" * 15_000)
        except OSError as error:
            return error
        return None

    def work(disk: Path) -> int:
        leave = 0
        for leave in range(1000):
            path = disk / f"queue{leave}"
            path.mkdir()
            fill(disk, leave)
            error = make(path)
            if error is None:
                break
            assert is_no_space(error, ".cq4t") or is_no_space(error, ".cq4"), error
            del error
            make_room(disk)
            with open_queue(path) as queue:
                queue.appender().write_bytes(b"first")
                assert payloads(queue) == [b"first"]
            assert problems_of(path) == []
            empty(path)
        assert leave > TABLE_PAGES + 4
        return leave

    count = on_small_disk(tmp_path / "disk", DISK, work)
    tally(PROMISE, count, "disks full before a queue is made")


def test_table_keys_and_named_tailers_find_their_space_reserved(
    tmp_path: Path, tally: Tally
) -> None:
    def work(disk: Path) -> int:
        path = disk / "queue"
        with open_queue(path) as queue:
            queue.appender().write_many([b"one", b"two"])
            fill(disk)
            with queue.tailer("before") as tailer:
                assert tailer.read_bytes() == b"one"
        with open_queue(path) as queue:
            for number in range(500):
                with queue.tailer(f"risk{number}") as tailer:
                    assert tailer.read_bytes() == b"one"
        with open_queue(path) as queue, queue.tailer("before") as tailer:
            assert tailer.read_bytes() == b"two"
        return 501

    count = on_small_disk(tmp_path / "disk", DISK, work)
    tally("A full disk stops no reader", count, "names of tailers made on a full disk")


def test_a_table_that_was_not_reserved_can_be_read_on_a_full_disk(tmp_path: Path) -> None:
    def work(disk: Path) -> int:
        path = disk / "queue"
        with open_queue(path) as queue:
            queue.appender().write_many([b"one", b"two"])
        punch_hole(path / "metadata.cq4t", 4096)
        fill(disk)
        with quire.open(path, read_only=True) as queue:
            assert payloads(queue) == [b"one", b"two"]
        with pytest.raises(OSError, match="make room") as caught:
            open_queue(path)
        assert is_no_space(caught.value, ".cq4t")
        make_room(disk)
        with open_queue(path) as queue, queue.tailer("risk") as tailer:
            assert tailer.read_bytes() == b"one"
        return 1

    on_small_disk(tmp_path / "disk", DISK, work)


def test_holes_read_as_nothing_on_a_full_disk(tmp_path: Path, tally: Tally) -> None:
    """A file whose space was not reserved, as Java leaves its files."""
    sizes = range(1, 9000, scaled(900, 100))

    def work(disk: Path) -> int:
        for size in sizes:
            one_hole(disk, disk / f"queue{size}", size)
        return len(sizes)

    def one_hole(disk: Path, path: Path, size: int) -> None:
        messages = [b"%d" % number + b"x" * size for number in range(7)]
        with open_queue(path) as queue:
            queue.appender().write_many(messages)
        (file,) = path.glob("*.cq4")
        punch_hole(file, len(file.read_bytes().rstrip(b"\0")) + 8)
        fill(disk)
        for read_only in (True, False):
            with quire.open(path, read_only=read_only) as queue, queue.tailer() as tailer:
                assert list(tailer.payloads()) == messages
                for _ in range(3):
                    assert tailer.read() is None
                with pytest.raises(quire.errors.WaitTimeoutError):
                    tailer.wait(0.002)
                tailer.to_end()
                assert tailer.read() is None
                assert queue.entry_count == len(messages)
                tailer.direction = "backward"
                tailer.to_end()
                assert list(tailer.payloads()) == messages[::-1]
        with open_queue(path) as queue, queue.appender() as appender, queue.tailer() as tailer:
            more = write_until_full(appender, quire.JournalAppender.write_bytes, 800)
            assert list(tailer.payloads()) == [*messages, *more]
            make_room(disk)
            appender.write_bytes(b"after")
            assert list(tailer.payloads()) == [b"after"]
        assert problems_of(path) == []
        empty(path)

    count = on_small_disk(tmp_path / "disk", DISK, work)
    tally("A hole in a file reads as nothing on a full disk", count, "files with a hole")


def with_one_message(path: Path) -> tuple[Path, int]:
    """Make a queue of one message; return its file, and where the next header goes."""
    with open_queue(path) as queue:
        queue.appender().write_bytes(b"first")
    (file,) = path.glob("*.cq4")
    return file, -(-len(file.read_bytes().rstrip(b"\0")) // 4) * 4


def test_a_hole_right_after_the_last_message_is_not_touched(tmp_path: Path) -> None:
    """The rest of its 64 KiB cannot be had, so that what is present ends with the page."""

    def work(disk: Path) -> int:
        path = disk / "queue"
        file, end = with_one_message(path)
        boundary = -(-(end + 8) // 4096) * 4096
        with open_queue(path) as queue:
            queue.appender().write_bytes(b"x" * (boundary - end - 4))
        assert len(file.read_bytes().rstrip(b"\0")) == boundary
        punch_hole(file, boundary)
        fill(disk)
        with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
            assert len(list(tailer.payloads())) == 2
            assert [tailer.read() for _ in range(3)] == [None] * 3
            assert queue.entry_count == 2
        return 1

    on_small_disk(tmp_path / "disk", DISK, work)


@pytest.mark.parametrize("size", [100, 9000])
def test_a_message_in_a_hole_is_an_error_until_there_is_room(size: int, tmp_path: Path) -> None:
    """As a writer leaves it that did not reserve space and died of a full disk: see Java's."""

    def work(disk: Path) -> int:
        path = disk / "queue"
        file, end = with_one_message(path)
        boundary = -(-(end + 120) // 4096) * 4096
        with open_queue(path) as queue:
            queue.appender().write_bytes(b"x" * (boundary - end - 48))
            queue.appender().write_bytes(b"y" * size)
        position = boundary - 44
        stored = b"y" * 40 + b"\0" * (size - 40)
        punch_hole(file, boundary)
        fill(disk)
        with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
            assert [(tailer.read_bytes() or b"")[:1] for _ in range(2)] == [b"f", b"x"]
            for _ in range(3):
                with pytest.raises(OSError, match=f"position={position:#x}") as caught:
                    tailer.read()
                assert is_no_space(caught.value, ".cq4"), caught.value
                assert f"length {size}" in str(caught.value)
                assert "hole" in str(caught.value)
            assert "hole without disk space" in queue.dump()
            with open_queue(path) as writing, pytest.raises(OSError, match="make room"):
                writing.appender().write_bytes(b"z")
            make_room(disk)
            assert list(tailer.payloads()) == [stored]
        with open_queue(path) as queue:
            queue.appender().write_bytes(b"after")
            assert payloads(queue)[-2:] == [stored, b"after"]
        assert problems_of(path) == []
        return 1

    on_small_disk(tmp_path / "disk", DISK, work)


def test_little_space_is_reported_before_it_runs_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def work(disk: Path) -> int:
        for percent, warnings in ((0, 0), (5, 1)):
            caplog.clear()
            path = disk / f"queue{percent}"
            with quire.open(
                path, block_bytes=BLOCK, layout=quire.LayoutOptions(low_space_percent=percent)
            ) as queue:
                appender = queue.appender()
                for _ in range(100):
                    appender.write_bytes(b"x" * 1000)
            records = [it for it in caplog.records if "almost full" in it.getMessage()]
            assert len(records) == warnings
            for record in records:
                assert (record.name, record.levelno) == ("quire", logging.WARNING)
                for part in (str(path), "free_bytes=", "low_space_percent=5", "make room"):
                    assert part in record.getMessage()
        return 1

    on_small_disk(tmp_path / "disk", 2 * DISK, work)


def test_a_percentage_is_at_most_a_hundred(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="low_space_percent=101 limit=100"):
        quire.open(tmp_path / "queue", layout=quire.LayoutOptions(low_space_percent=101))
    assert not (tmp_path / "queue").exists()
