"""
Services: handlers between queues, each message handled exactly once.

    class Risk:
        def __init__(self, out: Orders) -> None: ...        # what it calls is written
        def order(self, order: Order) -> None: ...          # what is read calls it

    with quire.service(inputs=["orders"], output="checked", handler=Risk) as service:
        service.run()

What a service has done is what its output holds: each message there names, in its history, the
input that led to it. Nothing else is stored; docs/services.md says why that is enough.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import functools
import inspect
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, cast, get_type_hints

from quire import pausers
from quire.errors import ClosedError, QuireError
from quire.methods import method_reader
from quire.outputs import Output
from quire.pausers import Pauser
from quire.progress import Done, Source, done
from quire.queue import Queue
from quire.queue import open as open_queue
from quire.tailing import Tailer
from quire.types import names_around

Replay: TypeAlias = Literal["all", "missed"]
_Place: TypeAlias = Queue | str | PathLike[str]

_TURN = 64


def service(
    *,
    inputs: Sequence[Queue | str | PathLike[str]],
    output: Queue | str | PathLike[str],
    handler: object,
    writes: type | None = None,
    replay: Replay = "all",
) -> Service:
    """
    Return a service that reads *inputs*, calls *handler*, and writes what that calls to *output*.

    It goes on behind what its output holds: what was written is not written again.

    Args:
        inputs: Queues, or paths of queues that are there, each with a source id of its own, other
            than 0.
        output: The queue, or the path of one that is there, that no other service writes.
        handler: A class, or a function that returns an object, or a ``functools.partial`` of these,
            with one parameter: what to call for an output. Or an object with an attribute for that,
            ``out``, which its class annotates.
        writes: The interface of the outputs; None: the annotation of that parameter or attribute.
        replay: ``all``: the handler sees all messages again, oldest first, to rebuild its state.
            ``missed``: it has no state, and sees those that the output does not tell to be done.

    Raises:
        ValueError: Source ids that do not tell the inputs apart, or no interface to be found.
        NotAQueueError: There is no queue at a path.
        QuireError: Another service writes this output.

    """
    return Service(inputs, output, handler, writes, replay, names_around())


class Service:
    """A handler between queues, from :func:`quire.service`."""

    def __init__(  # noqa: PLR0913, PLR0917 - those of service
        self,
        inputs: Sequence[_Place],
        output: _Place,
        handler: object,
        writes: type | None,
        replay: Replay,
        names: Mapping[str, Any],
    ) -> None:
        """Look up what is done; the replay begins with :meth:`run_once`."""
        if replay not in ("all", "missed"):
            raise ValueError(f"no such replay: replay={replay} known=all, missed")
        self._stopping = False
        self._pauser: Pauser | None = None
        self._goal: Done | None = None
        with contextlib.ExitStack() as opened:
            if isinstance(inputs, str | PathLike | Queue):
                inputs = [inputs]
            queues = [_opened(opened, queue) for queue in inputs]
            target = _opened(opened, output)
            ids = [queue.source_id for queue in queues]
            if not ids or 0 in ids or len(set(ids)) < len(ids):
                raise ValueError(
                    f"each input needs a source id of its own, other than 0: source_ids={ids}"
                )
            opened.enter_context(_sole_writer(target.path))
            appender = opened.enter_context(target.appender())
            self._output = Output(
                appender, writes or _interface(handler, names), len(queues), names
            )
            self._handler = _made(handler, self._output.out)
            self._inputs = {
                queue.source_id: _Input(
                    queue, opened.enter_context(queue.tailer()), self._handler, names
                )
                for queue in queues
            }
            plan = done(target, ids)
            self._plan = iter(plan) if replay == "all" else self._missed(plan)
            self._step: Callable[[], bool] = self._replay_one
            self._advance()
            self._opened = opened.pop_all()

    @property
    def handler(self) -> Any:  # noqa: ANN401 - the caller's object
        """The object that handles the messages."""
        return self._handler

    @property
    def is_replaying(self) -> bool:
        """Whether the handler is still to see messages again."""
        return self._goal is not None

    def run_once(self) -> bool:
        """
        Handle a message, or one of each input; False when there is none.

        Raises:
            Exception: What the handler raised. That closes the service: a new one goes on with this
                message, and with a state as if it had not been handled.

        """
        try:
            return self._step()
        except BaseException:
            self._abandon()
            raise

    def run(self, pauser: Pauser | None = None) -> None:
        """Handle messages as they come, until :meth:`stop`."""
        self._pauser = pauser = pauser or pausers.balanced()
        while not self._stopping:
            if self.run_once():
                pauser.reset()
            else:
                pauser.pause()
        self._stopping = False

    async def run_async(self, pauser: Pauser | None = None) -> None:
        """As :meth:`run`, while the event loop runs on."""
        self._pauser = pauser = pauser or pausers.async_()
        handled = 0
        while not self._stopping:
            if self.run_once():
                pauser.reset()
                handled += 1
                if handled % _TURN == 0:
                    await asyncio.sleep(0)
            else:
                await pauser.pause_async()
        self._stopping = False

    def stop(self) -> None:
        """End :meth:`run` behind the message at hand; from any thread, or a signal handler."""
        self._stopping = True
        if self._pauser is not None:
            self._pauser.unpause()

    def close(self) -> None:
        """Note the order of what left no output, and close what was opened. Safe to repeat."""
        try:
            if self._step is not _closed:
                self._output.finish()
        finally:
            self._abandon()

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

    def _missed(self, plan: list[Done]) -> Iterator[Done]:
        """Have each input go to its last message that is done: it may be half done."""
        last = {entry.source: entry for entry in plan}
        return iter([it for it in last.values() if self._inputs[it.source].move_to(it.index)])

    def _advance(self) -> None:
        """Take the next entry of the plan, and begin to live where there is none."""
        self._goal = next(self._plan, None)
        if self._goal is not None:
            self._output.replay(self._goal)
            return
        self._output.live()
        (first, *others) = self._inputs.values()
        self._output.reading = first.at_hand
        self._step = self._read_one_of_several if others else first.read_one

    def _replay_one(self) -> bool:
        goal = cast("Done", self._goal)
        source = self._inputs[goal.source]
        self._output.reading = source.at_hand
        if source.last_index < goal.index and not source.read_one():
            raise source.lost(goal.index)
        if source.last_index >= goal.index:
            self._advance()
        return True

    def _read_one_of_several(self) -> bool:
        handled = False
        for source_id, source in self._inputs.items():
            before = source.last_index
            self._output.reading = source.at_hand
            if source.read_one():
                handled = True
                if source.last_index != before:  # it was no metadata
                    self._output.handled(source_id, source.last_index)
        return handled


class _Input:
    """One input: its reader, and how far that is."""

    def __init__(
        self, queue: Queue, tailer: Tailer, handler: object, names: Mapping[str, Any]
    ) -> None:
        self._queue = queue
        self._tailer = tailer
        self._source_id = queue.source_id
        self.read_one = method_reader(
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
        ).read_one

    @property
    def last_index(self) -> int:
        """The message handled last; -1 before the first."""
        last = self._tailer.last_read_index
        return -1 if last is None else last

    def at_hand(self) -> Source:
        """Return the message that is being handled, if one is."""
        return self._source_id, self.last_index

    def move_to(self, index: int) -> bool:
        """Go to a message; False where it was removed, and the oldest one comes next."""
        if self._tailer.move_to_index(index):
            return True
        first = self._queue.first_index
        if first is None or index > first:
            raise self.lost(index)
        self._tailer.to_start()
        return False

    def lost(self, index: int) -> QuireError:
        return QuireError(
            "the output names a message that its input has not: "
            f"input={self._queue.path} source_id={self._queue.source_id} index={index:#x}"
        )


def _opened(stack: contextlib.ExitStack, queue: _Place) -> Queue:
    if isinstance(queue, Queue):
        return queue
    return stack.enter_context(open_queue(queue, create=False))


@contextlib.contextmanager
def _sole_writer(path: str) -> Generator[None]:
    """Keep other services off an output, until the process ends: lock its directory."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise QuireError(f"another service writes this output: path={path}") from error
        yield
    finally:
        os.close(directory)


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
            "the interface of the outputs is not known: annotate the parameter of the handler, "
            f"or give writes=: {handler=}"
        )
    return cast("type", found)


def _made(handler: object, out: object) -> object:
    if _is_to_be_made(handler):
        return cast("Callable[[object], object]", handler)(out)
    handler.out = out  # type: ignore[attr-defined] # its class says so
    return handler


def _closed() -> bool:
    raise ClosedError("the service is closed")
