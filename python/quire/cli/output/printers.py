"""Batches of whole messages on stdout."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from quire._common.terminal import escape_controls, escape_json, escape_line
from quire._native import render_rows
from quire.cli.output.message_formats import encoded, framed, text_of
from quire.cli.reading.selection import Rows
from quire.cli.streams import Output, has_color
from quire.formats.columns import Columns

_LINE: Final = re.compile(rb'(?m)^\{"index"')


class MessagePrinter:
    """Shows whole messages, as YAML, JSON, text, digits or raw bytes."""

    def __init__(self, style: str, *, with_index: bool) -> None:
        """Begin with nothing shown."""
        self._style = "jsonl" if style == "json" else style
        self._with_index = with_index
        self._is_array = style == "json"
        self._between = b"["
        self._source = ""
        self._has_color = with_index and has_color() and style in {"yaml", "text", "hex"}
        self._output = Output()
        self.flush = self._output.flush

    def show(self, source: str, batch: Columns, rows: Rows) -> None:
        """Show rows of some messages."""
        if source != self._source:
            self._source = source
            if self._style not in {"jsonl", "raw"}:
                self._output.write(encoded(f"==> {escape_line(source)} <==\n"))
        for run in _runs_of(rows):
            self._show_run(batch, run)

    def end(self) -> None:
        """Close what is open."""
        if self._is_array:
            self._output.write(b"[]\n" if self._between == b"[" else b"\n]\n")
        self.flush()

    def _show_run(self, batch: Columns, run: range) -> None:
        if self._style == "raw":
            for row in run:
                self._output.write(batch.payload(row))
            return
        start = run.start
        while start < run.stop:
            row = start
            if batch.is_wire and not batch.is_metadata:
                text, row = _rendered(
                    batch, self._style, range(start, run.stop), with_index=self._with_index
                )
                self._write(text)
            if row < run.stop:
                self._show_one(batch, row)
            start = row + 1

    def _show_one(self, batch: Columns, row: int) -> None:
        """Show a message that is no plain sequence of values."""
        text = text_of(batch, self._style, row)
        index = batch.indexes[row] if self._with_index else None
        self._write(encoded(framed(self._style, text, index, is_metadata=batch.is_metadata)))

    def _write(self, text: bytes) -> None:
        if not text:
            return
        if self._source and self._style == "jsonl" and self._with_index:
            name = json.dumps(self._source).encode()
            text = _LINE.sub(lambda _: b'{"queue": ' + name + b', "index"', text)
        if self._is_array:
            text = self._between + b"\n" + text.removesuffix(b"\n").replace(b"\n", b",\n")
            self._between = b","
        elif self._has_color:
            text = _with_colored_indexes(text)
        self._output.write(text)


def _with_colored_indexes(text: bytes) -> bytes:
    return re.sub(rb"(?m)^0x[0-9a-f]+:", lambda it: b"\x1b[36m" + it[0] + b"\x1b[0m", text)


class JavaPrinter:
    """
    Shows messages as Java's ``ChronicleReaderMain`` does.

    Args:
        style: ``yaml`` or ``jsonl``.
        with_index: Put the index before each message.
        squash: Put each message on one line.

    """

    def __init__(self, style: str, *, with_index: bool, squash: bool) -> None:
        """Begin with nothing shown."""
        self._style = style
        self._with_index = with_index
        self._squash = squash
        self._output = Output()
        self.flush = self._output.flush

    def show(self, _source: str, batch: Columns, rows: Rows) -> None:
        """Show rows of some messages."""
        for run in _runs_of(rows):
            row = run.start
            if self._style == "yaml" and not self._squash and batch.is_wire:
                text, row = _rendered(batch, "java", run, with_index=self._with_index)
                self._output.write(text)
            for left in range(row, run.stop):
                self._output.write(encoded(self._one(batch, left)))

    def end(self) -> None:
        """Pass the collected messages to the output."""
        self.flush()

    def _one(self, batch: Columns, row: int) -> str:
        index = f"{batch.indexes[row]:#x}: \n" if self._with_index else ""
        text = text_of(batch, self._style, row)
        return f"{index}{text.replace(chr(10), '') if self._squash else text}\n"


def _rendered(columns: Columns, style: str, rows: range, *, with_index: bool) -> tuple[bytes, int]:
    """Return rows as printed, up to one that this style cannot show, and its number."""
    indexes = columns.indexes if with_index else None
    shown = indexes, columns.offsets, columns.data
    text, stopped, is_plain = render_rows(style, shown, rows.start, rows.stop)
    if not is_plain:
        escape = escape_json if style == "jsonl" else escape_controls
        text = encoded(escape(text.decode()))
    return text, stopped


def _runs_of(rows: Sequence[int]) -> Iterator[range]:
    """Yield consecutive rows together."""
    if isinstance(rows, range) and rows.step == 1:
        yield rows
        return
    start = stop = -1
    for row in rows:
        if row != stop:
            if start >= 0:
                yield range(start, stop)
            start = row
        stop = row + 1
    if start >= 0:
        yield range(start, stop)
