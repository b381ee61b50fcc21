"""What a stream plans, with its reader driven as Spark drives it, but in this process."""

from __future__ import annotations

import itertools
import json
import resource
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire
from queues import START_MS, snapshot
from quire.errors import CorruptError, DataLossError
from quire.spark import lag_of
from quire.spark.read.checkpoints import split
from quire.spark.read.rate_limits import split_limit
from quire.spark.source_options import ReadOptions
from quire.spark.spark_columns import base_schema
from streams import Driver, Source, pairs


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """Two topics over two days: 6 + 3 and 2 + 0 messages."""
    source = Source(tmp_path / "queues")
    source.record("orders", 6)
    source.record("trades", 2)
    source.roll()
    source.record("orders", 3)
    return source


def test_a_stream_without_news_stays_where_it_is(source: Source) -> None:
    driver = Driver(source)
    assert driver.batch() == 11

    assert driver.plan() == driver.offsets
    driver.restart()
    assert driver.plan() == driver.offsets
    assert driver.numbers() == source.numbers()


def test_an_offset_is_the_next_index_of_each_topic(source: Source) -> None:
    ends = {topic: source.indexes(topic)[-1] + 1 for topic in ("orders", "trades")}

    assert split(Driver(source).plan())[0] == ends
    assert Driver(source, startingOffsets="latest").plan() == ends


def test_a_stream_starts_where_it_is_asked_to(source: Source) -> None:
    offsets = {"orders": hex(source.indexes("orders")[5]), "trades": "latest"}
    by_offsets = Driver(source, startingOffsets=json.dumps(offsets))
    assert by_offsets.batch() == 4

    at = str(source.clock.now_ms + 7_000)
    by_time = Driver(source, startingTimestamp=at, timestampField="at")
    assert by_time.batch() == 2
    assert by_time.numbers() == [("orders", 7), ("orders", 8)]


def test_a_batch_is_cut_into_tasks_as_asked(source: Source) -> None:
    for options, count in (({"recordsPerPartition": "4"}, 3), ({"minPartitions": "5"}, 5)):
        driver = Driver(source, **options)
        assert len(driver.reader.partitions({}, driver.plan())) == count


def test_reading_leaves_every_byte_alone(source: Source) -> None:
    before = snapshot(source.path / "orders")

    assert Driver(source).batch() == 11
    assert snapshot(source.path / "orders") == before


def test_a_cycle_that_was_read_to_its_end_may_be_deleted(source: Source) -> None:
    driver = Driver(source)
    for _ in range(3):
        driver.batch()
        source.roll()
        source.record("orders", 2)
        driver.batch()
        source.prune("orders", -1)

    driver.batch()
    assert driver.numbers() == source.numbers()


@pytest.fixture
def read_to_an_end(tmp_path: Path) -> Driver:
    """One topic over two days, read to the end of the first, which is finished."""
    source = Source(tmp_path / "queues")
    source.record("orders", 6)
    source.roll()
    source.record("orders", 3)
    driver = Driver(source)
    assert driver.batch(6) == 6
    return driver


def test_a_cycle_that_ends_where_the_stream_is_may_be_deleted(read_to_an_end: Driver) -> None:
    read_to_an_end.source.prune("orders")

    read_to_an_end.batch()
    assert read_to_an_end.numbers() == read_to_an_end.source.numbers()


def test_a_queue_made_anew_is_not_taken_for_the_one_before(read_to_an_end: Driver) -> None:
    source = read_to_an_end.source
    source.delete("orders")
    source.clock.now_ms = START_MS
    source.record("orders", 2)

    with pytest.raises(DataLossError, match="topic=orders"):
        read_to_an_end.plan()


def test_a_deleted_cycle_was_not_read_for_all_that_a_new_start_knows(source: Source) -> None:
    driver = Driver(source)
    driver.batch()
    source.prune("orders", 2)
    driver.restart()
    assert driver.plan() == driver.offsets  # nothing says that there was more

    source.roll()
    source.record("orders", 1)
    with pytest.raises(DataLossError, match="messages are gone: topic=orders expected=0x"):
        driver.plan()


