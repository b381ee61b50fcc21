"""Arrow types and arrays on one side, the native decoder's plans and buffers on the other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import pyarrow as pa

from quire._native import kind_parts
from quire.types import kind_of

if TYPE_CHECKING:
    from quire import _native
    from quire._native import Buffer, Codec, Column, Kind, PlanField, PlanMethod, Table

# Names of types, types of Python and of pyarrow, `{name: type}` for a struct, `[type]` for a list.
TypeLike: TypeAlias = "str | type | pa.DataType | Mapping[str, TypeLike] | Sequence[TypeLike]"

ERROR: Final = "_error"

# Of a column of `timestamp[ns]`: numbers count what puts them between 1973 and 5138.
GUESSED: Final = {b"quire.unit": b"auto"}

_DECIMAL = re.compile(r"decimal128\((\d+), ?(\d+)\)")
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns), ?UTC\]")
_OTHER_NAMES: dict[str, Any] = {
    "float": pa.float64(),  # as in Python and numpy; Arrow's alias means 32 bits
    "int": pa.int64(),
    "str": pa.string(),
    "bytes": pa.binary(),
    "uuid": pa.binary(16),
    "category": pa.dictionary(pa.int32(), pa.string()),
    "timestamp": pa.timestamp("ns", "UTC"),
    "date": pa.date32(),
    "time": pa.time64("ns"),
}
_SCALARS: dict[Any, str] = {
    pa.bool_(): "bool",
    **{kind(): str(kind()) for kind in (pa.int8, pa.int16, pa.int32, pa.int64)},
    **{kind(): str(kind()) for kind in (pa.uint8, pa.uint16, pa.uint32, pa.uint64)},
    pa.float32(): "float32",
    pa.float64(): "float64",
    pa.string(): "utf8",
    pa.dictionary(pa.int32(), pa.string()): "dictionary",
    pa.binary(): "binary",
    pa.binary(16): "uuid",
    pa.date32(): "date32",
    **{pa.time32(unit): f"time[{unit}]" for unit in ("s", "ms")},
    **{pa.time64(unit): f"time[{unit}]" for unit in ("us", "ns")},
}

_OF_KINDS: dict[str, Any] = {
    "bool": pa.bool_(),
    **{str(kind()): kind() for kind in (pa.int8, pa.int16, pa.int32, pa.int64)},
    **{str(kind()): kind() for kind in (pa.uint8, pa.uint16, pa.uint32)},
    "float32": pa.float32(),
    "float64": pa.float64(),
    "str": pa.string(),
    "bytes": pa.binary(),
    "decimal": pa.string(),
    "timedelta": pa.string(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "datetime": pa.timestamp("us", "UTC"),
    "uuid": pa.binary(16),
    "enum": pa.dictionary(pa.int32(), pa.string()),
}


class Method(NamedTuple):
    """A method whose calls are decoded: ``takes`` tells how its arguments become columns."""

    name: str
    id: int | None
    takes: Literal["arguments", "object", "nothing", "passed over"]
    columns: pa.Schema


def arrow_type(kind: TypeLike) -> Any:  # noqa: ANN401 - pyarrow-stubs have a class for each type
    """
    Return the Arrow type that *kind* stands for.

    Raises:
        ValueError: There is none.

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
        f"no type of a column: type={kind!r} (give a name such as 'float64', a type of pyarrow or"
        " Python, a dict of fields, or a list of one type)"
    )


def type_text(kind: Any) -> str:  # noqa: ANN401 - pyarrow-stubs have a class for each type
    """Return a type's name: floats by their width, which Arrow calls ``float`` and ``double``."""
    types = pa.types
    if types.is_floating(kind):
        return f"float{kind.bit_width}"
    if types.is_struct(kind):
        return f"struct<{', '.join(map(field_text, fields_of(kind)))}>"
    if types.is_list(kind):
        return f"list<{field_text(kind.value_field)}>"
    if types.is_map(kind):
        return f"map<{type_text(kind.key_type)}, {type_text(kind.item_type)}>"
    return str(kind)


def field_text(field: Any) -> str:  # noqa: ANN401 - as above
    """Return a column's name and type."""
    return f"{field.name}: {type_text(field.type)}{'' if field.nullable else ' not null'}"


def columns_of(fields: Mapping[str, TypeLike]) -> pa.Schema:
    """Return columns of these names and types; as :func:`arrow_type`."""
    return pa.schema([(name, arrow_type(kind)) for name, kind in fields.items()])


def _named(kind: str) -> Any:  # noqa: ANN401 - pyarrow-stubs have a class for each type
    if kind in _OTHER_NAMES:
        return _OTHER_NAMES[kind]
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
            f"no such type of a column: type={kind!r} (such as float64, int32, utf8, bool,"
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
        raise ValueError(f"a class inside itself has no columns: class={codec.alias}")
    inside = (*inside, codec.alias)
    return pa.schema(
        [
            (name, arrow_type(types[name]) if name in types else of_kind(kind, name, inside))
            for name, _, kind in codec.fields
        ]
    )


def of_kind(kind: Kind, name: str, inside: tuple[str, ...] = ()) -> Any:  # noqa: ANN401 - as below
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
    if sort not in _OF_KINDS:
        raise ValueError(f"any value is no type of a column: name={name} (say which in types=)")
    return _OF_KINDS[sort]


