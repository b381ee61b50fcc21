"""The methods of interfaces and handlers: their events, parameters and results."""

from __future__ import annotations

import abc
import inspect
import keyword
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import Parameter
from typing import Any, NamedTuple, TypeAlias, TypeVar

from quire._native import Kind, Method
from quire.types import kind_of

METHODS = "__quire_methods__"
"""The attribute of a method writer's class that holds its methods."""

_METHOD_ID = "__quire_method_id__"

_MARKERS: tuple[object, ...] = (object, abc.ABC, typing.Protocol, typing.Generic)
_VARIABLE = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_F = TypeVar("_F", bound=Callable[..., object])
_Function: TypeAlias = Callable[..., object]
_Names: TypeAlias = Mapping[str, Any]
_Look: TypeAlias = Callable[[Any], Any]
_Seen: TypeAlias = dict[tuple[object, ...], dict[str, Method]]


def method_id(number: int | str, /) -> Callable[[_F], _F]:
    """
    Encode a method as a number instead of its name, as Java's ``@MethodId``.

    Args:
        number: A signed 32-bit integer, unique per interface; or one character.

    Examples:
        >>> class Market:
        ...     @quire.calls.method_id(7)
        ...     def halt(self, symbol: str) -> None: ...
        >>> appender.method_writer(Market).halt("EURUSD")
        >>> tailer.read().to_json()
        '{"7":"EURUSD"}'

    """
    value = ord(number) if isinstance(number, str) else number
    if not -(2**31) <= value < 2**31:
        raise ValueError(f"a method id has 32 bits: method_id={number}")

    def mark(function: _F) -> _F:
        setattr(function, _METHOD_ID, value)
        return function

    return mark


class Interface(NamedTuple):
    """A class, and the arguments of its type variables."""

    cls: type
    substitutes: Mapping[Any, Any]

    @classmethod
    def of(cls, annotation: object, around: Mapping[Any, Any] | None = None) -> Interface:
        """
        Split a class, generic or not, into its origin and arguments.

        Args:
            annotation: The class, or a generic one with arguments.
            around: The values of type variables among the arguments.

        """
        origin = typing.get_origin(annotation) or annotation
        if not isinstance(origin, type):
            raise TypeError(f"an interface is a class: found={annotation!r}")
        arguments = [_substituted(it, around or {}) for it in typing.get_args(annotation)]
        found = dict(zip(getattr(origin, "__parameters__", ()), arguments, strict=False))
        for base in getattr(origin, "__orig_bases__", ()):
            if typing.get_origin(base) not in (None, *_MARKERS):
                found |= Interface.of(base, found).substitutes
        return cls(origin, found)

    def functions(self) -> Iterator[tuple[str, _Function]]:
        """Yield the public methods of an interface, those of bases first, each as defined last."""
        for name, value in self.members():
            if not isinstance(value, types.FunctionType):
                raise TypeError(
                    "a method of an interface is one of its objects, not of the class: "
                    f"method={self.cls.__qualname__}.{name} found={type(value).__name__}"
                )
            yield name, value

    def members(self) -> Iterator[tuple[str, object]]:
        """Yield the public methods of a class, unbound."""
        found: dict[str, object] = {}
        for base in reversed(self.cls.__mro__):
            if base not in _MARKERS:
                found |= {name: value for name, value in vars(base).items() if name[0] != "_"}
        for name, value in found.items():
            if isinstance(value, types.FunctionType | staticmethod | classmethod):
                yield name, value


