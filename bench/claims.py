"""
The rates and latencies that Chronicle Queue's documentation names, measured here.

Messages of 40 bytes at rates up to where single appends no longer hold them, messages of several
sizes, two writers of large documents, three services in a row, and a broker of Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench import (
    contention,
    harness,
    latency,
    life,
    live_tables,
    machine,
    replicated,
    summary,
    tables,
)
from bench.harness import Measure, Result, Scenario, fresh_directory, result
from bench.life import Described
from bench.scenarios import (
    BROKER_RATES,
    CLAIM_MINUTES,
    CLAIM_SIZE,
    CLAIM_SIZES,
    CLAIM_SIZES_RATE,
    CLAIMS,
    PACED_RATE,
    PACED_SIZES,
    SERVICES_RATE,
    Operation,
    Volume,
)
from bench.summary import taking

WRITERS = 2
_HELD = 0.99
_READ_US = 1000.0
"""A reader that keeps up has half of the messages sooner."""
_MOST_MESSAGES = 3_000_000
WRITER_PERCENTILES = ("p50", "p90", "p99", "p99.7", "max")


def a_second(millions: int) -> int:
    """Return messages a second from million messages a minute."""
    return round(millions * 1e6 / 60)


def is_held(rate: float, scenario: Result) -> bool:
    """Whether a rate that was reached is the scenario's, but for a hundredth."""
    return bool(rate >= _HELD * scenario["rate"])


