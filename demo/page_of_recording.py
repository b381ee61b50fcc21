"""What the page of a run says about the journal, and about the checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from demo.analyse import Analysis
from demo.checks import Check
from demo.fail_over import FailOver
from demo.figures import percentile
from demo.follow import TAILER
from demo.record import Recording
from quire.pages import Chart, Table, charts
from quire.pages.blocks import Block
from quire.pages.charts import Labels
from quire.pages.palette import BLUE, ORANGE

_MIB: Final = 1 << 20
_SLICES: Final = 60
_QUANTILES: Final = ((0.5, "median"), (0.9, "90th percentile"), (0.99, "99th percentile"))


def recorded(recording: Recording, analysis: Analysis) -> Iterator[Block]:
    """Yield the sections on the recording."""
    written, store = recording.written, recording.journal.store_of_day
    own = "" if store is None else f" Each day has a {store} of its own."
    yield (
        f"{written.events:,} events were written in the order in which they happened:"
        f" {written.departed:,} departures, {written.arrived:,} arrivals and"
        f" {written.cancelled:,} cancellations.{own} Writing took"
        f" {recording.write_s:.1f} seconds, {written.events / recording.write_s:,.0f} events a"
        f" second from Python; on disk they take {recording.disk_bytes / _MIB:,.0f} MiB,"
        f" {recording.disk_bytes / written.events:,.0f} bytes an event."
    )
    days = list(analysis.messages)
    counts = list(analysis.messages.values())
    yield Chart(
        charts.columns(
            days, {"messages": [float(it) for it in counts]}, Labels("", "messages"), width=1.0
        ),
        "Messages by day" if store is None else f"Messages by daily {store}",
        f"{len(days)} {recording.journal.stores_of_days} hold between {min(counts):,} and"
        f" {max(counts):,} messages"
        + (", counted by their cycle, which is the number of the day." if store else "."),
    )
    yield from _followed(recording)


def failed_over(fail_over: FailOver) -> Iterator[Block]:
    """Yield the section on the node that died."""
    yield (
        "The first half was recorded on one node and replicated to a second one, where the live"
        " tailer read. Then the recorder and the source of the first node were killed, with"
        f" SIGKILL: {fail_over.written:,} events had been written there, and the recorder knew that"
        f" {fail_over.acknowledged:,} of them were replicated. The second node had"
        f" {fail_over.kept:,}. It was promoted, and {_duration(fail_over.seconds)} after the kill"
        " a second recorder went on there, after the last event that this node had."
    )
    yield Table(
        "Where the events were recorded",
        ["node", "epoch", "events"],
        [
            ("first, replicated to the second", fail_over.epoch - 1, fail_over.kept),
            ("second", fail_over.epoch, fail_over.recorded_there),
        ],
    )


def checking(checks: Sequence[Check]) -> Iterator[Block]:
    """Yield the sections on the checks."""
    yield (
        "The figures of flights were computed from the journal, and once more without it, in plain"
        " Python from the data set's own file."
    )
    yield Table(
        "Checks",
        ["what", "held against", "verdict"],
        [[it.what, it.against, it.verdict] for it in checks],
    )


def _followed(recording: Recording) -> Iterator[Block]:
    delays = sorted(delay for _, delay in recording.timed)
    if not delays:
        return
    slices = list(_slices(recording))
    yield Chart(
        charts.lines(
            [middle for middle, _, _ in slices],
            {
                "99th percentile": [high * 1e3 for _, _, high in slices],
                "median": [median * 1e3 for _, median, _ in slices],
            },
            Labels("seconds since the first event was written", "milliseconds"),
            colours=(ORANGE, BLUE),
        ),
        "Lag of the live tailer",
        f"While the events were written, the tailer {TAILER} read them in another process. From"
        f" just before an append until the other process had decoded the event it took"
        f" {_duration(percentile(delays, _QUANTILES[0][0]))} at the median, {_duration(delays[-1])}"
        f" at most; {_duration(recording.catch_up_s)} after the last append it had them all.",
    )
    yield Table(
        f"Latency of the live tailer, over {len(delays):,} timed events",
        ["", "from append to decoded"],
        [
            *((name, _duration(percentile(delays, quantile))) for quantile, name in _QUANTILES),
            ("slowest", _duration(delays[-1])),
        ],
    )


def _slices(recording: Recording) -> Iterator[tuple[float, float, float]]:
    """Yield the middle, the median and the 99th percentile of slices of the recording's time."""
    end = recording.timed[-1][0] or 1.0
    for place, of_slice in groupby(
        recording.timed, key=lambda it: min(int(it[0] / end * _SLICES), _SLICES - 1)
    ):
        delays = sorted(delay for _, delay in of_slice)
        yield (place + 0.5) * end / _SLICES, percentile(delays, 0.5), percentile(delays, 0.99)


def _duration(seconds: float) -> str:
    for unit, name in ((1.0, "seconds"), (1e-3, "milliseconds")):
        if seconds >= unit:
            return f"{seconds / unit:,.1f} {name}"
    return f"{seconds * 1e6:,.0f} microseconds"
