"""Options that mean the same in every verb that has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from quire.cli.arguments import parse_point

_Command = TypeVar("_Command", bound=Callable[..., Any])

ROW_FORMATS: Final = ("text", "yaml", "json", "jsonl", "csv", "arrow")
"""The formats of :mod:`quire.cli.rows`."""


def format_option(*styles: str, default: str) -> Callable[[_Command], _Command]:
    """Return ``--format``, passed on as *style*."""
    return click.option(
        "--format",
        "style",
        type=click.Choice(styles),
        default=default,
        show_default=True,
        help="Output format.",
    )


def row_format_option(default: str = "text") -> Callable[[_Command], _Command]:
    """Return ``--format`` of a verb that prints rows: see :func:`quire.cli.rows.print_rows`."""
    return format_option(*ROW_FORMATS, default=default)


def range_options(command: _Command) -> _Command:
    """Add ``--from``, ``--to`` (exclusive) and ``--time-field``."""
    options = (
        click.option(
            "--from", "from", type=parse_point, metavar="POINT", help="Start at this index or time."
        ),
        click.option(
            "--to", "to", type=parse_point, metavar="POINT", help="Stop before this index or time."
        ),
        click.option("--time-field", metavar="NAME", help="The field that holds the event time."),
    )
    for option in reversed(options):
        command = option(command)
    return command
