"""What the handler of a service calls: written once, however often it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quire._native import MessageHistory
from quire.appending import Appender
from quire.errors import QuireError
from quire.progress import Done, Source, write_note

_RUNS_MAX = 1000


class Output:
    """Drops what is there already, writes the rest, and notes the order of several inputs."""

    def __init__(self, appender: Appender, interface: type, inputs: int) -> None:
        """Take over an appender; nothing is written until :meth:`replay` or :meth:`live`."""
        self._appender = appender
        self._writer: Any = appender.method_writer(interface, record_history=True)
        self._dropping: Any = appender.method_writer(
            interface, record_history=True, filter=lambda _name, _first: False
        )
        self._several = inputs > 1
        self._goal: Done | None = None
        self._left = 0
        self._is_live = False
        self._wrote = False
        self._runs: list[Source] = []
        self.out: Any = _Out(self.method)
        """What the handler gets."""

    def replay(self, goal: Done) -> None:
        """Drop what belongs to messages up to a goal, but for what its last one lacks."""
        self._goal = goal
        self._left = goal.outputs or 0

    def live(self) -> None:
        """Write everything from here on."""
        self._is_live = True
        self._wrote = False

    def handled(self, source: int, index: int) -> None:
        """Hear which message of which input was handled; only those without outputs are noted."""
        wrote, self._wrote = self._wrote, False
        if wrote:
            return
        if self._runs and self._runs[-1][0] == source:
            self._runs.pop()
        self._runs.append((source, index))
        if len(self._runs) >= _RUNS_MAX:
            self._note()

    def finish(self) -> None:
        """Note what was handled since the last output: the next life keeps to it."""
        if self._runs:
            self._note()

    def method(self, name: str) -> Callable[..., Any]:
        """Return what calls a method of the output."""
        write = getattr(self._writer, name)
        if self._is_live and not self._several:
            setattr(self.out, name, write)  # from the next call on, nothing is in between
        drop = getattr(self._dropping, name)

        def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as the interface has them
            if self._is_there():
                return self._called(drop(*arguments, **named), self._dropped)
            self._note_if_order_matters()
            return self._called(write(*arguments, **named), self._written)

        return call

    def _called(self, following: Any, ended: Callable[[], None]) -> Any:  # noqa: ANN401 - a chain or None
        """Return what a call did, and say so when a document ended with it."""
        if following is not None:
            return _Following(following, lambda after: self._called(after, ended))
        return ended()

    def _is_there(self) -> bool:
        if self._is_live:
            return False
        _, index = _at_hand()
        if self._goal is None:
            return False
        if index == self._goal.index and self._goal.outputs is not None:
            return self._left > 0
        return index <= self._goal.index

    def _dropped(self) -> None:
        _, index = _at_hand()
        if self._goal is not None and index == self._goal.index:
            self._left -= 1

    def _written(self) -> None:
        self._wrote = True

    def _note_if_order_matters(self) -> None:
        if self._runs:
            source, _ = _at_hand()
            if any(other != source for other, _ in self._runs):
                self._note()
            self._runs.clear()

    def _note(self) -> None:
        write_note(self._appender, self._runs)
        self._runs.clear()


class _Out:
    """The output, as its interface; methods are looked up when they are first called."""

    def __init__(self, method: Callable[[str], Callable[..., Any]]) -> None:
        self._method = method

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of the interface
        if name.startswith("_"):
            raise AttributeError(f"no method of an interface: name={name}")
        return self._method(name)


class _Following:
    """What a call returned that others are made on."""

    def __init__(self, target: Any, called: Callable[[Any], Any]) -> None:  # noqa: ANN401 - a chain
        self._target = target
        self._called = called

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._target, name)
        return lambda *arguments, **named: self._called(method(*arguments, **named))


def _at_hand() -> Source:
    """Return the message that is being handled."""
    sources = MessageHistory.current().sources
    if not sources:
        raise QuireError("an output belongs to a message, and none is being handled: sources=()")
    return sources[-1]
