"""``quire salvage``: what can be read of a damaged queue, in a new one."""

from __future__ import annotations

from pathlib import Path

import click

import quire
from quire.cli.output.progress import Progress
from quire.cli.output.reports import print_report
from quire.cli.parameters import PATH, value_errors_as_usage
from quire.cli.shared_options import print_lost, row_format_option


@click.command()
@click.argument("damaged", metavar="DAMAGED", type=PATH)
@click.argument("dest", metavar="NEW", type=PATH)
@row_format_option()
def salvage(damaged: Path, dest: Path, *, style: str) -> int:
    """
    Write the readable messages of a damaged queue to a new queue.

    Each message keeps its cycle, and its index unless messages before it in that cycle are lost;
    NEW/_indexes.jsonl maps the index of each message in DAMAGED to that in NEW. DAMAGED is only
    read. If messages are lost, their indexes are reported and the exit code is 1.

    \b
    Examples:
      quire salvage orders orders-saved
    """  # noqa: D301 - click reads the backspace
    with Progress() as progress, value_errors_as_usage():
        done = quire.salvage(damaged, dest, progress=progress.show)
    print_report(style, {"messages": done.messages, "ranges_lost": len(done.lost)})
    return print_lost(done.lost)
