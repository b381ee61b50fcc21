"""Reading queues for the command line: one after the other, or all at once as messages arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from re import Pattern
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import click

import quire
from quire import pausers
from quire.cli.output.printers import JavaPrinter, MessagePrinter
from quire.cli.parameters import Zone, open_place, value_errors_as_usage
from quire.cli.reading.presence import Presence
from quire.cli.reading.selection import Bounds, Rows, Selection, Stage, end_of
from quire.cli.reading.sources import Source, sources_of
from quire.cli.reading.stages import Calls, Limiter, Patterns
from quire.cli.remote_options import Place
from quire.cli.streams import check_reader
from quire.formats.adapters import adapter_of, end_index_of, tailer_of
from quire.formats.columns import Columns
from quire.formats.protocols import AnyQueue, AnyTailer
from quire.ranges.damage import Lost, Skipper
from quire.ranges.seek import first_by

if TYPE_CHECKING:
    from quire.arrow.schema import Schema
    from quire.cli.output.field_columns import ColumnPrinter
    from quire.cli.reading.fields import WhereFilter
    from quire.cli.where.conditions import Condition
    from quire.remote.place import RemotePlace


AnyPrinter: TypeAlias = "MessagePrinter | JavaPrinter | ColumnPrinter"


class Step(NamedTuple):
    """Messages to show: rows of a batch, with the name of their queue and the tailer there."""

    source: str
    batch: Columns
    rows: Rows
    tailer: AnyTailer


class Request(NamedTuple):
    """What a command line asks for; the defaults show every message once."""

    style: str = "yaml"
    with_index: bool = True
    start: int | datetime | None = None
    end: int | datetime | None = None
    time_field: str | None = None
    last: int | None = None
    limit: int | None = None
    reverse: bool = False
    follow: bool = False
    metadata: bool = False
    named: str | None = None
    include: tuple[Pattern[str], ...] = ()
    exclude: tuple[Pattern[str], ...] = ()
    where: Condition | None = None
    columns: tuple[str, ...] | None = None
    schema: Schema | None = None
    zone: Zone | None = None
    interface: Callable[..., Any] | None = None
    history: bool = False
    limiter: Callable[..., Any] | None = None
    search: Callable[..., Any] | None = None
    is_java: bool = False
    squash: bool = False
    skips_damage: bool = False

    @property
    def most(self) -> int | None:
        """How many messages to show."""
        if self.reverse and self.last is not None:
            return self.last if self.limit is None else min(self.limit, self.last)
        return self.limit

    def bounds(self) -> Bounds:
        """Return the bounds, without points that only a queue can resolve."""
        last = None if self.reverse else self.last
        return Bounds(None, None, last, self.reverse, self.follow, self.metadata)


def show(path: Place, request: Request) -> list[Lost]:
    """
    Show the messages of a queue, or of every queue of a directory; return what was skipped.

    Raises:
        click.ClickException: An index, a time or a field was not found.
        QuireError: A queue cannot be read; earlier messages were shown.

    """
    if not isinstance(path, Path):
        _check_remote(request, path)
    sources = sources_of(path)
    if request.named is not None and len(sources) > 1:
        raise click.UsageError(f"--named needs one queue: queues={len(sources)} path={path}")
    limiter = None if request.limiter is None else Limiter(request.limiter)
    lost: list[Lost] = []
    with value_errors_as_usage():
        printer = printer_of(
            request, lambda: _first_schema(sources), with_queue=bool(sources[0].name)
        )
        try:
            if request.most != 0:
                _run(sources, request, limiter, printer, lost)
            printer.end()
        except quire.QuireError:
            printer.flush()  # what was read before the damage
            raise
    return lost


def _check_remote(request: Request, place: RemotePlace) -> None:
    """
    Refuse what needs the files of a queue.

    Raises:
        click.UsageError: An option was given that needs the files.

    """
    asked = {
        "--metadata": request.metadata,
        "--interface": request.interface is not None,
        "--on-damage skip": request.skips_damage,
        "--java": request.is_java,
    }
    for option in (name for name, is_asked in asked.items() if is_asked):
        raise click.UsageError(
            f"{option} needs the files of the queue: run it on the server's machine: path={place}"
        )


def _run(
    sources: list[Source],
    request: Request,
    limiter: Limiter | None,
    printer: AnyPrinter,
    lost: list[Lost],
) -> None:
    left = request.most
    for source, batch, rows, tailer in _steps(sources, request, limiter, printer.flush, lost):
        chosen = rows if left is None else rows[:left]
        printer.show(source, batch, chosen)
        if request.named is not None:
            printer.flush()  # a message counts as read once it was written
            named: Any = tailer
            named.commit()
        if left is not None:
            left -= len(chosen)
        if left == 0 or (limiter is not None and limiter.has_stopped):
            return


def _steps(
    sources: list[Source],
    request: Request,
    limiter: Limiter | None,
    idle: Callable[[], None],
    lost: list[Lost],
) -> Iterator[Step]:
    """Yield what each queue has; with ``follow``, go around until the process is interrupted."""
    running = [_of_source(source, request, limiter, lost) for source in sources]
    waiting = _Waiting(sources, idle) if request.follow else None
    while running:
        is_idle = True
        for steps in [*running]:
            for step in steps:
                if step is None:
                    break
                is_idle = False
                yield step
            else:
                running.remove(steps)
            if limiter is not None and limiter.has_stopped:
                return
        if waiting is not None and running:
            waiting.after_look(is_idle=is_idle)


class _Waiting:
    """The time between looks at queues that have nothing new."""

    def __init__(self, sources: list[Source], idle: Callable[[], None]) -> None:
        self._idle = idle
        self._pauser = pausers.sleepy()
        paths = (source.path for source in sources)
        self._presence = Presence(path for path in paths if isinstance(path, Path))

    def after_look(self, *, is_idle: bool) -> None:
        """Wait, the longer the more looks in a row found nothing."""
        if not is_idle:
            self._pauser.reset()
            return
        self._idle()
        check_reader()
        self._presence.check()
        self._pauser.pause()


def _of_source(
    source: Source, request: Request, limiter: Limiter | None, lost: list[Lost]
) -> Iterator[Step | None]:
    with _opened(source, request) as queue, _tailer(queue, request.named) as tailer:
        where = _where(queue, request)
        stages = _stages(queue, request, where)
        while (bounds := _bounds(queue, request)) is None:
            yield None
        bounds = bounds.within(*source.bounds(queue))
        if (compare := request.search) is not None:
            first = first_by(queue, lambda excerpt: compare(excerpt) >= 0)
            is_past = first >= end_index_of(queue) and not request.follow
            place = (None, first + 1) if request.reverse else (first, None)
            bounds = bounds._replace(end=0) if is_past else bounds.within(*place)
        skipper = Skipper(queue, lost.append) if request.skips_damage else None
        is_named = request.named is not None
        selection = Selection(
            queue,
            tailer,
            bounds,
            stages,
            limiter=limiter,
            is_named=is_named,
            skipper=skipper,
            last_of_all=request.is_java,
        )
        for found in selection.batches():
            yield None if found is None else Step(source.name, *found, tailer)
        if where is not None:
            where.report_unknown_fields(queue.path)


def _bounds(queue: AnyQueue, request: Request) -> Bounds | None:
    """Return what to show; None while that begins at a time which no message has reached yet."""
    end = end_of(queue)
    bounds = request.bounds().between(queue, request.start, request.end, request.time_field)
    is_time = isinstance(request.start, datetime)
    return None if is_time and request.follow and (bounds.start or 0) >= end else bounds


def _opened(source: Source, request: Request) -> AnyQueue:
    if request.named is not None:
        return open_place(source.path)
    return source.open()


def _tailer(queue: AnyQueue, name: str | None) -> AnyTailer:
    if name is None:
        return tailer_of(queue)
    named: Any = queue
    found: AnyTailer = named.tailer(name)
    return found


def _where(queue: AnyQueue, request: Request) -> WhereFilter | None:
    if request.where is None:
        return None
    from quire.cli.reading.fields import WhereFilter, schema_of

    known = request.interface is None or request.schema is not None
    return WhereFilter(request.where, schema_of(queue, request.schema) if known else None)


def _stages(queue: AnyQueue, request: Request, where: WhereFilter | None) -> list[Stage]:
    stages: list[Stage] = []
    if request.interface is not None:
        if not adapter_of(queue).has_calls:
            raise click.UsageError("--interface needs a Chronicle Queue: its messages are calls")
        zone = request.zone if request.is_java else None
        stages.append(Calls(queue, request.interface, with_history=request.history, zone=zone))
    if where is not None:
        stages.append(where)
    if request.include or request.exclude:
        stages.append(Patterns(request.style, request.include, request.exclude))
    return stages


def printer_of(
    request: Request, infer: Callable[[], Schema | None], *, with_queue: bool = False
) -> AnyPrinter:
    """
    Return what shows messages as a command line asks for.

    Args:
        request: What it asks for.
        infer: Returns the schema of the messages, where columns are shown and none was given.
        with_queue: Whether the messages are of several queues.

    Raises:
        click.UsageError: The options do not go together.

    """
    if request.is_java:
        return JavaPrinter(request.style, with_index=request.with_index, squash=request.squash)
    if request.columns is None and request.style not in {"csv", "arrow"}:
        return MessagePrinter(request.style, with_index=request.with_index)
    if request.style in {"hex", "raw"}:
        raise click.UsageError(f"--columns and --format {request.style} do not go together")
    from quire.cli.output.field_columns import ColumnPrinter

    is_given = request.schema is not None or request.interface is not None
    return ColumnPrinter(
        request.style,
        (lambda: request.schema) if is_given else infer,
        request.columns,
        with_index=request.with_index,
        with_queue=with_queue,
        zone=request.zone,
    )


def _first_schema(sources: list[Source]) -> Schema | None:
    """Return the schema of the first source whose messages have one."""
    from quire.cli.reading.fields import schema_of

    for source in sources:
        with source.open() as queue:
            schema = schema_of(queue, None)
        if schema is not None:
            return schema
    return None
