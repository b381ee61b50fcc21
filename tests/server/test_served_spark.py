"""Spark reads queues of a server: executors get an address, and open no files of queues."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

import quire
import quire.spark
from cli_runs import run_here
from flown import flying
from quire.errors import OptionsError
from served import serving

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
DAY_MS = 86_400_000
PER_DAY = 40
WRONG = "x"
SCHEMA = "n long, name string"


def record(path: Path) -> list[int]:
    """Record three days; return the indexes."""
    found: list[int] = []
    for day in range(3):
        clock = quire.ManualClock((15_706 + day) * DAY_MS)
        with (
            quire.open(path, roll_cycle="FAST_DAILY", clock=clock) as queue,
            queue.appender() as appender,
        ):
            numbers = range(day * PER_DAY, (day + 1) * PER_DAY)
            found += [appender.write_map({"n": it, "name": f"n{it}"}) for it in numbers]
    return found


@pytest.fixture
def token(tmp_path: Path) -> str:
    ran = run_here("token", "add", "reader", "--tokens", tmp_path / "tokens", "--read", "*")
    assert ran.code == 0, ran.err
    return ran.out.strip()


@pytest.fixture(params=["flight", "commands"])
def server(
    request: pytest.FixtureRequest, tmp_path: Path, token: str
) -> Iterator[tuple[str, dict[str, str]]]:
    """An address and what reaches it: a server with Flight, and one without."""
    (tmp_path / "queues" / "fx").mkdir(parents=True)
    record(tmp_path / "queues" / "fx" / "orders")
    tokens = ["--tokens", tmp_path / "tokens"]
    if request.param == "commands":
        with serving(tmp_path / "queues", *tokens) as (port, _):
            yield f"quire://127.0.0.1:{port}", {"token": token}
        return
    with flying(tmp_path / "queues", *tokens, listen=True) as (addresses, _):
        yield f"quire://{addresses[0]}", {"token": token}


def rows(frame: DataFrame) -> list[Any]:
    return sorted(frame.collect(), key=repr)


OPTIONS: list[dict[str, str]] = [
    {},
    {"schema": SCHEMA, "recordsPerPartition": "7", "batchRows": "5"},
    {"inferSchema": "true", "endingTimestamp": "2013-01-02"},
    {"columns": "_topic, _index, _cycle, _sequence"},
    {"columns": "_index, payload"},
    {"schema": "n string", "onError": "column"},
]


def test_rows_are_those_of_the_files(
    spark: SparkSession, server: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    address, reached = server
    home = tmp_path / "queues" / "fx" / "orders"
    path = f"{address}/fx/orders"
    quire.spark.register(spark)
    for options in OPTIONS:
        expected = rows(spark.read.format("quire").options(**options).load(str(home)))
        assert len(expected) in {3 * PER_DAY, PER_DAY}
        reading = spark.read.format("quire").options(**options, **reached)
        assert rows(reading.load(path)) == expected
        more: Any = {**options, **reached}
        assert rows(quire.spark.scan(spark, path, **more)) == expected
    for above, name in ((address, "fx/orders"), (f"{address}/fx", "orders"), (path, "orders")):
        found = quire.spark.scan(spark, above, columns="_topic", **reached).distinct()
        assert [it["_topic"] for it in found.collect()] == [name]


def test_a_queue_that_another_server_has(
    spark: SparkSession, server: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    address, reached = server
    owner = ("--peer", f"fx/*={address.removeprefix('quire://')}")
    tokens = ("--tokens", tmp_path / "tokens")
    with serving(tmp_path / "others", *owner, *tokens) as (port, _):
        there: Any = {"schema": SCHEMA, **reached}
        found = quire.spark.scan(spark, f"quire://127.0.0.1:{port}/fx/orders", **there)
        assert rows(found) == rows(quire.spark.scan(spark, f"{address}/fx/orders", **there))
        assert found.count() == 3 * PER_DAY
        with pytest.raises(quire.errors.NotAQueueError, match=rf"fx/\* at {address}"):
            quire.spark.scan(spark, f"quire://127.0.0.1:{port}/fx", **there)


def test_a_range_of_indexes_and_a_condition(
    spark: SparkSession, server: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    address, reached = server
    with quire.open(tmp_path / "queues" / "fx" / "orders", read_only=True) as queue:
        indexes = [it.index for it in queue.tailer()]
    first, end = indexes[PER_DAY - 3], indexes[2 * PER_DAY + 2]
    bounds: Any = {"startingOffsets": f"{first:#x}", "endingOffsets": f"{end:#x}"}
    path = f"{address}/fx/orders"
    found = quire.spark.scan(spark, path, schema=SCHEMA, **bounds, **reached)
    assert [it["n"] for it in found.orderBy("_index").collect()] == [
        *range(PER_DAY - 3, 2 * PER_DAY + 2)
    ]
    chosen = quire.spark.scan(
        spark, path, schema=SCHEMA, where=f"_index >= {first} and n < {PER_DAY}", **reached
    )
    assert sorted(it["n"] for it in chosen.collect()) == [*range(PER_DAY - 3, PER_DAY)]


def test_executors_get_no_path_and_plans_show_no_token(
    spark: SparkSession,
    server: tuple[str, dict[str, str]],
    tmp_path: Path,
    token: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    address, reached = server
    path = f"{address}/fx/orders"
    quire.spark.register(spark)
    loaded = spark.read.format("quire").options(schema=SCHEMA, **reached).load(path)
    scanned = quire.spark.scan(spark, path, schema=SCHEMA, **reached)
    # By its path Spark finds nothing while the directory is away.
    (tmp_path / "queues").rename(tmp_path / "elsewhere")
    (tmp_path / "queues").mkdir(mode=0o000)
    try:
        with pytest.raises(PySparkException):
            spark.read.format("quire").load(str(tmp_path / "queues" / "fx" / "orders")).collect()
    finally:
        (tmp_path / "queues").rmdir()
        (tmp_path / "elsewhere").rename(tmp_path / "queues")
    for frame in (loaded, scanned):
        assert frame.count() == 3 * PER_DAY
        capsys.readouterr()
        frame.explain(extended=True)
        shown = capsys.readouterr().out
        plan: Any = frame
        described = f"{shown}{plan._jdf.queryExecution()}{frame!r}"
        assert token not in described
        assert str(tmp_path) not in described


def test_what_is_refused(
    spark: SparkSession, server: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    address, reached = server
    path = f"{address}/fx/orders"
    quire.spark.register(spark)
    with pytest.raises(quire.errors.RefusedError, match="requires a token"):
        quire.spark.scan(spark, path)
    with pytest.raises(quire.errors.RefusedError, match="WRONGPASS"):
        quire.spark.scan(spark, path, token=WRONG)
    with pytest.raises(quire.errors.NotAQueueError, match="no queue at this address"):
        quire.spark.scan(spark, f"{address}/none", **reached)
    with pytest.raises(OptionsError, match="wireType is only for queues of this machine"):
        quire.spark.scan(spark, path, wireType="BINARY_LIGHT", **reached)
    with pytest.raises(OptionsError, match="token requires an address"):
        quire.spark.scan(spark, tmp_path / "queues" / "fx" / "orders", token=WRONG)
    with pytest.raises(quire.errors.NotAQueueError, match="another format"):
        quire.spark.scan(spark, path, queueFormat="vanilla", **reached)
    with pytest.raises(PySparkException, match="the catalogue would show the token"):
        spark.sql(f"create table served using quire options (path '{path}', token '{WRONG}')")
