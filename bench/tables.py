"""The tables of a report, as Markdown: for the terminal and docs/performance/measurements.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from bench import summary
from bench.harness import Result, adapter
from bench.scenarios import APPEND, MESSAGES, TAIL
from bench.targets import verdicts

BASE = {
    "append": "chronicle.writingDocument",
    "tail": "chronicle.tailing",
    "write": "chronicle.method-write",
    "read": "chronicle.method-read",
    "dump": "chronicle.dump",
    "vanilla-append": "vanilla_java.append-one",
    "vanilla-read": "vanilla_java.tail",
    "quick-queue-append": "quick_queue_c.append",
    "quick-queue-read": "quick_queue_c.read",
    "quick-queue-producers": "quick_queue.write_bytes@1",
}
"""What the others are held against, of Java where it can do the same."""
_ORDER = {one.key: place for place, one in enumerate((*APPEND, *TAIL, *chain(*MESSAGES.values())))}


_OLDER = ("vanilla", "vanilla_java", "quick_queue", "quick_queue_java", "quick_queue_c")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a table, padded so that it can be read as text too."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    padded = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([padded[0], rule, *padded[1:]])


def targets(results: dict[str, Result]) -> str:
    """Return every target with what was reached."""
    head = ("measured", "on", "target", "reached (range)", "by CPU time", "")
    rows = [
        (one.what, one.place, one.wanted, one.reached, one.by_cpu_time, one.text)
        for one in verdicts(results)
    ]
    return table(head, rows)


def rates(results: dict[str, Result], part: str, against: str = "Java") -> str:
    """Return nanoseconds, rate and ratio of every operation of a part."""
    head = (
        *("on", "size", "operation", "ns each", "range", "IQR", "CPU ns each", "range"),
        *("messages/s", f"against {against}", "range", "by CPU time", "range"),
    )
    rows = [
        _rate_row(one, key, BASE.get(one.get("kind", part), ""))
        for one in summary.scenarios(results, part)
        for key in sorted(summary.operations(one), key=place_of)
    ]
    return table(head, rows)


def _rate_row(scenario: Result, key: str, base: str) -> tuple[str, ...]:
    spread = summary.nanos(scenario, key)
    cpu = summary.nanos(scenario, key, summary.CPU_TIME)
    mark = summary.mark(scenario)
    of = f" of {scenario['holds']}" if "holds" in scenario else ""
    against = ("",) * 4
    if base in summary.operations(scenario):
        clocks = (summary.TIME, summary.CPU_TIME)
        by_time, by_cpu_time = (summary.ratio(scenario, key, base, clock) for clock in clocks)
        against = (*_ratio(by_time), *_ratio(by_cpu_time))
    return (
        scenario["file_system"],
        f"{scenario['size']} B",
        full_name(key) + of,
        f"{spread.median:.0f}{mark}",
        f"{spread.least:.0f} - {spread.greatest:.0f}",
        f"{spread.iqr:.0f}",
        f"{cpu.median:.0f}",
        f"{cpu.least:.0f} - {cpu.greatest:.0f}",
        rate(1e9 / spread.median),
        *against,
    )


def _ratio(spread: summary.Spread) -> tuple[str, str]:
    return f"{spread.median:.2f} x", f"{spread.least:.2f} - {spread.greatest:.2f}"


def peers(results: dict[str, Result], kind: str) -> str:
    """Return the rates of one call a message, the fastest first."""
    head = ("on", "system", "ns each", "range", "messages/s")
    rows: list[tuple[str, ...]] = []
    for one in summary.scenarios(results, "peers"):
        if one["kind"] != kind:
            continue
        spreads = {key: summary.nanos(one, key) for key in summary.operations(one)}
        mark = summary.mark(one)
        for key, spread in sorted(spreads.items(), key=lambda item: item[1].median):
            rows.append(
                (
                    one["file_system"],
                    full_name(key),
                    f"{spread.median:,.0f}{mark}",
                    f"{spread.least:,.0f} - {spread.greatest:,.0f}",
                    rate(1e9 / spread.median),
                )
            )
    return table(head, rows)


def surroundings(results: dict[str, Result]) -> str:
    """Return how quiet the machine was during each part."""
    head = (
        "part",
        "date",
        "commit",
        "build",
        "seed",
        "rounds kept / run",
        "others' CPU, cores",
        "load average",
    )
    rows: list[tuple[str, ...]] = []
    for part, result in results.items():
        every = [one for scenario in result["scenarios"] for one in scenario["rounds"]]
        runs = [run for one in every if one["kept"] for run in one["runs"].values()]
        foreign = summary.Spread.of([run["foreign_cores"] for run in runs])
        load = summary.Spread.of([run["load"] for run in runs])
        rows.append(
            (
                part + (", quick" if result["quick"] else ""),
                result["date"],
                result["commit"],
                result.get("binaries", {}).get("quire", "unknown"),
                str(result.get("seed", "unknown")),
                f"{sum(one['kept'] for one in every)} / {len(every)}",
                f"{foreign.median:.2f} ({foreign.least:.2f} - {foreign.greatest:.2f})",
                f"{load.median:.1f} ({load.least:.1f} - {load.greatest:.1f})",
            )
        )
    return table(head, rows)


def full_name(key: str) -> str:
    """Return the name of an operation, with its system."""
    system, name = key.split(".", 1)
    if hasattr(adapter(system), "NAMES"):
        return str(adapter(system).NAMES[name])
    if system in ("quire", "chronicle"):
        return f"{'Java' if system == 'chronicle' else 'Quire'} {name}"
    if system in _OLDER:
        return f"{adapter(system).NAME} {name}"
    return str(adapter(system).NAME)


def place_of(key: str) -> int:
    """Return where an operation stands among the others."""
    return _ORDER.get(key, len(_ORDER))


def rate(per_second: float) -> str:
    """Return messages a second."""
    return f"{per_second / 1e6:.2f} M" if per_second >= 1e6 else f"{per_second / 1e3:.1f} k"


def microseconds(value: float) -> str:
    """Return microseconds, without digits that mean nothing."""
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"
