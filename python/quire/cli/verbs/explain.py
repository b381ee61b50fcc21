"""``quire explain``: what each byte of a message means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

import quire
from quire._common.terminal import escape_line
from quire.cli.output.row_formats import number_text, print_rows
from quire.cli.parameters import PATH, index_of, value_errors_as_usage
from quire.cli.shared_options import row_format_option
from quire.cli.streams import styled

_COLUMNS: Final = ("section", "position", "length", "depth", "bytes", "code", "meaning", "file")
_ON_A_LINE: Final = 8
_LINES: Final = 4
_PLACE_WIDTH: Final = 10
_CODE_WIDTH: Final = 14
_NAMES: Final = {"FIELD_NAME", "FIELD_NAME_ANY", "EVENT_NAME", "EVENT_OBJECT", "FIELD_NUMBER"}
_TYPES: Final = {"TYPE_PREFIX", "TYPE_LITERAL"}
_BLOCKS: Final = {"BYTES_LENGTH8", "BYTES_LENGTH16", "BYTES_LENGTH32", "U8_ARRAY", "I64_ARRAY"}
_PADDING: Final = {"PADDING", "padding"}


@click.command()
@click.argument("path", type=PATH)
@click.argument("index", type=index_of)
@row_format_option()
def explain(path: Path, index: int, *, style: str) -> None:
    """
    Show what each byte of a message means, and which index entries lead to it.

    Each line has a position in the file, the bytes there, their BinaryWire code or the name of the
    word, and their meaning; see docs/format.md. Messages of a Vanilla Chronicle or a Quick-Queue
    are raw bytes. Changes nothing.

    \b
    Examples:
      quire explain orders 0x4d1900000000
      quire explain orders 0x4d1900000000 --format jsonl | jq -r .code
    """  # noqa: D301 - click reads the backspace
    with value_errors_as_usage():
        found = quire.maintenance.explain(path, index)
    if style != "text":
        print_rows(style, _COLUMNS, map(_row, found.parts))
        return
    click.echo(f"{escape_line(found.file)}, message {index:#x}")
    for line in _lines(found):
        click.echo(line)


def _row(part: quire.maintenance.ExplainedPart) -> dict[str, Any]:
    row = part._asdict()
    row["bytes"] = row.pop("data").hex()
    return row


def _lines(found: quire.maintenance.Explanation) -> Iterator[str]:
    section, file = "", found.file
    for part in found.parts:
        if (part.section, part.file) != (section, file):
            name = f", {escape_line(part.file)}" if part.file != file else ""
            section, file = part.section, part.file
            yield styled(section, bold=True) + name
        yield from _part(part)


def _part(part: quire.maintenance.ExplainedPart) -> Iterator[str]:
    lines = [part.data[at : at + _ON_A_LINE] for at in range(0, len(part.data), _ON_A_LINE)]
    for number, data in enumerate(lines[:_LINES]):
        place = f"{part.position + number * _ON_A_LINE:{_PLACE_WIDTH}x}: "
        digits = data.hex(" ").ljust(3 * _ON_A_LINE)
        if number:
            yield place + styled(digits.rstrip(), **_style(part))
            continue
        code = styled(part.code.ljust(_CODE_WIDTH), dim=True)
        meaning = styled("  " * part.depth + escape_line(part.meaning), **_style(part))
        yield f"{place}{styled(digits, **_style(part))} {code} {meaning}"
    more = part.length - _LINES * _ON_A_LINE
    if more > 0:
        yield f"{' ' * _PLACE_WIDTH}  and {number_text(more)} bytes more"


def _style(part: quire.maintenance.ExplainedPart) -> dict[str, Any]:
    if part.section != "payload":
        return {"fg": "cyan"}
    for codes, style in (
        (_NAMES, {"fg": "green"}),
        (_TYPES, {"fg": "magenta"}),
        (_BLOCKS, {"fg": "blue"}),
        (_PADDING, {"dim": True}),
    ):
        if part.code in codes:
            return style
    return {"fg": "yellow"}
