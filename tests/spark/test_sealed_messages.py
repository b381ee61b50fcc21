"""Compressed and encrypted messages on Spark."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import quire
import quire.spark
from quire.errors import EncryptionError, OptionsError
from quire.maintenance import compress_dictionary
from quire.sealed.key_source import KeySource
from quire.spark.read.batch_reader import BatchReader
from quire.spark.source_options import ReadOptions
from quire.spark.spark_columns import checked
from spark_queues import load

KEY: Final = bytes(range(1, 33))
SCHEMA: Final = "_index long, n long, name string"
COUNT: Final = 300
open_any: Any = quire.open


def record(path: Path, start: int = 0, **options: Any) -> None:  # noqa: ANN401
    with open_any(path, roll_cycle="FAST_DAILY", **options) as queue, queue.appender() as appender:
        for number in range(start, start + COUNT):
            appender.write_map({"n": number, "name": f"the name of number {number % 7}"})


def rows(frame: DataFrame) -> list[tuple[int, str]]:
    return [(row.n, row.name) for row in frame.orderBy("_index").select("n", "name").collect()]


def expected(count: int = COUNT) -> list[tuple[int, str]]:
    return [(number, f"the name of number {number % 7}") for number in range(count)]


def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "the-key"
    file.write_text(KEY.hex())
    return file


def test_compressed_messages_are_rows(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "queue"
    record(path, compression="zstd")
    compress_dictionary(path, size=4096)
    record(path, COUNT, compression="zstd")
    record(path, 2 * COUNT, compression="gzip")
    assert rows(load(spark, path, SCHEMA)) == expected(3 * COUNT)
    assert rows(quire.spark.scan(spark, path, schema=SCHEMA)) == expected(3 * COUNT)
    inferred = load(spark, path, inferSchema=True, minPartitions=3)
    assert inferred.where("n % 2 = 0").count() == 3 * COUNT // 2


def test_a_key_is_a_file_of_each_machine(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "queues" / "vault"
    record(path, key=KEY, compression="zstd")
    compress_dictionary(path, size=4096, key=KEY)
    record(path, COUNT, key=KEY, compression="zstd")
    record(tmp_path / "queues" / "plain")  # beside one that is not encrypted
    file = key_file(tmp_path)
    frame = load(spark, path, SCHEMA, keyFile=file)
    assert rows(frame) == expected(2 * COUNT)
    assert rows(quire.spark.scan(spark, path, schema=SCHEMA, keyFile=file)) == expected(2 * COUNT)
    assert load(spark, path.parent, SCHEMA, keyFile=file).count() == 3 * COUNT
    for key in (None, tmp_path / "other"):
        (tmp_path / "other").write_bytes(bytes(32))
        options = {} if key is None else {"keyFile": key}
        with pytest.raises(
            (PySparkException, EncryptionError), match=r"encrypted|none of the keys"
        ):
            load(spark, path, SCHEMA, **options).collect()
    with (  # the tasks have no key of this process
        quire.KeyRing({"default": KEY}, current="default").as_default(),
        pytest.raises(
            (PySparkException, EncryptionError), match=r"the option keyFile or keyVariable"
        ),
    ):
        quire.spark.scan(spark, path, schema=SCHEMA).collect()


def test_plain_messages_of_others_are_rows_if_they_may_be(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, file = tmp_path / "vault", key_file(tmp_path)
    record(path, key=KEY)
    (path / "keys.quire").rename(tmp_path / "away")
    record(path, COUNT)  # as Java does
    (tmp_path / "away").rename(path / "keys.quire")
    with pytest.raises((PySparkException, EncryptionError), match="the message is not encrypted"):
        load(spark, path, SCHEMA, keyFile=file).collect()
    given: dict[str, Any] = {"keyFile": file, "allowPlain": True}
    assert rows(load(spark, path, SCHEMA, **given)) == expected(2 * COUNT)
    assert rows(quire.spark.scan(spark, path, schema=SCHEMA, **given)) == expected(2 * COUNT)


def test_no_plan_and_no_setting_has_the_key(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "vault"
    record(path, key=KEY)
    frame = load(spark, path, SCHEMA, keyFile=key_file(tmp_path))
    assert frame.count() == COUNT
    context, java = cast("tuple[Any, Any]", (spark.sparkContext, getattr(frame, "_jdf")))  # noqa: B009
    shown = [
        java.queryExecution().toString(),
        str(context.getConf().getAll()),
        str(spark.sql("set -v").collect()),
    ]
    options = ReadOptions.of({"path": str(path), "keyFile": str(key_file(tmp_path))})
    reader = BatchReader(options, checked(frame.schema, options))
    sent = pickle.dumps([reader, reader.partitions()])
    assert b"the-key" in sent  # the path is, and nothing of the key
    for found in (*shown, repr(options), repr(sent)):
        assert KEY.hex() not in found
        assert repr(KEY)[2:-1] not in found
    assert KEY not in sent


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path / "vault", key=KEY)
    given = {"path": str(tmp_path / "vault")}
    with pytest.raises(OptionsError, match="unknown option: key") as raised:
        ReadOptions.of({**given, "key": KEY.hex()})
    assert KEY.hex() not in str(raised.value)
    with pytest.raises(OptionsError, match="keyFile or keyVariable, not both"):
        ReadOptions.of({**given, "keyFile": "a", "keyVariable": "A"})
    with pytest.raises(OptionsError, match="allowPlain is for encrypted queues"):
        ReadOptions.of({**given, "allowPlain": "true"})
    monkeypatch.setenv("QUIRE_TEST_KEY", KEY.hex())
    assert [*KeySource(variable="QUIRE_TEST_KEY").opening(given["path"])] == ["key"]
    assert KeySource(variable="QUIRE_TEST_KEY").opening(str(tmp_path)) == {}
    with pytest.raises(EncryptionError, match="the environment has no key"):
        KeySource(variable="NO_KEY_HERE").opening(given["path"])
    with pytest.raises(OSError, match="nothing"):
        KeySource(file=str(tmp_path / "nothing")).opening(given["path"])


SCRIPT: Final = """
import sys
import quire.spark
spark = quire.spark.session(cores=1)
frame = spark.read.format("quire").option("keyVariable", "THE_KEY").load(sys.argv[1])
print(frame.where("length(payload) > 0").count())
shown = [frame._jdf.queryExecution().toString(), str(spark.sparkContext.getConf().getAll())]
assert not any(sys.argv[2] in it for it in shown)
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_key_is_in_the_environment_of_each_process(tmp_path: Path) -> None:
    path = tmp_path / "vault"
    record(path, key=KEY)
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), KEY.hex()],
        env={**os.environ, "THE_KEY": KEY.hex()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout.split()) == (0, [str(COUNT)]), ran.stderr
