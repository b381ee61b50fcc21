"""
The kinds of plots that pages have, 960 pixels wide.

Each takes plain numbers and returns a figure of matplotlib, for ``quire.pages.Chart``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Final, Literal, TypeAlias

from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quire.pages.palette import (
    FAINT,
    GRID,
    HEAT,
    HIGH_FROM,
    INK,
    ON_HIGH,
    ON_LOW,
    SERIES,
    SURFACE,
)
from quire.pages.style import style

WIDTH: Final = 960

# One unit of a drawing is one pixel of the page.
_DPI: Final = 72

Series: TypeAlias = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Labels:
    """
    What stands at the axes.

    Attributes:
        x: What is level, with its unit.
        y: What is upright, with its unit.
        ticks: Places on the level axis and their texts; none leaves the choice to matplotlib.

    """

    x: str = ""
    y: str = ""
    ticks: Sequence[tuple[float, str]] = ()


def canvas(height: int) -> Figure:
    """Return an empty figure of *height* pixels."""
    return Figure(
        figsize=(WIDTH / _DPI, height / _DPI), dpi=_DPI, facecolor="none", layout="constrained"
    )


def lines(
    x: Sequence[Any],
    series: Series,
    labels: Labels,
    *,
    colours: Sequence[str] = SERIES,
    marked: bool = False,
) -> Figure:
    """Plot one line for each series over *x*; *marked* shows each point."""
    with style():
        figure = canvas(320)
        axes = figure.add_subplot()
        for (name, values), colour in zip(series.items(), colours, strict=False):
            marker = "o" if marked else ""
            axes.plot(x, values, color=colour, label=name, marker=marker, markersize=5)
        if all(isinstance(value, int) for value in x):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _finish(axes, labels, "y", key=len(series) > 1)
        if all(isinstance(value, int) for values in series.values() for value in values):
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(x=0.015)
        return figure


def columns(
    x: Sequence[Any],
    series: Series,
    labels: Labels,
    *,
    colours: Sequence[str] = SERIES,
    width: float = 0.8,
) -> Figure:
    """Plot upright bars at *x*, the series on top of one another."""
    with style():
        figure = canvas(300)
        axes = figure.add_subplot()
        bottom = [0.0] * len(x)
        for (name, values), colour in zip(series.items(), colours, strict=False):
            axes.bar(x, values, bottom=bottom, color=colour, label=name, width=width)
            bottom = [below + value for below, value in zip(bottom, values, strict=True)]
        if all(isinstance(value, int) for value in x):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _finish(axes, labels, "y", key=len(series) > 1)
        axes.margins(x=0.01)
        return figure


def bars(
    names: Sequence[str],
    series: Series,
    labels: Labels,
    *,
    colours: Sequence[str] = SERIES,
    written: Callable[[float], str] | None = None,
) -> Figure:
    """
    Plot level bars, the series one behind the other.

    Args:
        names: What each bar is of, from the top.
        series: The lengths.
        labels: What the lengths are.
        colours: One for each series.
        written: Makes the text that is written into a piece; None writes nothing.

    """
    with style():
        figure = canvas(84 + 29 * len(names))
        axes = figure.add_subplot()
        left = [0.0] * len(names)
        for (name, values), colour in zip(series.items(), colours, strict=False):
            drawn = axes.barh(
                range(len(names)), values, left=left, color=colour, label=name, height=0.74
            )
            if written is not None:
                texts = [written(value) for value in values]
                axes.bar_label(drawn, texts, label_type="center", color=SURFACE, fontsize=11.5)
            left = [before + value for before, value in zip(left, values, strict=True)]
        _rows(axes, names)
        _finish(axes, labels, "x", key=len(series) > 1)
        axes.margins(x=0)
        return figure


def spans(
    names: Sequence[str],
    series: Series,
    labels: Labels,
    *,
    colours: Sequence[str] = SERIES,
    logarithmic: bool = False,
) -> Figure:
    """Plot a point of each series for each name, joined by a line, with its ends beside it."""
    with style():
        figure = canvas(84 + 29 * len(names))
        axes = figure.add_subplot()
        if logarithmic:
            axes.set_xscale("log")
        places = range(len(names))
        every = list(zip(*series.values(), strict=True))
        axes.hlines(places, list(map(min, every)), list(map(max, every)), color=GRID, linewidth=5)
        for (name, values), colour in zip(series.items(), colours, strict=False):
            axes.scatter(values, places, color=colour, s=62, zorder=3, label=name)
        for place, values in zip(places, every, strict=True):
            _beside(axes, min(values), place, before=True)
            _beside(axes, max(values), place, before=False)
        _rows(axes, names)
        _finish(axes, labels, "x", key=len(series) > 1)
        axes.margins(x=0.06)
        return figure


def heat(
    rows: Mapping[str, Sequence[float]],
    columns: Sequence[str],
    labels: Labels,
    steps: Sequence[float],
    *,
    digits: int | None = 0,
) -> Figure:
    """
    Plot a table as coloured cells.

    Args:
        rows: The values by the name of the row, from the top; not a number where there is none.
        columns: The names of the columns.
        labels: What the columns are, and what the colours mean.
        steps: The seven values at which the colour changes, in ascending order.
        digits: Digits after the point of the value in each cell; None writes no values.

    """
    with style():
        figure = canvas(150 + 27 * len(rows))
        axes = figure.add_subplot()
        table = list(rows.values())
        colours = ListedColormap(HEAT)
        norm = BoundaryNorm(_edges(table, steps), len(HEAT))
        mesh = axes.pcolormesh(table, cmap=colours, norm=norm, edgecolor=SURFACE, linewidth=1.5)
        if digits is not None:
            _write_cells(axes, table, steps, digits)
        axes.set_xticks([place + 0.5 for place in range(len(columns))], columns)
        axes.set_yticks([place + 0.5 for place in range(len(rows))], list(rows))
        axes.tick_params(axis="y", labelcolor=INK)
        axes.invert_yaxis()
        axes.set_xlabel(labels.x)
        axes.spines[:].set_visible(False)
        _colour_key(figure, axes, mesh, labels.y, steps)
        return figure


def _colour_key(
    figure: Figure, axes: Axes, mesh: QuadMesh, text: str, steps: Sequence[float]
) -> None:
    """Show above the plot where the colours change."""
    bar = figure.colorbar(
        mesh, ax=axes, location="top", ticks=list(steps), aspect=38, shrink=0.5, anchor=(0, 0)
    )
    bar.outline.set_visible(False)
    bar.set_label(text, loc="left")


def _finish(axes: Axes, labels: Labels, grid: Literal["x", "y"], *, key: bool) -> None:
    """Write what the axes are, and a key above the plot."""
    axes.set_xlabel(labels.x)
    axes.set_title(labels.y, loc="left", color=FAINT, fontsize=13, pad=12)
    axes.grid(axis=grid)
    (axes.yaxis if grid == "y" else axes.xaxis).set_major_formatter("{x:,.10g}")
    if labels.ticks:
        axes.set_xticks([place for place, _ in labels.ticks], [text for _, text in labels.ticks])
    if key:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1.03), ncols=6, columnspacing=1.4)


def _rows(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows of a plot that is read from the top."""
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", labelcolor=INK)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.spines["bottom"].set_visible(False)


