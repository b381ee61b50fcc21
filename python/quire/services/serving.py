"""
Services: handlers between queues, each message handled exactly once.

    class Risk:
        def __init__(self, out: Orders) -> None: ...        # calls of `out` are written
        def order(self, order: Order) -> None: ...          # called for each message read

    with quire.service(inputs=["orders"], output="checked", handler=Risk) as service:
        service.run()

The output is the only record of what a service has done: the history of each message in it names
the input message that led to it, and notes between the messages record how far each input was
handled. The positions stored in the queues do not decide where a service resumes. They only protect
the cycles that it still needs from `quire archive --delete`. docs/services.md explains why that is
enough.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from time import monotonic
from types import TracebackType
from typing import Any, Literal, NoReturn, Self, TypeAlias, cast, get_type_hints

from quire._common import arguments
from quire._common.durable import locked_directory
from quire._common.known_attributes import KnownAttributes
from quire._waiting.async_reading import AsyncClosing
from quire._waiting.sleeping import AnyOf, pauser_at
from quire.calls.method_reader import method_reader
from quire.errors import ClosedError, DataLossError, QuireError
from quire.handles.base import Queue
from quire.handles.journal.queue import JournalQueue
from quire.handles.journal.tailer import JournalTailer
from quire.opening.discovery import check_local
from quire.opening.opener import open as open_queue
from quire.pausers import TURN_S, Pauser
from quire.ranges.stored_positions import OUTPUT_POSITION
from quire.services.recovery import RecoveryPoint, Source, done, reader_name
from quire.services.service_output import Output
from quire.types import names_around

Replay: TypeAlias = Literal["all", "missed"]
OnMissing: TypeAlias = Literal["raise", "warn", "skip"]
_Steps: TypeAlias = "Generator[_Input | bool, bool, None]"
_Place: TypeAlias = JournalQueue | str | PathLike[str]


def service(  # noqa: PLR0913 - by keywords
    *,
    inputs: Sequence[JournalQueue | str | PathLike[str]],
    output: JournalQueue | str | PathLike[str],
    handler: object,
    writes: type | None = None,
    replay: Replay = "all",
    on_missing: OnMissing = "raise",
) -> Service:
    """
    Return a service that reads *inputs*, calls *handler*, and writes its calls to *output*.

    It resumes where its output ends: nothing is written twice.

    Args:
        inputs: Queues, or paths of existing queues, each with its own source id other than 0.
        output: A queue, or the path of an existing queue, to which no other service writes.
        handler: A class, a function that returns an object, or a ``functools.partial`` of these,
            with one parameter: the output to call. Or an object whose class annotates an attribute
            ``out``, which is set to the output.
        writes: The interface of the outputs; None: the annotation of that parameter or attribute.
        replay: ``all``: the handler sees all messages again, oldest first, to rebuild its state.
            ``missed``: the handler has no state, and only sees messages that the output does not
            record as handled.
        on_missing: What to do if messages that the service still needs were deleted: ``raise``;
            ``warn`` through the logger ``quire``, or ``skip`` silently, and continue with the
            remaining messages. Then messages may be lost, or written twice.

    Raises:
        ValueError: Inputs share a source id or have none, or no interface was found.
        NotAQueueError: There is no queue at a path.
        UnsupportedError: A path is a URL.
        QuireError: Another service writes this output.
        DataLossError: Messages after the service's position were deleted from an input or the
            output.

    Examples:
        >>> class Out:
        ...     def checked(self, order: str) -> None: ...
        >>> class Risk:
        ...     def __init__(self, out: Out) -> None:
        ...         self.out = out
        ...     def order(self, order: str) -> None:
        ...         self.out.checked(order)
        >>> orders, checked = quire.open("in", source_id=1), quire.open("out", source_id=2)
        >>> with orders.appender() as appender:
        ...     appender.method_writer(Risk).order("buy 100")
        >>> with quire.service(inputs=[orders], output=checked, handler=Risk) as service:
        ...     service.run_once()
        True
        >>> checked.entry_count
        1

    """
    return Service(inputs, output, handler, writes, replay, on_missing, names_around())


class Service(AsyncClosing, KnownAttributes):
    """
    A handler between queues, from :func:`quire.service`.

    Examples:
        >>> class Out:
        ...     def checked(self, order: str) -> None: ...
        >>> class Risk:
        ...     def __init__(self, out: Out) -> None:
        ...         self.out = out
        ...     def order(self, order: str) -> None:
        ...         self.out.checked(order)
        >>> orders, checked = quire.open("in", source_id=1), quire.open("out", source_id=2)
        >>> with orders.appender() as appender:
        ...     appender.method_writer(Risk).order("buy 100")
        >>> with quire.service(inputs=[orders], output=checked, handler=Risk) as service:
        ...     service.is_replaying, type(service.handler).__name__
        ...     service.run_once(), service.run_once()  # run() goes on until stop() is called
        (False, 'Risk')
        (True, False)
        >>> service.close()

    """

    def __init__(  # noqa: PLR0913, PLR0917 - those of service
        self,
        inputs: Sequence[_Place],
        output: _Place,
        handler: object,
        writes: type | None,
        replay: Replay,
        on_missing: OnMissing,
        names: Mapping[str, Any],
    ) -> None:
        """Read from the output what is done; the replay begins with :meth:`run_once`."""
        if replay not in ("all", "missed"):
            raise ValueError(f"invalid replay: replay={replay} expected=all or missed")
        self._stopping = False
        self._is_handling = False
        self._pauser: Pauser | None = None
        self._goal: RecoveryPoint | None = None
        with contextlib.ExitStack() as opened:
            if isinstance(inputs, str | bytes | PathLike | Queue):
                inputs = [inputs]
            given = cast("object", inputs)
            if not isinstance(given, Iterable):
                raise arguments.refusal("inputs", "queues, or their paths", given)
            queues = [_opened(opened, queue, "inputs") for queue in inputs]
            target = _opened(opened, output, "output")
            ids = [queue.source_id for queue in queues]
            if not ids or 0 in ids or len(set(ids)) < len(ids):
                raise ValueError(
                    f"each input needs its own source id other than 0: source_ids={ids}"
                    " (set source_id= when a queue is created)"
                )
            opened.enter_context(_sole_writer(target.path))
            appender = opened.enter_context(target.appender())
            kept = _tailer(opened, target, OUTPUT_POSITION, on_missing)
            interface = writes or _interface(handler, names)
            self._output = Output(target, appender, kept, interface, names)
            self._handler = _made(handler, self._output.out)
            name = reader_name(target.path)
            self._inputs = {
                queue.source_id: _Input(
                    queue, _tailer(opened, queue, name, on_missing), self._handler, names
                )
                for queue in queues
            }
            self._any_input = AnyOf(lambda: [it.tailer for it in self._inputs.values()])
            self._output.consumed = self._consumed
            plan = self._still_there(done(target, ids), on_missing)
            if plan:
                appender.sync()  # before the inputs release the messages that led to outputs
            for source in self._inputs.values():
                source.to_start()
            self._plan = iter(plan) if replay == "all" else self._missed(plan)
            self._step: Callable[[], _Steps] = self._replay_one
            self._advance()
            self._shown = f"{target.path}, inputs={', '.join(queue.path for queue in queues)}"
            self._opened = opened.pop_all()

    def __repr__(self) -> str:
        """Show the queues and the state."""
        state = "closed" if self._step is _closed else f"replaying={self.is_replaying}"
        return f"Service({self._shown}, {state})"

    @property
    def handler(self) -> Any:  # noqa: ANN401 - the caller's object
        """The object that handles the messages."""
        return self._handler

    @property
    def is_replaying(self) -> bool:
        """Whether earlier messages are still being handled again, to rebuild the state."""
        return self._goal is not None

    def run_once(self) -> bool:
        """
        Handle a message, or one of each input; return False if there is none.

        Raises:
            Exception: Any exception of the handler, and any error of appending an output, even if
                the handler catches it. The service is then closed; a new one rebuilds the state
                and continues with the same message.
            RuntimeError: A message is being handled: the handler itself, another thread or another
                task has called this.

        """
        self._refuse_while_handling()
        self._is_handling = True
        try:
            steps = self._step()
            asked = next(steps)
            while not isinstance(asked, bool):
                asked = steps.send(self._complete(asked.read_one()))
        except BaseException:
            self._abandon()
            raise
        finally:
            self._is_handling = False
        return asked

    async def arun_once(self) -> bool:
        """
        Handle a message and await its handler, which may be a coroutine function.

        See :meth:`run_once`. Only the handler itself may call the output, not tasks that it starts.

        Raises:
            Exception: Any exception of the handler, or its cancellation, and any error of appending
                an output, even if the handler catches it. The service is then closed; a new one
                rebuilds the state and continues with the same message.
            RuntimeError: A message is being handled: the handler itself, another thread or another
                task has called this.

        Examples:
            >>> import asyncio
            >>> class Out:
            ...     def checked(self, order: str) -> None: ...
            >>> class Risk:
            ...     def __init__(self, out: Out) -> None:
            ...         self.out = out
            ...     async def order(self, order: str) -> None:
            ...         await asyncio.sleep(0)
            ...         self.out.checked(order)
            >>> orders, checked = quire.open("in", source_id=1), quire.open("out", source_id=2)
            >>> with orders.appender() as appender:
            ...     appender.method_writer(Risk).order("buy 100")
            >>> async def main():
            ...     async with quire.service(
            ...         inputs=[orders], output=checked, handler=Risk
            ...     ) as service:
            ...         return await service.arun_once()
            >>> asyncio.run(main()), checked.entry_count
            (True, 1)

        """
        self._refuse_while_handling()
        self._is_handling = True
        try:
            steps = self._step()
            asked = next(steps)
            while not isinstance(asked, bool):
                asked = steps.send(self._complete(await asked.aread_one()))
        except BaseException:
            self._abandon()
            raise
        finally:
            self._is_handling = False
        return asked

    def run(self, pauser: Pauser | None = None) -> None:
        """Handle messages as they come, until :meth:`stop`."""
        self._pauser = pauser = pauser_at(self._any_input, pauser)
        while not self._stopping:
            if self.run_once():
                pauser.reset()
            else:
                pauser.pause()
        self._stopping = False

    async def arun(self, pauser: Pauser | None = None) -> None:
        """
        Handle messages as they come, until :meth:`stop`, without blocking the event loop.

        Handlers may be coroutine functions: see :meth:`arun_once`.

        Examples:
            >>> import asyncio
            >>> class Out:
            ...     def checked(self, order: str) -> None: ...
            >>> class Risk:
            ...     def __init__(self, out: Out) -> None:
            ...         self.out = out
            ...     def order(self, order: str) -> None:
            ...         self.out.checked(order)
            >>> orders, checked = quire.open("in", source_id=1), quire.open("out", source_id=2)
            >>> with orders.appender() as appender:
            ...     appender.method_writer(Risk).order("buy 100")
            >>> async def main():
            ...     with quire.service(inputs=[orders], output=checked, handler=Risk) as service:
            ...         asyncio.get_running_loop().call_later(0.01, service.stop)
            ...         await service.arun()
            >>> asyncio.run(main())

        """
        self._pauser = pauser = pauser_at(self._any_input, pauser)
        turn_ends = monotonic() + TURN_S
        while not self._stopping:
            if await self.arun_once():
                pauser.reset()
                if monotonic() >= turn_ends:
                    await asyncio.sleep(0)
                    turn_ends = monotonic() + TURN_S
            else:
                await pauser.apause()
        self._stopping = False

    def stop(self) -> None:
        """End :meth:`run` after the current message; from any thread, or a signal handler."""
        self._stopping = True
        if self._pauser is not None:
            self._pauser.unpause()

    def close(self) -> None:
        """Record the messages handled since the last output, and close. Safe to repeat."""
        try:
            # A message whose handler is still at work is handled again by the next service.
            if self._step is not _closed and not self._is_handling:
                self._output.finish()
                for source in self._inputs.values():
                    source.commit()
        finally:
            self._abandon()

    def _complete(self, was_read: bool) -> bool:  # noqa: FBT001 - what a reader returned
        """Return *was_read*, unless the handler caught the error of an append."""
        if self._output.failure is not None:
            raise self._output.failure
        return was_read

    def _refuse_while_handling(self) -> None:
        if self._is_handling:
            raise RuntimeError(
                "a message of this service is still being handled (call the service from one"
                f" thread or task, and not from its handler): {self!r}"
            )

    def _abandon(self) -> None:
        self._step = _closed
        self._opened.close()

    def __enter__(self) -> Self:
        """Return the service."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the service."""
        self.close()

    def _consumed(self) -> list[Source]:
        places = ((id_, source.last_index) for id_, source in self._inputs.items())
        return [place for place in places if place[1] >= 0]

    def _still_there(self, plan: list[RecoveryPoint], on_missing: OnMissing) -> list[RecoveryPoint]:
        """Return the plan without messages in deleted cycles of the inputs."""
        last = {entry.source: entry.index for entry in plan}
        first = {id_: self._inputs[id_].first(index, on_missing) for id_, index in last.items()}
        return [entry for entry in plan if entry.index >= first[entry.source]]

    def _missed(self, plan: list[RecoveryPoint]) -> Iterator[RecoveryPoint]:
        """Move each input to its last handled message, which may lack outputs."""
        last = {entry.source: entry for entry in plan}
        for entry in last.values():
            self._inputs[entry.source].move_to(entry.index)
        return iter(list(last.values()))

    def _advance(self) -> None:
        """Take the next entry of the plan; after the last one, write every call."""
        self._goal = next(self._plan, None)
        if self._goal is not None:
            self._output.replay(self._goal)
            return
        self._output.live()
        for source in self._inputs.values():
            source.enters_cycle()
        (first, *others) = self._inputs.values()
        self._output.reading = first.at_hand
        step = self._read_one_of_several if others else functools.partial(self._read_one, first)
        self._step = step

    # The steps are generators, so that run_once and arun_once can share them: they yield the input
    # to read from, are sent whether it had a message, and finally yield whether any had one.

    def _replay_one(self) -> _Steps:
        goal = cast("RecoveryPoint", self._goal)
        source = self._inputs[goal.source]
        self._output.reading = source.at_hand
        if source.last_index < goal.index and not (yield source):
            raise source.lost(goal.index)
        if source.last_index >= goal.index:
            self._advance()
        yield True

    def _read_one(self, source: _Input) -> _Steps:
        was_read = yield source
        if was_read and source.enters_cycle():
            self._output.note_all()
        yield was_read

    def _read_one_of_several(self) -> _Steps:
        handled = False
        for source_id, source in self._inputs.items():
            before = source.last_index
            self._output.reading = source.at_hand
            if (yield source):
                handled = True
                if source.last_index != before:  # not metadata
                    self._output.handled(source_id, source.last_index)
                    if source.enters_cycle():
                        self._output.note_all()
        yield handled


