"""
A pipeline's datasets in Spark Declarative Pipelines; needs ``quire[declarative]``.

In a definitions file of a Declarative Pipelines project:

>>> import quire.pipeline
>>> quire.pipeline.declare("trades.yaml")  # doctest: +SKIP

Sources become temporary views, steps materialized views, and quarantined rows the materialized view
`<pipeline>_quarantine`. Each is computed from all data of the sources, as with ``mode: full``. The
file's sinks, schedule and state are ignored: Declarative Pipelines have their own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from quire.pipeline.failures import named
from quire.pipeline.runtime.event_order import EventOrder
from quire.pipeline.runtime.expectations import TAGS, VERDICT, passes, rejected, tagged, without
from quire.pipeline.runtime.input_tables import read_all
from quire.pipeline.runtime.transforms import transformed
from quire.pipeline.spec.loader import load
from quire.pipeline.spec.parts import Pipeline, Source, SqlStep, Step
from quire.spark.sessions.registration import SETTINGS

Made = Callable[[], DataFrame]


def declare(path: str | Path) -> None:
    """
    Declare the datasets of a pipeline file. Call it in a definitions file.

    Raises:
        PipelineError: A Python step failed.
        PipelineFileError: The pipeline file is not valid.

    Examples:
        >>> import quire.pipeline
        >>> quire.pipeline.declare("trades.yaml")  # doctest: +SKIP

    """
    # Imported here: only this needs the packages of Spark Connect.
    from pyspark import pipelines

    pipeline = load(path)
    # Spark refuses all other settings once its session runs.
    settings = {key: it for key, it in pipeline.settings.items() if key.startswith("spark.sql.")}
    conf = SETTINGS | settings
    quarantined: list[Made] = []

    def add(step: Step, made: Made, *, is_kept: bool) -> None:
        """Declare a source or step; if it has rules, its tagged rows are a view of their own."""
        handed_on = made
        if step.is_checked:
            checked = f"_quire_{step.name}"
            pipelines.temporary_view(name=checked, spark_conf=conf)(
                partial(_checked, pipeline, step, made)
            )
            handed_on = partial(_passed, step, checked)
            quarantined.append(partial(_rejected, pipeline, step, checked))
        kind = pipelines.materialized_view if is_kept else pipelines.temporary_view
        kind(name=step.name, spark_conf=conf)(handed_on)

    for source in pipeline.sources:
        add(source.checks(), partial(_source, pipeline, source), is_kept=False)
    for step in pipeline.steps:
        add(step, partial(_step, pipeline, step), is_kept=True)
    if pipeline.has_quarantine:
        pipelines.materialized_view(name=f"{pipeline.name}_quarantine", spark_conf=conf)(
            lambda: reduce(DataFrame.unionByName, [made() for made in quarantined])
        )


def _source(pipeline: Pipeline, source: Source) -> DataFrame:
    with named(pipeline, f"source {source.name}", source.line):
        return read_all(SparkSession.active(), source)


def _step(pipeline: Pipeline, step: Step) -> DataFrame:
    """Return the rows of *step* before its rules, from the datasets that it reads."""
    spark = SparkSession.active()
    with named(pipeline, f"step {step.name}", step.line):
        if isinstance(step, SqlStep):
            # While datasets are declared, Spark cannot resolve frames as arguments of SQL.
            return spark.sql(step.sql.format(**{name: f"`{name}`" for name in step.inputs}))
        return transformed(spark, pipeline, step, {it: spark.table(it) for it in step.inputs})


def _checked(pipeline: Pipeline, step: Step, made: Made) -> DataFrame:
    """Return the rows, tagged by the step's rules."""
    with named(pipeline, f"step {step.name}", step.line):
        frame = tagged(made(), step.rules)
        if step.watermark is None and step.deduplicate is None:
            return frame
        # Spark reveals no columns while data sets are declared.
        event_order = EventOrder.of(step, None)
        return event_order.tag_duplicates(event_order.tag_late(frame, None, None), None)


def _passed(step: Step, checked: str) -> DataFrame:
    """Return the rows that pass; a row that breaks a `fail` rule fails the dataset."""
    message = F.lit(f"rule broken: step={step.name}")
    failing = F.when(F.col(VERDICT) == "fail", F.raise_error(message).cast("boolean"))
    rows = SparkSession.active().table(checked)
    return without(rows.where(failing.otherwise(passes())), *TAGS)


def _rejected(pipeline: Pipeline, step: Step, checked: str) -> DataFrame:
    """Return the rows of a step that go to quarantine."""
    rows = SparkSession.active().table(checked)
    return rejected(rows, pipeline=pipeline.name, step=step.name)
