"""Method writers: objects whose calls are messages, from :meth:`JournalAppender.method_writer`."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from quire import _native
from quire._common.known_attributes import KnownAttributes
from quire._native import Method
from quire.calls.interfaces import METHODS, Interface, check_ids, methods_of

if TYPE_CHECKING:
    from quire._native import Appender, WriteDocument
    from quire.formats.remote import AnyRemoteAppender

_T = TypeVar("_T")

Filter: TypeAlias = Callable[[str, Any], object]
"""Called with a method's name and its first argument (or None); a false result drops the call."""


def method_writer(  # noqa: PLR0913 - the options of Appender.method_writer
    appender: Appender | AnyRemoteAppender,
    interface: Callable[..., _T],
    more: Sequence[Callable[..., Any]],
    *,
    record_history: bool | None,
    history_form: Literal["packed", "fields"],
    metadata: bool,
    document: WriteDocument | None,
    filter: Filter | None,  # noqa: A002 - its name in the call
    names: Mapping[str, Any],
) -> _T:
    """Implement :meth:`quire.JournalAppender.method_writer`."""
    interfaces = (interface, *more)
    found: dict[str, Method] = {}
    for each in reversed(interfaces):
        found |= methods_of(each, names)
    check_ids(found.values())
    writer = _native.MethodWriter(
        appender,
        record_history=record_history,
        history_form=history_form,
        metadata=metadata,
        document=document,
        filter=filter,
    )
    members: dict[str, object] = {name: writer.method(it) for name, it in found.items()}
    bases = _bases([Interface.of(each).cls for each in interfaces])
    name = f"{bases[0].__name__}Writer"

    def shown(_: object) -> str:
        return f"{name}({appender!r})"

    members["__repr__"] = shown
    members |= {METHODS: found, "__module__": bases[0].__module__, "__slots__": ()}
    bases = (*bases, KnownAttributes)
    cls: Any = types.new_class(name, bases, {}, lambda namespace: namespace.update(members))
    cls.__abstractmethods__ = frozenset[str]()
    cls._is_extended = False  # although its module is the interface's
    written: _T = object.__new__(cls)
    return written


def _bases(classes: list[type]) -> tuple[type, ...]:
    """Return the classes without those that others derive from."""
    return tuple(
        cls
        for number, cls in enumerate(classes)
        if cls not in classes[:number]
        and not any(other is not cls and cls in other.__mro__ for other in classes)
    )
