"""
Late rows, duplicates and complete windows: rules that depend on the order of rows.

Whether a row is late or a duplicate depends only on the rows before it, in the order of the step,
not on where batches begin. So `once` and `every 30s` give the same results.

- A row is late if its time is more than the delay before the latest time so far, among rows with
  the same `by`. Late rows do not advance that time.
- A row is a duplicate if a row with the same keys came before it: at any time or, with `within`,
  if the last of them is at most that far away in time.
- A window is complete when the watermarks of all `by` have passed its end. Its rows are held until
  then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from quire.errors import StepError
from quire.pipeline.runtime.expectations import BROKEN, passes, tag_rule, without
from quire.pipeline.spec.parts import DUPLICATE, LATE, Deduplicate, Step, Watermark

MARK: Final = "_quire_mark"  # the latest time of each `by`, microseconds
RELEASED: Final = "_quire_released"  # the end of the released windows, microseconds
LAST: Final = "_quire_last"  # the time of the last row with the keys, microseconds
PLACE: Final = "_quire_place"  # the place of that row: its batch, and its order within

OF_QUEUES: Final = ("_topic", "_index")


@dataclass(frozen=True, slots=True)
class EventOrder:
    """The order of the rows of a step, and the rules that depend on it."""

    order: tuple[str, ...]
    watermark: Watermark | None
    deduplicate: Deduplicate | None
    by: tuple[str, ...]
    window_us: int | None

    @staticmethod
    def of(step: Step, known: Sequence[str] | None) -> EventOrder:
        """
        Return the order of a step; rows of queues are ordered by topic and index.

        Args:
            step: The step.
            known: The columns of its rows; None assumes those that it needs.

        Raises:
            StepError: The order of rows is unknown, or a column is missing.

        """
        columns = OF_QUEUES if known is None else known
        order = step.order or tuple(name for name in OF_QUEUES if name in columns)
        if not step.order and "_index" not in order:
            raise StepError(
                "the order of rows is unknown: keep the column _index, or name columns under order:"
            )
        watermark = step.watermark
        by = watermark.by if watermark is not None else None
        if by is None:
            by = ("_topic",) if "_topic" in columns else ()
        named = (*order, *by, *(step.deduplicate.by if step.deduplicate else ()))
        named += (watermark.column,) if watermark is not None else ()
        missing = [name for name in dict.fromkeys(named) if name not in columns]
        if missing and known is not None:
            raise StepError(f"no such columns: {', '.join(missing)} known={', '.join(known)}")
        return EventOrder(order, watermark, step.deduplicate, by, step.window_us)

    def time(self) -> Column:
        """Return the time of a row in microseconds."""
        if self.watermark is None:
            return F.lit(None).cast("long")
        return F.unix_micros(F.col(self.watermark.column).cast("timestamp"))

    def tag_late(
        self, frame: DataFrame, marks: DataFrame | None, released_us: int | None
    ) -> DataFrame:
        """Tag late rows, given the watermarks of earlier batches and what they released."""
        if self.watermark is None:
            return frame
        before = Window.partitionBy(*self.by).orderBy(*self.order)
        before = before.rowsBetween(Window.unboundedPreceding, -1)
        seen = F.max(F.when(passes(), self.time())).over(before)
        frame = frame.withColumn("_quire_seen", seen)
        if marks is not None:
            frame = _joined(frame, F.broadcast(marks.select(*self.by, MARK)), self.by)
            seen = F.greatest(F.col("_quire_seen"), F.col(MARK))
            frame = frame.withColumn("_quire_seen", seen).drop(MARK)
        is_late = self.time() < F.col("_quire_seen") - self.watermark.delay_us
        if self.window_us is not None and released_us is not None:
            is_late |= self.window_end() <= released_us
        frame = tag_rule(frame, is_late, LATE, self.watermark.action)
        return without(frame, "_quire_seen")

    def marks(self, tagged: DataFrame, before: DataFrame | None, released_us: int) -> DataFrame:
        """Return the watermark of each `by` after this batch."""
        found = tagged.where(_is_on_time()).select(*self.by, self.time().alias(MARK))
        if before is not None:
            found = found.unionByName(before.select(*self.by, MARK))
        found = found.groupBy(*self.by).agg(F.max(MARK).alias(MARK)).where(F.col(MARK).isNotNull())
        return found.withColumn(RELEASED, F.lit(released_us).cast("long"))

    def released_us(self, marks: DataFrame | None) -> int | None:
        """Return the time up to which windows are complete; None while it is unknown."""
        if marks is None or self.watermark is None:
            return None
        row = marks.agg(F.min(MARK), F.max(RELEASED)).head()
        if row is None or row[0] is None:
            return None
        return max(int(row[0]) - self.watermark.delay_us, int(row[1]))

    def window_end(self) -> Column:
        """Return the end of a row's window in microseconds."""
        length = self.window_us or 1
        return (F.floor(self.time() / F.lit(length)) + 1) * F.lit(length)

    def is_complete(self, released_us: int | None) -> Column:
        """Whether the window of a row is complete; a row without a time has none."""
        bound = F.lit(released_us).cast("long")
        return F.coalesce(self.window_end() <= bound, self.time().isNull())

    def tag_duplicates(self, frame: DataFrame, keys: DataFrame | None) -> DataFrame:
        """Tag all but the first of the rows with the same keys, given those of earlier batches."""
        rule = self.deduplicate
        if rule is None:
            return frame
        same = Window.partitionBy(*rule.by, passes()).orderBy(*self.order)
        frame = frame.withColumns(
            {
                "_quire_again": F.row_number().over(same) > 1,
                "_quire_previous": F.lag(self.time()).over(same),
            }
        )
        if keys is not None:
            known = self.last(keys).drop(PLACE).withColumn("_quire_known", F.expr("true"))
            frame = _joined(frame, known, rule.by)
            frame = frame.withColumns(
                {
                    "_quire_previous": F.when(
                        F.col("_quire_again"), F.col("_quire_previous")
                    ).otherwise(F.col(LAST)),
                    "_quire_again": F.col("_quire_again") | F.col("_quire_known").isNotNull(),
                }
            ).drop(LAST, "_quire_known")
        is_again = F.col("_quire_again")
        if rule.within_us is not None:
            away = F.abs(self.time() - F.col("_quire_previous"))
            is_again &= F.coalesce(away <= rule.within_us, F.expr("true"))
        frame = tag_rule(frame, is_again, DUPLICATE, rule.action)
        return without(frame, "_quire_again", "_quire_previous")

    def keys(self, tagged: DataFrame, batch: int) -> DataFrame:
        """Return the keys of the batch's rows, including duplicates, with the last row's time."""
        by = self.deduplicate.by if self.deduplicate is not None else ()
        order = [F.col(name).alias(f"order{number}") for number, name in enumerate(self.order)]
        place = F.struct(F.lit(batch).cast("long").alias("batch"), *order)
        arrived = tagged.where(_is_on_time())
        return self.last(arrived.select(*by, self.time().alias(LAST), place.alias(PLACE)))

    def last(self, keys: DataFrame) -> DataFrame:
        """Return the time of the last row of each key, which need not be the latest time."""
        by = self.deduplicate.by if self.deduplicate is not None else ()
        return keys.groupBy(*by).agg(F.max_by(LAST, PLACE).alias(LAST), F.max(PLACE).alias(PLACE))

    def horizon_us(self, marks: DataFrame | None) -> int | None:
        """Return the time before which keys have expired; None if they never do."""
        rule = self.deduplicate
        released_us = self.released_us(marks)
        if rule is None or rule.within_us is None or released_us is None:
            return None
        return released_us - rule.within_us


def _is_on_time() -> Column:
    """Whether a row is neither late nor rejected; it may be a duplicate."""
    return passes() | F.array_contains(F.col(BROKEN), DUPLICATE)


def _joined(frame: DataFrame, other: DataFrame, by: tuple[str, ...]) -> DataFrame:
    """Join by keys, where null equals null."""
    other = other.withColumnsRenamed({name: f"_quire_of_{name}" for name in by})
    condition = F.expr("true")
    for name in by:
        condition &= F.col(f"`{name}`").eqNullSafe(F.col(f"`_quire_of_{name}`"))
    return frame.join(other, condition, "left").drop(*(f"_quire_of_{name}" for name in by))
