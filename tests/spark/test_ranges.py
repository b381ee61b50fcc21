import pickle
from pathlib import Path

import pytest
from pyspark.sql.types import BinaryType, LongType, StructType

import quire
from quire.spark.batch import (
    RECORDS_PER_PARTITION_MIN,
    BatchReader,
    IndexRange,
    Run,
    partition_size,
    ranges_of,
)
from quire.spark.options import OptionsError, ReadOptions
from quire.spark.schema import declared

CYCLE = 1 << 32
GOLDEN = Path(__file__).parents[1] / "golden"


def as_pairs(ranges: list[IndexRange]) -> list[tuple[int, int]]:
    return [(found.first_index, found.count) for found in ranges]


def test_a_range_spans_as_many_cycles_as_it_needs() -> None:
    runs = [Run(7 * CYCLE, 3), Run(8 * CYCLE, 2), Run(11 * CYCLE, 4)]

    assert as_pairs(list(ranges_of(runs, 5))) == [(7 * CYCLE, 5), (11 * CYCLE, 4)]
    assert as_pairs(list(ranges_of(runs, 4))) == [
        (7 * CYCLE, 4),
        (8 * CYCLE + 1, 4),
        (11 * CYCLE + 3, 1),
    ]


def test_a_large_cycle_is_cut() -> None:
    assert as_pairs(list(ranges_of([Run(5, 10)], 4))) == [(5, 4), (9, 4), (13, 2)]


@pytest.mark.parametrize("total", [0, 1, 9_999, 10_001, 1_000_000, 12_345_678])
def test_ranges_are_about_equal_and_not_above_the_wanted_size(total: int) -> None:
    size = partition_size(total, 100_000)
    counts = [found.count for found in ranges_of([Run(0, total)] if total else [], size)]

    assert sum(counts) == total
    assert all(count <= 100_000 for count in counts)
    assert not counts or min(counts) >= min(total, RECORDS_PER_PARTITION_MIN // 2)


def test_a_range_and_a_reader_pickle() -> None:
    found = pickle.loads(pickle.dumps(IndexRange(CYCLE, 3)))
    reader = pickle.loads(pickle.dumps(BatchReader(ReadOptions("/queue"), StructType())))

    assert (found.first_index, found.count) == (CYCLE, 3)
    assert isinstance(reader, BatchReader)


def test_every_wrong_option_is_told_at_once() -> None:
    with pytest.raises(OptionsError) as caught:
        ReadOptions.of({"path": "/no/such", "batchRows": "0", "recordsPerPartition": "x", "to": ""})

    for part in ("path=/no/such", "batchRows=0", "recordsPerPartition=x", "unknown option: to"):
        assert part in str(caught.value)


def test_options_ignore_case_and_understand_file_addresses() -> None:
    read = ReadOptions.of({"PATH": "file:///tmp", "BATCHROWS": "7"})

    assert read == ReadOptions("/tmp", batch_rows=7)  # noqa: S108


def test_columns_are_names_of_message_columns_or_typed_fields() -> None:
    assert declared("index,  price decimal(10, 2),b string") == (
        "index long, price decimal(10, 2), b string"
    )
    with pytest.raises(OptionsError, match="column without a type: 'price'"):
        declared("index, price")


@pytest.mark.parametrize("release", sorted(path.name for path in GOLDEN.glob("java-*")))
def test_java_queues_read_in_small_ranges_as_a_tailer_reads_them(release: str) -> None:
    for path in sorted({file.parent for file in (GOLDEN / release).rglob("*.cq4")}):
        with quire.open(path, read_only=True) as queue:
            messages = [(message.index, message.data) for message in queue.tailer()]

        assert read_in_ranges(path) == messages, path.name


def read_in_ranges(path: Path) -> list[tuple[int, bytes]]:
    schema = StructType().add("index", LongType()).add("payload", BinaryType())
    options = ReadOptions(str(path), records_per_partition=7, batch_rows=5)
    reader = BatchReader(options, schema)
    batches = [batch for found in reader.partitions() for batch in reader.read(found)]
    return [(row["index"], row["payload"]) for batch in batches for row in batch.to_pylist()]
