"""`quire read --where`, `--columns` and the formats of columns."""

from __future__ import annotations

import csv
import io
import json
import math
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire
from cli_runs import Cli, run
from quire.cli.where.conditions import holds
from quire.cli.where.language import parse_where
from quire.errors import WhereError

ROWS: list[dict[str, Any]] = [
    {"symbol": "EURUSD", "price": 1.25, "size": 100, "live": True, "trade": {"venue": "LDN"}},
    {"symbol": "USDJPY", "price": 148.5, "size": 30, "live": False, "trade": {"venue": "TKO"}},
    {"symbol": "EURGBP", "price": 0.85, "size": 5, "live": True, "trade": {"venue": "LDN"}},
    {"symbol": "GBPUSD", "price": 1.5, "live": False},
]

EXPRESSIONS = [
    ("symbol = 'EURUSD'", [0]),
    ('symbol == "EURUSD"', [0]),
    ("symbol != 'EURUSD'", [1, 2, 3]),
    ("size >= 30", [0, 1]),
    ("30 <= size", [0, 1]),
    ("size < 30.5 and live", [2]),
    ("not live", [1, 3]),
    ("live = true or size = 30", [0, 1, 2]),
    ("symbol ~ '^EUR' and not (size > 50 or price < 0.5)", [2]),
    ("symbol !~ 'USD'", [2]),
    ("symbol in ('USDJPY', 'GBPUSD')", [1, 3]),
    ("size not in (100, 5)", [1]),
    ("size is null", [3]),
    ("size is not null and trade.venue = 'LDN'", [0, 2]),
    ("`trade`.`venue` = 'TKO'", [1]),
    ("price > size", [1]),
    ("size > -1 and size < 0x10", [2]),
    ("NOT symbol = 'EURUSD' AND live", [2]),
    ("price < 1e0", [2]),
]


@pytest.fixture
def rows(appender: quire.JournalAppender) -> list[int]:
    return [appender.write_map(row) for row in ROWS]


@pytest.mark.parametrize(("expression", "expected"), EXPRESSIONS)
def test_messages_that_meet_a_condition_are_shown(
    cli: Cli, path: Path, rows: list[int], expression: str, expected: list[int]
) -> None:
    ran = cli.ok("read", path, "--format", "jsonl", "--where", expression)
    assert [json.loads(line)["index"] for line in ran.lines] == [f"{rows[n]:#x}" for n in expected]


@pytest.mark.parametrize(("expression", "expected"), EXPRESSIONS)
def test_a_condition_holds_for_values_as_it_does_for_columns(
    expression: str, expected: list[int]
) -> None:
    condition = parse_where(expression)
    assert [n for n, row in enumerate(ROWS) if holds(condition, row)] == expected


def test_messages_without_a_common_schema_are_looked_at_one_by_one(
    cli: Cli, path: Path, rows: list[int], appender: quire.JournalAppender
) -> None:
    appender.write_text("a text has no fields")
    for expression, expected in EXPRESSIONS:
        ran = cli.ok("read", path, "--format", "jsonl", "--where", f"({expression}) and index > 0")
        found = [int(json.loads(line)["index"], 16) for line in ran.lines]
        assert [it for it in found if it in rows] == [rows[n] for n in expected], expression


AT = datetime(2024, 1, 15, 11, tzinfo=UTC)
ODD: list[dict[str, Any]] = [
    {"x": math.inf, "n": 2**53 + 1, "at": AT, "on": AT.date(), "city": "Zürich", "far": {"x": 1.5}},
    {"x": math.nan, "n": 2**63 - 1, "at": AT + timedelta(microseconds=1), "city": "Oslo\n"},
    {"x": -0.0, "n": 5, "at": AT - timedelta(hours=1), "on": date(1969, 12, 31), "city": "Oslo"},
    {"x": 1.5, "at": datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), "far": {"x": -math.inf}},
]
SAME_ANSWERS: list[tuple[str, list[int]]] = [
    ("x > 0", [0, 3]),
    ("x != 1.5", [0, 1, 2]),
    ("x in (0, 1)", [2]),
    ("not x in (0.0, 1.5)", [0, 1]),
    ("far.x < 0", [3]),
    ("n > 0.5", [0, 1, 2]),
    ("n = 9007199254740992.0", []),
    ("n >= 9007199254740992.0", [0, 1]),
    ("n != x", [0, 1, 2]),
    ("at > '2024-01-15 10:30'", [0, 1]),
    ("at = '2024-01-15T12:00:00+01:00'", [0]),
    ("at in ('2024-01-15 11:00', '1969-12-31T23:59:59Z')", [0, 3]),
    ("at < '1970-01-01'", [3]),
    ("at > '2024-01-15T11:00:00.000000999'", [1]),
    ("on <= '1970-01-01'", [2]),
    (r"city ~ '^\\pL+$'", [0, 2]),
    (r"city ~ '^\\w+$'", [2]),
]