class _Signature:
    """The parameters of one function, without the first of a method."""

    def __init__(
        self, interface: Interface, function: _Function, names: _Names, look: _Look | None = None
    ) -> None:
        signature = inspect.signature(function)
        self._look = look
        self._globals: _Names = getattr(inspect.unwrap(function), "__globals__", {})
        self.substitutes = interface.substitutes
        self._names = names
        self.returns = signature.return_annotation
        self.parameters = list(signature.parameters.values())
        self.method_id: int | None = getattr(function, _METHOD_ID, None)

    def without_self(self) -> _Signature:
        """Leave out the first parameter."""
        del self.parameters[0]
        return self

    def resolve(self, annotation: Any) -> Any:  # noqa: ANN401 - any annotation
        """Return the type that an annotation names."""
        if isinstance(annotation, str):
            holder = types.SimpleNamespace(__annotations__={"it": annotation})
            names = {**self._names, **self._globals}
            try:
                annotation = typing.get_type_hints(holder, names, None, include_extras=True)["it"]
            except NameError as error:
                raise TypeError(
                    f"unresolved annotation: annotation={annotation!r} error={error}"
                ) from None
        return _substituted(annotation, self.substitutes)

    def returned(self) -> Any:  # noqa: ANN401 - any annotation
        """Return the return type without None; None if it cannot be resolved."""
        try:
            found = self.resolve(self.returns)
        except (TypeError, AttributeError, SyntaxError):
            return None
        if typing.get_origin(found) in (typing.Union, types.UnionType):
            found, *others = (it for it in typing.get_args(found) if it is not type(None))
            return None if others else found
        return found

    def kind(self, number: int) -> Kind | None:
        """Return the kind of a parameter; None if it has no annotation."""
        if number >= len(self.parameters):
            return None
        annotation = self.parameters[number].annotation
        if annotation is Parameter.empty:
            return None
        resolved = self.resolve(annotation)
        return kind_of(resolved if self._look is None else self._look(resolved))


def methods_of(interface: object, names: _Names, look: _Look | None = None) -> dict[str, Method]:
    """
    Return the methods of an interface, for a writer.

    Args:
        interface: A Protocol, an ABC, or another class; generic ones with or without arguments.
        names: Names that annotations may use besides the globals of their module.
        look: Returns what stands for the annotation of a parameter. Methods have no numbers then.

    Raises:
        TypeError: A method cannot be encoded in messages.

    """
    found = _methods(Interface.of(interface), names, {}, look)
    if not found:
        raise TypeError(f"the interface has no method: interface={interface!r}")
    return found


def _methods(
    interface: Interface, names: _Names, seen: _Seen, look: _Look | None = None
) -> dict[str, Method]:
    key = (interface.cls, *interface.substitutes.items())
    if key in seen:
        return seen[key]
    found: dict[str, Method] = {}
    seen[key] = found  # before its methods: one may return the interface itself
    for name, function in interface.functions():
        signature = _Signature(interface, function, names, look).without_self()
        if look is not None:
            signature.method_id = None
        where = f"method={interface.cls.__qualname__}.{name}"
        following = _following(signature, interface, names, seen, where, look)
        if any(it.kind is Parameter.KEYWORD_ONLY for it in signature.parameters):
            raise TypeError(f"a method that cannot be encoded in messages: {where} (keyword-only)")
        found[name] = _method(name, [signature], following, where)
    check_ids(found.values())
    return found


def _following(  # noqa: PLR0913, PLR0917 - what _methods knows
    signature: _Signature,
    interface: Interface,
    names: _Names,
    seen: _Seen,
    where: str,
    look: _Look | None,
) -> dict[str, Method] | None:
    """Return the methods of what a call returns; None if that is nothing."""
    if signature.returns in (Parameter.empty, None, "None"):
        return None
    returned = signature.resolve(signature.returns)
    if returned in (None, type(None), Any):
        return None
    if returned is typing.Self:
        return _methods(interface, names, seen, look)
    is_union = isinstance(returned, types.UnionType)
    if not is_union and isinstance(typing.get_origin(returned) or returned, type):
        found = _methods(Interface.of(returned, interface.substitutes), names, seen, look)
        if found or returned is interface.cls:
            return found
    raise TypeError(
        f"a method returns nothing, or an interface that goes on: {where} returns={returned!r}"
    )


def handlers_of(
    handler: object, interface: object, names: _Names
) -> list[tuple[Method, _Function]]:
    """
    Return the methods of a handler and the functions to call, for a reader.

    The type of a parameter comes from the handler's own annotation, else from a class it derives
    from, else from *interface*; likewise the interface of its result.

    Args:
        handler: An object with methods, or a method writer.
        interface: Only its methods; None: all.
        names: As for :func:`methods_of`.

    Raises:
        TypeError: The handler has no method, or has a method that cannot be called with a message.

    """
    known: dict[str, Method] | None = getattr(type(handler), METHODS, None)
    if known is not None:
        return [(method, getattr(handler, name)) for name, method in known.items()]
    bases = [Interface.of(base) for base in type(handler).__mro__]
    own = Interface.of(type(handler))
    bases = [base._replace(substitutes=own.substitutes) for base in bases]
    if interface is not None:
        bases.append(Interface.of(interface))
    calls = dict(_callables(handler, interface))
    if not calls:
        raise TypeError(f"the handler has no method: handler={handler!r}")
    found: dict[str, Method] = {}
    for name, call in calls.items():
        found[name] = _handler_method(handler, name, call, bases, names=names, own=found)
    check_ids(found.values())
    return [(method, calls[name]) for name, method in found.items()]


