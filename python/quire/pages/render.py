"""
Pages as HTML, by the templates in this package.

Jinja2 escapes every text and attribute; only plots, which are serialised as XML, are not text.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, cast
from xml.etree import ElementTree as ET

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from quire.pages import palette
from quire.pages.blocks import Cell, Chart
from quire.pages.svg import drawing

_DASH: Final = "\N{EN DASH}"
_MINUS: Final = "\N{MINUS SIGN}"

# Control characters, which HTML cannot represent.
_UNPRINTABLE: Final = {
    code: f"\\x{code:02x}" for code in (*range(32), 127) if chr(code) not in "\t\n"
}


def render(template: str, **values: object) -> str:
    """Return a template with its values."""
    text = _environment().get_template(template).render(values)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def shown(value: Cell, digits: int) -> str:
    """Return the text of a cell."""
    if value is None:
        return _DASH
    if isinstance(value, str):
        return value
    text = f"{value:,}" if isinstance(value, int) else f"{value:z,.{digits}f}"
    return text.replace("-", _MINUS)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("quire.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        keep_trailing_newline=True,
    )
    filters: Any = environment.filters
    filters.update({"cell": shown, "svg": _svg})
    cast("dict[str, Any]", environment.globals).update(
        {
            "light": Markup(palette.declarations(dark=False)),  # noqa: S704 - constants
            "dark": Markup(palette.declarations(dark=True)),  # noqa: S704
        }
    )
    return environment


def _printable(value: object) -> object:
    return value.translate(_UNPRINTABLE) if type(value) is str else value


def _svg(chart: Chart, name: str) -> Markup:
    svg = ET.tostring(drawing(chart, name), encoding="unicode", method="html")
    return Markup(svg)  # noqa: S704 - serialised, which escapes