class _Input:
    """One input: its reader, and how far it was read."""

    def __init__(
        self, queue: JournalQueue, tailer: JournalTailer, handler: object, names: Mapping[str, Any]
    ) -> None:
        self._queue = queue
        self.tailer = tailer
        self._source_id = queue.source_id
        self._per_cycle = queue.roll_cycle.to_index(1, 0)
        self._cycle = -1
        self.to_start = tailer.to_start
        reader = method_reader(
            tailer,
            [handler],
            interface=None,
            on_error="raise",
            dead_letter=None,
            default=None,
            filter=None,
            metadata_handler=None,
            scanning=False,
            names=names,
        )
        self.read_one, self.aread_one = reader.read_one, reader.aread_one

    @property
    def last_index(self) -> int:
        """The message handled last; -1 before the first."""
        last = self.tailer.last_read_index
        return -1 if last is None else last

    def at_hand(self) -> Source:
        """Return the message that is being handled, if one is."""
        return self._source_id, self.last_index

    def enters_cycle(self) -> bool:
        """
        Return whether the message handled last is the first one of a later cycle.

        The cycle before it is kept until the next message is read.
        """
        before, self._cycle = self._cycle, self.last_index // self._per_cycle
        return before not in {-1, self._cycle}

    def commit(self) -> None:
        """Store how far the input was handled."""
        if not self.tailer.closed:
            self.tailer.commit()

    def move_to(self, index: int) -> None:
        """Go to a message."""
        if not self.tailer.move_to_index(index):
            raise self.lost(index)

    def first(self, goal: int, on_missing: OnMissing) -> int:
        """
        Return the first available index, after checking that the message at *goal* is available.

        Raises:
            DataLossError: The cycle of *goal* was deleted; later messages may have been deleted,
                too.
            QuireError: The message at *goal* is missing although its cycle exists.

        """
        self._queue.refresh()
        with self._queue.tailer() as look:
            is_there = look.move_to_index(goal)
        first = self._queue.first_index
        if is_there and first is not None:
            return first
        if goal // self._per_cycle in self._queue.cycles:
            raise self.lost(goal)
        error = DataLossError(
            f"{self.lost(goal)} first={'none' if first is None else hex(first)} (its cycle was "
            'deleted; on_missing="skip" continues with the remaining messages)'
        )
        if on_missing == "raise":
            raise error
        if on_missing == "warn":
            logging.getLogger("quire").warning("%s", error)
        return goal + 1 if first is None else max(first, goal + 1)

    def lost(self, index: int) -> QuireError:
        return QuireError(
            "the output names a message that the input lacks: "
            f"input={self._queue.path} source_id={self._queue.source_id} index={index:#x}"
        )


