"""What a verb has done: a line for people, a row for programs."""

from __future__ import annotations

from collections.abc import Mapping

import click

from quire._common.terminal import escape_line
from quire.cli.output.row_formats import print_rows


def print_report(style: str, facts: Mapping[str, object]) -> None:
    """
    Print facts as ``name=value`` on one line, without those that are None, or as one row.

    Args:
        style: One of :data:`quire.cli.shared_options.ROW_FORMATS`.
        facts: Text, numbers, truth values or None, by name.

    """
    if style == "text":
        known = {name: value for name, value in facts.items() if value is not None}
        click.echo(" ".join(f"{name}={escape_line(str(it))}" for name, it in known.items()))
    else:
        print_rows(style, [*facts], [facts])
