"""Damaged, foreign and hostile files: an error that says what is wrong, and nothing lost."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import quire
from any_format import open_vanilla
from vanilla_golden import built, listing
from vanilla_reference import Geometry, messages

SMALL: dict[str, Any] = {"tid_bits": 16, "index_block_bytes": 1024, "data_block_bytes": 4096}
GEOMETRY = Geometry(tid_bits=16, index_block=1024, data_block=4096)
FOLDER = "20160718"
START_MS = 20_000 * 86_400_000


@pytest.fixture
def queue_path(tmp_path: Path) -> Path:
    return built("daily_small_mt", tmp_path)


def payloads(path: Path) -> list[bytes]:
    with quire.open(path, format="vanilla", read_only=True) as queue:
        return [*queue.tailer().payloads()]


def expected() -> list[bytes]:
    return [bytes.fromhex(it["hex"]) for it in listing("daily_small_mt")["excerpts"]]


def test_a_missing_data_file_is_named(queue_path: Path) -> None:
    (queue_path / FOLDER / "data-12928-1").unlink()
    with pytest.raises(quire.errors.CorruptError, match="data-12928-1"):
        payloads(queue_path)


def test_a_length_that_was_overwritten_is_named_and_the_rest_can_be_read(queue_path: Path) -> None:
    with (queue_path / FOLDER / "data-12927-0").open("r+b") as file:
        file.seek(20)
        file.write(b"\x7f\xff\xff\x0f")
    with quire.open(queue_path, read_only=True) as queue:
        tailer = queue.tailer()
        read: list[bytes] = []
        broken: list[int | None] = []
        for _ in range(4):
            try:
                read += tailer.read_many(5000)
            except quire.errors.CorruptError as error:
                broken.append(error.position)
                tailer.move_to_index(tailer.index + 1)
    assert broken == [20]
    assert not Counter(read) - Counter(expected())
    assert len(read) == len(expected()) - 1


def test_free_entries_before_others_are_passed_over_with_a_warning(
    queue_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (queue_path / FOLDER / "index-3").open("r+b") as file:
        file.write(bytes(512))
    found = payloads(queue_path)
    assert len(found) == len(expected()) - 64
    assert "free index entries were skipped" in caplog.text


def test_messages_after_a_lost_first_entry_are_found_by_their_index(tmp_path: Path) -> None:
    first, indexes = with_first_entries_lost(tmp_path, 1)
    with quire.open(tmp_path, read_only=True) as queue, queue.tailer() as tailer:
        assert not tailer.move_to_index(first)
        for number, index in enumerate(indexes, 1):
            assert tailer.move_to_index(index)
            assert tailer.read_bytes() == b"%d" % number
        assert (queue.first_index, queue.last_index) == (indexes[0], indexes[-1])


def test_messages_after_a_lost_index_page_are_found_by_their_index(tmp_path: Path) -> None:
    _, indexes = with_first_entries_lost(tmp_path, 8)
    with quire.open(tmp_path, read_only=True) as queue, queue.tailer() as tailer:
        for number, index in [*enumerate(indexes, 1)][7:]:
            assert tailer.move_to_index(index)
            assert tailer.read_bytes() == b"%d" % number


def test_an_appender_after_a_restart_leaves_lost_entries_free(tmp_path: Path) -> None:
    _, indexes = with_first_entries_lost(tmp_path, 1, count=5)
    # As after a power cut: files that are older than the start of the machine.
    for file in tmp_path.glob("*/*"):
        os.utime(file, (0, 0))
    clock = quire.ManualClock(START_MS)
    with quire.open(tmp_path, clock=clock) as queue, queue.tailer() as tailer:
        assert len(tailer.read_many(99)) == len(indexes)
        with queue.appender() as appender:
            appended = appender.write_bytes(b"appended")
            assert appended == indexes[-1] + 1
        assert tailer.read_bytes() == b"appended"
    # In the layout that the other entries show.
    assert {it.stat().st_size for it in tmp_path.glob("*/*")} == {64, 1024}


def with_first_entries_lost(path: Path, lost: int, count: int = 12) -> tuple[int, list[int]]:
    """The index of the first message, and those of the others; eight to an index file."""
    layout: Any = {"tid_bits": 16, "index_block_bytes": 64, "data_block_bytes": 1024}
    clock = quire.ManualClock(START_MS)
    with open_vanilla(path, clock=clock, **layout) as queue:
        appender = queue.appender()
        indexes = [appender.write_bytes(b"%d" % number) for number in range(count)]
    [index] = path.glob("*/index-0")
    with index.open("r+b") as file:
        file.write(bytes(8 * lost))
    return indexes[0], indexes[1:]


@pytest.mark.parametrize("lost", ["index-0", "index-4", "index-9", "every index"])
def test_a_lost_index_is_made_again(lost: str, queue_path: Path) -> None:
    for file in (queue_path / FOLDER).glob("index-*" if lost == "every index" else lost):
        file.unlink()
    report = quire.vanilla.rebuild_index(queue_path, files=quire.vanilla.FileOptions(**SMALL))
    [first, second] = report
    assert (first.messages, second.messages) == (1200, 1200)
    assert first.recovered == {"index-9": 48, "every index": 1200}.get(lost, 128)
    assert (second.recovered, second.moved) == (0, False)
    assert Counter(payloads(queue_path)) == Counter(expected())
    found = [data for _, data in messages(queue_path / FOLDER, 17_000, GEOMETRY)]
    assert Counter(found) == Counter(expected()[:1200])


def test_a_sound_index_is_left_alone(queue_path: Path) -> None:
    before = {it: it.read_bytes() for it in queue_path.rglob("*-*") if it.is_file()}
    report = quire.vanilla.rebuild_index(queue_path)
    assert [(it.recovered, it.dropped, it.moved) for it in report] == [(0, 0, False)] * 2
    assert {it: it.read_bytes() for it in queue_path.rglob("*-*") if it.is_file()} == before


def test_an_index_is_not_rebuilt_under_a_writer(tmp_path: Path) -> None:
    with quire.open(tmp_path / "queue", format="vanilla") as queue, queue.appender() as appender:
        appender.write_bytes(b"one")
        with pytest.raises(quire.errors.WriterInUseError):
            quire.vanilla.rebuild_index(tmp_path / "queue")


def test_links_are_not_followed(queue_path: Path, tmp_path: Path) -> None:
    shutil.move(queue_path / FOLDER, tmp_path / "elsewhere")
    (queue_path / FOLDER).symlink_to(tmp_path / "elsewhere")
    assert payloads(queue_path) == expected()[1200:]
    (queue_path / FOLDER).unlink()
    shutil.move(tmp_path / "elsewhere", queue_path / FOLDER)
    data = queue_path / FOLDER / "data-12927-0"
    shutil.move(data, tmp_path / "data")
    data.symlink_to(tmp_path / "data")
    with pytest.raises((quire.errors.CorruptError, quire.errors.NotAQueueError)):
        payloads(queue_path)


def test_short_files_are_read_as_far_as_they_go(queue_path: Path) -> None:
    for file in queue_path.rglob("*-*"):
        content = file.read_bytes().rstrip(b"\0") if file.is_file() else b""
        if "index" in file.name:
            file.write_bytes(content + bytes(-len(content) % 8))
        elif content:
            file.write_bytes(content + bytes(3))
    assert payloads(queue_path) == expected()


def test_wrong_block_sizes_are_refused(queue_path: Path) -> None:
    with open_vanilla(queue_path, data_block_bytes=512) as queue:
        with pytest.raises(quire.errors.CorruptError):
            _ = [*queue.tailer()]
        clock = quire.ManualClock(17_000 * 86_400_000)
    options: dict[str, Any] = {"clock": clock, "data_block_bytes": 512, "tid_bits": 16}
    queue = open_vanilla(queue_path, **options)
    with queue, pytest.raises(ValueError, match="another layout"):
        queue.appender().write_bytes(b"")
    for name in ("data_block_bytes", "index_block_bytes"):
        with pytest.raises(ValueError, match="a power of two"):
            open_vanilla(queue_path, **{name: 1000})


def test_foreign_files_and_directories_are_passed_over(queue_path: Path) -> None:
    for name in ("lost+found", "20160718x", "99999999", "tmp"):
        (queue_path / name).mkdir()
    for name in ("index-x", "data-1", "data-12927-0.bak", "index-007", "notes.txt"):
        (queue_path / FOLDER / name).write_bytes(b"\xff" * 64)
    assert payloads(queue_path) == expected()


def test_a_directory_with_two_formats_is_refused(queue_path: Path) -> None:
    (queue_path / "metadata.cq4t").write_bytes(b"")
    with pytest.raises(quire.errors.NotAQueueError, match="chronicle, vanilla"):
        quire.open(queue_path)


@pytest.mark.parametrize("seed", range(60))
def test_no_bytes_make_a_reader_crash_or_loop(seed: int, queue_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311
    shutil.rmtree(queue_path / "20160719")
    files = sorted(it for it in queue_path.rglob("*-*") if it.is_file())
    for file in chance.sample(files, 3):
        content = bytearray(file.read_bytes())
        for _ in range(chance.randint(1, 40)):
            at = chance.randrange(len(content))
            content[at] = chance.choice([0, 0xFF, 0x80, chance.randrange(256)])
        file.write_bytes(content[: chance.choice([len(content), chance.randrange(len(content))])])
    with quire.open(queue_path, format="vanilla", read_only=True) as queue:
        tailer, broken = queue.tailer(), 0
        for _ in range(5000):
            try:
                if not tailer.read_many(5000):
                    break
            except quire.errors.CorruptError:
                broken += 1
                assert broken <= 1300
                if not tailer.move_to_index(tailer.index + 1):
                    break
        tailer.to_end()
        assert queue.entry_count <= 10_000 * 128


def test_a_cycle_whose_index_is_gone_says_so(tmp_path: Path) -> None:
    clock = quire.ManualClock(START_MS)
    with open_vanilla(tmp_path, clock=clock, **SMALL) as queue:
        with queue.appender() as appender:
            written = appender.write_bytes(b"1")
            appender.write_many([b"2", b"3"])
        folder = Path(queue.directory_for_cycle(queue.current_cycle))
        clock.advance(86_400_000)
        last = queue.appender().write_bytes(b"4")
    (folder / "index-0").unlink()
    with quire.open(tmp_path, clock=clock) as queue:
        assert queue.last_index == last
        tailer, gone = queue.tailer(), r"the index of a cycle is gone.*index-0.*rebuild the index"
        for ask in (tailer.read_bytes, lambda: queue.first_index, lambda: queue.entry_count):
            with pytest.raises(quire.errors.CorruptError, match=gone):
                ask()
        clock.advance(-86_400_000)
        with pytest.raises(quire.errors.CorruptError, match=gone):
            queue.appender().write_bytes(b"in their places")
        assert not (folder / "index-0").exists()
        quire.vanilla.rebuild_index(tmp_path)
        assert [*tailer.payloads()] == [b"1", b"2", b"3", b"4"]
        assert queue.appender().write_bytes(b"5") == written + 3


def test_a_record_whose_writer_died_before_the_index_was_made_stops_nobody(tmp_path: Path) -> None:
    clock = quire.ManualClock(START_MS)
    with open_vanilla(tmp_path, clock=clock, **SMALL) as queue:
        queue.appender().write_bytes(b"never seen")
        folder = Path(queue.directory_for_cycle(queue.current_cycle))
        (folder / "index-0").unlink()
        assert queue.tailer().read_bytes() is None
        queue.appender().write_bytes(b"1")
        assert queue.tailer().read_many(9) == [b"1"]


STRAY = ["index-12", "index-9999", "index-10000", "index-18446744073709551615"]


@pytest.mark.parametrize("content", [b"", bytes(1024), b"\x07" * 1024], ids=len)
@pytest.mark.parametrize("name", STRAY)
def test_a_stray_index_file_hides_nothing(name: str, content: bytes, tmp_path: Path) -> None:
    clock = quire.ManualClock(START_MS)
    with open_vanilla(tmp_path, clock=clock, **SMALL) as queue:
        first = queue.appender().write_bytes(b"0")
        folder = Path(queue.directory_for_cycle(queue.current_cycle))
        (folder / name).write_bytes(content)
        tailer = queue.tailer()
        assert tailer.read_many(9) == [b"0"]
        with queue.appender() as appender:
            assert appender.write_bytes(b"1") == first + 1
            assert tailer.read_many(999) == [b"1"]
            # Over the end of the first index file.
            assert appender.write_many([b"%d" % it for it in range(2, 300)]) == first + 299
        expected = [b"%d" % it for it in range(300)]
        assert tailer.read_many(999) == expected[2:]
        assert (queue.last_index, queue.entry_count) == (first + 299, 300)
        clock.advance(86_400_000)
        queue.appender().write_bytes(b"next cycle")
        assert [*queue.tailer().payloads()] == [*expected, b"next cycle"]
        backward = queue.tailer()
        backward.to_end()
        backward.direction = "backward"
        assert backward.read_many(999) == [b"next cycle", *reversed(expected)]
    assert (folder / name).read_bytes() == content


def test_a_stray_data_file_stops_no_writer(tmp_path: Path) -> None:
    with open_vanilla(tmp_path, **SMALL) as queue:
        folder = Path(queue.directory_for_cycle(queue.current_cycle))
        folder.mkdir()
        (folder / "data-65535-18446744073709551615").touch()
        queue.appender().write_bytes(b"1")
        assert queue.tailer().read_many(9) == [b"1"]
