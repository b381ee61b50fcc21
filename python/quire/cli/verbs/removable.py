"""``quire removable``: the roll files that are no longer needed."""

from __future__ import annotations

from pathlib import Path

import click

import quire
from quire.cli.output.row_formats import print_rows
from quire.cli.output.stat_text import sizes_of
from quire.cli.parameters import PATH, value_errors_as_usage
from quire.cli.shared_options import row_format_option


@click.command()
@click.argument("path", type=PATH)
@row_format_option()
def removable(path: Path, *, style: str) -> None:
    """
    List the roll files that may be removed, the oldest first.

    The list ends before the first file that a process has open, that a named tailer has not left,
    or that has no end-of-file marker. The newest file is never in it. Changes nothing.

    Only root sees processes of other users; processes in other containers or on other machines are
    not seen.

    \b
    Examples:
      quire removable orders
      quire removable orders --format jsonl | jq -r .file | xargs rm
    """  # noqa: D301 - click reads the backspace
    with value_errors_as_usage():
        files = quire.removable(path)
    print_rows(
        style, ("file", "size", "on_disk"), ({"file": str(it), **sizes_of(it)} for it in files)
    )
