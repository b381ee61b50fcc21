"""``quire tail``: the last messages of a queue, and then each new one."""

from __future__ import annotations

from typing import Any, Final

import click

from quire.cli.parameters import QUEUE
from quire.cli.reading.request import Request, show
from quire.cli.remote_options import Place
from quire.cli.shared_options import filter_options, format_option, range_options

_LAST: Final = 10


@click.command()
@click.argument("path", type=QUEUE)
@click.option(
    "-n",
    "--last",
    type=click.IntRange(min=0),
    metavar="N",
    help="Start N messages before the end.  [default: 10]",
)
@range_options
@filter_options
@format_option("yaml", "json", "jsonl", "text", "csv", "arrow", "hex", default="yaml")
@click.option("--no-index", is_flag=True, help="Leave out the indexes.")
@click.option("--no-follow", is_flag=True, help="Stop at the last message.")
def tail(
    path: Place,
    *,
    no_index: bool,
    no_follow: bool,
    last: int | None,
    **more: Any,  # noqa: ANN401
) -> None:
    """
    Show the last messages of a queue, then new ones.

    Waits for new messages until interrupted (Ctrl-C). For PATH, POINT and EXPRESSION, see read.
    --from shows every message from there on; --to needs --no-follow.

    \b
    Examples:
      quire tail orders
      quire tail orders --from 2024-01-15T09:00
      quire tail quire://127.0.0.1:7000/orders
      quire tail orders -n 3 --where "size > 1000" --columns symbol,size --format text
    """  # noqa: D301 - click reads the backspace
    start, end = more.pop("from"), more.pop("to")
    if end is not None and not no_follow:
        raise click.UsageError("--to needs --no-follow")
    if start is not None and last is not None:
        raise click.UsageError("--from and --last do not go together")
    last = _LAST if start is None and last is None else last
    bounds = {"start": start, "end": end, "last": last}
    show(path, Request(with_index=not no_index, follow=not no_follow, **bounds, **more))
