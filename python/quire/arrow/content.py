"""The content of a schema: the columns of messages, or the methods that they call."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import pyarrow as pa

from quire.arrow.batches import record_batch
from quire.arrow.column_types import BATCH_INDEX_TYPE, HISTORY_TYPE, Field, field_text, fields_of
from quire.arrow.names import BATCH_INDEX, ERROR, HISTORY, METHOD
from quire.arrow.plan import Method, plan_field, plan_method
from quire.arrow.selected_columns import select, select_methods

if TYPE_CHECKING:
    from quire._native import PlanField, PlanMethod, Table

Shape: TypeAlias = Literal["fields", "value", "calls"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """
    The common base of the forms of messages that a schema describes.

    Attributes:
        history: Whether there is a column ``history``.
        index_name: The name of the column of indexes; None for no such column.
        types: The types that messages may name, if they name one; empty allows any type.

    """

    history: bool = False
    index_name: str | None = BATCH_INDEX
    types: tuple[str, ...] = ()

    @property
    @abstractmethod
    def shape(self) -> Shape:
        """The form of messages: ``fields``, one ``value``, or ``calls``."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The names of the columns, or of the methods."""

    @property
    @abstractmethod
    def columns(self) -> pa.Schema:
        """The columns alone, without index and history; of methods, a struct for each."""

    @property
    def union(self) -> pa.Schema:
        """The columns of a batch, without index and history; of calls, a tagged union."""
        return self.columns

    @property
    def arrow(self) -> pa.Schema:
        """The schema of a batch."""
        return self.surrounded(fields_of(self.union))

    @property
    def calls(self) -> tuple[Method, ...]:
        """The methods whose calls become rows; empty if the messages are not calls."""
        return ()

    @property
    def methods(self) -> dict[str, pa.Schema]:
        """The schema of each method's table."""
        return {it.name: self.surrounded(fields_of(it.columns)) for it in self.calls}

    @abstractmethod
    def plan(self) -> Sequence[PlanField | PlanMethod]:
        """Return the plan for the native decoder."""

    @abstractmethod
    def select(self, names: list[str]) -> Self:
        """Return the content with these columns or methods alone."""

    @abstractmethod
    def convert(self, convert: Callable[[pa.Schema], pa.Schema]) -> Self:
        """Return the content with its columns converted."""

    @abstractmethod
    def batches(self, tables: Sequence[Table], layout: str) -> dict[str, pa.RecordBatch]:
        """Return the decoder's tables as batches: by method, or under an empty name."""

    def check_names(self) -> None:
        """
        Check that the column names of each table are unique.

        Raises:
            ValueError: A table has two columns with the same name.

        """
        for schema in self.methods.values() or [self.arrow]:
            twice = [name for name in schema.names if schema.names.count(name) > 1]
            if twice or ERROR in schema.names:
                raise ValueError(f"duplicate column name: name={(twice or [ERROR])[0]}")

    def surrounded(self, columns: Iterable[Field]) -> pa.Schema:
        """Return columns preceded by the index and followed by the history, if any."""
        fields = [*columns]
        if self.index_name is not None:
            fields.insert(0, pa.field(self.index_name, BATCH_INDEX_TYPE, nullable=False))
        if self.history:
            fields.append(pa.field(HISTORY, HISTORY_TYPE))
        return pa.schema(fields)


@dataclass(frozen=True, slots=True)
class RowContent(Content):
    """
    Messages that are fields, or one value without a name.

    Attributes:
        fields: The columns.
        is_value: Whether a message consists of one value.

    """

    fields: pa.Schema
    is_value: bool = False

    @property
    def shape(self) -> Shape:
        return "value" if self.is_value else "fields"

    @property
    def names(self) -> list[str]:
        return list(self.fields.names)

    @property
    def columns(self) -> pa.Schema:
        return self.fields

    def plan(self) -> Sequence[PlanField | PlanMethod]:
        return [plan_field(field) for field in fields_of(self.columns)]

    def select(self, names: list[str]) -> Self:
        return replace(self, fields=select(self.columns, names))

    def convert(self, convert: Callable[[pa.Schema], pa.Schema]) -> Self:
        return replace(self, fields=convert(self.columns))

    def batches(self, tables: Sequence[Table], layout: str) -> dict[str, pa.RecordBatch]:
        del layout
        return {"": record_batch(self.arrow, tables[0], self.index_name)}

    def __str__(self) -> str:
        lines = "".join(f"\n  {field_text(it)}," for it in fields_of(self.columns))
        name = "Schema.of_value" if self.is_value else "Schema"
        return f"{name}({lines}\n)" if lines else f"{name}()"


@dataclass(frozen=True, slots=True)
class CallContent(Content):
    """
    Messages that are method calls.

    Attributes:
        every: All methods, also those whose calls the decoder skips.

    """

    every: tuple[Method, ...]

    @property
    def calls(self) -> tuple[Method, ...]:
        return tuple(method for method in self.every if method.is_selected)

    @property
    def shape(self) -> Shape:
        return "calls"

    @property
    def names(self) -> list[str]:
        return [method.name for method in self.calls]

    @property
    def columns(self) -> pa.Schema:
        structs: list[Any] = [
            pa.field(method.name, pa.struct(list(method.columns))) for method in self.calls
        ]
        return pa.schema(structs)

    @property
    def union(self) -> pa.Schema:
        tag: Field = pa.field(METHOD, pa.string())
        return pa.schema([tag, *fields_of(self.columns)])

    def plan(self) -> Sequence[PlanField | PlanMethod]:
        return [plan_method(method) for method in self.every]

    def select(self, names: list[str]) -> Self:
        return replace(self, every=select_methods(self.every, names))

    def convert(self, convert: Callable[[pa.Schema], pa.Schema]) -> Self:
        every = tuple(it._replace(columns=convert(it.columns)) for it in self.every)
        return replace(self, every=every)

    def batches(self, tables: Sequence[Table], layout: str) -> dict[str, pa.RecordBatch]:
        if layout == "union":
            return {"": record_batch(self.arrow, tables[0], self.index_name)}
        known = self.methods
        if layout != "tables":
            return {"": record_batch(known[layout], tables[0], self.index_name)}
        found = {
            method.name: record_batch(known[method.name], table, self.index_name)
            for method, table in zip(self.every, tables, strict=False)
            if method.name in known
        }
        *_, malformed = tables
        *_, errors = malformed
        if errors is not None:
            found[ERROR] = record_batch(self.surrounded([]), malformed, self.index_name)
        return found

    def __str__(self) -> str:
        calls = "".join(
            f"\n  {method.name}({', '.join(map(field_text, fields_of(method.columns)))}),"
            for method in self.calls
        )
        return f"Schema.from_methods({calls}\n)"
