"""``quire handover``: let a sink take the place of its source, without loss."""

from __future__ import annotations

from pathlib import Path

import click

from quire.cli.exit_codes import OK
from quire.cli.output.reports import print_report
from quire.cli.parameters import PATH
from quire.cli.shared_options import row_format_option
from quire.recording.addresses import show_address


@click.command()
@click.argument("path", type=PATH)
@click.option(
    "--to",
    required=True,
    metavar="NAME",
    help="The sink: its name, or the address at which it will serve.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True, max=86400),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long appends under way may take to end, and the sink to get all messages; and how"
    " long it may take to be promoted.",
)
@row_format_option()
def handover(path: Path, *, to: str, timeout: float, style: str) -> int:
    """
    Make a sink the new source, without losing a message.

    PATH is the queue of a running source. It refuses appends from the start; the sink gets the
    messages it lacks, is promoted, and begins a new epoch. A sink that runs with --listen, or as a
    node, then serves, and the old source follows it. If an append does not end in time, or the sink
    does not get all messages in time, the old source accepts appends again, and the exit code is 1.

    \b
    Examples:
      quire handover orders --to standby
      quire handover orders --to 10.0.0.2:7001 --timeout 5
    """  # noqa: D301 - click reads the backspace
    from quire.replication import handover as hand_over

    successor = hand_over(path, to, timeout_s=timeout)
    address = None if successor.address is None else show_address(successor.address)
    if style != "text":
        facts = {"path": str(path), "to": successor.name, "epoch": successor.epoch}
        print_report(style, {**facts, "address": address})
        return OK
    where = "" if address is None else f" address={address}"
    click.echo(f"handed over {path} to={successor.name} epoch={successor.epoch}{where}")
    return OK
