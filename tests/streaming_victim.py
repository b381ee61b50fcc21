"""A driver that streams a directory of queues into Parquet and into a queue, until it is killed."""

from __future__ import annotations

import sys
from pathlib import Path

import quire.spark
from streams import stream

PER_BATCH = 4
# Starts sooner, and that is most of such a life.
SETTINGS = {"spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def main(folder: Path, *, until_end: bool) -> None:
    """Stream what is in *folder*: in small batches for ever, or the rest at once."""
    spark = quire.spark.session("victim", cores=2, memory="512m", settings=SETTINGS)
    options = {} if until_end else {"maxOffsetsPerTrigger": PER_BATCH}
    trigger = {"availableNow": True} if until_end else {"processingTime": "0 seconds"}
    frame = stream(spark, folder / "queues", **options)
    rows = frame.selectExpr("_topic AS topic", "n")
    queries = [
        rows.writeStream.format(kind)
        .option("checkpointLocation", str(folder / f"checkpoint-{kind}"))
        .trigger(**trigger)
        .start(str(folder / f"out-{kind}"))
        for kind in ("parquet", "quire")
    ]
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), until_end=sys.argv[2] == "rest")
