"""``quire tail``: the last messages of a queue, and then each new one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from quire.cli.arguments import PATH, pattern_of
from quire.cli.options import format_option
from quire.cli.read import condition_of, names_of
from quire.cli.reading import Request, show


@click.command()
@click.argument("path", type=PATH)
@click.option(
    "-n",
    "--last",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="N",
    help="Start N messages before the end.",
)
@click.option(
    "-i",
    "--include",
    type=pattern_of,
    metavar="REGEX",
    multiple=True,
    help="Only messages that match. Repeatable: all must match.",
)
@click.option(
    "-e",
    "--exclude",
    type=pattern_of,
    metavar="REGEX",
    multiple=True,
    help="Leave out messages that match. Repeatable.",
)
@click.option(
    "--where", type=condition_of, metavar="EXPRESSION", help="Only messages whose fields meet it."
)
@click.option(
    "--columns", type=names_of, metavar="NAMES", help="Only these fields, separated by commas."
)
@format_option("yaml", "json", "jsonl", "text", "csv", "arrow", "hex", default="yaml")
@click.option("--no-index", is_flag=True, help="Leave out the indexes.")
@click.option("--no-follow", is_flag=True, help="Stop at the last message.")
def tail(path: Path, *, no_index: bool, no_follow: bool, **more: Any) -> None:  # noqa: ANN401
    """
    Show the last messages of a queue, then new ones.

    Waits for new messages until interrupted (Ctrl-C). PATH and EXPRESSION are as for read.

    \b
    Examples:
      quire tail orders
      quire tail orders -n 3 --where "size > 1000" --columns symbol,size --format text
    """  # noqa: D301 - click reads the backspace
    show(path, Request(with_index=not no_index, follow=not no_follow, **more))
