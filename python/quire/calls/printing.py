"""An implementation of any interface that prints its calls."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any, TextIO, TypeVar

from quire._native import Method, to_yaml
from quire.calls.interfaces import METHODS, Interface, methods_of
from quire.types import names_around

_T = TypeVar("_T")
_END = "..."


def print_all(interface: Callable[..., _T], /, file: TextIO | None = None) -> _T:
    """
    Return an object of the interface that prints each call as a YAML document.

    It replaces a method writer, or a component with the same interface, and shows what a queue
    would hold. A chain of calls is printed with its last call.

    Args:
        interface: A Protocol, an ABC, or another class, as for
            :meth:`quire.JournalAppender.method_writer`.
        file: Where to; None: to ``sys.stdout``, as it is when a call is made.

    Raises:
        TypeError: A method cannot be encoded in messages.

    Examples:
        >>> class Market:
        ...     def halt(self, symbol: str) -> None: ...
        >>> quire.calls.print_all(Market).halt("EURUSD")
        halt: EURUSD
        ...

    """
    methods = methods_of(interface, names_around())
    cls = Interface.of(interface).cls
    members = {name: staticmethod(_call(method, file, b"")) for name, method in methods.items()}
    fixed = {METHODS: methods, "__module__": cls.__module__, "__slots__": ()}
    made: Any = types.new_class(
        f"{cls.__name__}Printer", (cls,), {}, lambda space: space.update(members | fixed)
    )
    made.__abstractmethods__ = frozenset[str]()
    printer: _T = object.__new__(made)
    return printer


def _call(method: Method, file: TextIO | None, before: bytes) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the method has them
        calls = before + method.event_bytes(*given, **named)
        if method.next is not None:
            return _Chain(method.next, file, calls)
        print(to_yaml(calls) + _END, file=file or sys.stdout)
        return None

    return call


class _Chain:
    """The result of a call in a chain: its methods add to the same document."""

    def __init__(self, methods: dict[str, Method], file: TextIO | None, calls: bytes) -> None:
        for name, method in methods.items():
            setattr(self, name, _call(method, file, calls))
