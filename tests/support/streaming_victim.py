"""A driver that streams a directory of queues into Parquet and into a queue, until it is killed."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

import quire.spark
from streams import stream

PER_BATCH = 4
# Starts sooner, and that is most of such a life.
SETTINGS = {"spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def main(folder: Path, *, until_end: bool) -> None:
    """Stream what is in *folder*: in small batches for ever, or the rest at once."""
    spark = quire.spark.session("victim", cores=2, memory="512m", settings=SETTINGS)
    options = {} if until_end else {"maxOffsetsPerTrigger": PER_BATCH}
    trigger: dict[str, Any] = (
        {"availableNow": True} if until_end else {"processingTime": "0 seconds"}
    )
    frame = stream(spark, folder / "queues", **options)
    rows = frame.selectExpr("_topic AS topic", "n")
    queries: list[StreamingQuery] = []
    for kind in ("parquet", "quire"):
        writer = rows.writeStream.format(kind).trigger(**trigger)
        writer = writer.option("checkpointLocation", str(folder / f"checkpoint-{kind}"))
        queries.append(writer.start(str(folder / f"out-{kind}")))
        while queries[-1].isActive and not queries[-1].lastProgress:
            time.sleep(0.1)  # one after the other: Spark gives a worker ten seconds to start
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), until_end=sys.argv[2] == "rest")
