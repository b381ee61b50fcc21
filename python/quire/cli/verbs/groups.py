"""``quire groups``: the consumer groups of a queue; resets and deletes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

import quire
from quire._common.terminal import escape_line
from quire.cli.output.row_formats import print_rows
from quire.cli.output.stat_text import hex_text
from quire.cli.parameters import PATH, open_read_only, parse_point, value_errors_as_usage
from quire.cli.shared_options import row_format_option
from quire.formats.adapters import end_index_of

_COLUMNS: Final = ("name", "lag", "lowest_index", "next_index", "members")


def _parse_index(value: str) -> int | str:
    found = value if value in {"start", "end"} else parse_point(value)
    if not isinstance(found, int | str):
        raise click.BadParameter("expected an index, 'start' or 'end'")
    return found


@click.command()
@click.argument("path", type=PATH)
@click.option(
    "--reset",
    type=(str, _parse_index),
    metavar="NAME INDEX",
    help="Have a group begin at an index, 'start' or 'end'.",
)
@click.option("--delete", metavar="NAME", help="Remove a group: it holds no cycle any more.")
@row_format_option()
def groups(
    path: Path, *, reset: tuple[str, int | str] | None, delete: str | None, style: str
) -> None:
    """
    List the consumer groups of a queue and how far they lag, reset one or delete one.

    The lag is the number of messages that nobody acknowledged. Members are shown as NAME:PID and
    the number of messages that they have. Listing changes nothing. A group with members is neither
    reset nor deleted: stop them first.

    \b
    Examples:
      quire groups orders
      quire groups orders --reset billing start
      quire groups orders --delete billing
    """  # noqa: D301 - click reads the backspace
    with value_errors_as_usage():
        if reset is not None and delete is not None:
            raise click.UsageError("--reset and --delete exclude each other")
        if delete is not None:
            with quire.open(path, create=False, buffer_mode="none") as queue:
                click.echo(_delete(queue, delete))
            return
        if reset is None:
            with open_read_only(path) as queue:
                print_rows(style, _COLUMNS, _rows(queue))
            return
        name, target = reset
        with quire.open(path, create=False, buffer_mode="none") as queue:
            click.echo(_reset(queue, name, target))


def _rows(queue: quire.Queue) -> Iterator[dict[str, Any]]:
    for group in queue.groups():
        members = [f"{it.name}:{it.pid} {it.messages}" for it in group.members]
        yield {
            "name": group.name,
            "lag": group.lag,
            "lowest_index": hex_text(group.lowest_index),
            "next_index": hex_text(group.next_index),
            "members": ", ".join(members),
        }


def _delete(queue: quire.Queue, name: str) -> str:
    if not queue.group(name).delete():
        raise click.ClickException(f"no group has this name: name={escape_line(name)}")
    return f"deleted: name={escape_line(name)}"


def _reset(queue: quire.Queue, name: str, target: int | str) -> str:
    known = {group.name: group for group in queue.groups()}
    if name not in known:
        raise click.ClickException(f"no group has this name: name={escape_line(name)}")
    before = known[name].lowest_index
    if target == "start":
        index = None
    elif isinstance(target, int):
        index = target
    else:
        index = end_index_of(queue)
    queue.group(name).reset(index)
    after = queue.group(name).state().lowest_index
    return f"reset: name={escape_line(name)} before={before:#x} after={after:#x}"