def _callables(handler: object, interface: object) -> Iterator[tuple[str, _Function]]:
    if interface is not None:
        for name, _ in Interface.of(interface).functions():
            if not callable(call := getattr(handler, name, None)):
                raise TypeError(f"the handler lacks a method: handler={handler!r} method={name}")
            yield name, call
        return
    for name, _ in Interface.of(type(handler)).members():
        yield name, getattr(handler, name)
    for name, value in getattr(handler, "__dict__", {}).items():
        if name[0] != "_" and isinstance(value, types.FunctionType | types.MethodType):
            yield name, value


def _handler_method(  # noqa: PLR0913 - what handlers_of knows
    handler: object,
    name: str,
    call: _Function,
    bases: list[Interface],
    *,
    names: _Names,
    own: dict[str, Method],
) -> Method:
    where = f"handler={type(handler).__qualname__} method={name}"
    signatures = [_Signature(bases[0], call, names)]
    for base in bases:
        function = vars(base.cls).get(name)
        if isinstance(function, types.FunctionType):
            signatures.append(_Signature(base, function, names).without_self())
    return _method(name, signatures, _declared(signatures, type(handler), names, own), where)


def _declared(
    signatures: list[_Signature], cls: type, names: _Names, own: dict[str, Method]
) -> dict[str, Method] | None:
    """
    Return the methods of the interface that a handler's method says it returns; None without one.

    They are all that messages may call on it: a class that is no interface has methods for others.
    The handler's own class has those that are called on the handler.
    """
    for signature in signatures:
        returned = signature.returned()
        origin = typing.get_origin(returned) or returned
        if returned is typing.Self or origin is cls:
            return own
        if isinstance(origin, type) and _is_interface(origin):
            return _methods(Interface.of(returned, signature.substitutes), names, {})
    return None


def _is_interface(cls: type) -> bool:
    is_protocol = getattr(cls, "_is_protocol", False)
    is_abc = inspect.isabstract(cls) or abc.ABC in cls.__bases__
    is_standard = cls.__module__.partition(".")[0] in sys.stdlib_module_names
    return (is_protocol or is_abc) and not is_standard


def _method(
    name: str, signatures: list[_Signature], following: dict[str, Method] | None, where: str
) -> Method:
    """Make a method of the first signature; the others may add types of its parameters."""
    parameters: list[tuple[str, Kind, tuple[object, ...]]] = []
    for number, parameter in enumerate(signatures[0].parameters):
        has_default = parameter.default is not Parameter.empty
        if parameter.kind is Parameter.KEYWORD_ONLY and has_default:
            continue
        if parameter.kind in (*_VARIABLE, Parameter.KEYWORD_ONLY):
            raise TypeError(
                f"a method that cannot be encoded in messages: {where} parameter={parameter}"
            )
        try:
            kinds = (signature.kind(number) for signature in signatures)
            kind = next((it for it in kinds if it is not None), None) or kind_of(Any)
        except TypeError as error:
            raise TypeError(f"{error} {where} parameter={parameter.name}") from None
        parameters.append((parameter.name, kind, (parameter.default,) if has_default else ()))
    ids = (signature.method_id for signature in signatures)
    method_id = next((it for it in ids if it is not None), None)
    return Method(event_of(name), parameters, id=method_id, next=following)


def event_of(name: str) -> str:
    """Return the event of a method: ``from_`` stands for ``from``."""
    return name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name


def check_ids(methods: Iterable[Method]) -> None:
    """Refuse two methods with the same id."""
    by_id: dict[int, str] = {}
    for method in methods:
        if method.id is not None and by_id.setdefault(method.id, method.name) != method.name:
            raise TypeError(
                f"two methods have one id: method_id={method.id} "
                f"methods={by_id[method.id]}, {method.name}"
            )


def _substituted(annotation: Any, substitutes: Mapping[Any, Any]) -> Any:  # noqa: ANN401 - any annotation
    if isinstance(annotation, TypeVar):
        return substitutes.get(annotation, annotation)
    open_ones = getattr(annotation, "__parameters__", ())
    if open_ones and typing.get_origin(annotation) is not None:
        return annotation[tuple(substitutes.get(it, it) for it in open_ones)]
    return annotation
