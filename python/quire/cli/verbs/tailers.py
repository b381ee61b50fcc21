"""``quire tailers``: the named tailers of a queue, how far they lag, and what moves them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

import click

import quire
from quire._common.terminal import escape_line
from quire.cli.output.row_formats import print_rows
from quire.cli.output.stat_facts import written_ns
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
from quire.formats.adapter import End
from quire.formats.adapters import adapter_at, adapter_of, numbering_of
from quire.formats.protocols import AnyTailer
from quire.ranges.event_time import TimeField
from quire.ranges.stored_positions import OUTPUT_POSITION, stored_position

_COLUMNS: Final = ("name", "next_index", "messages", "bytes", "seconds")
_SECOND: Final = 10**9

_Named: TypeAlias = Any  # a queue whose format has named tailers
_Target: TypeAlias = int | str | datetime  # an index, "start" or "end", or a time


def _parse_target(value: str) -> _Target:
    return value if value in {"start", "end"} else parse_point(value)


@click.command()
@click.argument("path", type=QUEUE)
@click.option(
    "--move",
    type=(str, _parse_target),
    metavar="NAME POINT",
    help="Move a tailer to an index, a time, 'start' or 'end'.",
)
@click.option("--reset", metavar="NAME", help="Move a tailer to the first message.")
@click.option("--delete", metavar="NAME", help="Delete a tailer and its position.")
@click.option("--rename", type=(str, str), metavar="OLD NEW", help="Give a tailer another name.")
@click.option("--time-field", metavar="NAME", help="The field that holds the event time.")
@row_format_option()
def tailers(  # noqa: PLR0913 - its options
    path: Place,
    *,
    move: tuple[str, _Target] | None,
    reset: str | None,
    delete: str | None,
    rename: tuple[str, str] | None,
    time_field: str | None,
    style: str,
) -> None:
    """
    List the named tailers of a queue and how far they lag, or change one.

    The lag is counted from the message that a tailer reads next to the end of the queue: in
    messages, in bytes of the files, and in seconds between its message and the last one, if
    messages have a history or a --time-field. Listing changes nothing.

    It refuses to change a tailer that a Quire process has open. It cannot notice a Java process
    that has one open: stop that process first.

    \b
    Examples:
      quire tailers orders
      quire tailers orders --format jsonl | jq 'select(.messages > 1000)'
      quire tailers orders --move risk 2024-01-15T10:30:00Z --time-field time
    """  # noqa: D301 - click reads the backspace
    changes = [it for it in (move, reset, delete, rename) if it is not None]
    if len(changes) > 1:
        raise click.UsageError("give one of --move, --reset, --delete and --rename")
    with value_errors_as_usage():
        _check_format(path)
        if not changes:
            with open_read_only(path) as queue:
                print_rows(style, _COLUMNS, _rows(queue, time_field))
            return
        with _opened(path) as queue:
            if delete is not None:
                done = _deleted(queue, delete)
            elif rename is not None:
                done = _renamed(queue, *rename)
            else:
                name, target = move or (str(reset), "start")
                done = _moved(queue, name, target, time_field)
    if style == "text":
        rest = " ".join(f"{key}={escape_line(it)}" for key, it in done.items() if key != "done")
        click.echo(f"{done['done']}: {rest}")
    else:
        print_rows(style, [*done], [done])


def _check_format(path: Place) -> None:
    if not isinstance(path, Path):
        return  # the server says so
    adapter = adapter_at(path)
    if adapter is not None and not adapter.has_tailer_names:
        raise quire.errors.UnsupportedError(
            "queues of this format store nothing about their readers:"
            f" format={adapter.name} path={path}"
        )


def _opened(path: Place) -> _Named:
    if not isinstance(path, Path):
        return open_place(path)
    adapter = adapter_at(path)
    if adapter is None or adapter.is_wire:
        return quire.open(path, create=False, force_unlock="never", buffer_mode="none")
    return quire.open(path, create=False)


def _rows(queue: _Named, time_field: str | None) -> Iterator[dict[str, Any]]:
    adapter = adapter_of(queue)
    named = [it for it in queue.named_tailers() if it[0] != OUTPUT_POSITION]
    places = {name: stored_position(queue, index) for name, index in named}
    oldest = min((cycle for cycle, _ in places.values()), default=0)
    cycles = [it for it in adapter.cycles(queue) if it >= oldest]
    found = {cycle: adapter.found_end(queue, cycle) for cycle in cycles}
    ends = {cycle: end for cycle, end in found.items() if end is not None and end.past}
    with queue.tailer() as reader:
        for name, index in named:
            lag = _Lag(queue, ends, *places[name])
            yield {
                "name": name,
                "next_index": hex_text(index),
                "messages": lag.messages,
                "bytes": lag.bytes,
                "seconds": _seconds(reader, lag, time_field),
            }


class _Lag:
    """What a tailer has yet to read, cycle by cycle."""

    def __init__(self, queue: _Named, ends: dict[int, End], cycle: int, sequence: int) -> None:
        adapter, numbering = adapter_of(queue), numbering_of(queue)
        starts = {it: sequence if it == cycle else 0 for it in ends if it >= cycle}
        unread = {it: start for it, start in starts.items() if start < ends[it].past}
        self.messages = sum(ends[it].past - start for it, start in unread.items())
        indexes = {it: numbering.to_index(it, start) for it, start in unread.items()}
        positions = {it: adapter.position(queue, index) for it, index in indexes.items()}
        parts = [ends[it].position - at for it, at in positions.items() if at is not None]
        self.bytes = sum(parts) if len(parts) == len(unread) else None
        self.first = next(iter(indexes.values()), None)
        last = max(unread, default=None)
        self.last = None if last is None else numbering.to_index(last, ends[last].past - 1)


def _seconds(reader: AnyTailer, lag: _Lag, time_field: str | None) -> float | None:
    if lag.first is None or lag.last is None:
        return 0.0
    first = _time_ns(reader, lag.first, time_field)
    last = _time_ns(reader, lag.last, time_field)
    return None if first is None or last is None else (last - first) / _SECOND


def _time_ns(reader: Any, index: int, time_field: str | None) -> int | None:  # noqa: ANN401 - a tailer
    if time_field is None:
        return written_ns(reader, index) if adapter_of(reader).has_calls else None
    found = reader.read_bytes() if reader.move_to_index(index) else None
    return None if found is None else TimeField(time_field).of(found)


def _known(queue: _Named, name: str) -> tuple[str, int]:
    """Return a tailer's name as it is stored, and the index that it reads next."""
    for known, index in queue.named_tailers():
        if known.lower() == name.lower():
            return known, index
    raise _unknown(name)