def _minus(value: float, digits: int) -> str:
    """Return a number as text, with a true minus and without one at zero."""
    return f"{value:z,.{digits}f}".replace("-", "\N{MINUS SIGN}")


def _beside(axes: Axes, value: float, place: int, *, before: bool) -> None:
    axes.annotate(
        _minus(value, 0),
        (value, place),
        xytext=(-8 if before else 8, 0),
        textcoords="offset points",
        ha="right" if before else "left",
        va="center_baseline",
        fontsize=11.5,
        color=FAINT,
    )


def _edges(rows: Sequence[Sequence[float]], steps: Sequence[float]) -> list[float]:
    """Return *steps* with an end before and after them that holds every value."""
    values = [value for row in rows for value in row if not isnan(value)]
    first, last = steps[0], steps[-1]
    room = (last - first) / len(steps)
    return [min([first - room, *values]), *steps, max([last + room, *values]) + room / 1000]


def _write_cells(
    axes: Axes, rows: Sequence[Sequence[float]], steps: Sequence[float], digits: int
) -> None:
    for place, row in enumerate(rows):
        for column, value in enumerate(row):
            if not isnan(value):
                is_high = sum(value >= step for step in steps) >= HIGH_FROM
                axes.text(
                    column + 0.5,
                    place + 0.5,
                    _minus(value, digits),
                    ha="center",
                    va="center_baseline",
                    fontsize=11.5,
                    color=ON_HIGH if is_high else ON_LOW,
                )
