"""Rows of a verb, in each of the formats that people and programs read."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, cast

import click

from quire._common.optional_arrow import need_arrow
from quire._common.terminal import escape_controls, escape_line
from quire.cli.output.message_formats import encoded, in_utf8
from quire.cli.streams import Output, styled

if TYPE_CHECKING:
    import pyarrow as pa

Row: TypeAlias = Mapping[str, Any]

_NOTHING: Final = "-"
_GAP: Final = "  "


def print_rows(style: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """
    Print rows on stdout, each with a value for each of the columns; None where it has none.

    Args:
        style: One of :data:`quire.cli.shared_options.ROW_FORMATS`.
        columns: Their names, in this order.
        rows: Values are text, numbers, truth values or None; lists and maps too, except in ``csv``.

    Raises:
        click.UsageError: The format is binary and stdout is a terminal.

    """
    if style == "arrow":
        found = [*rows]
        need_arrow()
        import pyarrow as pa

        values = [_arrow_column([_in_utf8(row[name]) for row in found]) for name in columns]
        with ArrowOutput() as stream:
            stream.write(pa.RecordBatch.from_arrays(values, names=[*columns]))
        return
    output = Output()
    for text in _PRINTERS[style](columns, rows):
        output.write(encoded(text))
    output.flush()


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a table; numbers are aligned to the right."""
    given = [[*row] for row in rows]
    cells = [[_cell(value) for value in row] for row in given]
    widths = [
        max(len(name), *(len(row[at]) for row in cells), 0) for at, name in enumerate(columns)
    ]
    is_number = [any(_is_number(row[at]) for row in given) for at in range(len(columns))]

    def line(row: Iterable[str]) -> str:
        aligned = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_number, strict=True)
        )
        return _GAP.join(aligned).rstrip()

    yield styled(line(columns), bold=True)
    yield from (line(row) for row in cells)


def number_text(number: int) -> str:
    """Return a number, with commas between its thousands where a person looks: on a terminal."""
    return f"{number:,}" if sys.stdout.isatty() else str(number)


def counted(count: int, noun: str) -> str:
    """Return a number of things whose plural ends in s: ``1 file``, ``2 files``."""
    return f"{number_text(count)} {noun}{'' if count == 1 else 's'}"


class ArrowOutput:
    """
    Record batches on stdout, as one Arrow IPC stream.

    Raises:
        click.UsageError: Standard output is a terminal.

    """

    def __init__(self) -> None:
        """Check stdout."""
        refuse_terminal("arrow")
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def __enter__(self) -> Self:
        """Do nothing yet: the first batch says what the columns are."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the stream."""
        if self._writer is not None:
            self._writer.close()
        sys.stdout.buffer.flush()

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch; all have the columns of the first."""
        import pyarrow as pa

        if self._writer is None:
            stdout: Any = sys.stdout.buffer
            self._writer = pa.ipc.new_stream(stdout, batch.schema)
        self._writer.write_batch(batch)


def refuse_terminal(style: str) -> None:
    """
    Refuse to write a binary format to a terminal.

    Raises:
        click.UsageError: Standard output is a terminal.

    """
    if sys.stdout.isatty():
        raise click.UsageError(f"--format {style} is binary: redirect stdout to a file or a pipe")


def _arrow_column(values: list[Any]) -> Any:  # noqa: ANN401 - pyarrow-stubs leave arrays open
    """Return values as a column: of text if they are of several kinds, as options are."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        texts = (it if it is None or isinstance(it, str) else json_text(it) for it in values)
        return pa.array(texts, pa.string())


def _in_utf8(found: Any) -> Any:  # noqa: ANN401 - of any JSON
    """Return the same with every text in UTF-8."""
    match found:
        case str():
            return in_utf8(found)
        case dict():
            known = cast("dict[str, Any]", found)
            return {in_utf8(key): _in_utf8(it) for key, it in known.items()}
        case list() | tuple():
            return [_in_utf8(it) for it in cast("list[Any]", found)]
        case _:
            return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object) -> str:
    if value is None:
        return _NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return number_text(value)
    return escape_line(f"{value:.6g}" if isinstance(value, float) else str(value))


def _text(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    for line in table(columns, ([row[name] for name in columns] for row in rows)):
        yield f"{line}\n"


def _yaml(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    from quire._native import _parse_shown  # pyright: ignore[reportPrivateUsage]
    from quire.types import to_yaml

    for row in rows:
        text = _object(columns, {name: _in_utf8(row[name]) for name in columns})
        yield escape_controls("---\n" + to_yaml(_parse_shown(text)))


def _jsonl(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        yield f"{_object(columns, row)}\n"


def _json(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    before = "["
    for row in rows:
        yield f"{before}\n{_object(columns, row)}"
        before = ","
    yield "[]\n" if before == "[" else "\n]\n"


def _csv(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    import csv
    import io

    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\n")
    for row in [columns, *([row[name] for name in columns] for row in rows)]:
        writer.writerow(row)
        yield escape_controls(line.getvalue())
        line.seek(0)
        line.truncate()


def _object(columns: Sequence[str], row: Row) -> str:
    """Return a row as JSON, in ASCII."""
    return json_text({name: row[name] for name in columns})


def json_text(found: object, indent: int | None = None) -> str:
    """Return JSON, in ASCII: null for numbers that it does not have."""
    import json

    try:
        return json.dumps(found, indent=indent, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(found), indent=indent)


def _finite(found: Any) -> Any:  # noqa: ANN401 - of any JSON
    """Return the same without numbers that are infinite, or none."""
    match found:
        case float():
            return found if math.isfinite(found) else None
        case dict():
            return {key: _finite(it) for key, it in cast("dict[str, Any]", found).items()}
        case list() | tuple():
            return [_finite(it) for it in cast("list[Any]", found)]
        case _:
            return found


_PRINTERS: Final = {"text": _text, "yaml": _yaml, "json": _json, "jsonl": _jsonl, "csv": _csv}
