"""The tables of what several processes do with one queue, and of queues that grew."""

from __future__ import annotations

from collections.abc import Sequence

from bench import summary, targets
from bench.harness import Result, adapter
from bench.summary import CPU_TIME
from bench.tables import full_name, microseconds, rate, table

TAILS = (
    "The slowest of 1,000, in microseconds, of all rounds and of those in which reader and writer\n"
    f"together waited for a CPU for less than {summary.MOST_RUN_DELAY:.1%} of the time"
)
_SINCE = {
    "begin": "start of the append",
    "windows": "the same, within windows",
    "due": "when it was due",
    "append": "the append call alone",
}


def latencies(results: dict[str, Result]) -> str:
    """Return percentiles in microseconds, medians of the rounds, and p99.9 without preemption."""
    found = summary.scenarios(results, "latency")
    return f"{percentiles(found)}\n\n{TAILS}:\n\n{tails(found)}"


def percentiles(scenarios: Sequence[Result]) -> str:
    """Return percentiles in microseconds, each the median over the rounds."""
    head = ("on", "rate", "system", "from", *targets.PERCENTILES, "p50 range", "messages/s held")
    rows = [
        _latency(one, key, since)
        for one in scenarios
        for since in _SINCE
        for key in summary.operations(one)
    ]
    return table(head, rows)


def tails(scenarios: Sequence[Result]) -> str:
    """Return p99.9 of all rounds and of those without preemption, and how long threads waited."""
    head = (
        *("on", "size", "rate", "system", "p99.9", "range", "without preemption", "range"),
        *("such rounds", "reader waited", "writer waited", "below 40 us"),
    )
    rows = [_tail(one, key) for one in scenarios for key in summary.operations(one)]
    return table(head, rows)


def _tail(scenario: Result, key: str) -> tuple[str, ...]:
    every = summary.percentile(scenario, key, "begin", "p99.9")
    quiet = [run["begin"]["p99.9"] for run in summary.without_preemption(scenario, key)]
    below = summary.values(scenario, key, summary.taking("below", "40"))
    return (
        scenario["file_system"],
        f"{scenario['size']:,} B",
        f"{scenario['rate']:,}",
        reader_of(key) + summary.mark(scenario),
        *_p999(every),
        *(_p999(summary.Spread.of(quiet)) if quiet else ("", "")),
        f"{len(quiet)} of {len(summary.kept(scenario))}",
        *(_waited(scenario, key, role) for role in ("reader", "writer")),
        f"{below.median:.3%}",
    )


def _p999(spread: summary.Spread) -> tuple[str, str]:
    ends = (microseconds(end) for end in (spread.least, spread.greatest))
    return microseconds(spread.median), " - ".join(ends)


def _waited(scenario: Result, key: str, role: str) -> str:
    runs = [one["runs"][key]["run_delay"] for one in summary.kept(scenario)]
    shares = [run[role] for run in runs if role in run]
    return f"{summary.Spread.of(shares).median:.3%}" if shares else ""


def _latency(scenario: Result, key: str, since: str) -> tuple[str, ...]:
    def found(name: str) -> summary.Spread:
        return summary.percentile(scenario, key, since, name)

    median = found("p50")
    held = summary.values(scenario, key, lambda run: float(run["rate"]))
    return (
        scenario["file_system"],
        f"{scenario['rate']:,}",
        reader_of(key) + summary.mark(scenario),
        _SINCE[since],
        *(microseconds(found(name).median) for name in targets.PERCENTILES),
        f"{microseconds(median.least)} - {microseconds(median.greatest)}",
        f"{held.median:,.0f}",
    )


def reader_of(key: str) -> str:
    """Return the name of a system, and how its reader waits."""
    system, name = key.split(".", maxsplit=1)
    return str(adapter(system).NAME) + ("" if name == "latency" else f", {name}")


def contention(results: dict[str, Result], part: str) -> str:
    """Return what writers appended together, and how evenly."""
    head = (
        *("on", "size", "writers", "operation", "ns each", "range", "messages/s together"),
        *("CPU ns each", "least : most", "fairness", "range"),
    )
    rows = [
        _contention(one, key)
        for one in summary.scenarios(results, part)
        for key in sorted(summary.operations(one), reverse=True)
    ]
    return table(head, rows)


def _contention(scenario: Result, key: str) -> tuple[str, ...]:
    nanos = summary.nanos(scenario, key)
    fairness = summary.values(scenario, key, lambda run: float(run["fairness"]))
    share = summary.values(scenario, key, lambda run: float(run["least_share"]))
    return (
        scenario["file_system"],
        f"{scenario['size']} B",
        str(scenario["writers"]),
        full_name(key),
        f"{nanos.median:,.0f}{summary.mark(scenario)}",
        f"{nanos.least:,.0f} - {nanos.greatest:,.0f}",
        rate(1e9 / nanos.median),
        f"{summary.nanos(scenario, key, CPU_TIME).median:,.0f}",
        f"{share.median:.2f}",
        f"{fairness.median:.2f}",
        f"{fairness.least:.2f} - {fairness.greatest:.2f}",
    )


def growth(results: dict[str, Result]) -> str:
    """Return what each operation costs in a small and in a large queue."""
    head = (
        *("queue of", "operation", "system", "us, small", "us, large"),
        *("growth", "range", "by CPU time"),
    )
    rows = [
        _growth(one, system, name)
        for one in summary.scenarios(results, "growth")
        for name in one["names"]
        for system in ("quire", "chronicle")
        if any(key.startswith(system) for key in summary.operations(one))
    ]
    return table(head, rows)


def _growth(scenario: Result, system: str, name: str) -> tuple[str, ...]:
    small, large = scenario["amounts"]
    nanos = [summary.nanos(scenario, f"{system}.{name}@{it}") for it in (small, large)]
    grown = targets.growth(scenario, system, name)
    return (
        f"{small:,} and {large:,} {scenario['kind']}",
        name,
        adapter(system).NAME + summary.mark(scenario),
        *(f"{one.median / 1000:,.3f}" for one in nanos),
        f"{grown.median:.2f} x",
        f"{grown.least:.2f} - {grown.greatest:.2f}",
        f"{targets.growth(scenario, system, name, CPU_TIME).median:.2f} x",
    )
