"""Rows cut into batches here and there: the same ones are duplicates."""

from __future__ import annotations

import itertools
import random

import pytest
from pyspark.sql import DataFrame, SparkSession

from quire.pipeline.runtime.event_order import EventOrder
from quire.pipeline.runtime.expectations import passed, tagged
from quire.pipeline.spec.parts import Deduplicate, Watermark

pytestmark = [pytest.mark.spark, pytest.mark.slow]

WITHIN = 5
Row = tuple[int, int, int]


def recorded(count: int) -> list[Row]:
    """Rows of a few keys, whose times go to and fro."""
    chance = random.Random(5)  # noqa: S311 - must repeat
    return [(n, chance.randrange(3), 1000 + n // 2 + chance.randrange(-9, 9)) for n in range(count)]


def firsts(rows: list[Row]) -> list[int]:
    last: dict[int, int] = {}
    kept: list[int] = []
    for number, key, at in rows:
        if key not in last or abs(at - last[key]) > WITHIN:
            kept.append(number)
        last[key] = at
    return kept


def test_duplicates_do_not_depend_on_where_batches_begin(spark: SparkSession) -> None:
    rows = recorded(60)
    rule = Deduplicate(by=("key",), within=f"{WITHIN}s", action="drop")
    watermark = Watermark(column="at", delay="1 hour", action="drop")
    event_order = EventOrder(("number",), watermark, rule, (), None)
    assert 10 < len(firsts(rows)) < 50

    for cuts in ([], [30], [7, 8, 41]):
        known: DataFrame | None = None
        kept: list[int] = []
        edges = [0, *cuts, len(rows)]
        for batch, (start, end) in enumerate(itertools.pairwise(edges)):
            frame = spark.createDataFrame(rows[start:end], "number long, key long, at long")
            frame = frame.selectExpr("number", "key", "timestamp_seconds(at) as at").coalesce(1)
            frame = event_order.tag_duplicates(tagged(frame, ()), known).localCheckpoint()
            kept += [row.number for row in passed(frame).collect()]
            keys = event_order.keys(frame, batch)
            known = (keys if known is None else known.unionByName(keys)).localCheckpoint()
        assert sorted(kept) == firsts(rows), cuts
