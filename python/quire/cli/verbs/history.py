"""``quire history``: how long messages took, from their histories, as percentiles."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import click

import quire
from quire.cli.output.progress import Progress
from quire.cli.output.row_formats import print_rows
from quire.cli.parameters import PATH, value_errors_as_usage
from quire.cli.reading.sources import sources_of
from quire.cli.shared_options import range_options, row_format_option
from quire.formats.adapters import adapter_of, end_index_of
from quire.ranges.range import Limits

PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
UNITS: Final = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}

Series: TypeAlias = dict[tuple[str, str], "array[int]"]
"""Nanoseconds by the name of a step and the method. Of several windows, the last is plotted."""


class Way:
    """
    The steps of all messages, in the order in which messages take them.

    Attributes:
        begun: How many messages have taken none: they were written, and read by nobody who wrote
            something about them.

    """

    def __init__(self) -> None:
        """Begin with no step."""
        self.begun = 0
        self._steps: list[str] = []
        self._known = set[str]()

    def add(self, steps: Sequence[tuple[str, int]]) -> None:
        """Add those of a message that are new, each after the one before it."""
        self.begun += not steps
        if all(name in self._known for name, _ in steps):
            return
        after = 0
        for name, _ in steps:
            if name in self._known:
                after = max(after, self._steps.index(name) + 1)
            else:
                self._known.add(name)
                self._steps.insert(after, name)
                after += 1

    def ordered(self, series: Series) -> list[tuple[tuple[str, str], array[int]]]:
        """Return the times of each step and method in this order."""
        place = {name: number for number, name in enumerate(self._steps)}
        return sorted(
            series.items(), key=lambda it: (it[0][0] == "endToEnd", place[it[0][0]], it[0])
        )


@click.command()
@click.argument("path", type=PATH)
@range_options
@click.option("--skip", type=click.IntRange(min=0), default=0, help="Leave out the first messages.")
@click.option("--by-method", is_flag=True, help="A row for each method.")
@click.option(
    "--window",
    type=click.IntRange(min=1),
    metavar="SECONDS",
    help="Separate rows for each period of this length.",
)
@click.option(
    "--unit", type=click.Choice([*UNITS]), default="us", show_default=True, help="Unit of times."
)
@row_format_option()
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write an HTML page with plots.",
)
def history(path: Path, **more: Any) -> None:  # noqa: ANN401 - click checks them
    """
    Show latency percentiles from message histories.

    A source is a queue by its id, as recorded by method writers. For each source a row shows the
    time from reading a message to writing its result; startTo1 the time from the first writer to
    the reader of source 1; 1to2 the time from source 1 to source 2; endToEnd the total. A
    percentile is shown if there are enough messages for it. For POINT, see replay.

    \b
    Examples:
      quire history fills
      quire history fills --by-method --skip 10000 --unit ns
      quire history fills --format csv --plot fills.html
    """  # noqa: D301 - click reads the backspace
    unit_ns = UNITS[more["unit"]]
    rows: list[dict[str, Any]] = []
    plotted: Series = {}
    begun = 0
    sources = sources_of(path)
    for source in sources:
        with source.open() as queue, value_errors_as_usage():
            if not adapter_of(queue).has_calls:
                if len(sources) > 1:
                    continue
                raise click.ClickException(
                    f"messages of this format have no history: path={source.path}"
                )
            limits = Limits(more["from"], more["to"], more["time_field"])
            timings = _timings(queue, limits, more["skip"], by_method=more["by_method"])
            way = Way()
            for start_s, series in _windows(timings, more["window"], way):
                found = [_row(start_s, *it, unit_ns) for it in way.ordered(series)]
                rows += [{"queue": source.name, **row} for row in found]
                plotted |= {
                    (f"{source.name} {name}".strip(), method): times
                    for (name, method), times in way.ordered(series)
                }
            begun += way.begun
    if not rows:
        raise click.ClickException(_why_no_rows(path, begun))
    print_rows(more["style"], _columns(rows, more), rows)
    if more["plot"] is not None:
        _plot(more["plot"], path, plotted, more["unit"], unit_ns)


def _why_no_rows(path: Path, begun: int) -> str:
    if begun:
        return (
            "the histories have one timing each, and no step to show: nothing was written about "
            f"another message (ask the queue that its readers write): messages={begun} path={path}"
        )
    return f"no message has a history: path={path}"


def _timings(
    queue: Any,  # noqa: ANN401 - of a format that has calls
    limits: Limits,
    skip: int,
    *,
    by_method: bool,
) -> Iterator[tuple[str, quire.MessageHistory]]:
    """Yield the method and the history of each message that has one."""
    first, past = limits.indexes(queue)
    past = min(past, end_index_of(queue))
    if first >= past:
        return
    with queue.tailer() as tailer, Progress() as progress:
        if first:
            tailer.move_to_index(first)
        number = 0
        while (excerpt := tailer.read()) is not None:
            if excerpt.index >= past:
                return
            number += 1
            progress.count(number)
            found = tailer.history if number > skip else None
            if found is not None and found.timings:
                yield (_method(excerpt) if by_method else ""), found


def _method(excerpt: quire.Excerpt) -> str:
    """Return the name of the first call of a message."""
    import json

    values: Any = json.loads(excerpt.to_json())
    names = [*cast("dict[str, Any]", values)] if isinstance(values, dict) else []
    names = [name for name in names if name != "history"]
    return names[0] if names else "-"


def _windows(
    timings: Iterator[tuple[str, quire.MessageHistory]], seconds: int | None, way: Way
) -> Iterator[tuple[int, Series]]:
    """Yield the times of each period, with its start in seconds after the first message."""
    series: Series = {}
    first_ns = start_s = 0
    for method, found in timings:
        last_ns = found.timings[-1]
        first_ns = first_ns or last_ns
        if seconds is not None:
            this_s = (last_ns - first_ns) // UNITS["s"] // seconds * seconds
            if this_s != start_s and series:
                yield start_s, series
                series = {}
            start_s = this_s
        steps = [*steps_of(found)]
        way.add(steps)
        for name, time_ns in steps:
            series.setdefault((name, method), array("q")).append(time_ns)
    if series:
        yield start_s, series


def steps_of(found: quire.MessageHistory) -> Iterator[tuple[str, int]]:
    """Yield what a message went through, and how many nanoseconds each step took."""
    sources, timings = found.sources, found.timings
    written_ns = 0
    for number, (source, _) in enumerate(sources):
        if len(timings) <= 2 * number + 1:
            return
        read_ns = timings[2 * number + 1]
        if number == 0:
            yield f"startTo{source}", read_ns - timings[0]
        else:
            yield f"{sources[number - 1][0]}to{source}", read_ns - written_ns
        if len(timings) <= 2 * number + 2:
            return
        written_ns = timings[2 * number + 2]
        yield f"{source}", written_ns - read_ns
    if len(sources) > 1:
        yield "endToEnd", written_ns - timings[0]


def percentile(times: Sequence[int], share: float) -> int | None:
    """Return a percentile of sorted times; None where there are too few for it."""
    if len(times) * (100 - share) < 100 * (1 - 1e-9):
        return None if share > PERCENTILES[0] else times[(len(times) - 1) // 2]
    return times[min(len(times) - 1, math.ceil(len(times) * share / 100) - 1)]


def _row(start_s: int, key: tuple[str, str], times: array[int], unit_ns: int) -> dict[str, Any]:
    step, method = key
    ordered = sorted(times)
    found = {f"{share:g}": percentile(ordered, share) for share in PERCENTILES}
    values = {**found, "worst": ordered[-1]}
    shown = {
        name: None if value is None else value if unit_ns == 1 else value / unit_ns
        for name, value in values.items()
    }
    return {"window": start_s, "source": step, "method": method, "count": len(ordered), **shown}


def _columns(rows: list[dict[str, Any]], options: Mapping[str, Any]) -> list[str]:
    left_out = set[str]()
    if not any(row["queue"] for row in rows):
        left_out.add("queue")
    if options["window"] is None:
        left_out.add("window")
    if not options["by_method"]:
        left_out.add("method")
    return [name for name in rows[0] if name not in left_out]


def _plot(file: Path, path: Path, series: Series, unit: str, unit_ns: int) -> None:
    """Write a page with a line for each step."""
    from quire.pages import Chart, Page, Section
    from quire.pages.charts import Labels, lines

    shares = [share for share in PERCENTILES if any(_has(it, share) for it in series.values())]
    found = {
        " ".join(filter(None, key)): [
            math.nan if (it := percentile(ordered, share)) is None else it / unit_ns
            for share in shares
        ]
        for key, ordered in ((key, sorted(times)) for key, times in series.items())
    }
    labels = Labels("percentile", unit, [(at, f"{it:g}") for at, it in enumerate(shares)])
    figure = lines([*range(len(shares))], found, labels, marked=True)
    chart = Chart(figure, f"Latency ({unit})", "Percentiles of each step, from message histories.")
    Page("Latency", f"Histories of {path}", sections=[Section("Percentiles", [chart])]).write(file)


def _has(times: array[int], share: float) -> bool:
    return percentile(times, share) is not None
