"""Indexed Chronicles are read, whatever their files hold."""

from __future__ import annotations

import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import quire
from indexed_reference import ENTRIES, LINE, IndexedWriter, messages, written
from vanilla_golden import MADE, read_listing

PAYLOADS = [b"%d " % number * (number % 60 + 1) for number in range(400)]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    written(tmp_path / "trades", PAYLOADS)
    return tmp_path / "trades"


def read(path: Path) -> list[tuple[int, bytes]]:
    with quire.open(path, format="indexed") as queue, queue.tailer() as tailer:
        return [(excerpt.index, excerpt.data) for excerpt in tailer]


@pytest.mark.parametrize("suffix", ["", ".index", ".data"])
def test_the_name_or_either_file_opens_it(base: Path, suffix: str) -> None:
    with quire.open(f"{base}{suffix}") as queue:
        assert isinstance(queue, quire.indexed.IndexedQueue)
        assert isinstance(queue, quire.Queue)
        assert (queue.path, queue.read_only) == (str(base), True)


@pytest.mark.parametrize("data_block", [4096, 8192, 1 << 16])
@pytest.mark.parametrize("index_block", [64, 4096])
def test_messages_and_indexes_are_those_of_the_reference(
    tmp_path: Path, data_block: int, index_block: int
) -> None:
    path = tmp_path / "trades"
    known = written(path, PAYLOADS, data_block=data_block, index_block=index_block)
    assert [*messages(path)] == known
    assert read(path) == known
    with quire.open(path, format="indexed") as queue:
        assert (queue.first_index, queue.last_index) == (0, known[-1][0])
        assert queue.entry_count == known[-1][0] + 1
        assert queue.count_excerpts(queue.entry_count, 0) == len(known)
        assert queue.count_excerpts(0, 1 << 60) == len(known)


