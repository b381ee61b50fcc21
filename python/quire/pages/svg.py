"""Matplotlib figures as inline SVG: text stays text, colours follow the style sheet."""

from __future__ import annotations

import io
import re
from typing import Final
from xml.etree import ElementTree as ET

from matplotlib.figure import Figure

from quire.pages.blocks import Chart
from quire.pages.palette import variable
from quire.pages.style import style

_CONTROLS: Final = {*range(0x20), *range(0x7F, 0xA0), 0xFFFE, 0xFFFF} - {*b"\t\n\r"}
_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}\b")
_REFERENCE: Final = re.compile(r"#(?=[\w-]+\)|[\w-]+$)")
_UNPRINTABLE: Final = dict.fromkeys(_CONTROLS, "�")
_DROPPED: Final = ("metadata", "style")


def drawing(chart: Chart, name: str) -> ET.Element:
    """
    Return a plot as an ``svg`` element for a page.

    Args:
        chart: The plot.
        name: The prefix of its identifiers, unique in the page.

    """
    svg = _svg(chart.figure)
    _adopt(svg, name, _references(svg))
    for size in ("width", "height", "version"):
        svg.attrib.pop(size, None)
    svg.attrib |= {"role": "img", "aria-labelledby": name, "aria-describedby": f"{name}d"}
    title, description = ET.Element("title", id=name), ET.Element("desc", id=f"{name}d")
    title.text = chart.title.translate(_UNPRINTABLE)
    description.text = chart.says.translate(_UNPRINTABLE)
    svg[:0] = [title, description]
    return svg


def _svg(figure: Figure) -> ET.Element:
    file = io.BytesIO()
    with style():
        # A layout changes with each draw: one pass, so that equal pages are the same bytes.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    # Matplotlib writes control characters as they are, which XML does not allow.
    text = file.getvalue().decode().translate(_UNPRINTABLE)
    return ET.fromstring(text)  # noqa: S314 - matplotlib's own


def _references(svg: ET.Element) -> set[str]:
    values = [value for part in svg.iter() for value in part.attrib.values()]
    return {found for value in values for found in re.findall(r"#([\w-]+)(?:\)|$)", value)}


def _adopt(part: ET.Element, name: str, used: set[str]) -> None:
    """Turn an element of an SVG file, with its children, into one of an HTML page."""
    part.tag = part.tag.rpartition("}")[2]
    for key, value in list(part.attrib.items()):
        del part.attrib[key]
        if key != "id":
            part.attrib[key.rpartition("}")[2]] = _attribute(key, value, name)
        elif value in used:
            part.attrib["id"] = f"{name}-{value}"
    for child in list(part):
        if child.tag.endswith(_DROPPED):
            part.remove(child)
        else:
            _adopt(child, name, used)


def _attribute(key: str, value: str, name: str) -> str:
    if key == "style":
        value = _COLOUR.sub(lambda found: variable(found.group()), value)
    return _REFERENCE.sub(f"#{name}-", value) if "url(" in value or "href" in key else value
