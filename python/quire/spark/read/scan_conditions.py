"""
The condition of a scan: what of it Quire can decide, before tasks are planned and within them.

Spark parses the condition and applies all of it to the rows. What is decided here only saves work:
a message is left out if the condition is not true of it for certain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, SparkSession
from pyspark.sql.types import StructType

from quire.errors import OptionsError

pc: Any = pyarrow.compute

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The times that both Spark's calendar and Python have: years 1900 to 9998.
_FIRST_US: Final = -2_208_988_800_000_000
_PAST_US: Final = 253_370_764_800_000_000
# Spark's names of comparisons, and those of Arrow.
_COMPARISONS: Final = {
    "EqualTo": "equal",
    "GreaterThan": "greater",
    "GreaterThanOrEqual": "greater_equal",
    "LessThan": "less",
    "LessThanOrEqual": "less_equal",
}
_UNDERSTOOD: Final = {*_COMPARISONS, "In", "IsNotNull"}
# pyarrow-stubs name a class for each type of array.
_Array: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Compared:
    """A column, compared with a value by Arrow's function of that name."""

    column: str
    function: str
    value: Any


@dataclass(frozen=True, slots=True)
class Among:
    """A column whose value is one of several."""

    column: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """A column that is not null."""

    column: str


@dataclass(frozen=True, slots=True)
class Either:
    """At least one of several conditions (``or``)."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Each:
    """All of several conditions (``and``)."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = Compared | Among | Known | Either | Each


def condition_of(
    spark: SparkSession, schema: StructType, where: str | Column
) -> tuple[Condition, ...]:
    """
    Return what is understood of a condition: each part is true of every row that it is true of.

    Spark's parser and optimizer take it apart. Of Spark Connect nothing is known here.

    Raises:
        OptionsError: Spark does not understand the condition, or not of these columns.

    """
    try:
        probe = spark.range(1).mapInArrow(_unchanged, schema).where(where)
        plan = getattr(probe, "_jdf", None)
        if plan is None:
            _ = probe.schema  # analysed by the server
            return ()
        filtered = plan.queryExecution().optimizedPlan()
    except (AnalysisException, ParseException) as error:
        lines = str(error).strip().splitlines() or [""]
        raise OptionsError(
            f"quire scan: where={where}: {lines[0]} (columns: {', '.join(schema.names)})"
        ) from None
    if filtered.getClass().getSimpleName() != "Filter":
        return ()
    jvm: Any = spark._jvm  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    strategy = getattr(jvm.org.apache.spark.sql.execution.datasources, "DataSourceStrategy$")
    strategy = getattr(strategy, "MODULE$")
    columns = {f"`{name.replace('`', '``')}`": name for name in schema.names}
    columns |= {name: name for name in schema.names}
    found = [
        _translated(translated.get(), columns)
        for part in _conjuncts(filtered.condition())
        if (translated := strategy.translateFilter(part, True)).isDefined()  # noqa: FBT003
    ]
    return tuple(it for it in found if it is not None)


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def _conjuncts(expression: Any) -> Iterator[Any]:  # noqa: ANN401 - of Java
    if expression.getClass().getSimpleName() == "And":
        yield from _conjuncts(expression.left())
        yield from _conjuncts(expression.right())
    else:
        yield expression


def _translated(found: Any, columns: Mapping[str, str]) -> Condition | None:  # noqa: ANN401 - of Java
    """Return a filter of Spark's as a condition; None if this kind is not supported."""
    kind = found.getClass().getSimpleName()
    if kind in {"And", "Or"}:
        parts = [_translated(it, columns) for it in (found.left(), found.right())]
        known = tuple(it for it in parts if it is not None)
        if kind == "And":
            return Each(known) if known else None
        return Either(known) if len(known) == len(parts) else None
    column = columns.get(found.attribute()) if kind in _UNDERSTOOD else None
    if column is None:
        return None
    made: Condition | None = Known(column)
    if kind == "In":
        values = tuple(_value(it) for it in found.values())
        made = Among(column, values) if None not in values else None
    elif kind in _COMPARISONS:
        value = _value(found.value())
        made = None if value is None else Compared(column, _COMPARISONS[kind], value)
    return made


