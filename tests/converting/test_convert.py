"""Conversions between all formats: the same messages, and a map of their indexes."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quick_golden
import quire
import vanilla_golden
from converted import INTO, QUEUES, Into, check_map, fill, messages, payloads
from golden_sets import MAIN, name_of
from indexed_reference import written
from queues import DAY_MS, START_MS, snapshot

DAYS = [[b"%d of day %d" % (number, day) for number in range(40)] for day in range(3)]


@pytest.mark.parametrize("into", INTO)
@pytest.mark.parametrize("kind", QUEUES)
def test_each_format_is_converted_into_each(kind: Into, into: Into, tmp_path: Path) -> None:
    source, dest = tmp_path / "source", tmp_path / "dest"
    expected = fill(source, kind, DAYS)
    before = snapshot(source)

    done = quire.convert(source, dest, into=into)

    found = messages(dest)
    assert payloads(found) == payloads(expected)
    assert done == quire.converting.Converted(120, 120, 0, found[-1][0])
    check_map(dest, expected, found)
    assert snapshot(source) == before
    again = quire.convert(source, dest, into=into)
    assert again == quire.converting.Converted(120, 0, 0, found[-1][0])
    assert messages(dest) == found


@pytest.mark.parametrize("into", ["chronicle", "vanilla"])
@pytest.mark.parametrize("kind", ["chronicle", "vanilla"])
def test_messages_keep_their_days(kind: Into, into: Into, tmp_path: Path) -> None:
    fill(tmp_path / "source", kind, DAYS)
    quire.convert(tmp_path / "source", tmp_path / "dest", into=into)
    with quire.open(tmp_path / "dest", read_only=True) as queue:
        first = START_MS // DAY_MS
        assert queue.cycles == [first, first + 2, first + 4]


def test_there_and_back_is_the_same(tmp_path: Path) -> None:
    expected = fill(tmp_path / "source", "chronicle", DAYS)
    quire.convert(tmp_path / "source", tmp_path / "there", into="vanilla")
    quire.convert(tmp_path / "there", tmp_path / "back", into="chronicle")
    assert messages(tmp_path / "back") == expected


@given(
    kind=st.sampled_from(QUEUES),
    into=st.sampled_from(INTO),
    days=st.lists(st.lists(st.binary(min_size=1, max_size=4000), max_size=30), max_size=4),
)
@settings(max_examples=15)
def test_any_messages_are_the_same_in_any_format(
    kind: Into, into: Into, days: list[list[bytes]]
) -> None:
    with TemporaryDirectory() as folder:
        source, dest = Path(folder, "source"), Path(folder, "dest")
        expected = fill(source, kind, days)
        if not any(source.iterdir()):
            return  # a Vanilla Chronicle without a message has no files
        done = quire.convert(source, dest, into=into)
        found = messages(dest)
        assert payloads(found) == [payload for day in days for payload in day]
        assert done.messages == done.written == len(found)
        check_map(dest, expected, found)


@pytest.mark.parametrize("name", vanilla_golden.NAMES)
def test_what_java_wrote_as_a_vanilla_chronicle_is_converted(name: str, tmp_path: Path) -> None:
    source = vanilla_golden.unpack(name, tmp_path)
    listed = vanilla_golden.listing(name)["excerpts"]
    expected = [(it["index"], bytes.fromhex(it["hex"])) for it in listed]
    dest = tmp_path / "dest"

    done = quire.convert(source, dest, into="chronicle", skip=True)

    held = [message for message in expected if message[1]]
    found = messages(dest)
    assert payloads(found) == payloads(held)
    assert (done.messages, done.skipped) == (len(held), len(expected) - len(held))
    check_map(dest, held, found)


@pytest.mark.parametrize("into", ["chronicle", "vanilla"])
def test_what_java_wrote_as_a_quick_queue_is_converted(into: Into, tmp_path: Path) -> None:
    quick_golden.unpack(tmp_path)
    for name in quick_golden.WITH_FILES:
        listed = quick_golden.listing(tmp_path, name).delivered()
        expected = [(index, payload) for index, _, payload in listed]
        dest = tmp_path / f"{name}-{into}"
        quire.convert(tmp_path / name, dest, into=into)
        assert payloads(messages(dest)) == payloads(expected)
        check_map(dest, expected, messages(dest))


@pytest.mark.parametrize("golden", [*MAIN.iterdir()], ids=name_of)
def test_what_java_wrote_as_a_chronicle_queue_is_converted(golden: Path, tmp_path: Path) -> None:
    expected = messages(golden)
    quire.convert(golden, tmp_path / "dest", into="vanilla")
    assert payloads(messages(tmp_path / "dest")) == payloads(expected)
    check_map(tmp_path / "dest", expected, messages(tmp_path / "dest"))


def test_entries_of_dead_producers_are_gaps_in_the_map(tmp_path: Path) -> None:
    source, dest = tmp_path / "source", tmp_path / "dest"
    with quire.quick_queue.open(source, page_bytes=4096) as queue:
        for name in ("AA0", "AA1"):
            with queue.appender(name) as appender:
                appender.write_many(b"%d" % number for number in range(5))
        (index_page,) = source.glob("*.qmx")
    with index_page.open("r+b") as file:  # the claim of a producer that nobody knows any more
        file.seek(3 * 16)
        file.write(bytes(8) + b"\x01\x00\x00\x00" + b"9ZZ" + b"\x00")
    expected = messages(source)
    assert len(expected) == 9

    quire.convert(source, dest, into="chronicle")

    assert payloads(messages(dest)) == payloads(expected)
    check_map(dest, expected, messages(dest))
    with pytest.raises(KeyError):
        quire.converting.IndexMap(dest)[3 * 16]


@pytest.mark.parametrize("salvages", [False, True])
def test_blocks_are_as_large_as_messages_need(tmp_path: Path, salvages: bool) -> None:  # noqa: FBT001
    source, dest, clock = tmp_path / "source", tmp_path / "dest", quire.ManualClock(0)
    long = b"x" * (17 << 20)  # more than the default block holds
    with (
        quire.open(source, block_bytes=128 << 20, clock=clock, roll_cycle="FAST_DAILY") as queue,
        queue.appender() as appender,
    ):
        for message in (b"before", long, b"after", long + b"!"):
            appender.write_bytes(message)
            clock.advance(40_000_000)
    expected = messages(source)
    if salvages:
        quire.salvage(source, dest)
    else:
        quire.convert(source, dest, into="chronicle")
    assert messages(dest) == expected
    assert quire.verify(dest).findings == ()


def test_messages_that_a_format_cannot_hold_stop_it_or_are_skipped(tmp_path: Path) -> None:
    source, dest = tmp_path / "source", tmp_path / "dest"
    expected = fill(source, "vanilla", [[b"one", b"", b"x" * 70_000, b"two"], [b""]])

    with pytest.raises(
        quire.errors.ConvertError, match=r"cannot hold a message: .*length=0 limits=1\.\."
    ):
        quire.convert(source, dest, into="chronicle", block_bytes=65_536)
    with pytest.raises(quire.errors.ConvertError, match="not complete"):
        quire.converting.IndexMap(dest)
    done = quire.convert(source, dest, into="chronicle", block_bytes=65_536, skip=True)

    held = [expected[0], expected[3]]
    assert payloads(messages(dest)) == [b"one", b"two"]
    assert (done.messages, done.skipped) == (2, 3)
    check_map(dest, held, messages(dest))
    skipped = [line for line in lines_of(dest) if "skipped" in line][:-1]
    assert skipped == [
        {"skipped": f"{index:#x}", "length": len(payload)}
        for index, payload in (expected[1], expected[2], expected[4])
    ]
    with pytest.raises(KeyError):
        quire.converting.IndexMap(dest)[expected[1][0]]


def lines_of(dest: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (dest / "_indexes.jsonl").read_text().splitlines()]


def test_large_messages_are_converted_into_larger_blocks(tmp_path: Path) -> None:
    source, dest = tmp_path / "source", tmp_path / "dest"
    large = bytes(range(256)) * 40_000  # more than is read at once
    with quire.quick_queue.open(source, page_bytes=1 << 16) as queue:
        queue.appender().write_many([b"one", large, b"two"])

    quire.convert(source, dest, into="vanilla", block_bytes=1 << 24)

    assert payloads(messages(dest)) == [b"one", large, b"two"]


def test_what_the_source_gains_is_added(tmp_path: Path) -> None:
    source, dest = tmp_path / "source", tmp_path / "dest"
    fill(source, "vanilla", DAYS)
    quire.convert(source, dest, into="quick-queue")
    with quire.open(source, clock=quire.ManualClock(START_MS + 9 * DAY_MS)) as queue:
        queue.appender().write_many([b"more", b"and more"])

    done = quire.convert(source, dest, into="quick-queue")

    assert (done.messages, done.written) == (122, 2)
    check_map(dest, messages(source), messages(dest))


def test_messages_without_a_time_stay_in_the_cycle_in_which_the_conversion_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, dest = tmp_path / "source", tmp_path / "dest"
    fill(source, "quick-queue", DAYS)
    monkeypatch.setattr("time.time_ns", lambda: START_MS * 1_000_000)
    quire.convert(source, dest, into="chronicle")
    with quire.open(source) as queue:
        queue.appender().write_bytes(b"later")
    monkeypatch.setattr("time.time_ns", lambda: (START_MS + DAY_MS) * 1_000_000)

    quire.convert(source, dest, into="chronicle")

    with quire.open(dest, read_only=True) as queue:
        assert queue.cycles == [START_MS // DAY_MS]
        assert queue.entry_count == 121


def test_a_roll_cycle_can_be_chosen(tmp_path: Path) -> None:
    source = tmp_path / "source"
    fill(source, "vanilla", DAYS)
    quire.convert(source, tmp_path / "dest", into="chronicle", roll_cycle="FAST_HOURLY")
    with quire.open(tmp_path / "dest", read_only=True) as queue:
        assert queue.roll_cycle.name == "FAST_HOURLY"
        assert queue.cycles == [24 * (START_MS // DAY_MS + day) for day in (0, 2, 4)]


def test_a_chronicle_queue_keeps_what_it_was_made_with(tmp_path: Path) -> None:
    with quire.open(
        tmp_path / "source", roll_cycle="HOURLY", epoch_ms=900_000, source_id=7
    ) as queue:
        queue.appender().write_text("hello")
        quire.convert(queue, tmp_path / "dest", into="chronicle")
        with quire.open(tmp_path / "dest", read_only=True) as dest:
            for name in ("roll_cycle", "epoch_ms", "source_id", "wire_type", "last_index"):
                assert getattr(dest, name) == getattr(queue, name)


def test_progress_is_reported_by_step(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    fill(tmp_path / "source", "chronicle", DAYS)

    def progress(what: str, done: int, total: int) -> None:
        seen.append((what, done, total))

    quire.convert(tmp_path / "source", tmp_path / "dest", into="vanilla", progress=progress)

    counts = [(done, 120) for done in (40, 80, 120)]
    assert seen == [(what, *it) for what in ("converting", "verifying") for it in counts]


@pytest.mark.parametrize("kind", QUEUES)
def test_what_arrives_meanwhile_is_left_for_the_next_time(kind: Into, tmp_path: Path) -> None:
    source, dest = tmp_path / "source", tmp_path / "dest"
    fill(source, kind, DAYS)
    options = {} if kind == "quick-queue" else {"clock": quire.ManualClock(START_MS + 9 * DAY_MS)}
    opened: Any = quire.open
    with opened(source, **options) as queue, queue.appender() as appender:

        def progress(*_: object) -> None:
            appender.write_bytes(b"meanwhile")

        assert quire.convert(source, dest, into="vanilla", progress=progress).messages == 120
    everything = messages(source)
    assert quire.convert(source, dest, into="vanilla").messages == len(everything) > 120
    assert payloads(messages(dest)) == payloads(everything)


def test_a_late_message_of_a_writer_is_an_error_and_not_a_gap(tmp_path: Path) -> None:
    source, late = tmp_path / "source", quire.ManualClock(START_MS)
    megabytes = [bytes([number]) * 1_000_000 for number in range(10)]  # more than one read
    clock = quire.ManualClock(START_MS)
    with quire.open(source, format="vanilla", clock=clock) as queue, queue.appender() as appender:
        appender.write_bytes(b"early")
        clock.advance(DAY_MS)
        appender.write_many(megabytes)
    with quire.open(source, clock=late) as writer, writer.appender() as slow:

        def progress(*_: object) -> None:
            slow.write_bytes(b"late")

        with pytest.raises(quire.errors.ConvertError, match=r"earlier cycle|another message"):
            quire.convert(source, tmp_path / "dest", into="chronicle", progress=progress)
    done = quire.convert(source, tmp_path / "again", into="chronicle")
    assert done.messages == len(messages(source))


@pytest.mark.parametrize("into", INTO)
def test_an_indexed_chronicle_is_converted(into: Into, tmp_path: Path) -> None:
    expected = written(tmp_path / "source", [payload for day in DAYS for payload in day])
    dest = tmp_path / "dest"
    assert quire.convert(tmp_path / "source", dest, into=into).messages == 120
    assert payloads(messages(dest)) == payloads(expected)
    check_map(dest, expected, messages(dest))