def _unknown(name: str) -> click.ClickException:
    return click.ClickException(f"no tailer has this name: name={name}")


def _moved(queue: _Named, name: str, target: _Target, time_field: str | None) -> dict[str, str]:
    known, before = _known(queue, name)
    index = _target(queue, target, time_field)
    with queue.tailer(known) as tailer:
        if target == "start" or index is None:
            tailer.to_start()
        else:
            tailer.move_to_index(index)
        tailer.commit()
    _, after = _known(queue, known)
    return {"done": "moved", "name": known, "before": hex_text(before), "after": hex_text(after)}


def _target(queue: _Named, target: _Target, time_field: str | None) -> int | None:
    """Return the index that a point stands for; None in an empty queue."""
    last: int | None = queue.last_index
    if last is None or target == "start":
        first: int | None = queue.first_index
        return first
    if target == "end":
        return last + 1
    with queue.tailer() as looker:
        if not isinstance(target, int):
            found = looker.move_to_time(target, time_field=time_field)
            return int(looker.index) if found else last + 1
        if target == last + 1 or looker.move_to_index(target):
            return target
    raise click.ClickException(
        f"no message has this index: index={target:#x} first={queue.first_index or 0:#x}"
        f" last={last:#x}"
    )


def _deleted(queue: _Named, name: str) -> dict[str, str]:
    _, before = _known(queue, name)
    if not queue.delete_tailer(name):
        raise _unknown(name)
    return {"done": "deleted", "name": name, "before": hex_text(before)}


def _renamed(queue: _Named, name: str, new: str) -> dict[str, str]:
    if not queue.rename_tailer(name, new):
        raise _unknown(name)
    return {"done": "renamed", "name": name, "new": new}
