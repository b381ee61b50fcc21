"""Vanilla Chronicles through the handles: what they do, and what they refuse."""

from __future__ import annotations

import enum
import math
import os
import pickle
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import quire
from any_format import open_vanilla
from vanilla_golden import files_of
from vanilla_reference import Geometry, messages

DAY_MS = 86_400_000
SMALL: dict[str, Any] = {"tid_bits": 16, "index_block_bytes": 1024, "data_block_bytes": 4096}
GEOMETRY = Geometry(tid_bits=16, index_block=1024, data_block=4096)


def opened(path: Path, **options: Any) -> quire.vanilla.VanillaQueue:  # noqa: ANN401 - any option
    queue: quire.vanilla.VanillaQueue = open_vanilla(path / "queue", **(SMALL | options))
    return queue


class Side(enum.Enum):
    BUY = 1
    SELL = 2


class Other(enum.Enum):
    LEFT = 1


def test_a_second_reader_written_from_the_page_agrees(tmp_path: Path) -> None:
    with opened(tmp_path) as queue, queue.appender() as appender, queue.appender() as other:
        for number in range(600):
            (other if number % 3 else appender).write_bytes(bytes([number % 256]) * (number % 90))
        found = [(excerpt.index, excerpt.data) for excerpt in queue.tailer()]
        [cycle] = queue.cycles
        folder = Path(queue.directory_for_cycle(cycle))
    assert [*messages(folder, cycle, GEOMETRY)] == found
    assert len(found) == 600


def test_handles_count_as_those_of_any_queue(tmp_path: Path) -> None:
    with opened(tmp_path) as queue:
        assert isinstance(queue, quire.Queue)
        assert isinstance(queue.appender(), quire.Appender)
        assert isinstance(queue.tailer(), quire.Tailer)
        again = pickle.loads(pickle.dumps(queue))
        assert (again.path, again.cycle_format) == (queue.path, "yyyyMMdd")


def test_what_the_format_cannot_do_says_why(tmp_path: Path) -> None:
    with opened(tmp_path) as opened_queue, opened_queue.appender() as opened_appender:
        queue: Any = opened_queue
        appender: Any = opened_appender
        assert not hasattr(queue, "roll_cycle")
        assert getattr(queue, "dump", "nothing") == "nothing"
        assert not hasattr(queue, "group")
        assert getattr(queue, "groups", "nothing") == "nothing"
        with pytest.raises(quire.errors.UnsupportedError, match=r"see VanillaTailer\.claim"):
            queue.group("billing")
        with pytest.raises(
            quire.errors.UnsupportedError, match=r"write_map \(messages are raw bytes"
        ):
            appender.write_map({"a": 1})
        with pytest.raises(
            quire.errors.UnsupportedError, match=r"table_entries \(a Vanilla Chronicle"
        ):
            queue.table_entries()
        with pytest.raises(AttributeError):
            queue.nothing  # noqa: B018
    with pytest.raises(quire.errors.UnsupportedError, match="not an option of a Vanilla Chronicle"):
        opened(tmp_path, wire_type="BINARY_LIGHT")
    with pytest.raises(
        quire.errors.UnsupportedError, match="Vanilla Chronicle: buffer_mode='async'"
    ):
        quire.open(tmp_path, format="vanilla", buffer_mode="async")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"it belongs to quire.vanilla.open\(consumption=...\)"):
        quire.open(tmp_path / "journal", consumption="queue")  # type: ignore[call-overload]


def test_an_excerpt_is_rolled_back_on_an_exception(tmp_path: Path) -> None:
    with opened(tmp_path) as queue, queue.appender() as appender:
        with pytest.raises(KeyError), appender.writing_excerpt() as excerpt:  # noqa: PT012
            excerpt.write_int64(1)
            raise KeyError
        assert excerpt.index is None
        with pytest.raises(quire.errors.ClosedError):
            excerpt.finish()
        index = appender.write_bytes(b"next")
        assert [(it.index, it.data) for it in queue.tailer()] == [(index, b"next")]


