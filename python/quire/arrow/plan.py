"""Columns and methods in the form that the native decoder and encoder expect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import pyarrow as pa

from quire.arrow.column_types import DECODER_NAMES, Type, fields_of, type_text

if TYPE_CHECKING:
    from quire._native import PlanField, PlanMethod

UNIT_OF_NUMBERS: Final = b"quire.unit"
"""Metadata of a ``timestamp[us]`` column: ``ns`` or ``any`` (by size): the unit of numbers."""


class Method(NamedTuple):
    """
    A method whose calls are decoded.

    Attributes:
        name: The event name in the messages.
        id: Its method id; None if it has none.
        takes: How its arguments become columns.
        columns: The columns.

    """

    name: str
    id: int | None
    takes: Literal["arguments", "object", "nothing", "skipped"]
    columns: pa.Schema

    @property
    def is_selected(self) -> bool:
        """Whether its calls become rows."""
        return self.takes != "skipped"


def plan_field(field: pa.Field[Any]) -> PlanField:
    """
    Return the decoder's plan of a column.

    Raises:
        ValueError: Messages cannot be decoded into the column's type.

    """
    kind, numbers, inside = _plan_type(field.name, field.type)
    if field.metadata and UNIT_OF_NUMBERS in field.metadata:
        kind = f"timestamp[us of {field.metadata[UNIT_OF_NUMBERS].decode()}]"
    return field.name, field.nullable, kind, numbers, inside


def _plan_type(name: str, kind: Type) -> _PlanType:
    if kind in DECODER_NAMES:
        return _PlanType(DECODER_NAMES[kind])
    if pa.types.is_timestamp(kind) and kind.tz in {None, "UTC"}:
        return _PlanType(f"timestamp[{kind.unit}]")
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        return _PlanType("decimal128", (kind.precision, kind.scale))
    if pa.types.is_struct(kind):
        return _PlanType("struct", inside=[plan_field(it) for it in fields_of(kind)])
    if pa.types.is_list(kind):
        return _PlanType("list", inside=[plan_field(kind.value_field)])
    if pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
        return _PlanType("map", inside=[plan_field(kind.item_field)])
    raise ValueError(
        "messages cannot be decoded into a column of this type:"
        f" field={name} type={type_text(kind)}"
    )


def plan_method(method: Method) -> PlanMethod:
    """Return the decoder's plan of a method; raises like :func:`plan_field`."""
    return (
        method.name,
        method.id,
        method.takes,
        [plan_field(field) for field in fields_of(method.columns)],
    )


class _PlanType(NamedTuple):
    """A type in the form that the decoder expects."""

    kind: str
    precision_and_scale: tuple[int, int] = (0, 0)
    inside: Sequence[PlanField] = ()
