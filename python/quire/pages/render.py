"""
Pages as HTML.

A page is built as a tree and written by the standard library, which escapes every text and every
attribute; nothing is pasted together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Final
from xml.etree import ElementTree as ET

from quire.pages import palette
from quire.pages.model import Block, Cell, Chart, Lead, Page, Table
from quire.pages.svg import drawing

_DASH: Final = "\N{EN DASH}"
_MINUS: Final = "\N{MINUS SIGN}"

# Characters that HTML has no place for.
_UNPRINTABLE: Final = {
    code: f"\\x{code:02x}" for code in (*range(32), 127) if chr(code) not in "\t\n"
}


def render(page: Page) -> str:
    """Return *page* as HTML."""
    charts = iter(range(1_000_000))
    body = element("main", element("h1", page.title), element("p", page.summary, class_="summary"))
    if page.leads:
        body.append(element("dl", *map(_lead, page.leads), class_="leads"))
    # A list: of a generator that raises, `extend` says only that it is no sequence.
    body.extend(
        [
            element(
                "section",
                element("h2", section.title),
                *[_block(block, f"c{next(charts)}") for block in section.blocks],
            )
            for section in page.sections
        ]
    )
    if page.footer:
        body.append(element("footer", page.footer))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", page.title),
        element("style", _style()),
    )
    html = element("html", head, element("body", body), lang="en")
    text = ET.tostring(html, encoding="unicode", method="html")
    return f"<!DOCTYPE html>\n{text}\n".encode("utf-8", "backslashreplace").decode("utf-8")


def element(tag: str, *children: ET.Element | str, **attributes: str) -> ET.Element:
    """Return an element; a name of an attribute ends in ``_`` where Python has a word of it."""
    made = ET.Element(tag, {name.rstrip("_"): value for name, value in attributes.items()})
    for child in children:
        if not isinstance(child, str):
            made.append(child)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + _printable(child)
        else:
            made.text = (made.text or "") + _printable(child)
    return made


def shown(value: Cell, digits: int) -> str:
    """Return the text of a cell."""
    if value is None:
        return _DASH
    if isinstance(value, str):
        return value
    text = f"{value:,}" if isinstance(value, int) else f"{value:z,.{digits}f}"
    return text.replace("-", _MINUS)


def _printable(text: str) -> str:
    return text.translate(_UNPRINTABLE)


def _style() -> str:
    sheet = files("quire.pages").joinpath("page.css").read_text("utf-8")
    night = palette.declarations(by_night=True)
    return (
        f":root {{ {palette.declarations(by_night=False)} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {night} }} }}\n{sheet}"
    )


def _lead(lead: Lead) -> ET.Element:
    return element("div", element("dt", lead.label), element("dd", lead.value))


def _block(block: Block, name: str) -> ET.Element:
    if isinstance(block, str):
        return element("p", block)
    return _chart(block, name) if isinstance(block, Chart) else _table(block)


def _chart(chart: Chart, name: str) -> ET.Element:
    svg = drawing(chart.figure, name)
    title, says = element("title", chart.title, id=name), element("desc", chart.says, id=f"{name}d")
    svg.attrib |= {"role": "img", "aria-labelledby": name, "aria-describedby": f"{name}d"}
    svg[:0] = [title, says]
    return element(
        "figure",
        element("p", chart.title, class_="title"),
        element("div", svg, class_="wide"),
        element("figcaption", chart.says),
    )


def _table(table: Table) -> ET.Element:
    numeric = [
        _is_numeric([row[place] for row in table.rows]) for place in range(len(table.columns))
    ]
    heads = [
        element("th", name, scope="col", **_classes(number=is_number))
        for name, is_number in zip(table.columns, numeric, strict=True)
    ]
    sums_from = len(table.rows) - table.emphasis
    rows = [
        element("tr", *_cells(row, numeric, table.digits), **_classes(sum=place >= sums_from))
        for place, row in enumerate(table.rows)
    ]
    made = element("table", element("thead", element("tr", *heads)), element("tbody", *rows))
    made.attrib["aria-label"] = table.title
    return element(
        "figure",
        element("p", table.title, class_="title"),
        element("div", made, class_="wide", tabindex="0"),
    )


def _cells(row: Sequence[Cell], numeric: Sequence[bool], digits: int) -> list[ET.Element]:
    """Return the cells of a row; the first names it."""
    cells = [
        element("td", *_breakable(shown(value, digits)), **_classes(number=is_number))
        for value, is_number in zip(row, numeric, strict=True)
    ]
    if cells:
        cells[0].tag = "th"
        cells[0].attrib["scope"] = "row"
    return cells


def _breakable(text: str) -> Iterator[ET.Element | str]:
    """Let long paths go on in another line behind a slash."""
    first, *others = text.split("/")
    yield first
    for part in others:
        yield "/"
        yield element("wbr")
        yield part


def _is_numeric(column: Sequence[Cell]) -> bool:
    values = [value for value in column if value is not None]
    return bool(values) and not any(isinstance(value, str) for value in values)


def _classes(**which: bool) -> dict[str, str]:
    names = " ".join(name for name, is_set in which.items() if is_set)
    return {"class": names} if names else {}
