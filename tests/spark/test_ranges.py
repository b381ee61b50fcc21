import pickle
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import BinaryType, LongType, StructType

import quire
from paths import GOLDEN
from quire.errors import OptionsError
from quire.ranges.cycles import CycleRange
from quire.spark.read.batch_reader import BatchReader
from quire.spark.read.partitions import (
    RECORDS_PER_PARTITION_MIN,
    Partition,
    TopicRange,
    partitions_of,
)
from quire.spark.source_options import ReadOptions

CYCLE = 1 << 32


def span(*runs: CycleRange, topic: str = "q") -> TopicRange:
    return TopicRange(topic, f"/queues/{topic}", runs)


def as_runs(partitions: list[Partition]) -> list[list[tuple[str, int, int]]]:
    return [
        [(span.topic, run.first_index, run.count) for span in share.spans for run in span.runs]
        for share in partitions
    ]


def test_a_share_spans_as_many_cycles_and_topics_as_it_needs() -> None:
    spans = [
        span(CycleRange(7 * CYCLE, 3), CycleRange(8 * CYCLE, 2), CycleRange(11 * CYCLE, 4)),
        span(CycleRange(7 * CYCLE, 2), topic="r"),
    ]

    assert as_runs(partitions_of(spans, 1_000)) == [
        [
            ("q", 7 * CYCLE, 3),
            ("q", 8 * CYCLE, 2),
            ("q", 11 * CYCLE, 4),
            ("r", 7 * CYCLE, 2),
        ]
    ]
    assert as_runs(partitions_of(spans, 4)) == [
        [("q", 7 * CYCLE, 3), ("q", 8 * CYCLE, 1)],
        [("q", 8 * CYCLE + 1, 1), ("q", 11 * CYCLE, 3)],
        [("q", 11 * CYCLE + 3, 1), ("r", 7 * CYCLE, 2)],
    ]


@given(counts=st.lists(st.integers(1, 60), min_size=1, max_size=6), wanted=st.integers(1, 90))
def test_shares_are_as_many_as_asked_for_and_hold_each_message_once(
    counts: list[int], wanted: int
) -> None:
    spans = [
        span(CycleRange(n * CYCLE, count), topic=f"t{n % 2}") for n, count in enumerate(counts)
    ]
    partitions = partitions_of(spans, 1_000, min_partitions=wanted)

    assert len(partitions) == max(min(wanted, sum(counts)), 1)
    found = [
        (topic, index)
        for runs in as_runs(partitions)
        for topic, first, count in runs
        for index in range(first, first + count)
    ]
    assert found == [
        (f"t{n % 2}", n * CYCLE + place) for n, count in enumerate(counts) for place in range(count)
    ]


def test_there_are_as_many_shares_as_asked_for_if_there_are_as_many_messages() -> None:
    assert len(partitions_of([span(CycleRange(0, 10))], 1_000, min_partitions=5)) == 5
    assert len(partitions_of([span(CycleRange(0, 11))], 1_000, min_partitions=5)) == 5
    assert len(partitions_of([span(CycleRange(0, 3))], 1_000, min_partitions=5)) == 3
    assert partitions_of([span()], 1_000, min_partitions=5) == []


@pytest.mark.parametrize("total", [0, 1, 9_999, 10_001, 1_000_000, 12_345_678])
def test_shares_are_about_equal_and_not_above_the_wanted_size(total: int) -> None:
    partitions = partitions_of([span(CycleRange(0, total))] if total else [], 100_000)
    runs = [run for share in partitions for span in share.spans for run in span.runs]

    assert sum(run.count for run in runs) == total
    assert all(run.count <= 100_000 for run in runs)
    assert all(one.end_index == other.first_index for one, other in pairwise(runs))
    assert not runs or min(run.count for run in runs) >= min(total, RECORDS_PER_PARTITION_MIN // 2)


def test_a_share_and_a_reader_pickle() -> None:
    found = pickle.loads(pickle.dumps(Partition([span(CycleRange(CYCLE, 3))])))
    schema = StructType().add("n", LongType()).add("payload", BinaryType())
    reader = pickle.loads(pickle.dumps(BatchReader(ReadOptions("/queue"), schema)))

    assert found.spans == (span(CycleRange(CYCLE, 3)),)
    assert isinstance(reader, BatchReader)


def test_every_wrong_option_is_reported_at_once() -> None:
    with pytest.raises(OptionsError) as caught:
        ReadOptions.of({"path": "/no/such", "batchRows": "0", "recordsPerPartition": "x", "to": ""})

    for part in ("path=/no/such", "batchRows=0", "recordsPerPartition=x", "unknown option: to"):
        assert part in str(caught.value)


def test_options_ignore_case_and_understand_file_addresses() -> None:
    read = ReadOptions.of({"PATH": "file:///tmp", "BATCHROWS": "7"})

    assert (read.path, read.batch_rows) == ("/tmp", 7)  # noqa: S108


@pytest.mark.parametrize("release", sorted(path.name for path in GOLDEN.glob("java-*")))
def test_java_queues_read_in_small_ranges_as_a_tailer_reads_them(release: str) -> None:
    for path in sorted({file.parent for file in (GOLDEN / release).rglob("*.cq4")}):
        with quire.open(path, read_only=True) as queue:
            messages = [(message.index, message.data) for message in queue.tailer()]

        assert read_in_ranges(path) == messages, path.name


def read_in_ranges(path: Path) -> list[tuple[int, bytes]]:
    schema = StructType().add("_index", LongType()).add("payload", BinaryType())
    options = ReadOptions(str(path), records_per_partition=7, batch_rows=5)
    reader = BatchReader(options, schema)
    batches = [batch for found in reader.partitions() for batch in reader.read(found)]
    return [(row["_index"], row["payload"]) for batch in batches for row in batch.to_pylist()]