def test_fields_are_read_as_they_were_written(tmp_path: Path) -> None:
    with opened(tmp_path) as queue, queue.appender() as appender:
        with appender.writing_excerpt(synchronous=True) as writer:
            writer.write_int32(7)
            writer.write_stop_bit(300)
            writer.write_utf("é😀")
            writer.write_utf(None)
            writer.write_enum(Side.SELL)
            writer.append("text ")
            writer.append(-12)
            writer.append(" 1.5 ")
        excerpt = queue.tailer().read()
    assert excerpt is not None
    assert (excerpt.read_int32(), excerpt.read_stop_bit()) == (7, 300)
    assert (excerpt.read_utf(), excerpt.read_utf()) == ("é😀", None)
    assert excerpt.read_enum(Side) is Side.SELL
    assert excerpt.read_bytes(5) == b"text "
    assert (excerpt.parse_int(), excerpt.parse_float()) == (-12, 1.5)
    with pytest.raises(quire.errors.WireError, match="the message ends within the field"):
        excerpt.read_int8()
    excerpt.position = 0
    assert excerpt.read_int32() == 7


OBJECTS = [
    (None, "4e"),
    (True, "45 03 07 426f6f6c65616e 04 74727565"),
    (-7, "09 02 2d37"),
    (1 << 31, "0c 0a 32313437343833363438"),
    (1 << 63, "45 03 0a 426967496e7465676572 13 39323233333732303336383534373735383038"),
    (1.5, "04 03 312e35"),
    (math.inf, "04 08 496e66696e697479"),
    (Decimal("1.50"), "45 03 0a 426967446563696d616c 04 312e3530"),
    ("é", "13 02 c3a9"),
    (datetime(1970, 1, 1, 0, 0, 1, 234_000, tzinfo=UTC), "14 04 31323334"),
    (b"ab", "02 02 6162"),
]


def test_objects_have_the_bytes_of_javas(tmp_path: Path) -> None:
    with opened(tmp_path) as queue, queue.appender() as appender:
        with appender.writing_excerpt() as writer:
            for value, _ in OBJECTS:
                writer.write_object(value)
        excerpt = queue.tailer().read()
    assert excerpt is not None
    assert excerpt.data == bytes.fromhex("".join(text for _, text in OBJECTS))
    assert [excerpt.read_object() for _ in OBJECTS] == [value for value, _ in OBJECTS]
    with pytest.raises(quire.errors.WireError, match="the message ends within the field"):
        excerpt.read_object()


@pytest.mark.parametrize("value", [None, 5, object()])
def test_what_is_no_enum_is_refused(value: object, tmp_path: Path) -> None:
    with opened(tmp_path) as queue, queue.appender() as appender:
        with (
            pytest.raises(TypeError, match="expected a name or an enum, found"),
            appender.writing_excerpt() as writer,
        ):
            writer.write_enum(value)
        assert queue.tailer().read() is None


@pytest.mark.parametrize("value", [[1], {"a": 1}, Side.BUY, object()])
def test_objects_that_java_would_serialise_are_refused(value: object, tmp_path: Path) -> None:
    with opened(tmp_path) as queue, queue.appender() as appender:
        writer = appender.writing_excerpt()
        with pytest.raises(
            quire.errors.UnsupportedError, match="an object that Java would serialise"
        ):
            writer.write_object(value)
        assert writer.position == 0


def test_objects_are_read_by_their_class(tmp_path: Path) -> None:
    named = b"E\x03\x08app.Side\x04SELL"
    messages = [named, b"E\x03\x05Float\x03NaN", b"E\x03\x05Short\x01x", b"S\xac\xed", b"?"]
    messages.append(b"\x14\x12" + b"9" * 18)
    with opened(tmp_path) as queue:
        queue.appender().write_many(messages)
        side, number, bad, serialised, none, far = queue.tailer()
        with pytest.raises(quire.errors.UnsupportedError, match=r"unknown class: class=.app\.Side"):
            side.read_object()
        with pytest.raises(KeyError):
            side.read_object(Other)
        assert side.position == 0
        assert side.read_object(Side) is Side.SELL
        side.position = 0
        assert (side.read_object(str), side.position) == ("SELL", len(named))
        assert math.isnan(number.read_object())
        with pytest.raises(quire.errors.WireError, match='no object: found="x" expected=int'):
            bad.read_object()
        with pytest.raises(quire.errors.WireError, match="the time is out of the range"):
            far.read_object()
        with pytest.raises(quire.errors.UnsupportedError, match="an object that Java serialised"):
            serialised.read_object()
        with pytest.raises(quire.errors.WireError, match="no object: position=0"):
            none.read_object()


