"""
Declared types: how an annotation determines the encoding of a value in a message.

| Annotation | In a message |
|---|---|
| ``int``, ``int8`` ... ``uint32`` | the shortest integer; signed 64 bits if not named |
| ``float``, ``float32``, ``float64`` | the shortest float; 64 bits if not named |
| ``bool``, ``str``, ``bytes`` | true or false, a string, bytes |
| ``Decimal``, ``timedelta`` | a string, as Java's BigDecimal and Duration |
| ``date``, ``time``, ``datetime`` | ISO text with a type code of its own; a time zone is kept |
| ``instant`` | a ``datetime`` with a time zone, as Java's ``Instant`` in UTC |
| ``UUID`` | 16 bytes |
| a class of ``Enum`` | the name of the member |
| ``Literal[...]`` | the value, which has to be one of those declared |
| ``list``, ``tuple``, ``set``, ``dict`` | nested, with the declared element types |
| ``numpy.ndarray``, ``NDArray[numpy.float64]`` | lists, one in the other for each dimension |
| a class of :func:`quire.message` | nested, without its name |
| ``X | None`` | X or null |
| ``Any``, a union, a type variable | the value with its own type |

None is null where Java has a reference: everywhere except for numbers and bool.

>>> from dataclasses import dataclass
>>> @quire.message
... @dataclass
... class Widths:
...     a: quire.types.int8
...     b: quire.types.int16
...     c: quire.types.int32
...     d: quire.types.int64
...     e: quire.types.uint8
...     f: quire.types.uint16
...     g: quire.types.uint32
...     h: quire.types.float32
...     i: quire.types.float64
...     at: quire.types.instant | None = None
>>> _ = appender.write_message(Widths(-1, -1, -1, -1, 1, 1, 1, 0.5, 0.5))
>>> tailer.read_message(Widths).g
1
"""

from __future__ import annotations

import collections.abc
import functools
import types
import typing
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

from quire._native import Codec, Kind, parse_json, parse_yaml, to_json, to_yaml

__all__ = [
    "float32",
    "float64",
    "instant",
    "int8",
    "int16",
    "int32",
    "int64",
    "parse_json",
    "parse_yaml",
    "to_json",
    "to_yaml",
    "uint8",
    "uint16",
    "uint32",
]


class Width(NamedTuple):
    """The name of a number's width, or of another form, in an ``Annotated`` type."""

    name: str


int8 = Annotated[int, Width("int8")]
int16 = Annotated[int, Width("int16")]
int32 = Annotated[int, Width("int32")]
int64 = Annotated[int, Width("int64")]
uint8 = Annotated[int, Width("uint8")]
uint16 = Annotated[int, Width("uint16")]
uint32 = Annotated[int, Width("uint32")]
float32 = Annotated[float, Width("float32")]
float64 = Annotated[float, Width("float64")]

if TYPE_CHECKING:
    from datetime import datetime

    instant = Annotated[datetime, Width("instant")]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - of a module
    """Make ``instant`` when it is asked for: most programs do without ``datetime``."""
    if name != "instant":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from datetime import datetime

    return Annotated[datetime, Width("instant")]


def is_typed_dict(cls: type) -> bool:
    """Whether a class is a ``TypedDict``, of ``typing`` or of ``typing_extensions``."""
    return hasattr(cls, "__required_keys__") and issubclass(cls, dict)


def is_required_key(annotation: Any) -> bool | None:  # noqa: ANN401 - whatever stands after a colon
    """Whether the annotation of a key says that it is required; None if it says neither."""
    while (origin := typing.get_origin(annotation)) is not None:
        if origin in (typing.Required, typing.NotRequired):
            return origin is typing.Required
        if origin is not Annotated and not _is_read_only(origin):
            return None
        annotation = typing.get_args(annotation)[0]
    return None


def _is_read_only(origin: object) -> bool:
    """Whether it is ``ReadOnly``, which Python 3.11 has in ``typing_extensions`` alone."""
    return getattr(origin, "_name", "") == "ReadOnly"


def names_around(*, module: bool = True) -> dict[str, Any]:
    """
    Return what annotations can name where the caller's caller is: classes made in a function.

    Args:
        module: Also what is named at the top of a module; False: only in a function.

    """
    import inspect

    frame = inspect.currentframe()
    for _ in range(2):
        frame = frame and frame.f_back
    if frame is None or (frame.f_locals is frame.f_globals and not module):
        return {}
    return {
        name: value
        for name, value in frame.f_locals.items()
        if isinstance(value, type | types.UnionType | typing.TypeVar)
        or typing.get_origin(value) is not None
    }


_BUILTINS = {
    Any: "any",
    object: "any",
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "str",
    bytes: "bytes",
    bytearray: "bytes",
    memoryview: "bytes",
}
# By module and name: importing them all would cost each program that uses none.
_NAMED = {
    ("decimal", "Decimal"): "decimal",
    ("datetime", "date"): "date",
    ("datetime", "time"): "time",
    ("datetime", "datetime"): "datetime",
    ("datetime", "timedelta"): "timedelta",
    ("uuid", "UUID"): "uuid",
}
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_SETS = (set, collections.abc.Set, collections.abc.MutableSet)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def kind_of(annotation: Any) -> Kind:  # noqa: ANN401 - whatever stands after a colon
    """
    Return the kind of an annotation.

    Raises:
        TypeError: A value of this type has no encoding.

    """
    try:
        return _kind_of(annotation)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return _kind_of.__wrapped__(annotation)