def of_methods(methods: Mapping[str, _native.Method], ids: Mapping[str, int]) -> list[Method]:
    """
    Return the methods of an interface, and of what their calls return.

    Raises:
        ValueError: An argument may hold anything, or two methods of one name differ.

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
            raise ValueError(f"two methods of one name differ: method={method.name}")
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


def plan_field(field: pa.Field[Any]) -> PlanField:
    """
    Return what the decoder calls a column of this type.

    Raises:
        ValueError: It cannot decode into such columns.

    """
    kind, numbers, inside = _plan_type(field.name, field.type)
    if field.metadata and GUESSED.items() <= field.metadata.items():
        kind = "timestamp[auto]"
    return field.name, field.nullable, kind, numbers, inside


def _plan_type(name: str, kind: Any) -> tuple[str, tuple[int, int], list[PlanField]]:  # noqa: ANN401
    none = (0, 0)
    if kind in _SCALARS:
        return _SCALARS[kind], none, []
    if pa.types.is_timestamp(kind) and kind.tz in {None, "UTC"}:
        return f"timestamp[{kind.unit}]", none, []
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        return "decimal128", (kind.precision, kind.scale), []
    if pa.types.is_struct(kind):
        return "struct", none, [plan_field(field) for field in fields_of(kind)]
    if pa.types.is_list(kind):
        return "list", none, [plan_field(kind.value_field)]
    if pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
        return "map", none, [plan_field(kind.item_field)]
    raise ValueError(
        f"messages are not decoded into columns of this type: field={name} type={type_text(kind)}"
    )


def grouped(names: Iterable[str]) -> dict[str, list[str] | None]:
    """Return, for each first name, the names behind its point; None where all of it is wanted."""
    groups: dict[str, list[str] | None] = {}
    for name in names:
        first, point, rest = name.partition(".")
        inner = groups.setdefault(first, [])
        if not point:
            groups[first] = None
        elif inner is not None:
            inner.append(rest)
    return groups


def select(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """
    Return the columns of these names, in their order.

    Raises:
        KeyError: There is no such column.

    """
    return pa.schema(_selected(fields_of(schema), grouped(names)))


def _selected(fields: list[Any], groups: Mapping[str, list[str] | None]) -> list[pa.Field[Any]]:
    known = {field.name: field for field in fields}
    found: list[pa.Field[Any]] = []
    for name, inner in groups.items():
        field = known.get(name)
        if field is None or not (inner is None or pa.types.is_struct(field.type)):
            raise KeyError(f"no such column: column={name} known={', '.join(known)}")
        if inner is not None:
            inside = _selected(fields_of(field.type), grouped(inner))
            field = field.with_type(pa.struct(inside))
        found.append(field)
    return found


def fields_of(kind: Any) -> list[Any]:  # noqa: ANN401 - pyarrow-stubs name each
    """Return the fields of a schema, or of a type."""
    count = len(kind) if isinstance(kind, pa.Schema) else kind.num_fields
    return [kind.field(place) for place in range(count)]


def array_of(kind: Any, column: Column) -> pa.Array[Any]:  # noqa: ANN401 - pyarrow-stubs name each
    """Return the decoder's buffers as an array; nothing is copied."""
    length, nulls, buffers, inside, values = column
    if values is not None:
        codes = pa.Array.from_buffers(pa.int32(), length, list(map(_buffer, buffers)), nulls)
        dictionaries: Any = pa.DictionaryArray
        made: pa.Array[Any] = dictionaries.from_arrays(codes, array_of(pa.string(), values))
        return made
    children = [
        array_of(field.type, child) for field, child in zip(_inside(kind), inside, strict=True)
    ]
    return pa.Array.from_buffers(
        kind, length, list(map(_buffer, buffers)), nulls, children=children or None
    )


def _inside(kind: Any) -> list[pa.Field[Any]]:  # noqa: ANN401 - as above
    if pa.types.is_map(kind):
        return [pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)]
    return fields_of(kind)


def _buffer(buffer: Buffer | None) -> pa.Buffer | None:
    if buffer is None:
        return None
    return pa.py_buffer(buffer if len(buffer) else b"")


def record_batch(schema: pa.Schema, table: Table, index: str | None) -> pa.RecordBatch:
    """Return a table of the decoder as a batch of this schema; *index* names its first column."""
    rows, indexes, columns, history, errors = table
    found: list[Column] = [*columns, *([] if history is None else [history])]
    if index is not None:
        found.insert(0, (rows, 0, [None, indexes], [], None))
    if errors is not None:
        found.append(errors)
        nullable = [
            field if field.name == index else field.with_nullable(True)  # noqa: FBT003
            for field in fields_of(schema)
        ]
        schema = pa.schema([*nullable, pa.field(ERROR, pa.string())])
    arrays = [
        array_of(field.type, column) for field, column in zip(fields_of(schema), found, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def lines(schema: pa.Schema) -> list[str]:
    """Show the columns, each on a line."""
    return [field_text(field) for field in fields_of(schema)]


def plan_method(method: Method) -> PlanMethod:
    """Return what the decoder calls this method; as :func:`plan_field`."""
    return (
        method.name,
        method.id,
        method.takes,
        [plan_field(field) for field in fields_of(method.columns)],
    )


def selected_methods(methods: tuple[Method, ...], names: list[str]) -> tuple[Method, ...]:
    """
    Return the methods, those passed over that are not among *names*.

    Raises:
        KeyError: There is no such method, or no such field of its one argument.

    """
    asked = grouped(names)
    known = [method.name for method in methods if method.takes != "passed over"]
    if unknown := [name for name in asked if name not in known]:
        raise KeyError(f"no such method: method={unknown[0]} known={', '.join(known)}")
    chosen: list[Method] = []
    for method in methods:
        columns = asked.get(method.name, ())
        if columns == ():
            method = method._replace(takes="passed over", columns=pa.schema([]))  # noqa: PLW2901
        elif columns is not None:
            if method.takes == "arguments":
                raise KeyError(
                    f"arguments have places and no names in messages: method={method.name}"
                )
            method = method._replace(columns=select(method.columns, columns))  # noqa: PLW2901
        chosen.append(method)
    return tuple(chosen)
