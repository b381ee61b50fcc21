"""Arrow types for the types that users give and that annotations declare."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from quire._native import kind_parts
from quire.arrow.column_types import BY_KIND, BY_NAME, Type
from quire.arrow.plan import Method
from quire.types import kind_of

if TYPE_CHECKING:
    from quire import _native
    from quire._native import Codec, Kind

TypeLike: TypeAlias = "str | type | pa.DataType | Mapping[str, TypeLike] | Sequence[TypeLike]"
"""A name, a type of Python or of pyarrow, ``{name: type}`` for a struct, ``[type]`` for a list."""

_DECIMAL: Final = re.compile(r"decimal128\((\d+), ?(\d+)\)")
_TIMESTAMP: Final = re.compile(r"timestamp\[(s|ms|us|ns), ?UTC\]")


def arrow_type(kind: TypeLike) -> Type:
    """
    Return the Arrow type for *kind*.

    Raises:
        TypeError: *kind* is not a type, a name of a type, a mapping, or a list of one type.
        ValueError: The name is unknown, or a field may hold any value.

    """
    if isinstance(kind, pa.DataType):
        return kind
    if isinstance(kind, Mapping):
        return pa.struct([(name, arrow_type(inner)) for name, inner in kind.items()])
    if isinstance(kind, str):
        return _named(kind)
    if isinstance(kind, list | tuple):
        items: Sequence[TypeLike] = kind
        if len(items) == 1:
            return pa.list_(arrow_type(items[0]))
    elif isinstance(kind, type) or hasattr(kind, "__origin__"):
        return of_kind(kind_of(kind), getattr(kind, "__name__", str(kind)))
    raise TypeError(
        f"not a column type: type={kind!r} (expected a name such as 'float64', a type of pyarrow or"
        " Python, a dict of fields, or a list of one type)"
    )


def columns_of(fields: Mapping[str, TypeLike]) -> pa.Schema:
    """Return columns of these names and types; as :func:`arrow_type`."""
    return pa.schema([(name, arrow_type(kind)) for name, kind in fields.items()])


def _named(kind: str) -> Type:
    if kind in BY_NAME:
        return BY_NAME[kind]
    if found := _DECIMAL.fullmatch(kind):
        return pa.decimal128(int(found[1]), int(found[2]))
    if found := _TIMESTAMP.fullmatch(kind):
        unit: Any = found[1]
        return pa.timestamp(unit, "UTC")
    named: Any = pa.type_for_alias  # its stubs list every name
    try:
        found = named(kind)
    except ValueError:
        raise ValueError(
            f"unknown column type: type={kind!r} (known are float64, int32, utf8, bool,"
            " timestamp, date, time, uuid, category, decimal128(18, 6), or a type of pyarrow)"
        ) from None
    return found


def of_codec(
    codec: Codec, types: Mapping[str, TypeLike], inside: tuple[str, ...] = ()
) -> pa.Schema:
    """
    Return the columns of a message class's fields, as its annotations declare them.

    Raises:
        ValueError: A field has no type that a column could have.

    """
    if codec.bytes_layout:
        raise ValueError(
            f"a fixed layout has no names to find columns by: class={codec.alias} bytes_layout=True"
        )
    if codec.alias in inside:
        raise ValueError(f"a class that contains itself cannot become columns: class={codec.alias}")
    inside = (*inside, codec.alias)
    return pa.schema(
        [
            (name, arrow_type(types[name]) if name in types else of_kind(kind, name, inside))
            for name, _, kind in codec.fields
        ]
    )


def of_kind(kind: Kind, name: str, inside: tuple[str, ...] = ()) -> Type:
    """Return the type of a column for a declared type; as :func:`of_codec`."""
    sort, parts, codec = kind_parts(kind)
    if sort == "optional":
        return of_kind(parts[0], name, inside)
    if codec is not None:
        return pa.struct(list(of_codec(codec, {}, inside)))
    if sort == "list":
        return pa.list_(of_kind(parts[0], name, inside))
    if sort == "dict":
        return pa.map_(pa.string(), of_kind(parts[1], name, inside))
    if sort not in BY_KIND:
        raise ValueError(
            f"a field that may hold any value needs a type: name={name} (give it in types=)"
        )
    return BY_KIND[sort]


def of_methods(methods: Mapping[str, _native.Method], ids: Mapping[str, int]) -> list[Method]:
    """
    Return the methods of an interface, and of the interfaces that its methods return.

    Raises:
        ValueError: An argument may hold any type, or two methods with the same name differ.

    """
    found: dict[str, Method] = {}
    _add_methods(methods, ids, found)
    return [*found.values()]


def _add_methods(
    methods: Mapping[str, _native.Method], ids: Mapping[str, int], found: dict[str, Method]
) -> None:
    for method in methods.values():
        made = _of_method(method, ids.get(method.name, method.id))
        known = found.setdefault(method.name, made)
        if known != made:
            raise ValueError(f"two methods with the same name differ: method={method.name}")
        if known is made and method.next is not None:
            _add_methods(method.next, ids, found)


def _of_method(method: _native.Method, number: int | None) -> Method:
    kinds = [kind for _, kind in method.parameters]
    if len(kinds) == 1:
        sort, parts, codec = kind_parts(kinds[0])
        if sort == "optional":
            _, _, codec = kind_parts(parts[0])
        if codec is not None:
            return Method(method.name, number, "object", of_codec(codec, {}))
    columns = pa.schema([(name, of_kind(kind, name)) for name, kind in method.parameters])
    return Method(method.name, number, "arguments", columns)
