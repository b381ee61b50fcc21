"""``quire replay``: replay a range of a queue, on the terminal or into another queue."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final, cast

import click

import quire
from quire.cli.arguments import PATH, open_read_only, parse_point, value_errors_as_usage
from quire.cli.documents import Look, Printer
from quire.cli.errors import INTERRUPTED, print_error
from quire.cli.formats import FORMATS
from quire.cli.progress import Progress
from quire.replaying.pacing import Pace, Replay
from quire.replaying.replay import Copy, Replayed

_FASTEST: Final = "max"


def pace_of(value: str) -> Pace | None:
    """
    Return the pace of ``1x``, ``10x`` and ``0.5x``; None of ``max``.

    Raises:
        click.BadParameter: It is none of them.

    """
    if value == _FASTEST:
        return None
    try:
        return Pace(float(value.removesuffix("x")))
    except ValueError:
        raise click.BadParameter(f"{value!r} is no speed, such as 1x, 10x or max") from None


@click.command()
@click.argument("path", type=PATH)
@click.option(
    "--from", "start", type=parse_point, metavar="POINT", help="Start at this index or time."
)
@click.option(
    "--to", "end", type=parse_point, metavar="POINT", help="Stop before this index or time."
)
@click.option(
    "--speed",
    "pace",
    type=pace_of,
    default=_FASTEST,
    metavar="SPEED",
    show_default=True,
    help="1x is the original pace, 10x ten times as fast, max as fast as possible.",
)
@click.option("--time-field", metavar="NAME", help="The field that holds the event time.")
@click.option("--to-queue", "out", type=PATH, metavar="OUT", help="Write to the queue at OUT.")
@click.option(
    "--format",
    "style",
    type=click.Choice([*FORMATS]),
    help="Output format.  [default: yaml]",
)
@click.option("--no-index", is_flag=True, help="Leave out the indexes.")
def replay(  # noqa: PLR0913, PLR0917 - its options
    path: Path,
    start: int | datetime | None,
    end: int | datetime | None,
    pace: Pace | None,
    time_field: str | None,
    out: Path | None,
    style: str | None,
    *,
    no_index: bool,
) -> None:
    """
    Replay a range of a queue, or of one of its files.

    Without --to-queue, messages are printed as by read. OUT always gets the same bytes in the same
    cycles, at any speed; repeat a replay that was interrupted or killed to resume it. Metadata is
    left out.

    A POINT is an index, 0x… or decimal; or a time, such as 2024-01-15T10:30:00Z (UTC without a
    zone) or 1705314600000ms. Without --time-field, a time must be the start of a cycle, and the
    pace is taken from the history of the messages.

    \b
    Examples:
      quire replay orders --from 2024-01-15 --to 2024-01-16 --to-queue monday
      quire replay orders --to 0x4d1a00000000 --speed 10x --time-field time
    """  # noqa: D301 - click reads the backspace
    if out is not None and (style is not None or no_index):
        raise click.UsageError("--to-queue shows no messages: no --format and no --no-index")
    with open_read_only(path) as queue, value_errors_as_usage():
        plan = Replay(queue, start, end, pace=pace, time_field=time_field)
        if out is None:
            _show(plan, style or next(iter(FORMATS)), with_index=not no_index)
        else:
            _copy(plan, out)


def _show(plan: Replay, style: str, *, with_index: bool) -> None:
    look = Look(style, with_index)
    printer = Printer(look, at_once=plan.pace is not None)
    try:
        for document in plan.documents():
            printer.show(cast("quire.ReadDocument", document))  # raw ones are shown like them
        printer.end()
    except quire.QuireError:
        printer.flush()  # what was read before the damage
        raise
    if plan.pace is not None:
        print_error(_lag(plan.pace.behind_s, plan.pace.most_behind_s))


def _copy(plan: Replay, out: Path) -> None:
    with Progress() as progress, Copy(plan, out, progress=progress.count) as copy:
        try:
            done = copy.run()
        except KeyboardInterrupt:
            progress.clear()
            with suppress(OSError):
                print_error(f"interrupted: {_told(copy.done())}")
            raise click.exceptions.Exit(INTERRUPTED) from None
    lag = "" if plan.pace is None else f" {_lag(done.behind_s, done.most_behind_s)}"
    click.echo(f"{_told(done)}{lag}")


def _told(done: Replayed) -> str:
    there = done.messages - done.written
    were_there = f" there={there}" if there else ""
    return f"written={done.written}{were_there}" + (
        "" if done.last is None else f" last={done.last:#x}"
    )


def _lag(behind_s: float, most_behind_s: float) -> str:
    return f"behind={behind_s:.3f}s most_behind={most_behind_s:.3f}s"
