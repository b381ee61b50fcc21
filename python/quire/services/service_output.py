"""The output of a service: each call is written once, even if the handler repeats it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quire._native import MessageHistory, Method
from quire.calls.interfaces import METHODS
from quire.calls.method_writer import method_writer
from quire.errors import QuireError, WireError
from quire.handles.journal.appender import JournalAppender
from quire.handles.journal.queue import JournalQueue
from quire.handles.journal.tailer import JournalTailer
from quire.services.recovery import RecoveryPoint, Source, write_checkpoint

_RUNS_MAX = 1000


class Output:
    """Drops calls that were already written, writes the others, and writes checkpoints."""

    def __init__(
        self,
        queue: JournalQueue,
        appender: JournalAppender,
        kept: JournalTailer,
        interface: type,
        names: Mapping[str, Any],
    ) -> None:
        """
        Wrap an appender; nothing is written until :meth:`live`, or after the replayed calls.

        Args:
            queue: The output queue.
            appender: The appender of the output queue.
            kept: The named tailer ``service-output``, whose position protects cycles from removal.
            interface: The interface that the handler calls.
            names: The names that annotations may use.

        """
        self._queue = queue
        self._appender = appender
        self._kept = kept
        self._per_cycle = queue.roll_cycle.to_index(1, 0)
        self._cycle = kept.index // self._per_cycle or -1
        self._current: Source | None = None
        self._count = 0
        self._writer: Any = method_writer(
            appender,
            interface,
            (),
            record_history=True,
            history_form="packed",
            metadata=False,
            document=None,
            filter=None,
            names=names,
        )
        self._methods: dict[str, Method] = getattr(self._writer, METHODS)
        self._goal: RecoveryPoint | None = None
        self._left = 0
        self._is_live = False
        self._wrote = False
        self._runs: list[Source] = []
        self.out: Any = _Out(self.method)
        """The object that the handler calls."""
        self.reading: Callable[[], Source] | None = None
        """Returns the message that the service is handling, if any."""
        self.failure: BaseException | None = None
        """Why an output could not be appended: the service ends, even if the handler goes on."""
        self.consumed: Callable[[], list[Source]] = list
        """Returns the newest message of each input that was, or is being, handled."""

    def replay(self, goal: RecoveryPoint) -> None:
        """Drop outputs of messages up to the recovery point, except those that it lacks."""
        self._goal = goal
        self._left = goal.outputs or 0

    def live(self) -> None:
        """Write every call from now on."""
        self._is_live = True
        self._wrote = False
        cycles = self._queue.cycles
        if cycles and cycles[-1] != self._cycle and self.consumed():
            self.note_all()

    def note_all(self, at_hand: Source | None = None) -> None:
        """
        Write a checkpoint of every input, so that recovery reads nothing before it.

        The checkpoint is durable before the named tailers, which protect older files from removal,
        move on: that of the output here, those of the inputs in the service.
        """
        others = [it for it in self.consumed() if at_hand is None or it[0] != at_hand[0]]
        runs = [*self._runs, *others, *([at_hand] if at_hand else [])]
        index = write_checkpoint(self._appender, runs, self._count if at_hand else None)
        self._runs.clear()
        self._appender.sync()
        self._cycle = index // self._per_cycle
        self._kept.move_to_index(index)

    def handled(self, source: int, index: int) -> None:
        """Record that a message was handled; only messages without outputs need a checkpoint."""
        wrote, self._wrote = self._wrote, False
        if wrote:
            return
        if self._runs and self._runs[-1][0] == source:
            self._runs.pop()
        self._runs.append((source, index))
        if len(self._runs) >= _RUNS_MAX:
            self._note()

    def finish(self) -> None:
        """Write a checkpoint of the messages handled since the last output."""
        if self._runs:
            self._note()

    def method(self, name: str) -> Callable[..., Any]:
        """Return the function for a method of the output."""
        if name not in self._methods:
            raise AttributeError(f"the interface has no such method: name={name}")
        write, drop = getattr(self._writer, name), _dropping(self._methods[name])

        def noted(source: int, /, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as the interface has them
            if self._runs:
                self._note_if_order_matters(source)
            return write(*arguments, **named)

        def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as the interface has them
            source = self._at_hand()
            if self._is_there(source[1]):
                return self._called(source, lambda: drop(*arguments, **named), self._dropped)
            return self._called(
                source, lambda: noted(source[0], *arguments, **named), self._written
            )

        setattr(self.out, name, call)
        return call

    def _at_hand(self) -> Source:
        """Return the message that is being handled: outputs may belong to no other message."""
        sources = MessageHistory.current().sources
        if not sources or self.reading is None:
            raise QuireError(
                f"the output was called while no message is being handled: {sources=} "
                "(call it in the handler itself, not in a thread or task that the handler starts)"
            )
        if sources[-1] != (expected := self.reading()):
            raise QuireError(
                "the output was called for a message of another reader: "
                f"found={_named(sources[-1])} expected={_named(expected)} "
                "(call it after that reader's handler has returned)"
            )
        return sources[-1]

    def _called(
        self, source: Source, call: Callable[[], Any], ended: Callable[[Source], None]
    ) -> Any:  # noqa: ANN401 - a chain or None
        """
        Make a call, return its result, and report when it completed a document.

        A later service drops a call that failed as if it had been written, and then would count
        those that followed wrongly, so :attr:`failure` keeps the error. Calls that cannot be
        encoded fail when they are dropped, too.
        """
        if self.failure is not None:
            raise self.failure
        try:
            following = call()
            if following is None:
                if source != self._current:
                    self._current, self._count = source, 0
                self._count += 1
                return ended(source)
        except WireError:
            raise
        except (QuireError, OSError, MemoryError, KeyboardInterrupt) as error:
            self.failure = error
            raise

        def goes_on(call: Callable[[], Any]) -> Any:  # noqa: ANN401 - a chain or None
            if self._at_hand() != source:
                raise QuireError(
                    "a chain of calls was continued for another message than it began with: "
                    f"began={_named(source)}"
                )
            return self._called(source, call, ended)

        return _Following(following, goes_on)

    def _is_there(self, index: int) -> bool:
        if self._is_live or self._goal is None:
            return False
        if index == self._goal.index and self._goal.outputs is not None:
            return self._left > 0
        return index <= self._goal.index

    def _dropped(self, source: Source) -> None:
        if self._goal is not None and source[1] == self._goal.index:
            self._left -= 1

    def _written(self, source: Source) -> None:
        self._wrote = True
        index = self._appender.last_index_appended
        if index is not None and index // self._per_cycle != self._cycle:
            self.note_all(source)

    def _note_if_order_matters(self, source: int) -> None:
        if any(other != source for other, _ in self._runs):
            self._note()
        self._runs.clear()

    def _note(self) -> None:
        write_checkpoint(self._appender, self._runs)
        self._runs.clear()


class _Out:
    """The output as its interface; each method is looked up on first use."""

    def __init__(self, method: Callable[[str], Callable[..., Any]]) -> None:
        self._method = method

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of the interface
        if name.startswith("_"):
            raise AttributeError(f"no method of an interface: name={name}")
        return self._method(name)


class _Following:
    """The result of a call in a chain."""

    def __init__(self, target: Any, goes_on: Callable[[Callable[[], Any]], Any]) -> None:  # noqa: ANN401 - a chain
        self._target = target
        self._goes_on = goes_on

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._target, name)
        return lambda *arguments, **named: self._goes_on(lambda: method(*arguments, **named))


class _Dropped:
    """The result of a dropped call in a chain: calls on this result are dropped too."""

    def __init__(self, methods: dict[str, Method]) -> None:
        self._methods = methods

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in self._methods:
            raise AttributeError(f"the interface has no such method: name={name}")
        return _dropping(self._methods[name])


def _dropping(method: Method) -> Callable[..., _Dropped | None]:
    """Return a function that encodes and drops a call; an invalid call raises as when written."""

    def call(*arguments: Any, **named: Any) -> _Dropped | None:  # noqa: ANN401 - as the interface has them
        method.event_bytes(*arguments, **named)
        return None if method.next is None else _Dropped(method.next)

    return call


def _named(source: Source) -> str:
    return f"{source[0]}:{source[1]:#x}"
