"""What the page of a run says about the journal's consumer group, retention and metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from demo.life import AUDIT, GROUP, Pruned, Pruning, Sharing, Work
from quire.metrics import Histogram, Metrics
from quire.pages import Chart, Table, charts
from quire.pages.blocks import Block, Cell
from quire.pages.charts import Labels
from quire.pages.palette import BLUE, GREY, ORANGE

_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_PERCENTS: Final = (50.0, 90.0, 99.0, 99.9, 99.99)


def shared(sharing: Sharing) -> Iterator[Block]:
    """Yield the section on the consumer group."""
    again = sum(desk.again for desk in sharing.desks)
    yield (
        f"The consumer group {GROUP} went through the journal once more, each event to one of"
        f" {len(sharing.desks)} processes, in {sharing.seconds:.1f} seconds. A first consumer took"
        f" {sharing.abandoned:,} events and left without acknowledging any: {again:,} events were"
        f" delivered again, none was lost, and {sharing.lag:,} wait to be acknowledged."
    )
    totals = sharing.totals
    yield Table(
        f"What the consumers of {GROUP} acknowledged",
        ["consumer", "events", "departures", "arrivals", "cancellations", "delivered again"],
        [*(_row(it) for it in sharing.desks), _row(Work("all", totals, again))],
        emphasis=1,
    )


def pruned(pruning: Pruning) -> Iterator[Block]:
    """Yield the section on retention."""
    parts: dict[str, list[Pruned]] = {
        "removed": [it for it in pruning.days if it.removed],
        f"kept for {AUDIT}": [it for it in pruning.days if not (it.removed or it.within)],
        "within the limit": [it for it in pruning.days if it.within],
    }
    removed, needed, _ = parts.values()
    yield Chart(
        charts.columns(
            [it.day for it in pruning.days],
            {
                name: [it.bytes / _KIB if it in part else 0.0 for it in pruning.days]
                for name, part in ((name, set(found)) for name, found in parts.items())
            },
            Labels("", "KiB on disk"),
            colours=(GREY, ORANGE, BLUE),
            width=1.0,
        ),
        f"What quire.prune(max_cycles={pruning.limit}) did to a copy of the journal",
        f"The rule keeps {pruning.limit} of {len(pruning.days)} daily files. The named tailer"
        f" {AUDIT} has read up to {pruning.oldest_needed:%-d %B}, so that {len(needed)} files stay"
        f" for it; {len(removed)} went in {pruning.seconds:.1f} seconds and freed"
        f" {pruning.freed / _MIB:,.1f} MiB.",
    )


def counted(metrics: Metrics) -> Iterator[Block]:
    """Yield the section on metrics."""
    yield (
        "The recorder and the live tailer opened the journal with metrics=True. Both counted in one"
        f" side file: {metrics.messages_appended:,} messages of {metrics.bytes_appended:,} bytes"
        f" appended, {metrics.messages_read:,} read, {metrics.rolls:,} files made, and"
        f" {metrics.lock_wait.count:,} waits for the write lock. Prometheus, OpenTelemetry and the"
        " Grafana dashboard get the same numbers."
    )
    found = {"append": metrics.append_latency, "read": metrics.read_latency}
    yield Table(
        "Latency of a call, microseconds",
        ["", *found],
        [
            *((f"{percent:g} %", *_microseconds(found, percent)) for percent in _PERCENTS),
            ("slowest", *_microseconds(found, 100)),
        ],
        digits=2,
    )


def _row(work: Work) -> tuple[Cell, ...]:
    totals = work.totals
    counts = (totals.events, totals.departed, totals.arrived, totals.cancelled)
    return (work.name, *counts, work.again)


def _microseconds(found: dict[str, Histogram], percent: float) -> Iterator[float | None]:
    for latency in found.values():
        nanos = latency.percentile(percent)
        yield None if nanos is None else nanos / 1e3
