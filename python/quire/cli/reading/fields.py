"""Fields of messages: as typed columns where the messages have a schema, else one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, time
from typing import TYPE_CHECKING, Any, Final, cast

import click

from quire._native import Excerpt, to_json
from quire.calls.messages import Typed
from quire.cli.exit_codes import print_error
from quire.cli.parameters import modules_of_working_directory
from quire.cli.reading.selection import Rows
from quire.cli.where.conditions import Condition, Field, fields_of, has_field, holds, mask_of
from quire.errors import WhereError, WireError
from quire.formats.adapters import adapter_of
from quire.formats.columns import Columns
from quire.formats.protocols import AnyQueue

if TYPE_CHECKING:
    import pyarrow as pa

    from quire.arrow.schema import Schema

INDEX: Final = "index"


def schema_of(queue: AnyQueue, given: Schema | None) -> Schema | None:
    """Return the schema that was given, or the one of a sample; None if messages have no common."""
    if given is not None or not adapter_of(queue).is_written:
        return given
    from quire.arrow.schema import Schema

    try:
        return Schema.infer(queue)
    except (ValueError, WireError):
        return None


def load_schema(place: str) -> Schema:
    """
    Return the schema at a place that the command line names.

    Raises:
        click.BadParameter: There is no schema at the place.

    """
    from quire.arrow.schema_loader import load_schema as load

    try:
        with modules_of_working_directory():
            return load(place)
    except (ValueError, TypeError, ImportError, AttributeError, OSError) as error:
        raise click.BadParameter(f"no schema found: {place} ({error})") from error


class Decoder:
    """
    Decodes some fields of messages as columns.

    Args:
        schema: What the messages look like.
        names: The fields at the top level that are wanted; None: all of them.

    Raises:
        WhereError: The messages have no such field.

    """

    def __init__(self, schema: Schema, names: Iterable[str] | None = None) -> None:
        """Choose the columns."""
        if names is not None:
            wanted = [name for name in names if name != INDEX]
            unknown = [name for name in wanted if name not in schema.names]
            if unknown:
                raise WhereError(
                    f"no such field: field={unknown[0]} known={', '.join(schema.names)}"
                    " (--schema names others)"
                )
            schema = schema.select(wanted) if wanted else schema
        self.schema = schema
        self._layout = "union" if schema.methods else "tables"

    def batch(self, batch: Columns) -> pa.RecordBatch:
        """Return a row for each message; one that does not fit says why in ``_error``."""
        _, tables, *_ = self.schema.plan.decode(
            *batch.buffers, keep_misfits=True, layout=self._layout
        )
        return self.schema.batches(tables, self._layout)[""]


class WhereFilter:
    """
    Lets through the messages for which a condition is true.

    Messages that do not fit the schema are looked at one by one.

    Args:
        condition: The condition.
        schema: What the messages look like, if they have a schema.

    """

    def __init__(self, condition: Condition, schema: Schema | None) -> None:
        """Make the decoder of what the condition names."""
        self._condition = condition
        fields = {*fields_of(condition)}
        names = sorted({field[0] for field in fields})
        self._decoder = None if schema is None else Decoder(schema, names)
        self._looked_at = 0
        self._unknown: set[Field] = fields if schema is None else set()

    def __call__(self, batch: Columns, rows: Rows) -> tuple[Columns, Rows]:
        """Return the rows for which it is true."""
        return batch, self._rows(batch, rows)

    def report_unknown_fields(self, path: str) -> None:
        """Report the fields that no message of a queue had: a typo looks like an empty result."""
        for field in sorted(self._unknown if self._looked_at else ()):
            print_error(
                f"no message has the field: field={field} messages={self._looked_at} path={path}"
            )

    def _rows(self, batch: Columns, rows: Rows) -> Rows:
        if self._decoder is None:
            return [row for row in rows if self._passes(batch, row)]
        decoded = self._decoder.batch(batch)
        if len(decoded) != len(batch):
            raise WhereError("the schema skips messages: give one of all of them")
        mask = mask_of(self._condition, decoded)
        chosen = {*_true_rows(mask)}
        misfits = _misfits(decoded)
        if len(chosen) == len(batch) and not misfits:
            return rows
        return [
            row for row in rows if (self._passes(batch, row) if row in misfits else row in chosen)
        ]

    def _passes(self, batch: Columns, row: int) -> bool:
        values = compared_values_in(batch.payload(row), batch.indexes[row])
        self._looked_at += 1
        if self._unknown:
            self._unknown = {field for field in self._unknown if not has_field(values, field)}
        return holds(self._condition, values) is True


def _true_rows(mask: Any) -> list[int]:  # noqa: ANN401 - of pyarrow
    """Return the rows for which a mask is true."""
    import pyarrow.compute as pc

    rows: list[int] = pc.call_function("indices_nonzero", [mask]).to_pylist()
    return rows


def _misfits(decoded: pa.RecordBatch) -> set[int]:
    """Return the rows whose messages do not fit."""
    from quire.arrow.names import ERROR

    if ERROR not in decoded.schema.names:
        return set()
    errors = cast("Any", decoded).column(ERROR)
    if errors.null_count == len(errors):
        return set()
    return {row for row, is_fit in enumerate(errors.is_null().to_pylist()) if not is_fit}


def values_of(batch: Columns, row: int) -> dict[str, Any]:
    """Return the fields of one message of a batch."""
    return values_in(batch.payload(row), batch.indexes[row])


def values_in(payload: bytes | memoryview, index: int) -> dict[str, Any]:
    """Return the fields of one message; a message that is one value has the field ``value``."""
    import json

    try:
        values = json.loads(to_json(payload), object_hook=_without_type)
    except (WireError, ValueError):
        values = None
    if isinstance(values, dict):
        return {**values, INDEX: index}
    return {"value": values, INDEX: index}


def compared_values_in(payload: bytes | memoryview, index: int) -> dict[str, Any]:
    """Return the fields of one message for conditions: times and floats are no texts there."""
    values = values_in(payload, index)
    try:
        held = Excerpt(index, bytes(payload)).to_dict()
    except (WireError, ValueError, TypeError):  # one value, or of a class that refuses it
        return values
    return {**_as_held(values, held), INDEX: index}


def _as_held(shown: Any, held: Any) -> Any:  # noqa: ANN401 - what messages hold
    """Return a value of JSON with the floats and times that its message has in their place."""
    if isinstance(held, Typed):
        held = held.value
    if isinstance(shown, dict) and isinstance(held, Mapping):
        fields = cast("dict[str, Any]", shown).items()
        known = cast("Mapping[str, Any]", held)
        return {name: _as_held(it, known.get(name)) for name, it in fields}
    return held if isinstance(held, float | date | time) else cast("object", shown)


def _without_type(values: dict[str, Any]) -> Any:  # noqa: ANN401 - what JSON holds
    (name, *more) = values or ("",)
    return values[name] if name.startswith("@") and not more else values