@functools.cache
def _kind_of(annotation: Any) -> Kind:  # noqa: ANN401 - as above
    if annotation is None or annotation is type(None):
        return Kind.optional(Kind.scalar("any"))
    if isinstance(annotation, typing.NewType):
        return kind_of(annotation.__supertype__)
    if isinstance(annotation, typing.TypeVar):
        return kind_of(annotation.__bound__ or Any)
    origin = typing.get_origin(annotation)
    if origin is None:
        return _plain(annotation)
    return _generic(annotation, origin, typing.get_args(annotation))


def _plain(annotation: Any) -> Kind:  # noqa: ANN401 - as above
    if annotation in _BUILTINS:
        return Kind.scalar(_BUILTINS[annotation])
    name = _NAMED.get((getattr(annotation, "__module__", ""), getattr(annotation, "__name__", "")))
    if name is not None:
        return Kind.scalar(name)
    codec = getattr(annotation, "__dict__", {}).get("__quire_codec__")
    if isinstance(codec, Codec):
        return codec.members or Kind.message(codec)
    if _is_array(annotation):
        return _array(Any)
    if annotation in {list, tuple, set, frozenset, dict, *_LISTS, *_SETS, *_DICTS}:
        return _container(annotation, (Any, Any))
    if isinstance(annotation, type):
        return _of_class(cast("type[Any]", annotation))
    raise _no_encoding(annotation)


def _of_class(cls: type[Any]) -> Kind:
    import enum

    if issubclass(cls, enum.Enum):
        return Kind.enumeration(cls)
    if getattr(cls, "_is_protocol", False) or _is_base(cls):
        return Kind.scalar("any")
    raise _no_encoding(cls)


def _no_encoding(annotation: object) -> TypeError:
    return TypeError(
        f"a type that has no encoding: type={annotation!r} "
        "(register a dataclass with quire.message, or annotate it as Any)"
    )


def _is_base(annotation: type) -> bool:
    """Whether registered classes derive from it: their objects stand under their own names."""
    children: list[type] = annotation.__subclasses__()
    return any("__quire_codec__" in child.__dict__ for child in children)


def _generic(annotation: Any, origin: Any, arguments: tuple[Any, ...]) -> Kind:  # noqa: ANN401
    if origin is Annotated:
        named = [item.name for item in arguments[1:] if isinstance(item, Width)]
        return Kind.scalar(named[0]) if named else kind_of(arguments[0])
    if origin in (typing.Union, types.UnionType):
        others = [item for item in arguments if item is not type(None)]
        kind = kind_of(others[0]) if len(others) == 1 else Kind.scalar("any")
        return Kind.optional(kind) if len(others) < len(arguments) else kind
    if origin is typing.Literal:
        return _literal(arguments)
    if origin in (typing.Final, typing.Required, typing.NotRequired) or _is_read_only(origin):
        return kind_of(arguments[0])
    if isinstance(origin, type) and "__quire_codec__" in origin.__dict__:
        return kind_of(origin)  # type arguments are erased, as Java's are
    return _array(arguments[-1]) if _is_array(origin) else _container(origin, arguments, annotation)


def _literal(values: tuple[Any, ...]) -> Kind:
    """Return the kind of the only values that there may be."""
    others = [value for value in values if value is not None]
    if not others:
        return kind_of(None)
    classes: set[Any] = {type(value) for value in others}
    kind = kind_of(classes.pop()) if len(classes) == 1 else Kind.scalar("any")
    kind = Kind.literal(kind, others)
    return Kind.optional(kind) if len(others) < len(values) else kind


_DTYPES = {
    "bool": "bool",
    "bool_": "bool",
    "float16": "float64",
    "longlong": "int64",
    "str_": "str",
    "uint64": "int64",
    "ulonglong": "int64",
} | {
    name: name
    for name in "int8 int16 int32 int64 uint8 uint16 uint32 float32 float64".split()  # noqa: SIM905 - names
}
"""The types of elements, by numpy's names."""
_ANY_DTYPE = {"generic", "number", "integer", "signedinteger", "unsignedinteger", "floating"}


def _is_array(annotation: object) -> bool:
    """Whether it is ``numpy.ndarray``; numpy is not imported for this."""
    module, name = getattr(annotation, "__module__", ""), getattr(annotation, "__name__", "")
    return (module, name) == ("numpy", "ndarray")


def _array(dtype: Any) -> Kind:  # noqa: ANN401 - as above
    """Return the kind of an array of a ``numpy.dtype``, or of any."""
    scalar: Any = next(iter(typing.get_args(dtype)), Any)
    scalar = typing.get_origin(scalar) or scalar  # of floating[Any]
    if scalar is Any or isinstance(scalar, typing.TypeVar) or scalar.__name__ in _ANY_DTYPE:
        return Kind.array(Kind.scalar("any"), None)
    if scalar.__name__ not in _DTYPES:
        raise TypeError(
            f"arrays of this type have no encoding: type={scalar.__name__} (of bool, int8 to "
            "int64, uint8 to uint64, float16 to float64 and str they have)"
        )
    return Kind.array(Kind.scalar(_DTYPES[scalar.__name__]), scalar.__name__)


def _container(origin: Any, arguments: tuple[Any, ...], annotation: Any = None) -> Kind:  # noqa: ANN401
    if origin in _LISTS:
        return Kind.list(kind_of(arguments[0]))
    if origin is tuple:
        is_uniform = len(arguments) == 2 and arguments[1] is Ellipsis  # noqa: PLR2004 - (X, ...)
        return Kind.tuple(kind_of(arguments[0] if is_uniform else Any))
    if origin in _SETS:
        return Kind.set(kind_of(arguments[0]))
    if origin is frozenset:
        return Kind.frozenset(kind_of(arguments[0]))
    if origin in _DICTS:
        return Kind.dict(kind_of(arguments[0]), kind_of(arguments[1]))
    raise TypeError(f"a type that has no encoding: type={annotation!r}")
