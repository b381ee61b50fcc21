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
    Write the messages of a damaged queue that can be read to a new queue.

    Each keeps its cycle, and its index unless messages before it in that cycle are lost;
    NEW/_indexes.jsonl has the index of each message in both. DAMAGED is only read. What is lost is
    said with its indexes, and the exit code is 1 then.

    \b
    Examples:
      quire salvage orders orders-saved
    """  # noqa: D301 - click reads the backspace
    with Progress() as progress, value_errors_as_usage():
        done = quire.salvage(damaged, dest, progress=progress.show)
    print_report(style, {"messages": done.messages, "ranges_lost": len(done.lost)})
    return print_lost(done.lost)