def _opened(stack: contextlib.ExitStack, queue: _Place, name: str) -> JournalQueue:
    if isinstance(queue, Queue):
        return queue
    path = arguments.queue_path(name, queue)
    check_local(path)
    return stack.enter_context(open_queue(path, create=False, buffer_mode="none"))


def _tailer(
    opened: contextlib.ExitStack, queue: JournalQueue, name: str, on_missing: OnMissing
) -> JournalTailer:
    """Open a tailer that keeps what the service needs; a read-only queue cannot keep anything."""
    tailer = queue.tailer(None if queue.read_only else name, on_missing=on_missing)
    # Exit as after a failure, so that closing does not store the last message as done.
    opened.callback(tailer.__exit__, QuireError, None, None)
    return tailer


@contextlib.contextmanager
def _sole_writer(path: str) -> Generator[None]:
    """Lock the directory of an output against other services, at most until the process ends."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked_directory(path))
        except BlockingIOError as error:
            raise QuireError(
                "another service, in this or another process, writes to the output: "
                f"path={path} (close that service first)"
            ) from error
        yield


def _is_to_be_made(handler: object) -> bool:
    return isinstance(handler, type | functools.partial) or inspect.isroutine(handler)


def _interface(handler: object, local: Mapping[str, Any]) -> type:
    """Return the annotation of a handler's parameter, or of its attribute ``out``."""
    if _is_to_be_made(handler):
        function: Any = handler
        while isinstance(function, functools.partial):
            function = cast("Any", function).func
        if isinstance(function, type):
            function = cast("Any", function).__init__
        names = [*inspect.signature(cast("Callable[..., object]", handler)).parameters, ""]
        found = get_type_hints(function, None, dict(local)).get(names[0])
    else:
        found = get_type_hints(type(handler), None, dict(local)).get("out")
    if found is None:
        raise ValueError(
            f"the interface of the outputs is unknown: {handler=} (annotate the handler's "
            "parameter or its attribute out, or pass writes=)"
        )
    return cast("type", found)


def _made(handler: object, out: object) -> object:
    if _is_to_be_made(handler):
        return cast("Callable[[object], object]", handler)(out)
    handler.out = out  # type: ignore[attr-defined] # its class says so
    return handler


def _closed() -> NoReturn:
    raise ClosedError("the service is closed: create another one with quire.service")