def test_an_excerpt_grows_up_to_a_data_file(tmp_path: Path) -> None:
    with opened(tmp_path) as queue, queue.appender() as appender:
        appender.write_bytes(b"first")
        with appender.writing_excerpt(capacity=8) as excerpt:
            for _ in range(1023):
                excerpt.write_int32(1)
        with (
            pytest.raises(quire.errors.MessageTooLargeError),
            appender.writing_excerpt() as excerpt,
        ):
            excerpt.write_bytes(bytes(4093))
        with pytest.raises(quire.errors.MessageTooLargeError):
            appender.write_bytes(bytes(4093))
        assert [len(payload) for payload in queue.tailer().payloads()] == [5, 4092]


def test_an_empty_message_is_read_wherever_a_data_file_ends(tmp_path: Path) -> None:
    for length in range(64 - 4 + 1):
        path = tmp_path / str(length)
        messages = [bytes(length), b"", b"after"]
        with opened(path, data_block_bytes=64) as queue:
            queue.appender().write_many(messages)
            assert [*queue.tailer().payloads()] == messages


def test_an_entry_of_position_zero_is_an_empty_message_of_the_file_before(tmp_path: Path) -> None:
    with opened(tmp_path, index_block_bytes=64, data_block_bytes=64) as queue:
        queue.appender().write_bytes(bytes(56))
        [index], [data] = tmp_path.glob("*/*/index-0"), tmp_path.glob("*/*/data-*")
        with data.open("r+b") as file:
            file.seek(60)
            file.write(b"\xff\xff\xff\xff")
        with index.open("r+b") as file:
            first = int.from_bytes(file.read(8), "little")
            file.write((first - 4 + 64).to_bytes(8, "little"))
        assert [*queue.tailer().payloads()] == [bytes(56), b""]


def test_messages_are_changed_in_place(tmp_path: Path) -> None:
    with opened(tmp_path) as queue, queue.appender() as appender:
        appender.write_bytes(bytes(20))
        excerpt = queue.tailer().read()
        assert excerpt is not None
        assert excerpt.compare_and_swap_int32(4, 0, -5)
        assert not excerpt.compare_and_swap_int32(4, 0, 6)
        assert excerpt.compare_and_swap_int64(12, 0, 1 << 40)
        assert excerpt.try_lock(0, 7)
        assert excerpt.try_lock(0, 7)
        assert not excerpt.try_lock(0, 8)
        excerpt.unlock(0, 7)
        excerpt.unlock(0, 7)
        with pytest.raises(ValueError, match="not held by this owner"):
            excerpt.unlock(0, 7)
        assert excerpt.try_lock(0)
        excerpt.unlock(0)
        for offset in (1, 18, 20, 1 << 40):
            with pytest.raises(ValueError, match="not an aligned word"):
                excerpt.compare_and_swap_int32(offset, 0, 1)
        assert bytes(excerpt.view[4:8]) == b"\xfb\xff\xff\xff"
        with quire.open(queue.path, read_only=True) as reader:
            read = reader.tailer().read()
            assert isinstance(read, quire.vanilla.VanillaExcerpt)
            with pytest.raises(quire.errors.ReadOnlyError):
                read.compare_and_swap_int32(4, -5, 0)


def test_a_topic_is_never_changed_by_a_claim(tmp_path: Path) -> None:
    with opened(tmp_path) as queue, queue.appender() as appender:
        appender.write_bytes(bytes(8))
        with appender.writing_excerpt(claimable=True) as excerpt:
            excerpt.write_utf("job")
        before = files_of(tmp_path)
        with pytest.raises(quire.errors.UnsupportedError, match="consumption='queue'"):
            queue.tailer().claim(1)
        assert files_of(tmp_path) == before