def settings(place: Path, volume: Volume) -> Iterator[Described]:
    """Yield what is measured: how it is described, and what prepares a round."""
    claims = volume.claims
    for millions in CLAIM_MINUTES:
        yield _at_rate("rates", place, CLAIM_SIZE, a_second(millions), volume)
    for size in CLAIM_SIZES:
        yield _at_rate("sizes", place, size, CLAIM_SIZES_RATE, volume)
    for size in PACED_SIZES:
        messages = WRITERS * PACED_RATE * claims.paced_ms // 1000
        scenario = Scenario(place, size, messages, volume.contention_warm_up // WRITERS)
        yield {"kind": "writers"}, scenario, partial(_writing, scenario, claims.paced_ms)
    yield life.alone("services", place, claims.passed, size=CLAIM_SIZE)
    for rate in BROKER_RATES:
        yield _at_rate("broker", place, CLAIM_SIZE, rate, volume)


def _at_rate(kind: str, place: Path, size: int, rate: int, volume: Volume) -> Described:
    seconds = min(volume.claims.seconds, _MOST_MESSAGES / rate)
    scenario = Scenario(place, size, *volume.at_rate(rate, seconds))
    return {"kind": kind, "rate": rate}, scenario, partial(_tailing, scenario, rate)


@contextmanager
def _tailing(scenario: Scenario, rate: int) -> Generator[Measure]:
    """Have what needs a server run one, as for replication; the rest is alone with its reader."""
    with (
        latency.tailing_live(scenario, rate) as alone,
        replicated.following(scenario, rate) as served,
    ):
        yield lambda one: (served if _has_server(one) else alone)(one)


def _has_server(one: Operation) -> bool:
    return hasattr(harness.adapter(one.system), "services")


@contextmanager
def _writing(scenario: Scenario, duration_ms: int) -> Generator[Measure]:
    """Have two writers append at a rate; every message of both is looked for afterwards."""
    from bench.adapters import quire_contending

    def measure(one: Operation) -> Result:
        total = scenario.count + WRITERS * scenario.warm_up
        with fresh_directory(scenario.place, scenario.size, total) as directory:
            asked = replace(
                scenario.task(one, directory),
                duration_ms=duration_ms,
                rate=PACED_RATE,
                out=str(directory / "took"),
            )
            with machine.observed() as surroundings:
                found = contention.run(asked, WRITERS)
            expected = [asked.warm_up + int(it["count"]) for it in found]
            quire_contending.verify(asked.queue, asked.size, expected)
            return result(surroundings, writers=latency.of_writers(asked, WRITERS))

    yield measure


def text(results: dict[str, Result]) -> str:
    """Return a table of each kind that was measured."""
    return summary.by_kind(results, "claims", _TABLES)


def _delays(scenarios: Sequence[Result]) -> str:
    names = ("p50", "p90", "p99", "p99.9")
    rows: list[tuple[str, ...]] = []
    for scenario, key in _measured(scenarios):
        spreads = [summary.percentile(scenario, key, "begin", name) for name in names]
        held = summary.values(scenario, key, taking("rate"))
        rows.append(
            (
                f"{scenario['size']:,} B",
                f"{scenario['rate']:,}",
                live_tables.reader_of(key) + summary.mark(scenario),
                *(tables.microseconds(spread.median) for spread in spreads),
                " - ".join(map(tables.microseconds, (spreads[0].least, spreads[0].greatest))),
                f"{held.median:,.0f}",
                f"{summary.values(scenario, key, taking('at_once')).median:.1f}",
            )
        )
    columns = [f"{name}, us" for name in names]
    head = ("size", "messages/s", "system", *columns, "p50 range", "held", "messages an append")
    return f"{tables.table(head, rows)}\n\n{live_tables.TAILS}:\n\n{live_tables.tails(scenarios)}"


def _rates(scenarios: Sequence[Result]) -> str:
    return f"{_delays(scenarios)}\n\n{needing_batches(scenarios)}"


def needing_batches(scenarios: Sequence[Result]) -> str:
    """Say from which rate on single appends do not hold it, or are not read as they come."""
    for scenario in sorted(scenarios, key=lambda one: int(one["rate"])):
        held, at_once = (
            summary.values(scenario, f"quire.{name}", taking(what)).median
            for name, what in (("latency", "rate"), ("batches", "at_once"))
        )
        late_us = summary.percentile(scenario, "quire.latency", "begin", "p50").median
        if not is_held(held, scenario) or late_us > _READ_US:
            return (
                f"From {scenario['rate']:,} messages a second on they must be batches: of single "
                f"ones {held:,.0f} are appended, and half are read after more than "
                f"{tables.microseconds(late_us)} us. Batches then have {at_once:,.1f} messages."
            )
    return "Single appends hold each of these rates, and are read as they come."


def _writers(scenarios: Sequence[Result]) -> str:
    rows: list[tuple[str, ...]] = []
    for scenario, key in _measured(scenarios):
        for writer in range(WRITERS):
            spreads = [
                summary.values(scenario, key, of_writer(writer, name))
                for name in WRITER_PERCENTILES
            ]
            rows.append(
                (
                    f"{scenario['size']:,} B",
                    tables.full_name(key) + summary.mark(scenario),
                    str(writer + 1),
                    *(tables.microseconds(spread.median) for spread in spreads),
                )
            )
    columns = [f"{name}, us" for name in WRITER_PERCENTILES]
    return tables.table(("size", "", "writer", *columns), rows)


def of_writer(writer: int, name: str) -> Callable[[Result], float]:
    """Return a function that takes a percentile of one writer from a run."""
    return lambda run: float(run["writers"][writer][name])


def _services(scenarios: Sequence[Result]) -> str:
    names = ("p50", "p90", "p99", "p99.9", "max")
    rows: list[tuple[str, ...]] = []
    for scenario, key in _measured(scenarios):
        spreads = [summary.percentile(scenario, key, "begin", name) for name in names]
        below = summary.values(scenario, key, taking("below", "40"))
        rows.append(
            (
                _WAYS[key.partition("@")[2]] + summary.mark(scenario),
                *(tables.microseconds(spread.median) for spread in spreads),
                f"{below.median:.2%}",
            )
        )
    columns = [f"{name}, us" for name in names]
    return tables.table(("three services", *columns, "below 40 us"), rows)


def _measured(scenarios: Sequence[Result]) -> Iterator[tuple[Result, str]]:
    """Yield each scenario with each of its operations that was measured, in their order."""
    for scenario in scenarios:
        known = summary.operations(scenario)
        for one in CLAIMS[scenario["kind"]]:
            if one.key in known:
                yield scenario, one.key


_WAYS = {
    "thread": "in one thread, with the reader",
    "asleep": "in three processes, asleep until a message comes",
}
_RATES = (
    "From the start of an append to the read in another process. *Batches*: what is due is "
    "appended together, by `write_many` if it is more than one message, and read by `read_many`"
)
_TABLES: dict[str, tuple[str, Callable[[Sequence[Result]], str]]] = {
    "rates": (_RATES, _rates),
    "sizes": ("The same, for messages of several sizes", _delays),
    "writers": (
        f"An append of two writers, {PACED_RATE:,} documents/s each in pieces of 64 bytes",
        _writers,
    ),
    "services": (
        f"From the first append to the last read, {SERVICES_RATE:,} objects/s, three services",
        _services,
    ),
    "broker": ("Beside a broker", _delays),
}