def unpacked(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """The chronicle that Java wrote, at the length that Java gave it."""
    listed = read_listing(MADE, "indexed")
    with tarfile.open(MADE) as archive:
        for suffix, block in ((".index", "index_block"), (".data", "data_block")):
            packed = archive.extractfile(f"indexed/q{suffix}")
            assert packed is not None
            content = packed.read()
            length = -(-len(content) // listed[block]) * listed[block]
            (tmp_path / f"q{suffix}").write_bytes(content.ljust(length, b"\0"))
    return tmp_path / "q", listed


def test_what_java_wrote_is_read_as_java_reads_it(tmp_path: Path) -> None:
    path, listed = unpacked(tmp_path)
    rows = [row for row in listed["excerpts"] if "hex" in row]
    known = [(row["index"], bytes.fromhex(row["hex"])) for row in rows]
    assert read(path) == known == [*messages(path)]
    with quire.open(path, format="indexed") as queue:
        assert (queue.last_index, queue.entry_count) == (listed["last"], listed["last"] + 1)
        for row in listed["excerpts"]:
            assert queue.tailer().move_to_index(row["index"]) == ("hex" in row)


def test_the_second_writer_makes_the_same_bytes_as_java(tmp_path: Path) -> None:
    path, listed = unpacked(tmp_path)
    blocks = {name: listed[name] for name in ("index_block", "data_block")}
    written(tmp_path / "again", [payload for _, payload in messages(path)], **blocks)
    for suffix in (".index", ".data"):
        again = (tmp_path / f"again{suffix}").read_bytes()
        assert again == (tmp_path / f"q{suffix}").read_bytes()


def test_every_way_to_read_sees_the_same(base: Path) -> None:
    with quire.open(base) as queue, queue.tailer() as tailer:
        assert [*tailer.payloads()] == PAYLOADS
        tailer.to_start()
        assert tailer.read_many(1_000) == PAYLOADS
        tailer.to_start()
        batch = tailer.read_batch()
        assert batch.column("payload").to_pylist() == PAYLOADS
        assert batch.column("index").to_pylist() == [index for index, _ in messages(base)]
        tailer.to_start()
        assert [excerpt.data for excerpt in tailer.follow(timeout_s=0)] == PAYLOADS
        assert tailer.read() is None
        assert not tailer.spin(timeout_s=0.001)
        assert isinstance(batch, pa.RecordBatch)


def test_a_tailer_goes_to_an_index_and_both_ways(base: Path) -> None:
    known = [*messages(base)]
    with quire.open(base) as queue, queue.tailer() as tailer:
        for place in (0, 13, 14, 200, len(known) - 1):
            assert tailer.move_to_index(known[place][0])
            assert tailer.read_bytes() == known[place][1]
            assert tailer.last_read_index == known[place][0]
        paddings = sorted(set(range(known[-1][0])) - {index for index, _ in known})
        assert paddings
        before = tailer.index
        for missing in (-1, paddings[0], known[-1][0] + 2, 2**62):
            assert not tailer.move_to_index(missing)
            assert tailer.index == before
        tailer.direction = "backward"
        tailer.to_end()
        assert [*tailer.payloads()] == PAYLOADS[::-1]
        assert (tailer.index, tailer.read()) == (-1, None)
        tailer.direction = "forward"
        assert tailer.read_bytes() == PAYLOADS[0]


def test_fields_are_read_and_nothing_is_changed(tmp_path: Path) -> None:
    written(tmp_path / "q", [(7).to_bytes(4, "little") + b"\x02\xc3\xa9" + b"12 ", b"abc"])
    with quire.open(tmp_path / "q", format="indexed") as queue, queue.tailer() as tailer:
        excerpt = tailer.read()
        assert excerpt is not None
        assert (excerpt.read_int32(), excerpt.read_utf(), excerpt.parse_int()) == (7, "é", 12)
        with pytest.raises(quire.errors.UnsupportedError, match="read-only"):
            excerpt.compare_and_swap_int32(0, 7, 8)
        assert pickle.loads(pickle.dumps(excerpt)) == excerpt
        assert tailer.read_text() == "abc"
    for name in ("q.index", "q.data"):
        assert (tmp_path / name).stat().st_size == 4096


def test_what_it_cannot_do_is_refused_with_the_reason(base: Path) -> None:
    with quire.open(base, format="indexed") as opened, opened.tailer() as opened_tailer:
        queue: Any = opened
        tailer: Any = opened_tailer
        refused: list[Callable[[], object]] = [
            queue.appender,
            lambda: queue.tailer("risk"),
            lambda: queue.cycles,
            lambda: tailer.commit,
            lambda: tailer.claim(7),
        ]
        for call in refused:
            with pytest.raises(
                quire.errors.UnsupportedError, match=r"not supported in an Indexed .+\("
            ):
                call()
        with pytest.raises(AttributeError):
            getattr(queue, "no_such_" + "name")
    with pytest.raises(
        quire.errors.UnsupportedError, match="not an option of an Indexed Chronicle"
    ):
        quire.open(base, roll_cycle="DAYS")


def test_messages_that_come_while_it_is_read_are_delivered(tmp_path: Path) -> None:
    writer = IndexedWriter(data_block=256, index_block=128)
    path = writer.save(tmp_path / "live")
    with quire.open(path, format="indexed") as queue, queue.tailer() as tailer:
        assert tailer.read() is None
        for number in range(200):
            payload = b"%d" % number * 9
            index = writer.append(payload)
            for name, content in ((".data", writer.data), (".index", writer.index)):
                with Path(f"{path}{name}").open("r+b") as file:
                    file.write(content)
            excerpt = tailer.read()
            assert excerpt is not None
            assert (excerpt.index, excerpt.data) == (index, payload)
            assert tailer.read() is None


def test_an_empty_message_is_one(tmp_path: Path) -> None:
    payloads = [b"", b"", b"one", b"", b"two", *[b""] * 30, b"three"]
    known = written(tmp_path / "q", payloads)
    # One that nothing follows, at the start of a line, cannot be distinguished from a free entry.
    assert read(tmp_path / "q") == known
    with quire.open(tmp_path / "q", format="indexed") as queue:
        assert queue.count_excerpts(0, queue.entry_count) == len(payloads)


def test_a_lost_page_of_the_index_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "q"
    known = written(path, [b"%d" % number for number in range(3000)])
    index = bytearray(Path(f"{path}.index").read_bytes())
    index[4096:8192] = bytes(4096)
    Path(f"{path}.index").write_bytes(index)
    with quire.open(path, format="indexed") as queue:
        assert queue.last_index == known[-1][0]
    first, end = 4096 // LINE * ENTRIES, 8192 // LINE * ENTRIES
    left = [(number, it) for number, it in known if not first <= number < end]
    assert read(path) == left
    assert "were skipped" in caplog.text
    with quire.open(path, format="indexed") as queue, queue.tailer() as tailer:
        tailer.direction = "backward"
        assert tailer.move_to_index(known[-1][0])
        assert [excerpt.index for excerpt in tailer] == [number for number, _ in reversed(left)]


def damaged(base: Path, suffix: str, position: int, piece: bytes) -> None:
    content = bytearray(Path(f"{base}{suffix}").read_bytes())
    content[position : position + len(piece)] = piece
    Path(f"{base}{suffix}").write_bytes(content)


@pytest.mark.parametrize(
    ("position", "piece", "message"),
    [
        (64, b"\xff" * 8, 14),
        (64, bytes(8), 14),
        (8 + 4 * 3, b"\xff\xff\xff\x7f", 3),
        (8 + 4 * 3, b"\x01\x00\x00\x00", 3),
        (8 + 4 * 2, b"\x00\x00\x00\x80", 3),
        (8 + 4 * 3, bytes(4), 3),
    ],
)
def test_a_damaged_entry_is_an_error_with_its_place(
    base: Path, position: int, piece: bytes, message: int
) -> None:
    known = dict(messages(base))
    damaged(base, ".index", position, piece)
    with quire.open(base, format="indexed") as queue, queue.tailer() as tailer:
        tailer.move_to_index(message)
        with pytest.raises(quire.errors.CorruptError, match=r"trades\.(index|data)"):
            tailer.read()
        assert tailer.move_to_index(100)
        assert tailer.read_bytes() == known[100]


def test_short_files_end_the_queue_or_are_an_error(base: Path) -> None:
    known = [*messages(base)]
    with Path(f"{base}.index").open("r+b") as file:
        file.truncate(LINE * 3 + 8 + 4 * 2 + 1)
    assert read(base) == known[: 3 * ENTRIES + 2]
    with Path(f"{base}.data").open("r+b") as file:
        file.truncate(100)
    with (
        quire.open(base, format="indexed") as queue,
        pytest.raises(quire.errors.CorruptError, match=r"found=a file of 100"),
    ):
        _ = [*queue.tailer()]
    with Path(f"{base}.index").open("r+b") as file:
        file.truncate(0)
    assert read(base) == []
    with quire.open(base, format="indexed") as queue:
        assert (queue.first_index, queue.last_index, queue.entry_count) == (None, None, 0)


def test_missing_files_and_links_are_refused(base: Path, tmp_path: Path) -> None:
    with pytest.raises(quire.errors.NotAQueueError, match="is missing"):
        quire.open(tmp_path / "other", format="indexed")
    (tmp_path / "trades.data").rename(tmp_path / "kept")
    with pytest.raises(quire.errors.NotAQueueError, match="is missing"):
        quire.open(base, format="indexed")
    (tmp_path / "trades.data").symlink_to(tmp_path / "kept")
    with pytest.raises((OSError, quire.QuireError)):
        quire.open(base, format="indexed")


def test_a_queue_of_the_same_name_is_still_one(base: Path) -> None:
    with quire.open(base, format="vanilla") as vanilla, vanilla.appender() as appender:
        appender.write_bytes(b"its own directory")
    with quire.open(base) as queue:
        assert isinstance(queue, quire.vanilla.VanillaQueue)
    with quire.open(f"{base}.index") as queue:
        assert isinstance(queue, quire.indexed.IndexedQueue)


def test_it_pickles_merges_and_closes(base: Path) -> None:
    with quire.open(base, format="indexed") as queue:
        again = pickle.loads(pickle.dumps(queue))
        assert isinstance(again, quire.indexed.IndexedQueue)
        with again:
            merged: list[quire.vanilla.VanillaExcerpt] = [
                *quire.read_merged([queue, again], key=lambda excerpt: excerpt.index)
            ]
            assert len(merged) == 2 * len(PAYLOADS)
        tailer = queue.tailer()
    assert tailer.closed
    for use in (tailer.read, lambda: queue.entry_count):
        with pytest.raises(quire.errors.ClosedError):
            use()
