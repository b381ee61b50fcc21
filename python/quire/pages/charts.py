"""
The kinds of plots for pages, 960 pixels wide.

Each function takes numbers and returns a matplotlib figure for ``quire.pages.Chart``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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

# One unit of a figure is one pixel of the page.
_DPI: Final = 72

Series: TypeAlias = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Labels:
    """
    The labels of the axes.

    Attributes:
        x: The label of the horizontal axis, with its unit.
        y: The label of the vertical axis, with its unit.
        ticks: Ticks of the horizontal axis and their labels; matplotlib's choice by default.

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
    """Plot a line for each series over *x*, with a marker at each point if *marked*."""
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
    """Plot vertical bars at *x*, the series stacked."""
    with style():
        figure = canvas(300)
        axes = figure.add_subplot()
        for it in _stacked(series, colours):
            axes.bar(x, it.values, bottom=it.base, color=it.colour, label=it.name, width=width)
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
    Plot horizontal bars, the series stacked.

    Args:
        names: The names of the bars, from the top.
        series: The lengths.
        labels: The labels of the axes.
        colours: One for each series.
        written: Formats the label inside each part of a bar; None writes no labels.

    """
    with style():
        figure = canvas(84 + 29 * len(names))
        axes = figure.add_subplot()
        places = range(len(names))
        for it in _stacked(series, colours):
            drawn = axes.barh(
                places, it.values, left=it.base, color=it.colour, label=it.name, height=0.74
            )
            if written is not None:
                texts = [written(value) for value in it.values]
                axes.bar_label(drawn, texts, label_type="center", color=SURFACE, fontsize=11.5)
        _rows(axes, names)
        _finish(axes, labels, "x", key=len(series) > 1)
        axes.margins(x=0)
        return figure


@dataclass(frozen=True, slots=True)
class _Layer:
    """One series of a stack, and where each of its bars begins."""

    name: str
    values: Sequence[float]
    base: Sequence[float]
    colour: str


def _stacked(series: Series, colours: Sequence[str]) -> Iterator[_Layer]:
    """Yield the layers of a stack, each on the sum of those before it."""
    base: list[float] = []
    for (name, values), colour in zip(series.items(), colours, strict=False):
        base = base or [0.0] * len(values)
        yield _Layer(name, values, base, colour)
        base = [start + value for start, value in zip(base, values, strict=True)]


def spans(
    names: Sequence[str],
    series: Series,
    labels: Labels,
    *,
    colours: Sequence[str] = SERIES,
    logarithmic: bool = False,
) -> Figure:
    """Plot the range of all series for each name, with a point for each and labelled ends."""
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
        rows: The values by the name of the row, from the top; NaN leaves a cell empty.
        columns: The names of the columns.
        labels: The labels of the horizontal axis, and of the colours.
        steps: The seven values at which the colour changes, in ascending order.
        digits: Decimal places of the value in each cell; None writes no values.

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
    """Add a key of the colours at the top."""
    bar = figure.colorbar(
        mesh, ax=axes, location="top", ticks=list(steps), aspect=38, shrink=0.5, anchor=(0, 0)
    )
    bar.outline.set_visible(False)
    bar.set_label(text, loc="left")


def _finish(axes: Axes, labels: Labels, grid: Literal["x", "y"], *, key: bool) -> None:
    """Label the axes, and add a legend at the top."""
    axes.set_xlabel(labels.x)
    axes.set_title(labels.y, loc="left", color=FAINT, fontsize=13, pad=12)
    axes.grid(axis=grid)
    (axes.yaxis if grid == "y" else axes.xaxis).set_major_formatter("{x:,.10g}")
    if labels.ticks:
        axes.set_xticks([place for place, _ in labels.ticks], [text for _, text in labels.ticks])
    if key:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1.03), ncols=6, columnspacing=1.4)


def _rows(axes: Axes, names: Sequence[str]) -> None:
    """Label the rows, from the top."""
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", labelcolor=INK)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.spines["bottom"].set_visible(False)


def _minus(value: float, digits: int) -> str:
    """Return a number as text, with a minus sign and no negative zero."""
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
    """Return *steps* between two ends that enclose every value."""
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
