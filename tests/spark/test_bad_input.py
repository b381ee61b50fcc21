"""Errors are one line: what is wrong, where, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import SparkSession

from spark_queues import load, messages_of, record


def line_of(error: Exception) -> str:
    """Return the line of ours: behind it Spark adds its number of an error, if any."""
    lines = [line for line in str(error).splitlines() if "SQLSTATE" not in line and line.strip()]
    return lines[-1].strip()


def test_all_that_is_wrong_with_options_is_reported_at_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    record(tmp_path / "queue", per_day=1)
    with pytest.raises(AnalysisException) as caught:
        load(
            spark,
            tmp_path / "queue",
            startingOffsets="soon",
            endingOffsets="earliest",
            endingTimestamp="later",
            timestampUnit="weeks",
            inferSchema="maybe",
            sampleRows=0,
            recordsPerPartition=-1,
            minPartitions="many",
            batchRows=2_000_000,
            failOnDataLoss="perhaps",
            onError="ignore",
            wireType="morse",
            method="trade",
            topic="orders",
        )

    line = line_of(caught.value)
    assert "quire.errors.OptionsError: quire source: " in line
    for part in (
        "startingOffsets must be earliest, latest, an index",
        "endingOffsets must not be earliest",
        "give endingOffsets or endingTimestamp, not both",
        "endingTimestamp must be epoch milliseconds, or a time such as",
        "timestampUnit must be one of auto, s, ms, us, ns: timestampUnit=weeks",
        "inferSchema must be one of true, false: inferSchema=maybe",
        "sampleRows must be a positive whole number: sampleRows=0",
        "recordsPerPartition must be a positive whole number: recordsPerPartition=-1",
        "minPartitions must be a positive whole number: minPartitions=many",
        "batchRows must be a positive whole number of at most 1048576: batchRows=2000000",
        "failOnDataLoss must be one of true, false: failOnDataLoss=perhaps",
        "onError must be one of fail, column: onError=ignore",
        "wireType must be one of binary_light, binary, fieldless_binary, compressed_binary",
        "`method` requires the interface: option schema=module:Name",
        "unknown option: topic, did you mean topics? (known: path, topics, topicsPattern,",
    ):
        assert part in line


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"schema": "no.such.module:Market"}, "No module named 'no'"),
        ({"schema": "spark_queues:Nothing"}, "has no attribute 'Nothing'"),
        ({"schema": "spark_queues:Market", "method": "quote"}, "method=quote known=trade, halt"),
        ({"schema": '{"shape": 1}'}, "not the text of a schema"),
        ({"columns": "n"}, "column without a type: 'n'; write 'n string'"),
        ({"schema": "spark_queues:Trade", "columns": "size"}, "column=size known=symbol, price"),
    ],
)
def test_a_schema_that_leads_nowhere_is_refused_at_planning(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], expected: str
) -> None:
    path = record(tmp_path / "queue", per_day=1)
    with pytest.raises(AnalysisException) as caught:
        load(spark, path, **options).collect()

    assert expected in line_of(caught.value)


def test_a_users_schema_has_to_fit_that_of_the_messages(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = record(tmp_path / "queue", per_day=1)
    with pytest.raises(AnalysisException) as caught:
        load(spark, path, "symbol int, size long", schema="spark_queues:Trade").collect()

    assert "column symbol is string, not int; no such column: column=size" in line_of(caught.value)


def test_a_mistyped_path_is_one_clear_line(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException) as caught:
        load(spark, tmp_path / "ordres")
    assert line_of(caught.value).endswith(f"path is not a directory: path={tmp_path / 'ordres'}")

    with pytest.raises(AnalysisException) as caught:
        load(spark, tmp_path).collect()
    assert f"no queue in this directory, nor below it: path={tmp_path}" in line_of(caught.value)


def test_a_damaged_file_names_topic_file_and_index(spark: SparkSession, tmp_path: Path) -> None:
    path = record(tmp_path / "orders")
    bad = messages_of(path)[60][0]
    file = sorted(path.glob("*.cq4"))[1]
    content = bytearray(file.read_bytes())
    at = content.index(b"n60") - 40  # inside the message of that name
    start = content.rindex(b"\xb9\x01n", 0, at + 40)
    content[start : start + 3] = b"\x8f\x8f\x8f"
    file.write_bytes(content)

    with pytest.raises(PythonException) as caught:
        load(spark, tmp_path, "n long").collect()
    line = line_of(caught.value)
    assert f"index={bad:#x}" in line
    assert f"file={file}" in line
    assert line.endswith("topic=orders")
    assert "Traceback" not in str(caught.value)
    assert len(str(caught.value).strip().splitlines()) <= 2


def test_an_error_at_planning_has_no_trace(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException) as caught:
        load(spark, record(tmp_path / "queue", per_day=1), colums="_index")
    text = str(caught.value)
    assert "unknown option: colums, did you mean columns? (known:" in text
    assert "Traceback" not in text
    assert len(text.strip().splitlines()) <= 3


def test_several_paths_are_refused_with_a_way_out(spark: SparkSession, tmp_path: Path) -> None:
    paths = [str(record(tmp_path / name, per_day=1)) for name in ("one", "two")]
    with pytest.raises(AnalysisException) as caught:
        spark.read.format("quire").load(paths)

    line = line_of(caught.value)
    assert "load takes one directory: load a directory above them" in line
    assert paths[1] in line
    assert "path is missing" not in line


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"maxOffsetsPerTrigger": 5}, "maxOffsetsPerTrigger is only for streams: limit"),
        ({"sampleRows": 5}, "sampleRows has no effect without inferSchema"),
        ({"timestampUnit": "ms"}, "timestampUnit has no effect without timestampField"),
    ],
)
def test_options_that_would_do_nothing_are_refused(
    spark: SparkSession, tmp_path: Path, options: dict[str, object], expected: str
) -> None:
    with pytest.raises(AnalysisException) as caught:
        load(spark, record(tmp_path / "queue", per_day=1), **options).count()
    assert expected in line_of(caught.value)
