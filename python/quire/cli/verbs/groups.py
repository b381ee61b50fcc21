"""``quire groups``: the consumer groups of a queue, what their consumers have, and changes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, TypeAlias

import click

import quire
from quire._common.terminal import escape_line
from quire._common.units import duration_us
from quire.cli.output.group_facts import facts_of_group, members_text, rounded
from quire.cli.output.row_formats import print_rows
from quire.cli.output.stat_text import hex_text
from quire.cli.parameters import (
    QUEUE,
    open_place,
    open_read_only,
    parse_point,
    value_errors_as_usage,
)
from quire.cli.remote_options import Place
from quire.cli.shared_options import row_format_option
from quire.groups.states import PendingMessage

_COLUMNS: Final = (
    "name",
    "lag",
    "pending",
    "oldest_s",
    "lowest_index",
    "next_index",
    "members",
)
_PENDING: Final = (
    "index",
    "consumer",
    "pid",
    "deliveries",
    "age_s",
    "timeout_s",
    "delay_s",
    "cause",
)
_SECOND_US: Final = 10**6

_Target: TypeAlias = int | str | datetime  # an index, "start" or "end", or a time


def _parse_target(value: str) -> _Target:
    return value if value in {"start", "end"} else parse_point(value)


def _parse_index(value: str) -> int:
    found = parse_point(value)
    if not isinstance(found, int):
        raise click.BadParameter(f"expected an index: found={value!r}")
    return found


def _parse_seconds(value: str) -> float:
    return duration_us(value) / _SECOND_US


@click.command()
@click.argument("path", type=QUEUE)
@click.option("--pending", metavar="NAME", help="List the messages that consumers of a group hold.")
@click.option(
    "--reset",
    type=(str, _parse_target),
    metavar="NAME POINT",
    help="Restart a group at an index, a time, 'start' or 'end'.",
)
@click.option("--time-field", metavar="NAME", help="The field that holds the time for --reset.")
@click.option("--delete", metavar="NAME", help="Remove a group; retention no longer waits for it.")
@click.option(
    "--extend",
    type=(str, _parse_index, _parse_seconds),
    metavar="NAME INDEX DURATION",
    help="Give a message at least this long before it times out: 10m, 1h.",
)
@click.option(
    "--release",
    type=(str, _parse_index),
    metavar="NAME INDEX",
    help="Take a message from its consumer, so that it is delivered again.",
)
@click.option(
    "--delay",
    type=_parse_seconds,
    metavar="DURATION",
    help="Hold a released message back: 30s, 5m.",
)
@row_format_option()
def groups(  # noqa: PLR0913 - its options
    path: Place,
    *,
    pending: str | None,
    reset: tuple[str, _Target] | None,
    time_field: str | None,
    delete: str | None,
    extend: tuple[str, int, float] | None,
    release: tuple[str, int] | None,
    delay: float | None,
    style: str,
) -> None:
    """
    List the consumer groups of a queue and how far they lag, or change one.

    The lag is the number of messages that are not yet acknowledged, including the pending ones,
    which the group has claimed; the oldest pending message was delivered oldest_s seconds ago.
    Members are shown as NAME:PID and the number of messages that they hold. Listing changes
    nothing.

    A group with members cannot be reset or deleted: stop its members first. The messages of one
    claim, 32 at most, are extended and released together.

    \b
    Examples:
      quire groups orders
      quire groups orders --pending billing --format jsonl | jq 'select(.age_s > 600)'
      quire groups orders --release billing 0x4d1900000007 --delay 5m
      quire groups orders --reset billing 2024-01-15T10:30:00Z --time-field time
      quire groups orders --delete billing
    """  # noqa: D301 - click reads the backspace
    asked = {
        "--pending": pending,
        "--reset": reset,
        "--delete": delete,
        "--extend": extend,
        "--release": release,
    }
    given = [name for name, value in asked.items() if value is not None]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other")
    if time_field is not None and not (reset and isinstance(reset[1], datetime)):
        raise click.UsageError("--time-field requires --reset with a time")
    if delay is not None and release is None:
        raise click.UsageError("--delay requires --release")
    with value_errors_as_usage():
        if not given or pending is not None:
            with open_read_only(path) as queue:
                _list(queue, pending, style)
            return
        done: dict[str, Any] = {}
        with open_place(path, buffer_mode="none") as queue:
            if delete is not None:
                done = _deleted(queue, delete)
            elif extend is not None:
                done = _extended(queue, *extend)
            elif release is not None:
                done = _released(queue, *release, delay or 0.0)
            elif reset is not None:
                done = _reset(queue, *reset, time_field)
    if style == "text":
        what = done.pop("done")
        click.echo(f"{what}: {' '.join(f'{k}={escape_line(str(it))}' for k, it in done.items())}")
    else:
        print_rows(style, [*done], [done])


def _list(queue: quire.Queue, pending: str | None, style: str) -> None:
    if pending is None:
        print_rows(style, _COLUMNS, _rows(queue, is_flat=style in {"text", "csv"}))
    else:
        found = _known(queue, pending).pending()
        print_rows(style, _PENDING, (_pending_row(it, style) for it in found))


def _rows(queue: quire.Queue, *, is_flat: bool) -> Iterator[dict[str, Any]]:
    for facts in map(facts_of_group, queue.groups()):
        yield facts | {"members": members_text(facts["members"])} if is_flat else facts


def _pending_row(it: PendingMessage, style: str) -> dict[str, Any]:
    pid = f"{it.pid}" if it.pid and style == "text" else it.pid  # not 12,345
    return {
        "index": hex_text(it.index),
        "consumer": it.consumer,
        "pid": pid,
        "deliveries": it.delivery_count,
        "age_s": rounded(it.age_s),
        "timeout_s": rounded(it.timeout_s),
        "delay_s": rounded(it.delay_s),
        "cause": it.cause,
    }


def _known(queue: quire.Queue, name: str) -> quire.Group:
    if all(group.name != name for group in queue.groups()):
        raise click.ClickException(f"no group has this name: name={escape_line(name)}")
    return queue.group(name)


def _deleted(queue: quire.Queue, name: str) -> dict[str, Any]:
    if not queue.group(name).delete():
        raise click.ClickException(f"no group has this name: name={escape_line(name)}")
    return {"done": "deleted", "name": name}


def _extended(queue: quire.Queue, name: str, index: int, seconds: float) -> dict[str, Any]:
    count = _known(queue, name).extend(index, seconds)
    return {"done": "extended", "name": name, "index": hex_text(index), "messages": count}


def _released(queue: quire.Queue, name: str, index: int, delay_s: float) -> dict[str, Any]:
    count = _known(queue, name).release(index, delay_s=delay_s)
    return {"done": "released", "name": name, "index": hex_text(index), "messages": count}


def _reset(
    queue: quire.Queue, name: str, target: _Target, time_field: str | None
) -> dict[str, Any]:
    group = _known(queue, name)
    before = group.state().lowest_index
    if isinstance(target, datetime):
        group.reset(time=target, time_field=time_field)
    elif isinstance(target, int):
        group.reset(target)
    else:
        group.reset("end" if target == "end" else "start")
    after = group.state().lowest_index
    return {"done": "reset", "name": name, "before": hex_text(before), "after": hex_text(after)}
