"""What `quire read` prints in CSV, text and as columns: every type, every character, no message."""

from __future__ import annotations

import csv
import io
import json
import sys
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from unicodedata import category
from uuid import UUID

import pyarrow as pa
import pytest

import quire
from cli_runs import Cli
from quire._common.terminal import escape_line
from quire._native import render_rows

ROWS: list[dict[str, Any]] = [
    {
        "text": 'say "a, b"\nand c',
        "number": -7,
        "price": 1.5,
        "yes": True,
        "blob": b"\x00\xff",
        "at": datetime(2024, 1, 15, 10, 30, 0, 120_000, UTC),
        "local": datetime(1969, 12, 31, 23, 59, 59),  # noqa: DTZ001 - a time without a zone
        "day": date(2024, 2, 29),
        "clock": time(10, 30, 1),
        "id": UUID(int=0x12345678123456781234567812345678),
        "inside": {"venue": "LDN", "tags": ["x", "y"]},
        "list": [1, None, 3],
    },
    {"text": "", "price": float("nan"), "list": []},
]
SHOWN: list[dict[str, Any]] = [
    {
        "text": 'say "a, b"\nand c',
        "number": -7,
        "price": 1.5,
        "yes": True,
        "blob": "00ff",
        "at": "2024-01-15T10:30:00.120000+00:00",
        "local": "1969-12-31T23:59:59",
        "day": "2024-02-29",
        "clock": "10:30:01",
        "id": "12345678123456781234567812345678",
        "inside": {"venue": "LDN", "tags": ["x", "y"]},
        "list": [1, None, 3],
    },
    {name: {"text": "", "price": "NaN", "list": []}.get(name) for name in ROWS[0]},
]


@pytest.fixture
def rows(appender: quire.JournalAppender) -> list[int]:
    return [appender.write_map(row) for row in ROWS]


