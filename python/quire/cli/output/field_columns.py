"""Fields of messages on stdout, as objects, lines, CSV or Arrow."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, Final, cast

import click

from quire._common.terminal import escape_controls, escape_json, escape_line
from quire.cli.exit_codes import print_error
from quire.cli.output.message_formats import encoded
from quire.cli.output.row_formats import ArrowOutput
from quire.cli.parameters import Zone
from quire.cli.reading.fields import INDEX, Decoder, values_of
from quire.cli.reading.selection import Rows
from quire.cli.streams import Output
from quire.cli.where.conditions import Field, column_of
from quire.formats.columns import Columns

if TYPE_CHECKING:
    import pyarrow as pa

    from quire.arrow.schema import Schema

QUEUE: Final = "queue"
_ERROR: Final = "_error"


class ColumnPrinter:
    """
    Shows fields of messages.

    Args:
        style: The format.
        schema: What the messages look like; None: they have nothing in common.
        columns: The fields to show, ``trade.price`` for one inside another; None: all.
        with_index: Put the index before them.
        zone: The time zone of times.

    """

    def __init__(
        self,
        style: str,
        schema: Schema | None,
        columns: Sequence[str] | None,
        *,
        with_index: bool,
        zone: Zone | None,
    ) -> None:
        """Choose the columns."""
        if schema is None and (columns is None or style == "arrow"):
            raise click.ClickException(
                "the messages have no common columns: name them by --schema"
                " (a file of names and types, or module:Name)"
            )
        self._style = style
        names = None if columns is None else [name.partition(".")[0] for name in columns]
        self._decoder = None if schema is None else Decoder(schema, names)
        shown = columns if columns is not None or schema is None else schema.names
        self._columns = [name for name in shown or () if name != INDEX]
        self._with_index = with_index
        self._zone = zone
        self._misfits = 0
        self._before = "["
        self._output = Output()
        self._arrow = ArrowOutput() if style == "arrow" else None
        self._has_heading = False
        self.flush = self._output.flush

    def show(self, source: str, batch: Columns, rows: Rows) -> None:
        """Show rows of a batch."""
        if self._decoder is None:
            found = iter([_picked(values_of(batch, row), self._columns) for row in rows])
        else:
            table = self._table(batch, rows)
            if self._arrow is not None:
                self._arrow.write(_with_queue(source, table))
                return
            found = _values(table)
        for row, values in zip(rows, found, strict=True):
            index = {INDEX: batch.indexes[row]} if self._with_index else {}
            shown = {name: self._as_shown(value) for name, value in values.items()}
            queue = {QUEUE: source} if source else {}
            self._output.write(encoded(self._line({**queue, **index, **shown})))

    def end(self) -> None:
        """Close what is open, and report messages that did not fit."""
        if self._style == "json":
            self._output.write(b"[]\n" if self._before == "[" else b"\n]\n")
        if self._arrow is not None:
            self._arrow.__exit__()
        self.flush()
        if self._misfits:
            print_error(f"messages that do not fit the schema have no values: {self._misfits}")

    def _table(self, batch: Columns, rows: Rows) -> pa.RecordBatch:
        """Return the chosen rows and columns."""
        import pyarrow as pa

        decoder = cast("Decoder", self._decoder)
        decoded = decoder.batch(batch)
        if len(rows) != len(batch) or rows[0] > rows[-1]:
            data = pa.py_buffer(array("q", rows))  # made of a list, it would import pandas
            decoded = decoded.take(pa.Array.from_buffers(pa.int64(), len(rows), [None, data]))
        if _ERROR in decoded.schema.names:
            errors = cast("Any", decoded).column(_ERROR)
            self._misfits += len(errors) - errors.null_count
        names = [INDEX, *self._columns] if self._with_index else self._columns
        arrays = [column_of(decoded, Field(name.split("."))) for name in names]
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def _as_shown(self, value: Any) -> Any:  # noqa: ANN401 - what messages hold
        if isinstance(value, datetime):
            return (value if self._zone is None else self._zone(value)).isoformat()
        if isinstance(value, date | time):
            return value.isoformat()
        if isinstance(value, bytes):
            return value.hex()
        if isinstance(value, Mapping):
            items = cast("Mapping[str, Any]", value).items()
            return {name: self._as_shown(it) for name, it in items}
        if isinstance(value, list | tuple):
            return [self._as_shown(it) for it in cast("list[Any]", value)]
        return value if value is None or isinstance(value, str | int | float) else str(value)

    def _line(self, values: dict[str, Any]) -> str:
        if self._style == "csv":
            return self._csv(values)
        if INDEX in values and self._with_index:
            values = {**values, INDEX: f"{values[INDEX]:#x}"}
        if self._style == "text":
            return "\t".join(escape_line(_cell(it)) for it in values.values()) + "\n"
        text = escape_json(json.dumps(values, ensure_ascii=False))
        if self._style == "yaml":
            from quire._native import _parse_shown  # pyright: ignore[reportPrivateUsage]
            from quire.types import to_yaml

            return escape_controls("---\n" + to_yaml(_parse_shown(text)))
        if self._style == "jsonl":
            return f"{text}\n"
        before, self._before = self._before, ","
        return f"{before}\n{text}"

    def _csv(self, values: dict[str, Any]) -> str:
        import csv
        import io

        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not self._has_heading:
            self._has_heading = True
            writer.writerow(values)
        writer.writerow(_cell(it) for it in values.values())
        return escape_controls(text.getvalue())


def _cell(value: Any) -> str:  # noqa: ANN401 - what messages hold
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _picked(values: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """Return the values of these fields; None where a message lacks one."""
    found: dict[str, Any] = {}
    for name in columns:
        value: Any = values
        for part in name.split("."):
            value = cast("Mapping[str, Any]", value).get(part) if isinstance(value, dict) else None
        found[name] = value
    return found


def _values(table: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield the rows, without their index."""
    names = [name for name in table.schema.names if name != INDEX]
    if not names:
        yield from ({} for _ in range(len(table)))
        return
    columns: list[list[Any]] = [cast("Any", table).column(name).to_pylist() for name in names]
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def _with_queue(source: str, table: pa.RecordBatch) -> pa.RecordBatch:
    if not source:
        return table
    import pyarrow as pa

    names = pa.array([source] * len(table))
    return pa.RecordBatch.from_arrays([names, *table.columns], names=[QUEUE, *table.schema.names])
