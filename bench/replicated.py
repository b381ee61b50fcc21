"""Replication: from an append at the source to a tailer at the sink, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench import harness, latency, life, machine, summary, tables
from bench.harness import Measure, Result, Scenario, fresh_directory, result
from bench.life import Described
from bench.replicated_scenarios import (
    ACCEPTABLE,
    REPLICATION,
    REPLICATION_RATES,
    REPLICATION_SIZE,
)
from bench.replicated_targets import ALONE
from bench.scenarios import Operation, Volume
from bench.summary import CPU_TIME, taking

_PERCENTILES = ("p50", "p99", "p99.9")


def settings(places: Sequence[Path], volume: Volume) -> Iterator[Described]:
    """Yield what is measured: how it is described, and what prepares a round."""
    place, amounts = places[0], volume.replication
    for rate in REPLICATION_RATES:
        scenario = Scenario(place, REPLICATION_SIZE, *volume.at_rate(rate, amounts.seconds))
        yield {"kind": "latency", "rate": rate}, scenario, partial(following, scenario, rate)
    for millions in ACCEPTABLE:
        rate = round(millions * 1e6 / 60)
        scenario = Scenario(place, REPLICATION_SIZE, *volume.at_rate(rate, amounts.seconds))
        yield {"kind": "acceptable", "rate": rate}, scenario, partial(following, scenario, rate)
    yield life.alone("catch-up", place, amounts.caught_up, size=REPLICATION_SIZE)
    yield life.alone("cost", place, amounts.cost, size=REPLICATION_SIZE)
    # On a disk, the last place.
    yield life.alone("waits", places[-1], amounts.waits, size=REPLICATION_SIZE)
    yield life.alone("flights", place, amounts.flights, size=REPLICATION_SIZE)


@contextmanager
def following(scenario: Scenario, rate: int) -> Generator[Measure]:
    """Each run has servers of its own; numbers and times are checked."""

    def measure(one: Operation) -> Result:
        # Both queues, and what a server keeps beside them.
        with fresh_directory(scenario.place, scenario.size, 2 * scenario.total) as directory:
            out = str(directory / "records")
            asked = replace(scenario.task(one, directory), rate=rate, out=out)
            with machine.observed() as surroundings, harness.adapter(one.system).services(asked):
                latency.run_both(asked, None)
            return result(surroundings, **latency.evaluate(asked))

    yield measure


def text(results: dict[str, Result]) -> str:
    """Return the tables."""
    return summary.by_kind(results, "replication", _TABLES)


def _delays(scenarios: Sequence[Result]) -> str:
    rows: list[tuple[str, ...]] = []
    for scenario in scenarios:
        for one in REPLICATION[scenario["kind"]]:
            if one.key not in summary.operations(scenario):
                continue
            found = [summary.percentile(scenario, one.key, "begin", it) for it in _PERCENTILES]
            below = summary.values(scenario, one.key, taking("below", "1000"))
            held = summary.values(scenario, one.key, taking("rate"))
            rows.append(
                (
                    f"{scenario['rate']:,}",
                    harness.adapter(one.system).NAME + summary.mark(scenario),
                    *(tables.microseconds(spread.median) for spread in found),
                    " - ".join(map(tables.microseconds, (found[0].least, found[0].greatest))),
                    f"{below.median:.2%}",
                    f"{held.median:,.0f}",
                )
            )
    names = [f"{name}, us" for name in _PERCENTILES]
    head = ("messages/s", "system", *names, "p50 range", "below 1 ms", "messages/s held")
    return tables.table(head, rows)


def _rates(scenarios: Sequence[Result]) -> str:
    rows: list[tuple[str, ...]] = []
    for scenario in scenarios:
        for one in REPLICATION[scenario["kind"]]:
            spread = summary.nanos(scenario, one.key)
            rows.append(
                (
                    scenario["file_system"],
                    tables.full_name(one.key) + summary.mark(scenario),
                    f"{spread.median:,.0f}",
                    f"{spread.least:,.0f} - {spread.greatest:,.0f}",
                    tables.rate(1e9 / spread.median),
                )
            )
    return tables.table(("on", "", "ns each", "range", "messages/s"), rows)


def _cost(scenarios: Sequence[Result]) -> str:
    rows: list[tuple[str, ...]] = []
    for scenario in scenarios:
        for one in REPLICATION["cost"]:
            spread = summary.nanos(scenario, one.key, CPU_TIME)
            more = summary.ratio(scenario, ALONE, one.key, CPU_TIME)
            rows.append(
                (
                    tables.full_name(one.key) + summary.mark(scenario),
                    f"{spread.median:,.0f}",
                    f"{spread.least:,.0f} - {spread.greatest:,.0f}",
                    f"{more.median:.2f} x",
                )
            )
    return tables.table(("", "CPU ns each", "range", "against alone"), rows)


_TABLES: dict[str, tuple[str, Callable[[Sequence[Result]], str]]] = {
    "latency": (
        f"From an append at the source until a tailer of the replica has it, {REPLICATION_SIZE} B",
        _delays,
    ),
    "acceptable": ("The same at 7, 20, 50 and 80 million messages a minute", _delays),
    "catch-up": ("One connection", _rates),
    "waits": ("Appends that wait, for a replica or for the disk", _rates),
    "flights": ("With 64 messages under way to a replica", _rates),
    "cost": ("What an append takes of its thread, 100,000 a second", _cost),
}
