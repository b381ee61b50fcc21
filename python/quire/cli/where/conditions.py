"""Conditions on the fields of messages: by columns of a batch, or by the values of one message."""

from __future__ import annotations

import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from quire.errors import WhereError
from quire.ranges.event_time import epoch_ns_of

if TYPE_CHECKING:
    import pyarrow as pa

Values: TypeAlias = Mapping[str, Any]
Literal: TypeAlias = str | int | float | bool
Field: TypeAlias = tuple[str, ...]

COMPARISONS: Final = {
    "=": "equal",
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
"""The function of pyarrow for each sign."""


class Condition(ABC):
    """A part of an expression: true, false, or null where a field is missing."""

    @abstractmethod
    def fields(self) -> set[Field]:
        """Return the fields that it names."""

    @abstractmethod
    def mask(self, batch: pa.RecordBatch) -> Any:  # noqa: ANN401 - a boolean array
        """Return its value for each row."""

    @abstractmethod
    def test(self, values: Values) -> bool | None:
        """Return its value for the fields of one message."""


@dataclass(frozen=True)
class Not(Condition):
    """The opposite."""

    inner: Condition

    def fields(self) -> set[Field]:
        return self.inner.fields()

    def mask(self, batch: pa.RecordBatch) -> Any:  # noqa: ANN401
        return _compute("invert", self.inner.mask(batch))

    def test(self, values: Values) -> bool | None:
        found = self.inner.test(values)
        return None if found is None else not found


@dataclass(frozen=True)
class Both(Condition):
    """Two conditions, joined by ``and`` or ``or``."""

    left: Condition
    right: Condition
    is_and: bool

    def fields(self) -> set[Field]:
        return self.left.fields() | self.right.fields()

    def mask(self, batch: pa.RecordBatch) -> Any:  # noqa: ANN401
        function = "and_kleene" if self.is_and else "or_kleene"
        return _compute(function, self.left.mask(batch), self.right.mask(batch))

    def test(self, values: Values) -> bool | None:
        found = (self.left.test(values), self.right.test(values))
        decides = not self.is_and
        if decides in found:
            return decides
        return None if None in found else self.is_and


@dataclass(frozen=True)
class Compared(Condition):
    """A field compared with a literal or another field."""

    field: Field
    sign: str
    other: Literal | Field

    def fields(self) -> set[Field]:
        return {self.field} | ({self.other} if isinstance(self.other, tuple) else set())

    def mask(self, batch: pa.RecordBatch) -> Any:  # noqa: ANN401
        column = column_of(batch, self.field)
        if isinstance(self.other, tuple):
            other = column_of(batch, self.other)
        else:
            other = _literals([self.other], column.type, self.field)[0]
        return _compute(COMPARISONS[self.sign], column, other)

    def test(self, values: Values) -> bool | None:
        left = _value(values, self.field)
        right = _value(values, self.other) if isinstance(self.other, tuple) else self.other
        if left is None or right is None or not _are_comparable(left, right):
            return None
        return _OPERATORS[COMPARISONS[self.sign]](left, right)


@dataclass(frozen=True)
class In(Condition):
    """A field that is one of some literals."""

    field: Field
    choices: tuple[Literal, ...]

    def fields(self) -> set[Field]:
        return {self.field}

    def mask(self, batch: pa.RecordBatch) -> Any:  # noqa: ANN401
        import pyarrow as pa
        import pyarrow.compute as pc

        column = column_of(batch, self.field)
        choices = _literals(self.choices, column.type, self.field)
        found = _compute("is_in", column, options=pc.SetLookupOptions(choices.cast(column.type)))
        return pc.if_else(column.is_valid(), found, pa.nulls(1, pa.bool_())[0])

    def test(self, values: Values) -> bool | None:
        found = _value(values, self.field)
        if found is None:
            return None
        return any(_are_comparable(found, it) and found == it for it in self.choices)


@dataclass(frozen=True)
class Matches(Condition):
    """A text in which a regular expression is found."""

    field: Field
    pattern: re.Pattern[str]

    def fields(self) -> set[Field]:
        return {self.field}

    def mask(self, batch: pa.RecordBatch) -> Any:  # noqa: ANN401
        import pyarrow as pa
        import pyarrow.compute as pc

        column = column_of(batch, self.field)
        if not pa.types.is_string(column.type):
            raise WhereError(f"~ needs text: field={_named(self.field)} type={column.type}")
        options = pc.MatchSubstringOptions(self.pattern.pattern)
        return _compute("match_substring_regex", column, options=options)

    def test(self, values: Values) -> bool | None:
        found = _value(values, self.field)
        return self.pattern.search(found) is not None if isinstance(found, str) else None


@dataclass(frozen=True)
class IsNull(Condition):
    """A field that is missing."""

    field: Field

    def fields(self) -> set[Field]:
        return {self.field}

    def mask(self, batch: pa.RecordBatch) -> Any:  # noqa: ANN401
        return column_of(batch, self.field).is_null()

    def test(self, values: Values) -> bool | None:
        return _value(values, self.field) is None


@dataclass(frozen=True)
class IsTrue(Condition):
    """A field that is a truth value itself."""

    field: Field

    def fields(self) -> set[Field]:
        return {self.field}

    def mask(self, batch: pa.RecordBatch) -> Any:  # noqa: ANN401
        import pyarrow as pa

        column = column_of(batch, self.field)
        if not pa.types.is_boolean(column.type):
            raise WhereError(
                f"not a condition: field={_named(self.field)} type={column.type}"
                " (compare it: =, !=, <, <=, >, >=, ~, in, is null)"
            )
        return column

    def test(self, values: Values) -> bool | None:
        found = _value(values, self.field)
        return found if isinstance(found, bool) else None


def _named(field: Field) -> str:
    return ".".join(field)


def column_of(batch: pa.RecordBatch, field: Field) -> Any:  # noqa: ANN401 - an array
    """
    Return the column of a field.

    Raises:
        WhereError: The batch has no column for the field.

    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if field[0] not in batch.schema.names:
        raise WhereError(f"no such field: field={_named(field)}")
    found = cast("Any", batch).column(field[0])
    for part in field[1:]:
        if not pa.types.is_struct(found.type) or found.type.get_field_index(part) < 0:
            raise WhereError(f"no such field: field={_named(field)} type={found.type}")
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
    shown = ", ".join(map(repr, literals))
    raise WhereError(f"cannot be compared: field={_named(field)} type={wanted} with={shown}")


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


def _value(values: Values, field: Field) -> Any:  # noqa: ANN401 - what messages hold
    found: Any = values
    for part in field:
        if not isinstance(found, Mapping):
            return None
        found = cast("Values", found).get(part)
    return found


def _are_comparable(left: object, right: object) -> bool:
    for kind in (bool, int | float, str):
        if isinstance(left, kind) or isinstance(right, kind):
            return isinstance(left, kind) and isinstance(right, kind)
    return False


_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "equal": lambda left, right: left == right,
    "not_equal": lambda left, right: left != right,
    "less": lambda left, right: left < right,
    "less_equal": lambda left, right: left <= right,
    "greater": lambda left, right: left > right,
    "greater_equal": lambda left, right: left >= right,
}
