"""The parts of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell: TypeAlias = str | int | float | None


@dataclass(frozen=True, slots=True)
class Lead:
    """
    A key figure at the top of a page, and what it counts.

    Examples:
        >>> from quire.pages import Lead
        >>> lead = Lead("336,776", "flights")

    """

    value: str
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """
    A plot.

    Attributes:
        figure: A figure of matplotlib, such as those of ``quire.pages.charts``.
        title: What is plotted, with its unit.
        says: The caption, one sentence on what the plot shows; screen readers read it too.

    Examples:
        >>> from matplotlib.figure import Figure
        >>> from quire.pages import Chart
        >>> chart = Chart(Figure(), "Trades per hour", "Most trades are made in the morning.")

    """

    figure: Figure
    title: str
    says: str


@dataclass(frozen=True, slots=True)
class Table:
    """
    A table.

    Attributes:
        title: Its title.
        columns: The headings.
        rows: A cell for each column: text; a number, aligned to the right; or None, a dash.
        digits: Decimal places of floats.
        emphasis: How many rows at the end are totals, set in bold.

    Examples:
        >>> from quire.pages import Table
        >>> table = Table("Trades", ["symbol", "trades"], [["EURUSD", 3], ["GBPUSD", 1]])

    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    digits: int = 1
    emphasis: int = 0

    @property
    def numeric(self) -> list[bool]:
        """Whether each column has numbers, and no text."""
        columns = [[row[n] for row in self.rows] for n in range(len(self.columns))]
        values = [[it for it in column if it is not None] for column in columns]
        return [bool(it) and not any(isinstance(value, str) for value in it) for it in values]


Block: TypeAlias = str | Chart | Table


@dataclass(frozen=True, slots=True)
class Section:
    """
    A heading with paragraphs, tables and plots.

    Examples:
        >>> from quire.pages import Section
        >>> section = Section("Today", ["Nothing was traded."])

    """

    title: str
    blocks: Sequence[Block]
