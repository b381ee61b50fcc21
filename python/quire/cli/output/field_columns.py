"""Fields of messages on stdout, as objects, lines, CSV or Arrow."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, cast

import click

from quire._common.terminal import escape_controls, escape_json
from quire._native import render_columns
from quire.cli.exit_codes import print_error
from quire.cli.output.message_formats import encoded, in_utf8
from quire.cli.output.row_formats import ArrowOutput
from quire.cli.parameters import Zone
from quire.cli.reading.fields import INDEX, Decoder, values_of
from quire.cli.reading.selection import Rows
from quire.cli.streams import Output
from quire.cli.where.conditions import Field, column_of
from quire.formats.columns import Columns

if TYPE_CHECKING:
    import pyarrow as pa

    from quire._native import RenderedColumn
    from quire.arrow.schema import Schema

QUEUE: Final = "queue"
_ERROR: Final = "_error"
_NO_NUMBERS: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


class ColumnPrinter:
    """
    Shows fields of messages.

    Args:
        style: The format.
        infer: Returns what the messages look like; None if they have nothing in common, or if there
            are none: it is asked again when the first is shown.
        columns: The fields to show, ``trade.price`` for one inside another; None: all.
        with_index: Put the index before them.
        with_queue: Put the name of the queue before both.
        zone: The time zone of times.

    """

    def __init__(  # noqa: PLR0913 - options of the command line
        self,
        style: str,
        infer: Callable[[], Schema | None],
        columns: Sequence[str] | None,
        *,
        with_index: bool,
        with_queue: bool,
        zone: Zone | None,
    ) -> None:
        """Choose the columns, if there are messages that have some."""
        self._style = style
        self._infer = infer
        self._given = columns
        self._with_index = with_index
        self._with_queue = with_queue
        self._zone = zone
        self._decoder: Decoder | None = None
        self._columns: list[str] = []
        self._misfits = 0
        self._before = b"["
        self._output = Output()
        self._arrow = ArrowOutput() if style == "arrow" else None
        self._is_started = False
        self.flush = self._output.flush
        self._choose_columns()

    def show(self, source: str, batch: Columns, rows: Rows) -> None:
        """
        Show rows of a batch.

        Raises:
            click.ClickException: The messages have no common columns.

        """
        if not self._is_started:
            self._start()
        if self._style not in {"json", "jsonl"}:
            source = in_utf8(source)  # JSON has escapes of its own
        if self._arrow is not None:
            self._arrow.write(self._with_source(source, self._table(batch, rows)))
            return
        columns = [_json_column(QUEUE, [source] * len(rows))] if self._with_queue else []
        if self._with_index:
            columns.append((INDEX, "index", 0, [None, array("Q", _indexes(batch, rows))], []))
        self._print([*columns, *self._fields(batch, rows)], len(rows))

    def end(self) -> None:
        """Close what is open, and report messages that did not fit."""
        if self._arrow is not None:
            if not self._is_started:
                self._arrow.write(self._with_source("", self._no_rows()))
            self._arrow.__exit__()
        elif not self._is_started and self._style == "csv":
            self._put_heading()
        if self._style == "json":
            self._output.write(b"[]\n" if self._before == b"[" else b"\n]\n")
        self.flush()
        if self._misfits:
            print_error(f"messages that do not fit the schema have no values: {self._misfits}")

    def _choose_columns(self) -> None:
        schema = self._infer()
        names = None if self._given is None else [it.partition(".")[0] for it in self._given]
        self._decoder = None if schema is None else Decoder(schema, names)
        shown = self._given if self._given is not None or schema is None else schema.names
        self._columns = [name for name in shown or () if name != INDEX]

    def _start(self) -> None:
        if self._decoder is None:
            self._choose_columns()
        if self._decoder is None and (self._given is None or self._style == "arrow"):
            ways = "--schema (a file of names and types, or module:Name)"
            if self._style != "arrow":
                ways = f"--columns, or with their types by {ways}"
            raise click.ClickException(
                "the messages have no common columns, or fields of the names index or _error, which"
                f" are taken: name them by {ways}"
            )
        self._is_started = True
        if self._style == "csv":
            self._put_heading()

    def _put_heading(self) -> None:
        names = [QUEUE] if self._with_queue else []
        names += [INDEX] if self._with_index else []
        names += self._columns
        if names:
            self._put("csv", [_json_column(name, [name]) for name in names], 1)

    def _fields(self, batch: Columns, rows: Rows) -> list[RenderedColumn]:
        """Return the columns of the fields."""
        if self._decoder is None:
            found = [values_of(batch, row) for row in rows]
            return [
                _json_column(name, [self._as_shown(_picked(values, name)) for values in found])
                for name in self._columns
            ]
        from quire.cli.output.rendered_columns import native_column

        table: Any = self._table(batch, rows)
        columns: list[RenderedColumn] = []
        for name in self._columns:
            column = table.column(name)
            native = native_column(name, column, with_times=self._zone is None)
            columns.append(
                native or _json_column(name, [self._as_shown(it) for it in column.to_pylist()])
            )
        return columns

    def _table(self, batch: Columns, rows: Rows) -> pa.RecordBatch:
        """Return the chosen rows and columns."""
        import pyarrow as pa

        decoder = cast("Decoder", self._decoder)
        decoded = decoder.batch(batch)
        if len(rows) != len(batch) or (rows and rows[0] > rows[-1]):
            data = pa.py_buffer(array("q", rows))  # made of a list, it would import pandas
            decoded = decoded.take(pa.Array.from_buffers(pa.int64(), len(rows), [None, data]))
        if _ERROR in decoded.schema.names:
            errors = cast("Any", decoded).column(_ERROR)
            self._misfits += len(errors) - errors.null_count
        names = [INDEX, *self._columns] if self._with_index else self._columns
        arrays = [column_of(decoded, Field(name.split("."))) for name in names]
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def _no_rows(self) -> pa.RecordBatch:
        """Return the columns that are known, without a row."""
        if self._decoder is not None:
            return self._table(Columns.of_payloads([], []), range(0))
        import pyarrow as pa

        names = [INDEX] if self._with_index else []
        return pa.RecordBatch.from_arrays([pa.nulls(0, pa.uint64()) for _ in names], names=names)

    def _with_source(self, source: str, table: pa.RecordBatch) -> pa.RecordBatch:
        if not self._with_queue:
            return table
        import pyarrow as pa

        names = pa.array([source] * len(table), pa.string())
        columns = [QUEUE, *table.schema.names]
        return pa.RecordBatch.from_arrays([names, *table.columns], names=columns)

    def _as_shown(self, value: Any) -> Any:  # noqa: ANN401 - what messages hold
        if isinstance(value, datetime) and self._zone is not None:
            value = self._zone(value)
        if isinstance(value, date | time):
            return value.isoformat()
        if isinstance(value, bytes):
            return value.hex()
        if isinstance(value, list) and _is_map(cast("Sequence[Any]", value)):
            value = dict(cast("list[tuple[str, Any]]", value))
        if isinstance(value, Mapping):
            items = cast("Mapping[str, Any]", value).items()
            return {name: self._as_shown(it) for name, it in items}
        if isinstance(value, list | tuple):
            return [self._as_shown(it) for it in cast("list[Any]", value)]
        if isinstance(value, float):
            return value if math.isfinite(value) else _NO_NUMBERS[str(value)]
        return value if value is None or isinstance(value, str | int) else str(value)

    def _print(self, columns: list[RenderedColumn], count: int) -> None:
        self._put(self._style if self._style in {"csv", "text"} else "jsonl", columns, count)

    def _put(self, rendered_as: str, columns: list[RenderedColumn], count: int) -> None:
        text, is_plain = render_columns(rendered_as, columns, count)
        if not is_plain:
            escape = escape_json if rendered_as == "jsonl" else escape_controls
            text = encoded(escape(text.decode()))
        if self._style == "json":
            text = self._before + b"\n" + text.removesuffix(b"\n").replace(b"\n", b",\n")
            self._before = b","
        elif self._style == "yaml":
            text = encoded("".join(map(_yaml, text.decode().splitlines())))
        self._output.write(text)


def _yaml(line: str) -> str:
    """Return an object of JSON as a document of YAML."""
    from quire._native import _parse_shown  # pyright: ignore[reportPrivateUsage]
    from quire.types import to_yaml

    return escape_controls("---\n" + to_yaml(_parse_shown(line)))


def _indexes(batch: Columns, rows: Rows) -> Iterable[int]:
    return batch.indexes if rows == range(len(batch)) else [batch.indexes[row] for row in rows]


def _json_column(name: str, values: Iterable[Any]) -> RenderedColumn:
    """Return values of any kinds as a column."""
    texts = [encoded(json.dumps(value, ensure_ascii=False)) for value in values]
    offsets = array("i", accumulate(map(len, texts), initial=0))
    return name, "json", 0, [None, offsets, b"".join(texts)], []


def _picked(values: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - what messages hold
    """Return the value of a field; None where a message lacks it."""
    found: Any = values
    for part in name.split("."):
        found = cast("Mapping[str, Any]", found).get(part) if isinstance(found, dict) else None
    return found


def _is_map(values: Sequence[Any]) -> bool:
    """Return whether these are the entries of a map, as pyarrow has it."""
    return bool(values) and isinstance(values[0], tuple)