@pytest.mark.parametrize(("expression", "expected"), SAME_ANSWERS)
def test_a_condition_has_the_same_answer_beside_messages_of_another_form(
    cli: Cli, path: Path, appender: quire.JournalAppender, expression: str, expected: list[int]
) -> None:
    indexes = [appender.write_map(row) for row in ODD]
    before = cli.ok("read", path, "--format", "jsonl", "--where", expression)
    assert [json.loads(line)["index"] for line in before.lines] == [
        f"{indexes[n]:#x}" for n in expected
    ]
    appender.write_text("a text has no fields")
    assert cli.ok("read", path, "--format", "jsonl", "--where", expression).lines == before.lines
    cli.ok("split", path, path.parent / "parts", "--where", expression)
    if expected:
        parts = cli.ok("read", path.parent / "parts" / "matching", "--format", "jsonl")
        assert [json.loads(it)["message"] for it in parts.lines] == [
            json.loads(it)["message"] for it in before.lines
        ]


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    "options", [["--where", "size > 1"], ["--format", "csv"], ["--where", "symbol ~ 'E'"]]
)
def test_fields_without_pyarrow_are_one_clear_line(path: Path, options: list[str]) -> None:
    program = "import sys; sys.modules['pyarrow'] = None; from quire.cli import main; exit(main())"
    ran = subprocess.run(
        [sys.executable, "-c", program, "read", path, *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "quire: this needs pyarrow: pip install 'quire[arrow]'\n"


def test_a_condition_goes_with_the_other_options(cli: Cli, path: Path, rows: list[int]) -> None:
    options: list[str | Path] = [
        "--format",
        "jsonl",
        "--columns",
        "symbol",
        "--no-index",
        "--where",
        "price < 10",
    ]
    for more, expected in (
        (["--last", "2"], ["EURGBP", "GBPUSD"]),
        (["--count", "1"], ["EURUSD"]),
        (["--reverse"], ["GBPUSD", "EURGBP", "EURUSD"]),
        (["--from", f"{rows[1]:#x}"], ["EURGBP", "GBPUSD"]),
        (["--to", f"{rows[3]:#x}", "--exclude", "GBP"], ["EURUSD"]),
    ):
        lines = cli.ok("read", path, *options, *more).lines
        assert [json.loads(line)["symbol"] for line in lines] == expected


def test_columns_are_shown_in_each_format(cli: Cli, path: Path, rows: list[int]) -> None:
    options: list[str | Path] = [
        "read",
        path,
        "--columns",
        "symbol,trade.venue",
        "--where",
        "size > 20",
    ]
    expected = [("EURUSD", "LDN"), ("USDJPY", "TKO")]
    indexes = rows[:2]

    assert cli.ok(*options, "--format", "text").lines == [
        f"{index:#x}\t{symbol}\t{venue}"
        for index, (symbol, venue) in zip(indexes, expected, strict=True)
    ]
    objects = [
        {"index": f"{index:#x}", "symbol": symbol, "trade.venue": venue}
        for index, (symbol, venue) in zip(indexes, expected, strict=True)
    ]
    assert json.loads(cli.ok(*options, "--format", "json").out) == objects
    lines = cli.ok(*options, "--format", "jsonl").lines
    assert [json.loads(line) for line in lines] == objects
    assert cli.ok(*options).out.count("---\n") == 2
    (heading, *table) = csv.reader(io.StringIO(cli.ok(*options, "--format", "csv").out))
    assert heading == ["index", "symbol", "trade.venue"]
    assert [tuple(row[1:]) for row in table] == expected
    with pa.ipc.open_stream(cli.ok(*options, "--format", "arrow").raw) as stream:
        found = stream.read_all()
    assert found.column("index").to_pylist() == indexes
    assert found.column("trade.venue").to_pylist() == ["LDN", "TKO"]


def test_a_named_schema_gives_types(cli: Cli, path: Path, appender: quire.JournalAppender) -> None:
    appender.write_map({"at": "2024-01-15T10:30:00Z", "size": 7})
    appender.write_map({"at": "2024-01-15T12:00:00Z", "size": 8})
    schema = path.parent / "schema.json"
    schema.write_text('{"at": "timestamp", "size": "int64"}')
    options: list[str | Path] = [
        "--schema",
        schema,
        "--columns",
        "at,size",
        "--format",
        "jsonl",
        "--no-index",
    ]
    (line,) = cli.ok(
        "read", path, *options, "--where", "at > '2024-01-15T11:00:00Z'", "--zone", "Asia/Tokyo"
    ).lines
    assert json.loads(line) == {"at": "2024-01-15T21:00:00+09:00", "size": 8}


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("size >", "found=the end expected: a field"),
        ("size > 3 4", "found='4' column=10"),
        ("(size = 1", "expected: )"),
        ("size ~ 3", "a regular expression in quotes"),
        ("symbol ~ '('", "not a regular expression"),
        ("size = 1; drop", "unexpected: '; drop' column=9"),
        ("nothing = 3", "no such field: field=nothing known=symbol, price, size, live, trade"),
        ("trade.nothing = 3", "no such field: field=trade.nothing"),
        ("symbol = 3", "cannot be compared: field=symbol"),
        (
            "size in (5, 1.5)",
            "cannot be compared: field=size type=int64 with=5, 1.5 expected: an integer",
        ),
        ("symbol in (3)", "field=symbol type=string with=3 expected: a text in quotes"),
        ("size = symbol", "field=size type=int64 with=symbol type=string expected: a field"),
        ("size = 'x'", "cannot be compared: field=size"),
        ("size = 99999999999999999999", "cannot be compared: field=size"),
        ("size", "not a condition: field=size"),
        ("__import__('os')", "expected: and, or, or the end"),
        ("(" * 60 + "live" + ")" * 60, "nested too deeply"),
        ("", "found=the end"),
    ],
)
@pytest.mark.usefixtures("rows")
def test_a_wrong_expression_is_one_clear_line(
    cli: Cli, path: Path, expression: str, wrong: str
) -> None:
    ran = cli("read", path, "--where", expression)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert wrong in ran.err