@pytest.mark.parametrize("batches", [1, 2])
def test_a_cycle_that_is_deleted_between_others_is_a_loss(source: Source, batches: int) -> None:
    source.roll()
    source.record("orders", 2)
    driver = Driver(source)
    for _ in range(batches):
        driver.batch(4)
    (source.path / "orders").joinpath(sorted(source.path.glob("orders/*.cq4"))[1]).unlink()

    with pytest.raises(DataLossError, match="topic=orders"):
        driver.plan()


def test_a_planned_batch_that_is_gone_is_a_loss(source: Source) -> None:
    driver = Driver(source)
    end = driver.plan()
    assert driver.offsets is not None
    source.prune("orders", 2)

    driver.restart()
    with pytest.raises(DataLossError, match=r"topic=orders expected=0x\w+ first=none"):
        driver.read(driver.offsets, end)

    driver.options["failOnDataLoss"] = "false"
    driver.restart()
    assert pairs(driver.read(driver.offsets, end)) == [("trades", 0), ("trades", 1)]


def test_what_is_lost_is_reported_once_where_it_is_allowed(
    source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    driver = Driver(source, failOnDataLoss="false")
    driver.batch(4)
    source.prune("orders")
    source.delete("trades")

    for _ in range(3):
        driver.batch()
    first = source.indexes("orders")[0]
    logged = [record.message for record in caplog.records if record.name == "quire.spark"]
    assert len(logged) == 2
    assert f"topic=orders expected={first - 2**32 + 3:#x} first={first:#x}" in logged[0]
    assert "topic=trades" in logged[1]
    assert "first=none" in logged[1]
    assert driver.numbers()[-3:] != source.numbers()[-3:]
    assert [n for topic, n in driver.numbers() if topic == "orders"] == [0, 1, 2, 6, 7, 8]


def test_a_queue_made_anew_is_read_from_its_start(source: Source) -> None:
    driver = Driver(source)
    driver.batch()
    source.delete("orders")
    source.counts["orders"] = 0
    source.record("orders", 2)

    with pytest.raises(DataLossError, match="topic=orders"):
        driver.plan()
    driver.options["failOnDataLoss"] = "false"
    driver.restart()
    assert driver.batch() == 2
    assert [row["n"] for row in driver.rows[-2:]] == [0, 1]


def lose_tail(source: Source, saved: bytes, count: int) -> None:
    """Put an older copy of the only file of `orders` in its place, and append others."""
    next((source.path / "orders").glob("*.cq4")).write_bytes(saved)
    source.counts["orders"] = 100
    source.record("orders", count)


@pytest.mark.parametrize("count", [4, 7])
@pytest.mark.parametrize("restarted", ["", "restarted"])
def test_others_in_the_place_of_messages_that_were_read_are_a_loss(
    tmp_path: Path, count: int, restarted: str
) -> None:
    source = Source(tmp_path / "queues")
    source.record("orders", 6)
    saved = next((source.path / "orders").glob("*.cq4")).read_bytes()
    source.record("orders", 4)
    driver = Driver(source)
    assert driver.batch() == 10
    lose_tail(source, saved, count)

    if restarted:
        driver.restart()
    with pytest.raises(DataLossError, match=r"gone, others are in their place: topic=orders"):
        driver.plan()
    driver.options["failOnDataLoss"] = "false"
    driver.restart()
    source.record("orders", 1)
    assert driver.batch() == 6 + count + 1  # the whole cycle
    driver.options["failOnDataLoss"] = "true"
    driver.restart()
    source.record("orders", 2)
    assert driver.batch() == 2


def test_an_offset_past_the_end_of_a_file_that_was_cut_is_a_loss(tmp_path: Path) -> None:
    source = Source(tmp_path / "queues")
    source.record("orders", 6)
    saved = next((source.path / "orders").glob("*.cq4")).read_bytes()
    source.record("orders", 4)
    driver = Driver(source)
    driver.batch()
    lose_tail(source, saved, 0)

    with pytest.raises(DataLossError, match=r"gone, others are in their place: topic=orders"):
        driver.plan()


@pytest.mark.parametrize("roll_cycle", ["TEST4_DAILY", "WEEKLY"])
@pytest.mark.parametrize("restarted", ["", "restarted"])
def test_a_queue_that_ends_before_the_cycle_that_was_read_is_a_loss(
    source: Source, caplog: pytest.LogCaptureFixture, roll_cycle: str, restarted: str
) -> None:
    """As an older copy does, or one whose cycles are longer: no later message would be read."""
    driver = Driver(source)
    driver.batch()
    source.delete("orders")
    clock = quire.ManualClock(START_MS)
    with quire.open(source.path / "orders", roll_cycle=roll_cycle, clock=clock) as queue:
        queue.appender().write_map({"n": 0})

    if restarted:
        driver.restart()
    gone = (
        r"others are in their place: topic=orders expected=0x\w+ first=none, the queue ends earlier"
    )
    with pytest.raises(DataLossError, match=gone):
        driver.plan()
    driver.options["failOnDataLoss"] = "false"
    driver.restart()
    assert [driver.plan() for _ in range(3)] == [driver.offsets] * 3
    assert len([it for it in caplog.records if "the queue ends earlier" in it.message]) == 1


def test_others_in_the_place_of_messages_that_were_planned_are_a_loss(tmp_path: Path) -> None:
    source = Source(tmp_path / "queues")
    source.record("orders", 6)
    saved = next((source.path / "orders").glob("*.cq4")).read_bytes()
    driver = Driver(source)
    driver.batch(5)
    source.record("orders", 4)
    end = driver.plan()
    assert driver.offsets is not None
    assert len(driver.read(driver.offsets, end)) == 5
    lose_tail(source, saved, 7)

    with pytest.raises(DataLossError, match="topic=orders"):
        driver.read(driver.offsets, end)


def test_checkpoints_without_marks_are_understood(source: Source) -> None:
    driver = Driver(source)
    driver.batch(4)
    assert driver.offsets is not None
    for it in driver.offsets["/expected"].values():
        assert len(it.pop("mark")) == 32
    driver.restart()

    driver.batch()
    assert driver.numbers() == source.numbers()


def test_all_topics_may_be_gone_or_still_to_come(tmp_path: Path) -> None:
    source = Source(tmp_path / "queues")
    source.path.mkdir()
    driver = Driver(source)

    assert driver.batch() == 0
    assert driver.offsets == {}
    source.record("orders", 0)
    assert driver.plan() == {}
    source.record("orders", 2)
    assert driver.batch() == 2


def test_more_topics_than_files_may_be_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source(tmp_path / "queues")
    for number in range(40):
        source.record(f"topic{number}", 2)
    monkeypatch.setattr("quire.spark.read.stream._OPEN_MAX", 3)
    with few_files():
        driver = Driver(source, startingOffsets="latest")
        assert driver.batch() == 0
        driver = Driver(source)
        driver.reader.prepareForTriggerAvailableNow()
        while driver.batch(9):
            pass
    assert driver.numbers() == source.numbers()


def test_a_schema_is_inferred_of_more_topics_than_files_may_be_open(tmp_path: Path) -> None:
    source = Source(tmp_path / "queues")
    for number in range(40):
        source.record(f"topic{number}", 2)
    options = ReadOptions.of({"path": str(source.path), "inferSchema": "true"})
    with few_files():
        schema = base_schema(options)
    assert schema is not None
    assert "n" in schema.columns.names


@contextmanager
def few_files() -> Generator[None]:
    """Leave thirty numbers of files: the limit is on the numbers, and some above may be in use."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = {int(it.name) for it in Path("/dev/fd").iterdir()}
    free = (number for number in itertools.count() if number not in in_use)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next(itertools.islice(free, 30, None)), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))


@pytest.mark.parametrize("asked", ["initialOffset", "prepareForTriggerAvailableNow"])
def test_damage_is_reported_with_its_topic_from_the_start(source: Source, asked: str) -> None:
    for file in (source.path / "trades").glob("*.cq4"):
        file.write_bytes(b"\1" * 4096)
    reader = Driver(source, startingOffsets="latest").reader

    with pytest.raises(CorruptError, match="topic=trades"):
        getattr(reader, asked)()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("record"), st.sampled_from("abc"), st.integers(1, 5)),
        st.tuples(st.just("roll")),
        st.tuples(st.just("batch"), st.one_of(st.none(), st.integers(1, 6)), st.booleans()),
        st.tuples(st.just("restart")),
    ),
    max_size=25,
)


@given(steps=STEPS)
def test_whatever_happens_each_message_comes_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]]
) -> None:
    source = Source(tmp_path_factory.mktemp("queues"))
    driver = Driver(source)
    for name, *arguments in steps:
        if name == "record":
            source.record(*arguments)
        elif name == "roll":
            source.roll()
        elif name == "restart":
            driver.restart()
        else:
            limit, crash = arguments
            assert driver.batch(limit, crash=crash) <= (limit or 10**9)
    driver.batch()

    assert driver.numbers() == source.numbers()
    for topic in source.counts:
        came = [row["n"] for row in driver.rows if row["_topic"] == topic]
        assert came == sorted(came)


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 10**12)),
    st.integers(1, 10**12),
    st.integers(0, 99),
)
def test_quotas_fill_the_limit_in_proportion(lags: dict[str, int], limit: int, turn: int) -> None:
    given_out = split_limit(lags, limit, turn)
    total, waiting = sum(lags.values()), sum(lag > 0 for lag in lags.values())

    assert sum(given_out.values()) == min(limit, total)
    assert all(0 <= given_out[topic] <= lag for topic, lag in lags.items())
    if limit >= waiting:
        assert all(given_out[topic] or not lag for topic, lag in lags.items())
        for topic, lag in lags.items() if total > limit else ():
            assert abs(given_out[topic] - limit * lag / total) <= waiting + 1e-3 * limit


def test_topics_take_turns_when_not_all_get_a_message() -> None:
    lags = dict.fromkeys("abcde", 100)
    got = Counter[str]()
    for turn in range(0, 10, 2):
        got.update(split_limit(lags, 2, turn))

    assert set(got.values()) == {2}


def test_lags_are_told_beside_other_sources() -> None:
    newest = ['{"a": {"index": 7, "lag": 3}, "b": {"index": 1, "lag": 0}}', None, "12"]
    newest += ['{"topic": {"0": 5}}', '{"a": {"index": 9, "lag": 1}}']

    assert lag_of(None) == {}
    assert lag_of({"sources": [{"latestOffset": each} for each in newest]}) == {"a": 4, "b": 0}


def test_a_stream_says_that_repair_cut_messages_which_it_had_read(tmp_path: Path) -> None:
    source = Source(tmp_path / "queues")
    source.record("orders", 10)
    driver = Driver(source)
    assert driver.batch() == 10
    [file] = (source.path / "orders").glob("*.cq4")
    content = bytearray(file.read_bytes())
    with quire.open(source.path / "orders", read_only=True) as queue, queue.tailer() as tailer:
        *_, last = tailer
    start, length = content.rindex(last.data) - 4, len(last.data) + 4
    content[start : start + length] = bytes(length)  # as a power cut leaves the last message
    file.write_bytes(content)
    quire.repair(source.path / "orders", dry_run=False)
    with pytest.raises(DataLossError, match="topic=orders"):
        driver.plan()
    source.record("orders", 3)
    with pytest.raises(DataLossError, match="topic=orders"):
        driver.plan()
