"""
The sources of a pipeline as DataFrames.

All streamed sources become one stream, so that a batch has rows of each of them, and one checkpoint
has the offsets of all. A row of that stream has the name of its source and a struct per source.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from quire.errors import NotAQueueError
from quire.opening.discovery import topics_of
from quire.pipeline.spec.parts import Pipeline, QueueSource, Source, TableSource
from quire.pipeline.spec.value_types import is_url
from quire.spark.topics import local_path

_NAME: Final = "_quire_source"

# Limits of a batch, ignored by `once`.
LIMITS: Final = ("maxoffsetspertrigger", "maxfilespertrigger", "maxbytespertrigger")


def read_all(spark: SparkSession, source: Source) -> DataFrame:
    """Return all rows of a source."""
    if isinstance(source, TableSource):
        return spark.read.table(source.table)
    reader = spark.read.format(source.format).options(**_without_limits(source))
    if source.ddl is not None:
        reader = reader.schema(source.ddl)
    return reader.load(source.path)


def read_stream(spark: SparkSession, source: Source, *, limited: bool) -> DataFrame:
    """Return a source as a stream; files without a schema get that of the existing files."""
    options = source.spark_options if limited else _without_limits(source)
    reader = spark.readStream.format(source.format).options(**options)
    if source.ddl is not None:
        reader = reader.schema(source.ddl)
    elif source.format != "quire":
        reader = reader.schema(read_all(spark, source).schema)
    return reader.load(source.path)


def _without_limits(source: Source) -> dict[str, str]:
    options = source.spark_options
    return {name: value for name, value in options.items() if name.lower() not in LIMITS}


def streams(pipeline: Pipeline) -> list[Source]:
    """Return the streamed sources in an order that does not depend on the pipeline file."""
    followed = [source for source in pipeline.sources if source.stream]
    return sorted(followed, key=lambda source: source.name)


def mixes_topics(pipeline: Pipeline, name: str) -> bool:
    """Whether a source or step has rows of several queues, whose indexes cannot be compared."""
    sources = {source.name: source for source in pipeline.sources}
    steps = {step.name: step for step in pipeline.steps}
    names, found = [name], list[Source]()
    for each in names:
        if each in sources:
            found.append(sources[each])
        names += [it for it in (steps[each].inputs if each in steps else ()) if it not in names]
    queues = [it for it in found if isinstance(it, QueueSource) and it.stream]
    return any(not _is_one_queue(it.path) for it in queues)


def _is_one_queue(path: str) -> bool:
    if is_url(path) and not path.startswith("file:"):
        return False  # a server may have several below it
    try:
        return topics_of(local_path(path)).keys() == {Path(local_path(path)).name}
    except NotAQueueError:
        return True  # Spark reports that there is no queue


def merge(frames: Sequence[tuple[str, DataFrame]]) -> DataFrame:
    """Return several streams as one; a single stream unchanged."""
    if len(frames) == 1:
        return frames[0][1]
    parts = [
        frame.select(
            F.lit(name).alias(_NAME),
            *(
                (F.struct("*") if other == name else F.lit(None).cast(theirs.schema)).alias(other)
                for other, theirs in frames
            ),
        )
        for name, frame in frames
    ]
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.unionByName(part)
    return joined


def split(batch: DataFrame, names: Sequence[str]) -> dict[str, DataFrame]:
    """Return the rows of each source of a batch; the inverse of :func:`merge`."""
    if len(names) == 1:
        return {names[0]: batch}
    return {name: batch.where(F.col(_NAME) == name).select(f"{name}.*") for name in names}
