"""
The page's HTML: Jinja2 escapes all text; characters that move or reorder text are made visible.

Nothing in a queue, a name or a request is interpreted as markup.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final, cast
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from quire._common.terminal import escape_controls
from quire.pages import palette
from quire.server.web.queue_details import duration

_DASH: Final = "\N{EN DASH}"
_UNITS: Final = ("KiB", "MiB", "GiB", "TiB", "PiB")
_LARGE: Final = 1024
_SMALL_RATE: Final = 10


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("quire.server.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: Any = environment.filters
    filters.update(
        {
            "count": count,
            "size": size,
            "rate": rate,
            "duration": duration,
            "moment": moment,
            "seconds": seconds,
        }
    )
    cast("dict[str, Any]", environment.globals).update({"url": url})
    return environment


def _visible(value: object) -> object:
    return escape_controls(value) if type(value) is str else value


def render(template: str, **values: object) -> str:
    """Render a template with values."""
    text = _environment().get_template(template).render(values)
    return text.encode("utf-8", "backslashreplace").decode()


@cache
def style_sheet() -> str:
    """Return the style sheet, with the colours of both themes."""
    own = files("quire.server.web").joinpath("static", "page.css").read_text("utf-8")
    light, dark = palette.declarations(dark=False), palette.declarations(dark=True)
    return (
        f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n{own}"
    )


@cache
def script() -> str:
    """Return the script of the live pages."""
    return files("quire.server.web").joinpath("static", "page.js").read_text("utf-8")


@cache
def icon() -> str:
    """Return the page's icon."""
    return files("quire.server.web").joinpath("static", "icon.svg").read_text("utf-8")


def url(path: str, topic: str = "", **query: object) -> str:
    """Return the address of a page; parameters that are None or empty are left out."""
    given = {name: str(value) for name, value in query.items() if value not in {None, ""}}
    text = path + quote(topic.encode("utf-8", "surrogateescape"), safe="/")
    return f"{text}?{urlencode(given)}" if given else text


def count(value: float | None) -> str:
    """Return a number with separators."""
    return _DASH if value is None else f"{value:,}"


def rate(value: float | None) -> str:
    """Return a rate in messages a second."""
    if value is None:
        return _DASH
    is_small = 0 < value < _SMALL_RATE
    return f"{value:.1f}/s" if is_small else f"{value:,.0f}/s"


def size(value: float) -> str:
    """Return a number of bytes in a suitable unit."""
    if value < _LARGE:
        return f"{value:,.0f} B"
    power = min(len(_UNITS), (int(value).bit_length() - 1) // 10)
    return f"{value / _LARGE**power:,.1f} {_UNITS[power - 1]}"


def seconds(value: float | None) -> str:
    """Return a duration in seconds."""
    return _DASH if value is None else f"{value:,.1f} s"


def moment(value: datetime | None) -> str:
    """Return a time in UTC."""
    return _DASH if value is None else value.strftime("%Y-%m-%d %H:%M:%S UTC")
