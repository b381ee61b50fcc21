"""A standalone cluster whose Python has no Quire runs the copy that a session sends."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pyarrow import parquet

import quire
from cli_runs import COMMAND
from paths import SUPPORT
from spark_cluster import bare_python, cluster, run_driver

JOB = SUPPORT / "spark_cluster_job.py"
COUNT = 1000


PIPELINE = """
pipeline: places
settings: {spark.executor.memory: 512m, spark.driver.memory: 512m, spark.cores.max: "2",
  spark.driver.host: 127.0.0.1, spark.sql.shuffle.partitions: "2"}
sources:
  numbers:
    {format: quire, path: numbers, schema: "_topic string, _index long, n long",
     options: {recordsPerPartition: "100"}}
steps:
  some: {from: numbers, expect: {small: n < 990}}
  placed: {from: some, python: "places.py:placed"}
sinks:
  - {from: placed, format: parquet, path: out}
"""
PLACES = """
def placed(some):
    def where(batches):
        from quire import _native
        for batch in batches:
            yield batch.assign(native=_native.__file__)
    return some.select("n").mapInPandas(where, "n long, native string")
"""

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class Place(NamedTuple):
    """A cluster that runs."""

    python: Path
    master: str
    homes: tuple[str, ...]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("cluster")
    python = bare_python(folder / "bare")
    with cluster(folder, python) as master:
        yield Place(python, master, tuple(f"{folder}/worker{number}/" for number in range(2)))


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    """A queue of so many maps."""
    with quire.open(tmp_path / "numbers") as queue, queue.appender() as appender:
        for number in range(COUNT):
            appender.write_map({"n": number, "text": f"{number:04}"})
    return tmp_path / "numbers"


def test_a_cluster_without_quire_runs_the_copy_that_is_sent(place: Place, numbers: Path) -> None:
    command = [sys.executable, str(JOB), place.master, str(numbers)]
    report = json.loads(run_driver(place.python, command).splitlines()[-1])

    with quire.open(numbers, read_only=True) as queue:
        assert report["total"] == [COUNT, sum(range(COUNT)), queue.first_index, f"{COUNT - 1:04}"]
    assert report["parts"] == 10
    for package, native, executable in report["workers"]:
        assert executable == str(place.python)
        assert package.startswith(place.homes)
        assert native.startswith(place.homes)
    assert len({native for _, native, _ in report["workers"]}) == 2  # each worker unpacked its own


@pytest.mark.usefixtures("numbers")
def test_a_pipeline_runs_on_a_cluster(place: Place, tmp_path: Path) -> None:
    (tmp_path / "places.yaml").write_text(PIPELINE, "utf-8")
    (tmp_path / "places.py").write_text(PLACES, "utf-8")
    command = [*COMMAND, "pipeline", "run", str(tmp_path / "places.yaml")]

    report = json.loads(run_driver(place.python, [*command, "--master", place.master, "--json"]))

    assert report["outcome"] == "succeeded"
    files = (tmp_path / "out").glob("**/*.parquet")
    rows = [row for file in files for row in parquet.ParquetFile(file).read().to_pylist()]
    assert sorted(row["n"] for row in rows) == [*range(990)]
    assert {row["native"].startswith(place.homes) for row in rows} == {True}
