"""Tables and the progress bar of the demo."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn
from rich.table import Table

from demo.figures import ALL, Figures, Group
from demo.flights import short_name
from demo.follow import Totals
from demo.record import OnDay


@contextmanager
def recording_bar(console: Console, event_count: int) -> Generator[OnDay]:
    """Show a bar while events are recorded; give the function that moves it."""
    with Progress(
        SpinnerColumn(),
        TextColumn("recording {task.fields[day]}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("tailed {task.fields[tailed]:,}"),
        console=console,
        transient=True,
    ) as progress:
        task = progress.add_task("recording", total=event_count, day="", tailed=0)

        def on_day(day: str, written: int, totals: Totals) -> None:
            progress.update(task, completed=written, day=day, tailed=totals.events)

        yield on_day


def table_by_carrier(groups: Mapping[Group, Figures], names: Mapping[str, str]) -> Table:
    """Return the figures by airline, the most flights first, and those of all together."""
    carriers = [it.carrier for it in groups if it.carrier is not None and it.hour is None]
    carriers.sort(key=lambda carrier: -groups[Group(carrier)].flights)
    table = _table("Departure delay by airline", "airline")
    for carrier in carriers:
        label = f"{carrier}  {short_name(names.get(carrier, ''))}"
        table.add_row(label, *_cells(groups[Group(carrier)]))
    table.add_section()
    table.add_row("all", *_cells(groups[ALL]), style="bold")
    return table


def table_by_hour(groups: Mapping[Group, Figures]) -> Table:
    """Return the figures by scheduled hour."""
    hours = sorted(it.hour for it in groups if it.carrier is None and it.hour is not None)
    table = _table("Departure delay by scheduled hour, New York time", "hour")
    for hour in hours:
        table.add_row(f"{hour:02d}", *_cells(groups[Group(hour=hour)]))
    return table


def _table(title: str, first: str) -> Table:
    table = Table(title=title, title_style="bold", title_justify="left", box=SIMPLE_HEAD)
    table.add_column(first, no_wrap=True)
    for heading in ("flights", "departed", "mean, min", "95th pct, min"):
        table.add_column(heading, justify="right")
    return table


def _cells(figures: Figures) -> tuple[str, str, str, str]:
    mean = "-" if figures.mean is None else f"{figures.mean:.1f}"
    p95 = "-" if figures.p95 is None else f"{figures.p95:.1f}"
    return f"{figures.flights:,}", f"{figures.departed:,}", mean, p95
