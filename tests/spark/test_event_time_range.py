"""Event times far from today: a column of microseconds has all of them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

import quire
from quire.archive import archive
from quire.ranges.event_time import TimeField
from quire.spark.read.batch_reader import planned
from quire.spark.read.partitions import Partition
from quire.spark.read.row_plan import RowPlan, read
from quire.spark.source_options import ReadOptions
from quire.spark.spark_columns import checked

US = 1_000_000
YEAR_2500 = 16_725_225_600
YEAR_1500 = -14_831_769_600
LAST = 253_402_300_799


def times(path: Path, value: Any, unit: str | None, *, declared: bool = False) -> int | None:  # noqa: ANN401 - of a message
    """What `_timestamp` is for a message with such a field, in microseconds."""
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_map({"n": 1, "at": value})
    given = {"path": str(path), "timestampField": "at"}
    options = ReadOptions.of(given | ({} if unit is None else {"timestampUnit": unit}))
    fields = [StructField("_timestamp", TimestampType()), StructField("n", LongType())]
    fields += [StructField("at", LongType())] if declared else []
    plan = RowPlan.of(checked(StructType(fields), options), options)
    batches: list[Any] = [*read(Partition(planned(options)), plan)]
    micros: int | None = batches[0].column(0).cast("int64")[0].as_py()
    return micros


@pytest.mark.parametrize("unit", [None, "s", "ms", "us", "ns"])
@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2500-01-01T00:00:00Z", YEAR_2500),
        ("1500-01-01T00:00:00Z", YEAR_1500),
        ("9999-12-31T23:59:59Z", LAST),
        ("0001-01-01T00:00:00Z", -62_135_596_800),
        (dt.datetime(2500, 1, 1, tzinfo=dt.UTC), YEAR_2500),
        ("2024-01-01T00:00:00Z", 1_704_067_200),
    ],
)
def test_a_time_of_any_year_is_in_its_column(
    tmp_path: Path, unit: str | None, value: object, seconds: int
) -> None:
    assert times(tmp_path / "q", value, unit) == seconds * US


@pytest.mark.parametrize("declared", ["", "declared"])
@pytest.mark.parametrize(
    ("value", "unit", "micros"),
    [
        (YEAR_2500, None, YEAR_2500 * US),
        (YEAR_2500 * 1000, None, YEAR_2500 * US),
        (YEAR_2500 * US, None, YEAR_2500 * US),
        (2**62, None, 2**62 // 1000),
        (2**62, "ns", 2**62 // 1000),
        (1_704_067_200_123_456_789, "ns", 1_704_067_200_123_456),
        (YEAR_2500, "s", YEAR_2500 * US),
        (2**62, "us", 2**62),
        # These have no number of microseconds.
        (2**62, "s", None),
        (-(2**62), "ms", None),
    ],
)
def test_a_number_is_a_time_or_none(
    tmp_path: Path, value: int, unit: str | None, micros: int | None, declared: str
) -> None:
    assert times(tmp_path / "q", value, unit, declared=bool(declared)) == micros


def test_an_archive_has_such_times_too(tmp_path: Path) -> None:
    clock = quire.ManualClock(1_705_314_600_000)
    with (
        quire.open(tmp_path / "q", clock=clock) as queue,
        queue.appender() as appender,
    ):
        appender.write_map({"at": "2500-01-01T00:00:00Z"})
        clock.advance(86_400_000)
        appender.write_map({"at": "1500-01-01T00:00:00Z"})

    report = archive(tmp_path / "q", tmp_path / "archive", timed=TimeField("at"))

    assert (report.messages, report.failed) == (1, [])
