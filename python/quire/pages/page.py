"""A page, and its HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from quire.pages.blocks import Lead, Section


@dataclass(frozen=True, slots=True)
class Page:
    """
    A page; equal pages give the same bytes.

    Attributes:
        title: Its heading.
        summary: One or two sentences after it.
        leads: Key figures.
        sections: The rest.
        footer: Where the data comes from.

    """

    title: str
    summary: str
    leads: Sequence[Lead] = ()
    sections: Sequence[Section] = ()
    footer: str = ""

    def html(self) -> str:
        """Return the page as HTML; every text is escaped."""
        from quire.pages.render import render

        return render("page.html.jinja", page=self)

    def write(self, path: str | PathLike[str]) -> None:
        """
        Write the page to a file.

        Examples:
            >>> from quire.pages import Page
            >>> Page("Trades", "What was traded.").write("trades.html")

        """
        Path(path).write_text(self.html(), "utf-8")
