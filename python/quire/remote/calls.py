"""Method writers of remote queues: each call is a message."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from quire.calls.interfaces import METHODS, Interface, check_ids, methods_of
from quire.errors import UnsupportedError
from quire.remote.lacking import FORMAT

if TYPE_CHECKING:
    from quire._native import Method

    class _Writer(Protocol):
        def write_bytes(self, payload: bytes, /) -> int: ...


_REASONS: Final = {
    "record_history": "the history of messages is kept where they are read",
    "metadata": "metadata is written where the queue is",
    "document": "a document is built in the queue's file",
}
_NEUTRAL: Final = {"history_form"}


def method_writer(
    appender: _Writer,
    interfaces: Sequence[Callable[..., Any]],
    options: Mapping[str, Any],
    names: Mapping[str, Any],
) -> Any:  # noqa: ANN401 - an object of the interfaces
    """Implement :meth:`RemoteAppender.method_writer`."""
    for option, value in options.items():
        if option in _REASONS and value:
            raise UnsupportedError(f"not supported in a {FORMAT}: {option}= ({_REASONS[option]})")
        if option not in {*_REASONS, *_NEUTRAL, "filter"}:
            raise TypeError(f"method_writer() got an unexpected keyword argument '{option}'")
    found: dict[str, Method] = {}
    for each in reversed(interfaces):
        found |= methods_of(each, names)
    check_ids(found.values())
    base = Interface.of(interfaces[0]).cls
    asks = options.get("filter")
    members: dict[str, Any] = {
        name: _calling(appender, it, b"", asks) for name, it in found.items()
    }
    members |= {METHODS: found, "__module__": base.__module__}

    def shown(_: object) -> str:
        return f"{base.__name__}Writer({appender!r})"

    members["__repr__"] = shown
    made: Any = types.new_class(
        f"{base.__name__}Writer", (base,), {}, lambda it: it.update(members)
    )
    made.__abstractmethods__ = frozenset[str]()
    return object.__new__(made)


def _calling(
    appender: _Writer, method: Method, before: bytes, asks: Callable[..., object] | None
) -> Callable[..., Any]:
    """Return what writes a call, after what was called before in the same document."""

    def call(_: object, *given: object, **named: object) -> Any:  # noqa: ANN401 - what goes on
        data = method.event_bytes(*given, **named)
        first = given[0] if given else next(iter(named.values()), None)
        drops = asks is not None and not asks(method.name, first)
        following = method.next
        if following is None:
            if not drops:
                appender.write_bytes(before + data)
            return None
        so_far = before if drops else before + data
        members: dict[str, Any] = {
            name: _calling(appender, it, so_far, asks) for name, it in following.items()
        }
        return type(f"{method.name}Chain", (), members)()

    call.__name__ = method.name
    return call
