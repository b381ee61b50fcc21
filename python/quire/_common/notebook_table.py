"""Handles and batches as HTML, for notebooks. Whatever a message or a path holds is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any, Final

from quire._common.terminal import escape_line

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS: Final = 20
_CHARACTERS: Final = 200


def of_facts(title: str, facts: Iterable[tuple[str, object]] = ()) -> str:
    """Return a title and facts, each with its name."""
    rows = "".join(
        f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>" for name, value in facts
    )
    return f"<code>{_text(title)}</code>" + (f"<table>{rows}</table>" if rows else "")


def of_table(table: pa.RecordBatch | pa.Table) -> str:
    """Return the first rows of a batch or table."""
    names: list[str] = table.schema.names
    head = "".join(f"<th>{_text(name)}</th>" for name in names)
    shown: list[dict[str, Any]] = table.slice(0, _ROWS).to_pylist()
    body = "".join(
        f"<tr>{''.join(f'<td>{_text(row[name])}</td>' for name in names)}</tr>" for row in shown
    )
    size = f"{table.num_rows:,} rows, {table.num_columns} columns"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{size}</p>"


def _text(value: object) -> str:
    text = escape_line(str(value))
    return escape(text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}…")
