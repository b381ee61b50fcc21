"""``quire convert``: converts a queue into another format."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import click

import quire
from quire.cli.exit_codes import INTERRUPTED, print_error
from quire.cli.output.progress import Progress
from quire.cli.output.reports import print_report
from quire.cli.parameters import PATH, value_errors_as_usage
from quire.cli.shared_options import on_damage_option, print_lost, row_format_option

_FORMATS = ("chronicle", "vanilla", "quick-queue", "parquet")


@click.command()
@click.argument("source", metavar="SRC", type=PATH)
@click.argument("dest", metavar="DEST", type=PATH)
@click.option("--into", type=click.Choice(_FORMATS), required=True, help="The format of DEST.")
@click.option(
    "--roll-cycle",
    metavar="NAME",
    help="The roll cycle of DEST. Default: one with the same period as SRC, or a day.",
)
@click.option(
    "--block-bytes",
    type=click.IntRange(min=1),
    metavar="N",
    help="The size of a block (chronicle), a data file (vanilla) or a page (quick-queue) of DEST.",
)
@click.option("--skip", is_flag=True, help="Leave out messages that DEST's format cannot store.")
@on_damage_option()
@row_format_option()
def convert(  # noqa: PLR0913 - its options
    source: Path,
    dest: Path,
    *,
    into: Literal["chronicle", "vanilla", "quick-queue", "parquet"],
    roll_cycle: str | None,
    block_bytes: int | None,
    skip: bool,
    on_damage: Literal["stop", "skip"],
    style: str,
) -> int:
    """
    Convert a queue into another format, or into Parquet files.

    DEST is a new or empty directory. Messages keep their order and bytes; metadata is left out. At
    the end, DEST is compared with SRC, and DEST/_indexes.jsonl maps the index of each message in
    SRC to its index in DEST. Repeat the command to resume a conversion that was interrupted or
    killed, or to add new messages of SRC.

    A message goes into the cycle of DEST in which its cycle in SRC starts. If SRC is a Quick-Queue,
    which has no cycles, all messages go into the cycle in which the conversion began.

    \b
    Examples:
      quire convert trades trades5 --into chronicle
      quire convert orders orders.parquet --into parquet
    """  # noqa: D301 - click reads the backspace
    if into == "parquet" and find_spec("pyarrow") is None:
        raise click.ClickException("Parquet needs pyarrow: pip install 'quire[arrow]'")
    with Progress() as progress, value_errors_as_usage():
        try:
            done = quire.convert(
                source,
                dest,
                into=into,
                roll_cycle=roll_cycle,
                block_bytes=block_bytes,
                skip=skip,
                on_damage=on_damage,
                progress=progress.show,
            )
        except KeyboardInterrupt:
            progress.clear()
            with suppress(OSError):
                print_error("interrupted: repeat the command to resume")
            raise click.exceptions.Exit(INTERRUPTED) from None
    print_report(style, _facts(done))
    return print_lost(done.lost)


def _facts(done: quire.converting.Converted) -> dict[str, object]:
    there = done.messages - done.written
    return {
        "written": done.written,
        "there": there or None,
        "skipped": done.skipped or None,
        "last": None if done.last is None else f"{done.last:#x}",
    }
