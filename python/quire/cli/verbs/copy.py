"""``quire copy``: a consistent copy of a queue in use."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

import quire
from quire.cli.exit_codes import INTERRUPTED, print_error
from quire.cli.output.progress import Progress
from quire.cli.output.reports import print_report
from quire.cli.parameters import PATH, value_errors_as_usage
from quire.cli.shared_options import row_format_option


@click.command()
@click.argument("source", metavar="SRC", type=PATH)
@click.argument("dest", metavar="DEST", type=PATH)
@row_format_option()
def copy(source: Path, dest: Path, *, style: str) -> None:
    """
    Copy a queue while processes append to it.

    DEST, a new or an empty directory, appears when the copy is complete. It holds every message
    that was acknowledged before the copy began, with its index, and the positions of named
    tailers; its locks are free. Changes nothing in SRC and takes no lock of it. Repeat the command
    to resume a copy that was interrupted or killed.

    \b
    Examples:
      quire copy orders /backup/orders
    """  # noqa: D301 - click reads the backspace
    with Progress() as progress, value_errors_as_usage():
        try:
            done = quire.copy_queue(source, dest, progress=progress.show)
        except KeyboardInterrupt:
            progress.clear()
            with suppress(OSError):
                print_error("interrupted: repeat the command to resume")
            raise click.exceptions.Exit(INTERRUPTED) from None
    last = None if done.last_index is None else f"{done.last_index:#x}"
    counts = {"messages": done.messages, "files": done.files, "bytes": done.bytes}
    print_report(style, {**counts, "last": last})
