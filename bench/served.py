"""The server: what clients append and read, what a call takes, and what rest costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from bench import harness, life, replicated, summary, tables
from bench.harness import Result, Scenario
from bench.life import Described
from bench.scenarios import SERVED, SERVED_RATE, SERVED_SIZE, Volume
from bench.summary import CPU_TIME, taking

FLIGHT_SIZE = 1024


def settings(places: Sequence[Path], volume: Volume) -> Iterator[Described]:
    """Yield what is measured: how it is described, and what prepares a round."""
    place, served = places[0], volume.served
    for kind, amount in (
        ("xadd", served.added),
        ("append", served.appended),
        ("tail", served.appended),
        ("call", served.calls),
    ):
        yield life.alone(kind, place, amount, size=SERVED_SIZE)
    yield life.alone("flight", place, served.flown, size=FLIGHT_SIZE)
    seen = Scenario(place, SERVED_SIZE, *served.seen)
    following = partial(replicated.following, seen, SERVED_RATE)
    yield {"kind": "seen", "rate": SERVED_RATE}, seen, following
    yield life.alone("idle", place, served.quiet_ms, size=SERVED_SIZE)


def text(results: dict[str, Result]) -> str:
    """Return a table of each kind that was measured."""
    parts: list[str] = []
    for scenario in summary.scenarios(results, "serve"):
        title, show = _TABLES[scenario["kind"]]
        parts.append(f"{title}:\n\n{show(scenario)}")
    return "\n\n".join(parts)


def _measured(scenario: Result) -> list[str]:
    known = summary.operations(scenario)
    return [one.key for one in SERVED[scenario["kind"]] if one.key in known]


def _rates(scenario: Result) -> str:
    rows: list[tuple[str, ...]] = []
    for key in _measured(scenario):
        spread = summary.nanos(scenario, key)
        cpu = summary.nanos(scenario, key, CPU_TIME)
        rows.append(
            (
                scenario["file_system"],
                tables.full_name(key) + summary.mark(scenario),
                f"{spread.median:,.0f}",
                f"{spread.least:,.0f} - {spread.greatest:,.0f}",
                f"{cpu.median:,.0f}",
                tables.rate(1e9 / spread.median),
            )
        )
    head = ("on", "", "ns each", "range", "CPU ns each, of the server", "messages/s")
    return tables.table(head, rows)


def _bytes(scenario: Result) -> str:
    rows: list[tuple[str, ...]] = []
    for key in _measured(scenario):
        spread = summary.values(scenario, key, taking("bytes_per_s", unit=1e9))
        name = tables.full_name(key) + summary.mark(scenario)
        range_ = f"{spread.least:.2f} - {spread.greatest:.2f}"
        rows.append((scenario["file_system"], name, f"{spread.median:.2f}", range_))
    return tables.table(("on", "", "GB/s", "range"), rows)


def _delays(scenario: Result) -> str:
    rows: list[tuple[str, ...]] = []
    for one in SERVED["seen"]:
        if one.key not in summary.operations(scenario):
            continue
        found = [summary.percentile(scenario, one.key, "begin", it) for it in _PERCENTILES]
        name = harness.adapter(one.system)
        rows.append(
            (
                getattr(name, "NAMES", {}).get("latency", name.NAME) + summary.mark(scenario),
                *(tables.microseconds(spread.median) for spread in found),
                " - ".join(map(tables.microseconds, (found[0].least, found[0].greatest))),
            )
        )
    names = [f"{name}, us" for name in _PERCENTILES]
    return tables.table(("", *names, "p50 range"), rows)


def _idle(scenario: Result) -> str:
    rows: list[tuple[str, ...]] = []
    for key in _measured(scenario):
        cpu = summary.values(scenario, key, taking("cpu"))
        woken = summary.values(scenario, key, taking("woken_ns", unit=1e6))
        rows.append(
            (
                tables.full_name(key) + summary.mark(scenario),
                f"{cpu.median:.2%}",
                f"{cpu.least:.2%} - {cpu.greatest:.2%}",
                f"{woken.median:.1f}" if woken.median else "",
            )
        )
    return tables.table(("", "CPU of the server, of a core", "range", "all have read, ms"), rows)


_PERCENTILES = ("p50", "p90", "p99", "p99.9")
_TABLES: dict[str, tuple[str, Callable[[Result], str]]] = {
    "xadd": ("`XADD` in pipelines of 64 by four connections, 40 B", _rates),
    "append": ("Appended in batches by one client, 40 B", _rates),
    "tail": ("Read by one client, 40 B", _rates),
    "call": ("One append and its answer, 40 B", _rates),
    "flight": (f"Messages of {FLIGHT_SIZE:,} B by Arrow Flight", _bytes),
    "seen": (
        f"From an append at one client until another has it, {SERVED_RATE:,} a second, 40 B",
        _delays,
    ),
    "idle": ("While nothing is appended", _idle),
}