@given(st.text(alphabet="ab.'\"()<>=!~ andortiulls0123`\\,", max_size=40))
def test_any_text_is_an_expression_or_a_clear_error(text: str) -> None:
    try:
        condition = parse_where(text)
    except WhereError:
        return
    holds(condition, {"a": 1, "b": "x"})


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        (["--columns", "symbol,,price"], "must be different names"),
        (["--columns", "nothing"], "no such field: field=nothing"),
        (["--columns", "symbol", "--format", "hex"], "do not go together"),
        (["--zone", "Mars/Olympus"], "is not a time zone"),
        (["--schema", "nowhere.json", "--columns", "symbol"], "no schema found"),
        (["--limiter", "nowhere:Nothing"], "names nothing"),
        (["--search-arg", "x"], "--search-arg needs --search"),
        (["--history"], "--history needs --interface"),
    ],
)
def test_a_wrong_option_is_one_clear_line(
    cli: Cli, path: Path, options: list[str], wrong: str
) -> None:
    ran = cli("read", path, *options)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert wrong in ran.err


@pytest.mark.parametrize(
    ("expression", "unknown"),
    [("size > 1", ""), ("sise > 1 or size > 1", "sise"), ("trade.venu is null", "trade.venu")],
)
def test_a_field_that_no_mixed_message_has_is_named(
    cli: Cli, path: Path, appender: quire.JournalAppender, expression: str, unknown: str
) -> None:
    appender.write_text("no map")
    appender.write_map({"size": 2, "trade": {"venue": "LDN"}})
    appender.write_map({"size": "two", "live": None})
    ran = cli("read", path, "--where", expression)
    report = f"quire: no message has the field: field={unknown} messages=3 path={path}\n"
    assert (ran.code, ran.err) == (0, report if unknown else "")
    assert "size: 2" in ran.out


def test_columns_are_read_by_a_process_of_its_own(path: Path, rows: list[int]) -> None:
    ran = run("read", path, "--where", "live", "--columns", "size", "--format", "csv")
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines == ["index,size", f"{rows[0]},100", f"{rows[2]},5"]
