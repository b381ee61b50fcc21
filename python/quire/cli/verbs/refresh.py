"""``quire refresh``: the listing of files in the table, made to agree with the directory."""

from __future__ import annotations

from pathlib import Path

import click

import quire
from quire.cli.output.reports import print_report
from quire.cli.parameters import PATH, value_errors_as_usage
from quire.cli.shared_options import row_format_option
from quire.formats.adapters import require_journal


@click.command()
@click.argument("path", type=PATH)
@row_format_option()
def refresh(path: Path, *, style: str) -> None:
    """
    Update the listing of a queue's files after you changed files by hand.

    Running processes, including Java's, notice the change. `quire repair` does this too.

    \b
    Examples:
      quire refresh orders
    """  # noqa: D301 - click reads the backspace
    with value_errors_as_usage():
        require_journal(path, "a listing of its files")
        with quire.open(path, create=False, force_unlock="never", buffer_mode="none") as queue:
            queue.refresh()
            names = [Path(queue.file_for_cycle(cycle)).name for cycle in queue.cycles]
    first, last = (names[0], names[-1]) if names else (None, None)
    print_report(style, {"files": len(names), "first": first, "last": last})
