"""What the part on Spark found: its tables, and where Spark's own ways are ahead."""

from __future__ import annotations

from collections.abc import Iterator

from bench import summary, tables
from bench.harness import Result
from bench.scenarios import SPARK
from bench.spark_targets import BASES, LARGE, SMALL, peak, ratio
from bench.summary import CPU_TIME

_MIB = 1 << 20
_MS = 1e6


def text(results: dict[str, Result]) -> str:
    """Return all tables of the part."""
    by_kind = {one["kind"]: one for one in summary.scenarios(results, "spark")}
    found = [_rates([one for kind, one in by_kind.items() if kind not in {"trigger", "memory"}])]
    if "trigger" in by_kind:
        found.append(f"A trigger of 1,000 rows, to nowhere:\n\n{_triggers(by_kind['trigger'])}")
    if "memory" in by_kind:
        found.append(f"A worker that reads everything:\n\n{_memory(by_kind['memory'])}")
    return "\n\n".join(found)


def losses(results: dict[str, Result]) -> Iterator[str]:
    """Say where Spark's own way was ahead."""
    for one in summary.scenarios(results, "spark"):
        for key in summary.operations(one):
            found = ratio(one, key)
            if found is not None and found.median < 1 and BASES[key].startswith("spark."):
                name, base = tables.full_name(key), tables.full_name(BASES[key])
                yield f"{name}: {found.median:.2f} x {base}"


def _rates(found: list[Result]) -> str:
    head = ("operation", "ns each", "range", "CPU ns each", "messages/s", "ratio", "range", "to")
    rows: list[tuple[str, ...]] = []
    for one in found:
        mark = summary.mark(one)
        for key in sorted(summary.operations(one), key=_place):
            spread, cpu = summary.nanos(one, key), summary.nanos(one, key, CPU_TIME)
            rows.append(
                (
                    tables.full_name(key),
                    f"{spread.median:,.0f}{mark}",
                    f"{spread.least:,.0f} - {spread.greatest:,.0f}",
                    f"{cpu.median:,.0f}",
                    tables.rate(1e9 / spread.median),
                    *_beside(one, key),
                )
            )
    return tables.table(head, rows)


def _beside(scenario: Result, key: str) -> tuple[str, str, str]:
    found = ratio(scenario, key)
    if found is None:
        return "", "", ""
    spread = f"{found.least:.2f} - {found.greatest:.2f}"
    return f"{found.median:.2f} x", spread, tables.full_name(BASES[key])


def _triggers(scenario: Result) -> str:
    head = ("source", "around the batch", "range", "whole trigger")
    rows: list[tuple[str, ...]] = []
    for key in sorted(summary.operations(scenario), key=_place):
        around = summary.nanos(scenario, key)
        whole = summary.values(scenario, key, lambda run: float(run["whole_ms"]))
        spread = f"{around.least / _MS:.0f} - {around.greatest / _MS:.0f}"
        name = tables.full_name(key)
        rows.append((name, f"{around.median / _MS:.0f} ms", spread, f"{whole.median:.0f} ms"))
    return tables.table(head, rows)


def _memory(scenario: Result) -> str:
    head = ("messages", "most memory of a worker", "range")
    rows: list[tuple[str, ...]] = []
    for key in (SMALL, LARGE):
        spread = peak(scenario, key)
        messages = summary.values(scenario, key, lambda run: float(run["messages"]))
        rows.append(
            (
                f"{messages.median:,.0f}",
                f"{spread.median / _MIB:,.0f} MiB",
                f"{spread.least / _MIB:,.0f} - {spread.greatest / _MIB:,.0f}",
            )
        )
    return tables.table(head, rows)


def _place(key: str) -> int:
    order = [one.key for wanted in SPARK.values() for one in wanted]
    return order.index(key)