def test_one_consumer_gets_a_claimable_message(tmp_path: Path) -> None:
    with opened(tmp_path, consumption="queue") as queue, queue.appender() as appender:
        appender.write_bytes(b"job 1")
        appender.write_many([b"job 2", b"job 3"])
        one, other = queue.tailer(), queue.tailer()
        first = one.claim(7)
        assert first is not None
        assert (first.data, first.position, bytes(first.view)) == (b"job 1", 4, b"job 1")
        assert [it.data for it in iter(lambda: other.claim(8), None)] == [b"job 2", b"job 3"]
        assert one.claim(7) is None
        with pytest.raises(ValueError, match="owner=0"):
            one.claim(0)


def test_a_named_tailer_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with opened(tmp_path) as queue, queue.appender() as appender:
        appender.write_many([b"1", b"2", b"3", b"4"])
        with queue.tailer("Risk/ä") as tailer:
            assert tailer.read_many(2) == [b"1", b"2"]
            with pytest.raises(quire.errors.TailerInUseError):
                queue.tailer("Risk/ä")
        with pytest.raises(KeyError), queue.tailer("Risk/ä") as tailer:  # noqa: PT012
            assert tailer.read_bytes() == b"3"
            assert tailer.read_bytes() == b"4"
            raise KeyError
        assert queue.tailer("Risk/ä").read_bytes() == b"4"
        assert not [it for it in Path(queue.path).iterdir() if it.is_dir() and it.name[0] == "."]


def open_under(path: Path) -> list[str]:
    """Files of a directory that this process has open or mapped."""
    links = [Path(it) for it in Path("/proc/self/fd").iterdir()]
    opened = [str(it.readlink()) for it in links if it.is_symlink()]
    maps = Path("/proc/self/maps").read_text(errors="replace")  # paths of others need not be UTF-8
    mapped = [line for line in maps.splitlines() if "/" in line]
    return [it for it in [*opened, *mapped] if str(path) in it]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_queue_closes_the_files_of_its_handles(tmp_path: Path) -> None:
    queue = opened(tmp_path)
    appender, plain, named = queue.appender(), queue.tailer(), queue.tailer("risk")
    appender.write_many([bytes(8), b"2", b"3"])
    first = plain.read()
    assert first is not None
    assert first.compare_and_swap_int32(0, 0, 7)
    assert named.read_many(2) == [b"\x07" + bytes(7), b"2"]
    del first
    assert open_under(tmp_path)

    queue.close()

    assert open_under(tmp_path) == []
    for call in (plain.read, named.read, lambda: appender.write_bytes(b"4"), queue.tailer):
        with pytest.raises(quire.errors.ClosedError):
            call()
    named.close()
    with opened(tmp_path) as again, again.tailer("risk") as tailer:
        assert [*tailer.payloads()] == [b"\x07" + bytes(7), b"2", b"3"]  # nothing was finished


def test_late_messages_of_the_cycle_before_are_delivered(tmp_path: Path) -> None:
    clock = quire.ManualClock(20_000 * DAY_MS)
    with opened(tmp_path, clock=clock, linger_s=600) as queue:
        tailer, slow, quick = queue.tailer(), queue.appender(), queue.appender()
        slow.write_bytes(b"old")
        clock.advance(DAY_MS)
        quick.write_bytes(b"new")
        assert tailer.read_many(9) == [b"old", b"new"]
        clock.now_ms = 20_000 * DAY_MS
        slow.write_bytes(b"late")
        clock.advance(DAY_MS)
        quick.write_bytes(b"newer")
        assert sorted(tailer.read_many(9)) == [b"late", b"newer"]


def test_new_cycles_are_seen_through_a_link_to_the_directory(tmp_path: Path) -> None:
    clock = quire.ManualClock(20_000 * DAY_MS)
    with opened(tmp_path, clock=clock) as queue, queue.appender() as appender:
        appender.write_bytes(b"1")
        link = tmp_path / "link"
        link.symlink_to(queue.path)
        # Old enough for a listing to be kept until the directory changes.
        while link.lstat().st_ctime > time.time() - 0.1:
            time.sleep(0.01)
        with quire.open(link, read_only=True) as linked, linked.tailer() as tailer:
            assert tailer.read_many(9) == [b"1"]
            clock.advance(DAY_MS)
            last = appender.write_bytes(b"2")
            assert tailer.read_many(9) == [b"2"]
            assert linked.last_index == last


