"""Conditions on the fields of messages: by columns of a batch, or by the values of one message."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from quire.cli.where.values import FUNCTIONS, Literal, Pattern
from quire.errors import WhereError
from quire.ranges.event_time import epoch_ns_of

if TYPE_CHECKING:
    import pyarrow as pa

Values: TypeAlias = Mapping[str, Any]
_MISSING: Final = object()


class Field(tuple[str, ...]):
    """A field, and those that it is inside of: the names from the outermost inwards."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return it as expressions name it."""
        return ".".join(self)


@dataclass(frozen=True)
class Not:
    """Logical negation."""

    inner: Condition


@dataclass(frozen=True)
class Joined:
    """Conditions that ``and`` joins, or ``or``."""

    parts: tuple[Condition, ...]
    is_and: bool


@dataclass(frozen=True)
class Predicate:
    """
    What is asked of one field: true, false, or null where the field is missing.

    Attributes:
        field: The field.
        function: The question: one of :data:`FUNCTIONS`.
        operand: What the field is compared with, the choices, or the pattern; None: nothing.

    """

    field: Field
    function: str
    operand: Field | Literal | tuple[Literal, ...] | Pattern | None = None


Condition: TypeAlias = Not | Joined | Predicate
"""A tree: true, false, or null where a field is missing."""


def fields_of(condition: Condition) -> Iterator[Field]:
    """Yield the fields that a condition names."""
    match condition:
        case Not(inner):
            yield from fields_of(inner)
        case Joined(parts):
            for part in parts:
                yield from fields_of(part)
        case Predicate(field, _, operand):
            yield field
            if isinstance(operand, Field):
                yield operand


def has_field(values: Values, field: Field) -> bool:
    """Return whether a message has a field, be it null."""
    return _value(values, field, _MISSING) is not _MISSING


def holds(condition: Condition, values: Values) -> bool | None:
    """Return whether a condition is true for the fields of one message; None for null."""
    if isinstance(condition, Predicate):
        other = condition.operand
        if isinstance(other, Field):
            other = _value(values, other)
        return FUNCTIONS[condition.function](_value(values, condition.field), other)
    if isinstance(condition, Not):
        found = holds(condition.inner, values)
        return None if found is None else not found
    results = [holds(part, values) for part in condition.parts]
    if (not condition.is_and) in results:
        return not condition.is_and
    return None if None in results else condition.is_and


def mask_of(condition: Condition, batch: pa.RecordBatch) -> Any:  # noqa: ANN401 - a boolean array
    """
    Return the value of a condition for each row.

    Raises:
        WhereError: A field does not exist, or its type does not go with what is asked.

    """
    if isinstance(condition, Predicate):
        return _mask_of_predicate(condition, batch)
    if isinstance(condition, Not):
        return _compute("invert", mask_of(condition.inner, batch))
    join = partial(_compute, "and_kleene" if condition.is_and else "or_kleene")
    return reduce(join, (mask_of(part, batch) for part in condition.parts))


def _mask_of_predicate(asked: Predicate, batch: pa.RecordBatch) -> Any:  # noqa: ANN401
    column, operand = column_of(batch, asked.field), asked.operand
    if asked.function == "is_null":
        return column.is_null()
    if operand is None:
        return _truths(column, asked.field)
    if isinstance(operand, Pattern):
        return _matches(column, asked.field, operand.text)
    if isinstance(operand, Field):
        return _of_fields(asked, column, column_of(batch, operand))
    if isinstance(operand, tuple):
        return _among(column, operand, asked.field)
    (literal,) = _literals([operand], column.type, asked.field)
    compare = _of_numbers if _are_numbers(column.type, literal.type) else _compute
    return compare(asked.function, column, literal)


def _are_numbers(*kinds: Any) -> bool:  # noqa: ANN401 - types
    """Return whether values of these types are integers or floats."""
    import pyarrow as pa

    return all(pa.types.is_integer(it) or pa.types.is_floating(it) for it in kinds)


