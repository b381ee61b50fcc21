"""``quire merge``: several queues written into one, in the order of a field."""

from __future__ import annotations

from pathlib import Path

import click

import quire
from quire.cli.output.progress import Progress
from quire.cli.output.reports import print_report
from quire.cli.parameters import PATH, value_errors_as_usage
from quire.cli.reading.order_keys import by_order
from quire.cli.shared_options import row_format_option
from quire.ranges.event_time import Field, TimeField


@click.command()
@click.argument("sources", metavar="SRC...", type=PATH, nargs=-1, required=True)
@click.argument("dest", metavar="DEST", type=PATH)
@click.option("--by", metavar="FIELD", help="Order by this field, of numbers or texts.")
@click.option("--time-field", metavar="NAME", help="Order by the event time in this field.")
@click.option(
    "--roll-cycle", metavar="NAME", help="The roll cycle of DEST. Default: that of the first SRC."
)
@row_format_option()
def merge(  # noqa: PLR0913 - one for each option
    sources: tuple[Path, ...],
    dest: Path,
    *,
    by: str | None,
    time_field: str | None,
    roll_cycle: str | None,
    style: str,
) -> None:
    """
    Write several queues into a new one, ordered by a field of the messages.

    Each SRC must be in that order itself; messages with equal values keep the order of the SRCs.
    Messages keep their bytes; metadata is left out. DEST, a new or an empty directory, appears
    when it is complete. Messages that arrive meanwhile may or may not be in it.

    \b
    Examples:
      quire merge bids asks both --time-field time
      quire merge north south all --by sequence --roll-cycle FAST_HOURLY
    """  # noqa: D301 - click reads the backspace
    if (by is None) == (time_field is None):
        raise click.UsageError("give one of --by and --time-field")
    field = Field(by) if by is not None else TimeField(time_field or "")
    with Progress() as progress, value_errors_as_usage():
        count = quire.maintenance.merge_queues(
            sources, dest, by_order(field), roll_cycle=roll_cycle, progress=progress.show
        )
    print_report(style, {"messages": count})