def test_columns_go_in_and_out(tmp_path: Path) -> None:
    with opened(tmp_path) as queue, queue.appender() as appender:
        last = appender.write_batch(pa.chunked_array([[b"one", b""], [b"three"]]))
        batch = queue.tailer().read_batch()
        assert batch.column("payload").to_pylist() == [b"one", b"", b"three"]
        assert batch.column("index").to_pylist()[-1] == last
        assert queue.tailer().read_batch(max_bytes=3).num_rows == 2


def test_threads_share_an_appender_and_a_tailer_follows(tmp_path: Path) -> None:
    with opened(tmp_path) as queue, queue.appender() as appender:
        threads = [
            threading.Thread(target=appender.write_many, args=([bytes([it])] * 500,))
            for it in range(4)
        ]
        for thread in threads:
            thread.start()
        followed = queue.tailer().follow(timeout_s=60)
        found = [next(followed).data for _ in range(2000)]
        for thread in threads:
            thread.join()
    assert sorted(found) == [bytes([it]) for it in range(4) for _ in range(500)]


def test_reading_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(quire.errors.NotAQueueError):
        opened(tmp_path, read_only=True)
    assert [*tmp_path.iterdir()] == []
    with pytest.raises(quire.errors.NotAQueueError):
        opened(tmp_path, create=False)
    with opened(tmp_path) as queue:
        queue.appender().write_bytes(b"one")
    before = files_of(tmp_path)
    with quire.open(tmp_path / "queue", read_only=True) as queue:
        assert [*queue.tailer().payloads()] == [b"one"]
        with pytest.raises(quire.errors.ReadOnlyError):
            queue.appender()
        with pytest.raises(quire.errors.ReadOnlyError):
            queue.tailer("name")
    assert files_of(tmp_path) == before


@pytest.mark.parametrize(
    ("pattern", "length_ms", "name"),
    [
        ("yyyy/MM/dd", DAY_MS, "2024/10/04"),
        ("yyyyMMddHH", 3_600_000, "2024100400"),
        ("yyyyMMdd", 7 * DAY_MS, "20241003"),
    ],
)
def test_cycles_have_the_directories_of_their_pattern(
    pattern: str, length_ms: int, name: str, tmp_path: Path
) -> None:
    clock = quire.ManualClock(20_000 * DAY_MS)
    options = {"clock": clock, "cycle_format": pattern, "cycle_length_ms": length_ms}
    with opened(tmp_path, **options) as queue:
        queue.appender().write_bytes(b"one")
        clock.advance(length_ms)
        queue.appender().write_bytes(b"two")
        assert [*queue.tailer().payloads()] == [b"one", b"two"]
    assert (tmp_path / "queue" / name / "index-0").is_file()


def test_data_files_have_the_id_of_the_thread_that_writes_as_in_java(tmp_path: Path) -> None:
    bits: dict[str, Any] = {**SMALL, "tid_bits": 24}

    def write(queue: quire.vanilla.VanillaQueue) -> int:
        queue.appender().write_bytes(b"message")
        return threading.get_native_id()

    with open_vanilla(tmp_path, **bits) as queue, ThreadPoolExecutor(1) as pool:
        ids = {write(queue), pool.submit(write, queue).result()}
        queue.appender(thread_id=7).write_bytes(b"message")
    assert os.getpid() in ids
    assert {int(file.name.split("-")[1]) for file in tmp_path.glob("*/data-*")} == {7, *ids}


def test_an_id_that_entries_have_no_bits_for_is_the_greatest_that_fits(tmp_path: Path) -> None:
    with open_vanilla(tmp_path, **{**SMALL, "tid_bits": 15}) as queue:
        queue.appender().write_bytes(b"message")
    [file] = tmp_path.glob("*/data-*")
    assert int(file.name.split("-")[1]) == min(threading.get_native_id(), 2**15 - 1)
