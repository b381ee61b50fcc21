"""
Rules of rows: each row is tagged with the rules it breaks and the resulting action.

`_quire_broken` lists the names of the broken rules; `_quire_verdict` is `fail`, `quarantine`,
`drop`, or null for rows that pass. Only expressions are built here; nothing is computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from quire.pipeline.spec.parts import ACTIONS, Action, Rule

BROKEN: Final = "_quire_broken"
VERDICT: Final = "_quire_verdict"
TAGS: Final = (BROKEN, VERDICT)


def tagged(frame: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Tag each row with the rules that it breaks; a condition that is null is broken."""
    broken = {rule: ~F.coalesce(F.expr(rule.condition), F.expr("false")) for rule in rules}
    names = [F.when(is_broken, F.lit(rule.name)) for rule, is_broken in broken.items()]
    listed = F.filter(F.array(*names), lambda name: name.isNotNull()) if names else F.array()
    frame = frame.withColumn(BROKEN, listed.cast("array<string>"))
    return frame.withColumn(VERDICT, _verdict(rules))


def _verdict(rules: Iterable[Rule]) -> Column:
    """Return the most severe action of the broken rules."""
    found: Column = F.lit(None).cast("string")
    for action in reversed(ACTIONS[:-1]):
        names = [F.lit(rule.name) for rule in rules if rule.action == action]
        if names:
            is_broken = F.arrays_overlap(F.col(BROKEN), F.array(*names))
            found = F.when(is_broken, F.lit(action)).otherwise(found)
    return found


def passes() -> Column:
    """Whether a row passes the rules applied so far."""
    return F.col(VERDICT).isNull()


def tag_rule(frame: DataFrame, is_broken: Column, name: str, action: Action) -> DataFrame:
    """Tag the rows that break one more rule; only rows that pass so far are checked."""
    is_broken = passes() & F.coalesce(is_broken, F.expr("false"))
    verdict = F.lit(None).cast("string") if action == "warn" else F.lit(action)
    frame = frame.withColumn("_quire_is", is_broken)
    listed = F.array_append(F.col(BROKEN), F.lit(name))
    frame = frame.withColumns(
        {
            BROKEN: F.when(F.col("_quire_is"), listed).otherwise(F.col(BROKEN)),
            VERDICT: F.when(F.col("_quire_is"), verdict).otherwise(F.col(VERDICT)),
        }
    )
    return without(frame, "_quire_is")


def passed(frame: DataFrame) -> DataFrame:
    """Return the rows that pass, without tags."""
    return without(frame.where(passes()), *TAGS)


def without(frame: DataFrame, *names: str) -> DataFrame:
    """Return *frame* without some columns; unlike `drop`, tables need not exist yet."""
    return frame.selectExpr(f"* except ({', '.join(names)})")


def tallies(frame: DataFrame, names: Sequence[str]) -> dict[str, int]:
    """Count, in one job: `rows`, each verdict by its name, and broken rules as `rule NAME`."""
    counts = [F.count(F.lit(1)).alias("rows")]
    counts += [_count(F.col(VERDICT) == it).alias(it) for it in ACTIONS[:-1]]
    counts += [
        _count(F.array_contains(F.col(BROKEN), name)).alias(f"rule {name}") for name in names
    ]
    row = frame.agg(*counts).head()
    return {} if row is None else row.asDict()


def _count(condition: Column) -> Column:
    return F.count_if(condition)


def rejected(frame: DataFrame, **about: object) -> DataFrame:
    """Return the rows for quarantine: the *about* columns, the broken rules, the row as JSON."""
    whole = F.struct("*").dropFields(*TAGS)
    row = F.to_json(whole, {"ignoreNullFields": "false"})
    return frame.where(F.col(VERDICT) == "quarantine").select(
        *(F.lit(value).alias(name) for name, value in about.items()),
        F.col(BROKEN).alias("rules"),
        row.alias("row"),
    )
