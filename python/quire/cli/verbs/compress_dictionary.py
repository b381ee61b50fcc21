"""``quire compress-dictionary``: trains a dictionary on the messages of a queue."""

from __future__ import annotations

from pathlib import Path

import click

import quire
from quire.cli.output.reports import print_report
from quire.cli.output.row_formats import counted
from quire.cli.parameters import PATH, SizeRange
from quire.cli.shared_options import row_format_option


@click.command()
@click.argument("path", type=PATH)
@click.option(
    "--samples",
    type=click.IntRange(8, 10_000_000),
    default=10_000,
    help="The most messages to train on.",
)
@click.option(
    "--size",
    type=SizeRange(256, 1 << 20),
    metavar="SIZE",
    default=1 << 15,
    help="The most bytes that the dictionary may have.",
)
@row_format_option()
def compress_dictionary(path: Path, *, samples: int, size: int, style: str) -> None:
    """
    Train a dictionary on the newest messages of a queue.

    When the queue is opened with compression="zstd" from then on, the dictionary is used: short
    messages get much shorter. docs/compression.md says more.

    \b
    Examples:
      quire compress-dictionary orders
      quire compress-dictionary orders --samples 1000 --size 8192
    """  # noqa: D301 - click reads the backspace
    try:
        made = quire.maintenance.compress_dictionary(path, samples=samples, size=size)
    except ValueError as error:  # the messages are too few, or too different
        if isinstance(error, quire.QuireError):
            raise
        raise click.ClickException(str(error)) from error
    number = f"{made.number:07x}"
    if style != "text":
        print_report(style, {"number": number, "size": made.size, "samples": made.samples})
        return
    trained = counted(made.samples, "message")
    click.echo(f"dictionary {number} of {made.size} bytes, trained on {trained}")
