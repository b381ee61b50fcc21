"""What a page is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell: TypeAlias = str | int | float | None


@dataclass(frozen=True, slots=True)
class Lead:
    """A figure that stands large at the top of a page, and what it counts."""

    value: str
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """
    A plot.

    Attributes:
        figure: What is drawn, as ``quire.pages.charts`` makes it or by matplotlib's own means.
        title: What is plotted, with its unit.
        says: One sentence that says what one sees; it is read aloud in place of the picture too.

    """

    figure: Figure
    title: str
    says: str


@dataclass(frozen=True, slots=True)
class Table:
    """
    A table.

    Attributes:
        title: What is in it.
        columns: The headings.
        rows: A cell for each column: text; a number, which is set to the right with *digits*
            after the point; or None, a dash.
        digits: Digits of numbers with a fraction.
        emphasis: How many rows at the end are sums, set apart from the rest.

    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    digits: int = 1
    emphasis: int = 0


Block: TypeAlias = str | Chart | Table


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, and the paragraphs, tables and plots under it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Page:
    """
    A page. The same page gives the same bytes.

    Attributes:
        title: Its heading.
        summary: One or two sentences under it.
        leads: Figures to start with.
        sections: The rest, in order.
        footer: Where it comes from.

    """

    title: str
    summary: str
    leads: Sequence[Lead] = ()
    sections: Sequence[Section] = ()
    footer: str = ""

    def html(self) -> str:
        """Return the page as HTML; its texts may hold any characters."""
        from quire.pages.render import render

        return render(self)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the page into the file at *path*."""
        Path(path).write_text(self.html(), "utf-8")
