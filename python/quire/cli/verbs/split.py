"""``quire split``: a queue written into several."""

from __future__ import annotations

from pathlib import Path

import click

import quire
from quire.cli.output.progress import Progress
from quire.cli.output.row_formats import print_rows
from quire.cli.parameters import PATH, value_errors_as_usage
from quire.cli.reading.order_keys import (
    Key,
    by_condition,
    by_cycle,
    by_field,
    by_time,
    by_topic,
    period_ns,
)
from quire.cli.shared_options import on_damage_option, print_lost, row_format_option
from quire.handles.base import Queue
from quire.ranges.damage import Lost

_COLUMNS = ("name", "messages")


@click.command()
@click.argument("source", metavar="SRC", type=PATH)
@click.argument("dest", metavar="DEST", type=PATH)
@click.option(
    "--by",
    metavar="cycle|time|topic|FIELD",
    help="Split by roll file, by time, by the key of sub-topics, or by the value of a field.",
)
@click.option(
    "--every", type=period_ns, metavar="TIME", help="The period of each part of --by time, as 1h."
)
@click.option(
    "--time-field",
    metavar="NAME",
    help="The event time of --by time. Default: the times of the cycles.",
)
@click.option(
    "--where", "expression", metavar="EXPR", help="Split into `matching` and `other` messages."
)
@on_damage_option()
@row_format_option()
def split(  # noqa: PLR0913 - its options
    source: Path,
    dest: Path,
    *,
    by: str | None,
    every: int | None,
    time_field: str | None,
    expression: str | None,
    style: str,
    on_damage: str,
) -> int:
    """
    Write the messages of a queue into several new ones.

    DEST, a new or an empty directory, appears when all of them are complete; it has a queue for
    each file, period, topic or value, at most 256. Messages keep their bytes and their order;
    metadata is left out. For EXPR, see EXPRESSION of `quire read`.

    \b
    Examples:
      quire split orders days --by cycle
      quire split orders hours --by time --every 1h --time-field time
      quire split orders symbols --by symbol
      quire split orders sides --where "side = 'buy'"
    """  # noqa: D301 - click reads the backspace
    if (by is None) == (expression is None):
        raise click.UsageError("give one of --by and --where")
    if (by == "time") != (every is not None):
        raise click.UsageError("--by time goes with --every, as in --every 1h")
    if time_field is not None and by != "time":
        raise click.UsageError("--time-field goes with --by time")
    lost: list[Lost] = []
    with (
        Progress() as progress,
        value_errors_as_usage(),
        quire.open(source, read_only=True, create=False) as queue,
    ):
        key = _key(queue, by, every, time_field, expression)
        skipped = lost.append if on_damage == "skip" else None
        found = quire.maintenance.split_queue(
            source, dest, key, progress=progress.show, skipped=skipped
        )
    print_rows(style, _COLUMNS, ({"name": name, "messages": n} for name, n in found.items()))
    return print_lost(lost)


def _key(
    queue: Queue, by: str | None, every: int | None, time_field: str | None, expression: str | None
) -> Key:
    if expression is not None:
        return by_condition(expression)
    if by == "cycle":
        return by_cycle(queue)
    if by == "topic":
        return by_topic()
    if every is not None:
        return by_time(queue, every, time_field)
    return by_field(by or "")
