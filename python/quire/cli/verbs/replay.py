"""``quire replay``: replay a range of a queue, on the terminal or into another queue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

import click

import quire
from quire.cli.exit_codes import INTERRUPTED, print_error
from quire.cli.output.progress import Progress
from quire.cli.parameters import PATH, open_read_only, parse_point, value_errors_as_usage
from quire.cli.reading.request import AnyPrinter, Request, printer_of
from quire.cli.reading.selection import BATCH
from quire.cli.shared_options import columns_option, on_damage_option, print_lost
from quire.cli.verbs.read import FORMATS
from quire.formats.adapters import adapter_of
from quire.formats.columns import Columns
from quire.ranges.damage import Lost
from quire.replaying.pacing import Pace, Replay
from quire.replaying.replays import Copy, Replayed

_FASTEST: Final = "max"


def pace_of(value: str) -> Pace | None:
    """
    Return the pace of ``1x``, ``10x`` and ``0.5x``; None of ``max``.

    Raises:
        click.BadParameter: The value is not a pace.

    """
    if value == _FASTEST:
        return None
    try:
        return Pace(float(value.removesuffix("x")))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a speed, such as 1x, 10x or max") from None


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
    type=click.Choice(FORMATS),
    help="Output format.  [default: yaml]",
)
@columns_option()
@click.option(
    "--schema", metavar="SCHEMA", help="Types of the fields: module:Name or a file; else inferred."
)
@click.option("--no-index", is_flag=True, help="Leave out the indexes.")
@on_damage_option()
def replay(  # noqa: PLR0913, PLR0917 - its options
    path: Path,
    start: int | datetime | None,
    end: int | datetime | None,
    pace: Pace | None,
    time_field: str | None,
    out: Path | None,
    style: str | None,
    columns: tuple[str, ...] | None,
    schema: str | None,
    *,
    no_index: bool,
    on_damage: str,
) -> int:
    """
    Replay a range of a queue, or of one of its files.

    Without --to-queue, messages are printed as by read; with --speed, each is printed when it is
    due, in the format arrow as its own record batch. At any speed, OUT gets the same bytes in the
    same cycles; repeat a replay that was interrupted or killed to resume it. Metadata is left out.

    A POINT is an index, 0x… or decimal; or a time, such as 2024-01-15T10:30:00Z (UTC without a
    zone), 1705314600000ms, now, or relative to now: -30s, -15m, -1.5h, -7d. Without --time-field, a
    time must be the start of a cycle unless the cycle has an index of times (time-index), and the
    pace is taken from the history of the messages.

    \b
    Examples:
      quire replay orders --from 2024-01-15 --to 2024-01-16 --to-queue monday
      quire replay orders --to 0x4d1a00000000 --speed 10x --time-field time
      quire replay orders --speed 1x --time-field time --format csv --columns symbol,price
    """  # noqa: D301 - click reads the backspace
    if out is not None and (style, columns, schema, no_index) != (None, None, None, False):
        raise click.UsageError(
            "--to-queue prints no messages: leave out --format, --columns, --schema, --no-index"
        )
    lost: list[Lost] = []
    skipped = lost.append if on_damage == "skip" else None
    with open_read_only(path) as queue, value_errors_as_usage():
        plan = Replay(queue, start, end, pace=pace, time_field=time_field, skipped=skipped)
        if out is None:
            request = Request(style or FORMATS[0], columns=columns, with_index=not no_index)
            _show(plan, _printer(queue, request, schema))
        else:
            _copy(plan, out)
    return print_lost(lost)


def _printer(queue: quire.Queue, request: Request, schema: str | None) -> AnyPrinter:
    from quire.cli.reading.fields import load_schema, schema_of

    if schema is not None:
        request = request._replace(schema=load_schema(schema))
    return printer_of(request, lambda: schema_of(queue, None))


def _show(plan: Replay, printer: AnyPrinter) -> None:
    try:
        for batch in _batches(plan):
            printer.show("", batch, range(len(batch)))
            if plan.pace is not None:
                printer.flush()
        printer.end()
    except quire.QuireError:
        printer.flush()  # what was read before the damage
        raise
    if plan.pace is not None:
        print_error(_lag(plan.pace.behind_s, plan.pace.most_behind_s))


def _batches(plan: Replay) -> Iterator[Columns]:
    """Yield the messages; with a pace, one by one, each when it is due."""
    is_wire = adapter_of(plan.source).is_wire
    if plan.pace is not None:
        for document in plan.documents():
            yield Columns.of_one(document.index, bytes(document.bytes), is_wire=is_wire)
        return
    with plan.source.tailer() as tailer:
        chunks = plan.chunks(tailer)
        while len(chunk := chunks.take(BATCH)):
            yield replace(chunk, is_wire=is_wire)


def _copy(plan: Replay, out: Path) -> None:
    with Progress() as progress, Copy(plan, out, progress=progress.count) as copy:
        try:
            done = copy.run()
        except KeyboardInterrupt:
            progress.clear()
            with suppress(OSError):
                print_error(f"interrupted: {_summary(copy.done())}")
            raise click.exceptions.Exit(INTERRUPTED) from None
    lag = "" if plan.pace is None else f" {_lag(done.behind_s, done.most_behind_s)}"
    click.echo(f"{_summary(done)}{lag}")


def _summary(done: Replayed) -> str:
    there = done.messages - done.written
    were_there = f" there={there}" if there else ""
    return f"written={done.written}{were_there}" + (
        "" if done.last is None else f" last={done.last:#x}"
    )


def _lag(behind_s: float, most_behind_s: float) -> str:
    return f"behind={behind_s:.3f}s most_behind={most_behind_s:.3f}s"
