"""A job for a cluster, run as a program: what it read, and which Quire its workers ran."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator

import quire.spark

SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
}


def where(_: Iterable[int]) -> Iterator[tuple[str, str, str]]:
    """Tell which Quire a worker has, and what Python it is."""
    import sys

    import quire
    from quire import _native

    yield quire.__file__, _native.__file__, sys.executable


def main(master: str, path: str) -> None:
    spark = quire.spark.session("cluster", master=master, cores=2, memory="512m", settings=SETTINGS)
    reader = spark.read.format("quire").schema("_index long, n long, text string")
    rows = reader.option("recordsPerPartition", "100").load(path)
    total = rows.selectExpr("count(*)", "sum(n)", "min(_index)", "max(text)").first()
    tasks = spark.sparkContext.parallelize(range(2), 2)
    # Of a barrier all tasks run at the same time: one on each worker.
    workers = tasks.barrier().mapPartitions(where).collect()
    print(json.dumps({"total": total, "parts": rows.rdd.getNumPartitions(), "workers": workers}))  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
