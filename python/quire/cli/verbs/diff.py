"""``quire diff``: two queues compared, message by message."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

import quire
from quire.cli.exit_codes import error_text, print_error
from quire.cli.output.differences import Found, print_differences
from quire.cli.output.progress import Progress
from quire.cli.parameters import PATH, parse_point
from quire.cli.shared_options import check_json, row_format_option
from quire.replaying.message_values import Values

_DIFFERENT: Final = 1
_TROUBLE: Final = 2  # as diff does, so that a failure is not taken for a difference


@click.command()
@click.argument("left", metavar="A", type=PATH)
@click.argument("right", metavar="B", type=PATH)
@click.option(
    "--by",
    type=click.Choice(["position", "index"]),
    default="position",
    show_default=True,
    help="Pair messages by position, or by index.",
)
@click.option("--values", is_flag=True, help="Compare values, not bytes.")
@click.option(
    "--ignore",
    metavar="FIELD",
    multiple=True,
    help="Compare values without this field. Repeatable.",
)
@click.option(
    "--from", "start", type=parse_point, metavar="POINT", help="Start at this index or time."
)
@click.option(
    "--to", "end", type=parse_point, metavar="POINT", help="Stop before this index or time."
)
@click.option("--time-field", metavar="NAME", help="The field that holds the event time.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    metavar="N",
    show_default=True,
    help="The most differences to show; all are counted.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format jsonl.")
@row_format_option()
@click.option("-q", "--brief", is_flag=True, help="Print nothing; stop at the first difference.")
def diff(  # noqa: PLR0913 - its options
    left: Path,
    right: Path,
    *,
    limit: int,
    as_json: bool,
    brief: bool,
    style: str,
    **how: Any,  # noqa: ANN401 - click checks them
) -> None:
    """
    Compare two queues, message by message.

    Only messages that exist at the start of the comparison are read.

    Exit codes are those of diff: 0 without differences, 1 with differences, 2 on failure. For
    POINT, see replay.

    A message that one queue lacks is recognised by the messages after it, unless more than 128 in a
    row differ. With --values, neither encodings nor the order of fields matter, and changed fields
    are shown. --ignore time leaves out that field at every level, --ignore trade.time the one
    within trade, and --ignore history the history of messages.

    yaml, json and jsonl show both messages of each difference, and the counts at the end; csv and
    arrow have one row per difference, and no counts.

    \b
    Examples:
      quire diff expected actual
      quire diff expected actual --ignore time --ignore history
      quire diff yesterday today --by index --from 0x4d1a00000000 --json
    """  # noqa: D301 - click reads the backspace
    check_json(style, as_json=as_json)
    progress = Progress()
    try:
        comparison = quire.compare(left, right, progress=progress.count, **how)
        values = Values(how["ignore"]) if how["values"] or how["ignore"] else None
        if brief:
            is_different = next(comparison, None) is not None
        else:
            found = Found(comparison, values, limit, progress)
            print_differences("jsonl" if as_json else style, found)
            is_different = comparison.differences > 0
    except BrokenPipeError:  # nobody reads on, as after `| head`
        raise
    except (quire.QuireError, OSError, ValueError) as error:
        progress.clear()
        print_error(error_text(error))
        raise click.exceptions.Exit(_TROUBLE) from None
    finally:
        progress.clear()
    if is_different:
        raise click.exceptions.Exit(_DIFFERENT)