def _of_numbers(function: str, left: Any, right: Any) -> Any:  # noqa: ANN401 - arrays and scalars
    """Compare numbers exactly: Arrow refuses an integer that a float cannot be, among floats."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.call_function(function, [left, right])
    except pa.ArrowInvalid:
        numbers: list[Any] = left.to_pylist()
        is_one = isinstance(right, pa.Scalar)
        others: list[Any] = [right.as_py()] * len(numbers) if is_one else right.to_pylist()
        pairs = zip(numbers, others, strict=True)
        return pa.array([FUNCTIONS[function](*pair) for pair in pairs], pa.bool_())


def _of_fields(asked: Predicate, left: Any, right: Any) -> Any:  # noqa: ANN401 - arrays
    import pyarrow as pa
    import pyarrow.compute as pc

    if _are_numbers(left.type, right.type):
        return _of_numbers(asked.function, left, right)
    try:
        return pc.call_function(asked.function, [left, right])
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise WhereError(
            f"cannot be compared: field={asked.field} type={left.type}"
            f" with={asked.operand} type={right.type} expected: a field of the same kind"
        ) from None


def _truths(column: Any, field: Field) -> Any:  # noqa: ANN401 - arrays
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        return column
    raise WhereError(
        f"not a condition: field={field} type={column.type}"
        " (compare it: =, !=, <, <=, >, >=, ~, in, is null)"
    )


def _among(column: Any, choices: Sequence[Literal], field: Field) -> Any:  # noqa: ANN401 - arrays
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        wanted = _literals(choices, column.type, field).cast(column.type)
    except pa.ArrowInvalid:  # such as 1.5 among integers
        raise _not_comparable(choices, column.type, field) from None
    if pa.types.is_floating(column.type):  # to Arrow the zero with a sign is another value
        zero = pa.scalar(0.0, column.type)
        column, wanted = _compute("add", column, zero), _compute("add", wanted, zero)
    found = _compute("is_in", column, options=pc.SetLookupOptions(wanted))
    return pc.if_else(column.is_valid(), found, pa.nulls(1, pa.bool_())[0])


def _matches(column: Any, field: Field, pattern: str) -> Any:  # noqa: ANN401 - arrays
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(column.type):
        raise WhereError(f"~ needs text: field={field} type={column.type}")
    return _compute("match_substring_regex", column, options=pc.MatchSubstringOptions(pattern))


def column_of(batch: pa.RecordBatch, field: Field) -> Any:  # noqa: ANN401 - an array
    """
    Return the column of a field.

    Raises:
        WhereError: The batch has no column for the field.

    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if field[0] not in batch.schema.names:
        raise WhereError(f"no such field: field={field}")
    found = cast("Any", batch).column(field[0])
    for part in field[1:]:
        if not pa.types.is_struct(found.type) or found.type.get_field_index(part) < 0:
            raise WhereError(f"no such field: field={field} type={found.type}")
        inside = pc.StructFieldOptions([found.type.get_field_index(part)])
        found = _compute("struct_field", found, options=inside)
    if pa.types.is_dictionary(found.type):
        found = found.cast(found.type.value_type)
    return found


def _literals(literals: Sequence[Literal], wanted: Any, field: Field) -> Any:  # noqa: ANN401
    """Return literals as an array that a column of this type is compared with."""
    import pyarrow as pa

    kinds = pa.types
    try:
        if all(isinstance(it, str) for it in literals):
            texts = cast("Sequence[str]", literals)
            if kinds.is_timestamp(wanted) or kinds.is_date(wanted):
                times = [epoch_ns_of(text) for text in texts]
                zoned = pa.timestamp("ns", getattr(wanted, "tz", None))
                return _array(zoned, "q", times).cast(wanted)
            if kinds.is_time(wanted) or kinds.is_decimal(wanted):
                return _texts(texts).cast(wanted)
            if kinds.is_string(wanted):
                return _texts(texts)
        elif all(isinstance(it, bool) for it in literals) and kinds.is_boolean(wanted):
            return _array(pa.uint8(), "B", literals).cast(wanted)
        elif not any(isinstance(it, bool | str) for it in literals) and (
            kinds.is_integer(wanted) or kinds.is_floating(wanted) or kinds.is_decimal(wanted)
        ):
            is_whole = all(isinstance(it, int) for it in literals)
            kind, code = (pa.int64(), "q") if is_whole else (pa.float64(), "d")
            return _array(kind, code, literals)
    except (ValueError, OverflowError, struct.error):
        pass
    raise _not_comparable(literals, wanted, field)


def _not_comparable(literals: Sequence[Literal], wanted: Any, field: Field) -> WhereError:  # noqa: ANN401
    """Return the error about literals that no value of a field's type can equal."""
    import pyarrow as pa

    kinds = pa.types
    known = (
        (kinds.is_boolean, "true or false"),
        (kinds.is_integer, "an integer of this type"),
        (kinds.is_floating, "a number"),
        (kinds.is_decimal, "a number"),
        (kinds.is_string, "a text in quotes"),
        (kinds.is_temporal, "a time in quotes"),
    )
    expected = next((text for is_kind, text in known if is_kind(wanted)), "is null")
    shown = ", ".join(map(repr, literals))
    return WhereError(
        f"cannot be compared: field={field} type={wanted} with={shown} expected: {expected}"
    )


def _array(kind: Any, code: str, values: Sequence[Any]) -> Any:  # noqa: ANN401 - of pyarrow
    """Return numbers as an array. To make it of Python objects, pyarrow would import pandas."""
    import pyarrow as pa

    data = struct.pack(f"={len(values)}{code}", *values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(data)])


def _texts(texts: Sequence[str]) -> Any:  # noqa: ANN401 - an array
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    offsets = [0, *accumulate(map(len, encoded))]
    buffers = [struct.pack(f"={len(offsets)}i", *offsets), b"".join(encoded)]
    return pa.Array.from_buffers(pa.string(), len(texts), [None, *map(pa.py_buffer, buffers)])


def _compute(name: str, *arguments: Any, options: Any = None) -> Any:  # noqa: ANN401
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.call_function(name, [*arguments], options)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise WhereError(f"cannot be compared: {error}") from error


def _value(values: Values, field: Field, missing: object = None) -> Any:  # noqa: ANN401 - what messages hold
    found: Any = values
    for part in field:
        if not isinstance(found, Mapping):
            return missing
        found = cast("Values", found).get(part, missing)
    return found
