"""``quire roll-cycles``: the table of roll cycles, and where an index, a time or a file belongs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click

import quire
from quire.cli.output.row_formats import print_rows
from quire.cli.output.stat_text import hex_text, time_text
from quire.cli.parameters import PATH, index_of, open_journal, parse_point, value_errors_as_usage
from quire.cli.shared_options import row_format_option
from quire.formats.adapters import periods_of, require_journal
from quire.formats.numbering import Periods
from quire.ranges.event_time import epoch_ns

_TABLE: Final = (
    "name",
    "pattern",
    "length_ms",
    "index_count",
    "index_spacing",
    "max_messages",
    "hexadecimal",
    "per_second",
    "also",
)
_PLACE: Final = ("roll_cycle", "cycle", "sequence", "index", "from", "to", "file")


@click.command("roll-cycles")
@click.argument("name", required=False)
@click.option("--queue", type=PATH, metavar="PATH", help="The roll cycle and epoch of this queue.")
@click.option("--epoch", "epoch_ms", type=int, metavar="MS", help="The start of cycle 0.")
@click.option("--index", type=index_of, metavar="INDEX", help="The cycle and sequence of an index.")
@click.option("--cycle", type=int, metavar="N", help="The index and file of a cycle.")
@click.option("--sequence", type=int, metavar="N", help="The message of --cycle. Default: 0.")
@click.option("--time", type=parse_point, metavar="TIME", help="The cycle that contains a time.")
@click.option("--file", metavar="NAME", help="The cycle of a roll file.")
@row_format_option()
def roll_cycles(  # noqa: PLR0913 - its options
    name: str | None,
    *,
    queue: Path | None,
    epoch_ms: int | None,
    index: int | None,
    cycle: int | None,
    sequence: int | None,
    time: int | datetime | None,
    file: str | None,
    style: str,
) -> None:
    """
    Show roll cycles, or convert between index, cycle, sequence, time and file.

    per_second is the average rate, in messages per second, that fills a cycle, rounded down.

    \b
    Examples:
      quire roll-cycles
      quire roll-cycles FAST_DAILY --index 0x4d1900000005
      quire roll-cycles --queue orders --time 2024-01-15T10:30:00Z
    """  # noqa: D301 - click reads the backspace
    points = [it for it in (index, cycle, time, file) if it is not None]
    if len(points) > 1:
        raise click.UsageError("give one of --index, --cycle, --time and --file")
    if sequence is not None and cycle is None:
        raise click.UsageError("--sequence goes with --cycle")
    if isinstance(time, int):
        raise click.UsageError("--time takes a time, such as 2024-01-15T10:30:00Z")
    with value_errors_as_usage():
        roll, epoch, periods = _roll_cycle(name, queue, epoch_ms)
        if not points:
            print_rows(style, _TABLE, map(_row, quire.RollCycle.all() if roll is None else [roll]))
            return
        if roll is None or periods is None:
            raise click.UsageError("give the NAME of a roll cycle, or --queue")
        if index is not None:
            found, sequence = roll.to_cycle(index), roll.to_sequence(index)
        elif cycle is not None:
            found = cycle
        elif time is not None:
            found = periods.cycle_at(epoch_ns(time) // 1_000_000)
        else:
            found = roll.cycle_of_file(Path(str(file)).name, epoch)
        print_rows(style, _PLACE, _places(roll, found, sequence or 0, periods))


def _roll_cycle(
    name: str | None, path: Path | None, epoch_ms: int | None
) -> tuple[quire.RollCycle | None, int | None, Periods | None]:
    if path is None:
        roll = None if name is None else quire.RollCycle(name)
        return roll, epoch_ms, roll and _periods(roll, epoch_ms)
    if name is not None or epoch_ms is not None:
        raise click.UsageError("--queue does not go with NAME or --epoch: it has its own")
    require_journal(path, "one of these roll cycles")
    with open_journal(path) as queue:
        return queue.roll_cycle, queue.epoch_ms, periods_of(queue)


def _periods(roll: quire.RollCycle, epoch_ms: int | None) -> Periods:
    start_ms = roll.default_epoch_ms if epoch_ms is None else epoch_ms
    return Periods(start_ms, roll.length_ms, roll.name)


def _row(roll: quire.RollCycle) -> dict[str, Any]:
    return {
        "name": roll.name,
        "pattern": roll.pattern,
        "length_ms": roll.length_ms,
        "index_count": roll.index_count,
        "index_spacing": roll.index_spacing,
        "max_messages": roll.max_messages,
        "hexadecimal": hex_text(roll.max_messages),
        "per_second": roll.max_messages * 1000 // roll.length_ms,
        "also": ", ".join(roll.aliases),
    }


def _places(
    roll: quire.RollCycle, cycle: int, sequence: int, periods: Periods
) -> Iterator[dict[str, Any]]:
    index = roll.to_index(cycle, sequence)
    yield {
        "roll_cycle": roll.name,
        "cycle": cycle,
        "sequence": sequence,
        "index": hex_text(index),
        "from": time_text(periods.start_ms(cycle)),
        "to": time_text(periods.start_ms(cycle + 1)),
        "file": roll.file_name(cycle, periods.epoch_ms),
    }
