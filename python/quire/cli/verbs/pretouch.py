"""``quire pretouch``: a pretoucher as a process of its own."""

from __future__ import annotations

import time
from pathlib import Path

import click

import quire
from quire.cli.parameters import PATH, NumberRange, value_errors_as_usage
from quire.formats.adapters import require_journal

_SECONDS = NumberRange(min=0, max=3600, min_open=True)


@click.command()
@click.argument("path", type=PATH)
@click.option(
    "--interval",
    type=_SECONDS,
    default=0.01,
    show_default=True,
    metavar="SECONDS",
    help="Time between steps.",
)
@click.option("--early", is_flag=True, help="Create the next cycle's file before its time.")
@click.option(
    "--preroll",
    type=NumberRange(min=0),
    default=None,
    show_default="2",
    metavar="SECONDS",
    help="With --early: how long before.",
)
@click.option("--dont-write", is_flag=True, help="Create no files.")
@click.option("--once", is_flag=True, help="Take one step, then exit.")
def pretouch(  # noqa: PLR0913 - by keywords
    path: Path, *, interval: float, early: bool, preroll: float | None, dont_write: bool, once: bool
) -> None:
    """
    Prepare a queue's files ahead of its appenders, in any process.

    Runs until interrupted (Ctrl-C). QUIRE_EARLY_ACQUIRE_NEXT_CYCLE, QUIRE_PREROLL_TIME_S and
    QUIRE_DONT_WRITE, or a quire.toml, set options that are not given.

    \b
    Examples:
      quire pretouch orders
      quire pretouch orders --early --preroll 5
    """  # noqa: D301 - click reads the backspace
    with value_errors_as_usage():
        require_journal(path, "a pretoucher")
        with (
            quire.open(
                path, create=False, force_unlock="never", pretouch=False, buffer_mode="none"
            ) as queue,
            queue.pretoucher(
                early_acquire_next_cycle=early or None,
                preroll_time_s=preroll,
                dont_write=dont_write or None,
            ) as pretoucher,
        ):
            pretoucher.execute()
            while not once:
                time.sleep(interval)
                pretoucher.execute()