def _value(found: Any) -> Any:  # noqa: ANN401 - of Java
    """Return a literal as a Python value; None if its type is not supported."""
    if isinstance(found, (bool, int, float, str, Decimal)):
        return found
    if not hasattr(found, "getClass"):
        return None
    kind = found.getClass().getName()
    if kind == "java.sql.Timestamp":
        found = found.toInstant()
    elif kind != "java.time.Instant":
        return None
    us = found.getEpochSecond() * 1_000_000 + found.getNano() // 1_000
    # Spark hands out earlier times in the calendar of then, and later ones no datetime can be.
    return _EPOCH + timedelta(microseconds=us) if _FIRST_US <= us < _PAST_US else None


def bounds(conditions: tuple[Condition, ...], column: str) -> tuple[Any, Any]:
    """Return the lowest and the highest value that a column can have; None: no known limit."""
    low, high = None, None
    for it in conditions:
        if isinstance(it, Among) and it.column == column:
            lows, highs = it.values, it.values
        elif isinstance(it, Compared) and it.column == column:
            lows = (it.value,) if it.function in {"equal", "greater", "greater_equal"} else ()
            highs = (it.value,) if it.function in {"equal", "less", "less_equal"} else ()
        else:
            continue
        if lows:
            low = min(lows) if low is None else max(low, min(lows))
        if highs:
            high = max(highs) if high is None else min(high, max(highs))
    return low, high


def names_among(conditions: tuple[Condition, ...], column: str) -> set[Any] | None:
    """Return the only values that a column can have; None: any."""
    found: set[Any] | None = None
    for it in conditions:
        values: set[Any] | None = None
        if isinstance(it, Among) and it.column == column:
            values = {*it.values}
        elif isinstance(it, Compared) and (it.column, it.function) == (column, "equal"):
            values = {it.value}
        if values is not None:
            found = values if found is None else found & values
    return found


def kept(conditions: tuple[Condition, ...], batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows for which all conditions may be true."""
    mask = _all(conditions, batch)
    return batch if mask is None else batch.filter(mask)


def _all(conditions: tuple[Condition, ...], batch: pa.RecordBatch) -> _Array | None:
    masks = [mask for it in conditions if (mask := _mask(it, batch)) is not None]
    return _joined(masks, pc.and_kleene) if masks else None


def _among(array: _Array, values: tuple[Any, ...]) -> _Array:
    choices = cast("_Array", pa.array(values, array.type))
    if pa.types.is_floating(array.type):  # to Arrow the zero with a sign is another value
        zero = pa.scalar(0.0, array.type)
        array, choices = pc.add(array, zero), pc.add(choices, zero)
    return pc.is_in(array, value_set=choices)


def _joined(masks: list[_Array], join: Callable[[_Array, _Array], _Array]) -> _Array:
    first, *others = masks
    for mask in others:
        first = join(first, mask)
    return first


def _mask(it: Condition, batch: pa.RecordBatch) -> _Array | None:
    """Return for which rows a condition is true; None: unknown."""
    if isinstance(it, Each):
        return _all(it.parts, batch)
    if isinstance(it, Either):
        masks = [_mask(part, batch) for part in it.parts]
        known = [mask for mask in masks if mask is not None]
        return _joined(known, pc.or_kleene) if len(known) == len(masks) else None
    array = cast("_Array", batch.column(it.column))
    if isinstance(it, Known):
        return pc.is_valid(array)
    try:
        if isinstance(it, Among):
            mask = _among(array, it.values)
        else:
            mask = getattr(pc, it.function)(array, pa.scalar(it.value, array.type))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    # To Spark a NaN equals itself and is larger than any number.
    return pc.or_kleene(mask, pc.is_nan(array)) if pa.types.is_floating(array.type) else mask