def cell(value: object) -> str:
    """Return a value as CSV has it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.usefixtures("rows")
def test_each_type_is_shown_the_same_in_every_format(cli: Cli, path: Path) -> None:
    command = ("read", path, "--no-index", "--columns", ",".join(ROWS[0]), "--format")
    assert json.loads(cli.ok(*command, "json").out) == SHOWN
    assert [json.loads(line) for line in cli.ok(*command, "jsonl").lines] == SHOWN
    expected = [[cell(row[name]) for name in ROWS[0]] for row in SHOWN]
    found = [*csv.reader(io.StringIO(cli.ok(*command, "csv").out))]
    assert found == [[*ROWS[0]], *expected]
    lines = [line.split("\t") for line in cli.ok(*command, "text").lines]
    assert lines == [[it.replace("\n", "\\n") for it in row] for row in expected]


def test_a_tab_in_a_text_is_no_end_of_a_cell(
    cli: Cli, path: Path, appender: quire.JournalAppender
) -> None:
    appender.write_map({"a": "x\ty", "b": "z"})
    command = ("read", path, "--no-index", "--columns", "a,b", "--format")
    assert cli.ok(*command, "text").lines == ["x\\ty\tz"]
    assert cli.ok(*command, "csv").lines == ["a,b", "x\ty,z"]


@pytest.mark.usefixtures("rows")
def test_times_are_in_the_zone_that_was_asked_for(cli: Cli, path: Path) -> None:
    command = ("read", path, "--columns", "at,number", "--no-index", "--format", "csv", "--zone")
    assert cli.ok(*command, "Asia/Tokyo").lines[1] == "2024-01-15T19:30:00.120000+09:00,-7"


def test_types_that_only_a_schema_has(
    cli: Cli, path: Path, appender: quire.JournalAppender
) -> None:
    appender.write_map({"a": 200, "b": 0.1, "c": "1.50", "d": "buy", "e": {"x": 1}})
    schema = path.parent / "schema.json"
    types = {"a": "uint8", "b": "float32", "c": "decimal128(10, 2)", "d": "category"}
    schema.write_text(json.dumps(types))
    found = cli.ok("read", path, "--schema", schema, "--no-index", "--format", "csv").lines
    assert found == ["a,b,c,d", "200,0.10000000149011612,1.50,buy"]


def test_rows_in_any_order_are_those_of_the_messages(
    cli: Cli, path: Path, appender: quire.JournalAppender
) -> None:
    rows = [{"n": number, "inside": {"text": f"{number}é"}} for number in range(20)]
    indexes = [appender.write_map(row) for row in rows]
    for options, numbers in (
        (["--reverse"], range(19, -1, -1)),
        (["--where", "n in (3, 4, 11)"], (3, 4, 11)),
        (["--last", "2"], (18, 19)),
        (["--include", "1é"], (1, 11)),
    ):
        lines = cli.ok("read", path, "--columns", "n,inside", "--format", "jsonl", *options).lines
        expected = [{"index": f"{indexes[number]:#x}", **rows[number]} for number in numbers]
        assert [json.loads(line) for line in lines] == expected, options


def test_a_queue_without_messages_has_a_heading_alone(cli: Cli, path: Path) -> None:
    quire.open(path).close()
    assert cli.ok("read", path, "--format", "csv").out == "index\n"
    assert cli.ok("read", path, "--format", "csv", "--no-index").out == ""
    assert cli.ok("read", path, "--format", "csv", "--columns", "a,b").out == "index,a,b\n"
    assert json.loads(cli.ok("read", path, "--format", "json", "--columns", "a").out) == []
    with pa.ipc.open_stream(cli.ok("read", path, "--format", "arrow").raw) as stream:
        assert (stream.read_all().num_rows, stream.schema.names) == (0, ["index"])


@pytest.mark.usefixtures("rows")
def test_a_range_without_messages_has_the_heading_of_the_others(cli: Cli, path: Path) -> None:
    command = ("read", path, "--columns", "text,price", "--count", "0", "--format")
    assert cli.ok(*command, "csv").out == "index,text,price\n"
    with pa.ipc.open_stream(cli.ok(*command, "arrow").raw) as stream:
        assert (stream.read_all().num_rows, stream.schema.names[1:]) == (0, ["text", "price"])


def test_the_heading_names_the_queue_if_there_may_be_several(cli: Cli, tmp_path: Path) -> None:
    for name in ("a", "b"):
        with quire.open(tmp_path / "queues" / name) as queue, queue.appender() as appender:
            appender.write_map({"n": 1})
    root = tmp_path / "queues"
    found = [*csv.DictReader(io.StringIO(cli.ok("read", root, "--format", "csv").out))]
    assert [(row["queue"], row["n"]) for row in found] == [("a", "1"), ("b", "1")]
    assert cli.ok("read", root, "--count", "0", "--format", "csv").out == "queue,index,n\n"


def test_messages_without_common_columns_are_an_error_of_one_line(
    cli: Cli, path: Path, appender: quire.JournalAppender
) -> None:
    appender.write_map({"a": 1})
    appender.write_text("no fields")
    ran = cli("read", path, "--format", "csv")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "no common columns" in ran.err
    assert "name them by --columns, or with their types by --schema" in ran.err
    found = cli.ok("read", path, "--columns", "a", "--format", "csv", "--no-index").lines
    assert found == ["a", "1", '""']


def test_text_and_bytes_are_on_one_line_without_control_characters(
    cli: Cli, path: Path, appender: quire.JournalAppender
) -> None:
    for payload in (
        b"plain",
        b"a\nb\r\x1b[2J\xff",
        b"\xe2\x82\xac\xe2\x82",
        "\u202e\u2028".encode(),
    ):
        appender.write_bytes(payload)
    appender.write_text("two\nlines\x07")
    assert cli.ok("read", path, "--format", "text", "--no-index").lines == [
        "plain",
        "a\\nb\\r\\x1b[2J\\xff",
        "€\\xe2\\x82",
        "\\u202e\\u2028",
        "two\\nlines\\x07",
    ]


@pytest.mark.check
def test_the_kernel_escapes_the_characters_that_python_does() -> None:
    chars = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    payloads = [f"a{char}".encode() for char in chars]
    ends, at = [0], 0
    for payload in payloads:
        at += len(payload)
        ends.append(at)
    offsets = b"".join(end.to_bytes(4, "little") for end in ends)
    columns: Any = None, offsets, b"".join(payloads)
    text, stopped, is_plain = render_rows("text", columns, 0, len(chars))
    assert (stopped, is_plain) == (len(chars), True)
    # A character that this Python does not know yet may be one for the kernel.
    wrong = [
        hex(ord(char))
        for char, line in zip(chars, text.decode().split("\n"), strict=False)
        if line != escape_line(f"a{char}") and category(char) != "Cn"
    ]
    assert wrong == []


def test_decimals_and_maps_of_one_column(
    cli: Cli, path: Path, appender: quire.JournalAppender
) -> None:
    appender.write_map({"price": Decimal("0.10"), "sizes": {"a": 1}})
    line = cli.ok("read", path, "--columns", "price,sizes", "--no-index", "--format", "csv").lines[
        1
    ]
    assert line == '0.10,"{""a"": 1}"'
