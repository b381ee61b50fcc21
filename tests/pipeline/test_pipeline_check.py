"""``quire pipeline check``: what a file alone does not show is found before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import quire
from cli_runs import Cli
from quire.pipeline import PipelineFileError, check

pytestmark = pytest.mark.spark

GOOD = """\
pipeline: trades
sources:
  trades: {format: quire, path: trades, schema: "symbol string, price double"}
  calls: {format: quire, path: trades, options: {schema: "symbol string", timestampField: at}}
  planes: {format: csv, path: planes/*.csv, schema: "a int, b string"}
  kept: {format: table, table: kept_trades}
steps:
  clean:
    from: trades
    expect:
      positive: price > 0
      known: {check: symbol is not null, action: drop}
  joined:
    sql: >-
      select *, '{{' as brace from {clean}
      join {planes} join {calls} join {kept}
sinks:
  - {from: joined, format: parquet, path: out}
  - {from: clean, format: quire, path: copy, options: {rollCycle: FAST_DAILY}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with quire.open(tmp_path / "trades") as queue, queue.appender() as appender:
        appender.write_map({"symbol": "EURUSD", "price": 1.1})
    path = tmp_path / "pipeline.yaml"
    path.write_text(GOOD, "utf-8")
    return path


def problems(file: Path, *changes: tuple[str, str]) -> list[str]:
    text = GOOD
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file.write_text(text, "utf-8")
    before = sorted(file.parent.rglob("*"))
    with pytest.raises(PipelineFileError) as caught:
        check(file)
    assert sorted(file.parent.rglob("*")) == before
    return list(caught.value.problems)


def test_a_good_file_is_returned_and_described(file: Path, cli: Cli) -> None:
    assert check(file).name == "trades"
    assert cli.ok("pipeline", "check", file, "--format", "json").out == "[]\n"
    assert cli.ok("pipeline", "check", file).out == (f"{file}: 4 sources, 2 steps, 2 sinks, once\n")
    assert not (file.parent / "out").exists()


def test_everything_is_found_at_once_and_with_its_line(file: Path, tmp_path: Path) -> None:
    found = problems(
        file,
        ("trades: {format: quire, path: trades,", "trades: {format: quire, path: nowhere,"),
        ("symbol string, price double", "symbol strin, price"),
        ("timestampField: at", "timestampFeld: at, failOnDataLoss: maybe"),
        ('{schema: "symbol string"', '{schema: "symbol string price"'),
        ("planes/*.csv", "planes.csv"),
        ("price > 0", "price >"),
        ("symbol is not null", "symbol is not nul"),
        ("from {clean}", "form {clean}"),
        ("rollCycle", "rollCycl"),
        ("from: joined", "from: joind"),
    )
    starts = (
        f"3: sources.trades.path: does not exist: found={tmp_path}/nowhere expected: the directory",
        "3: sources.trades.schema: does not parse at line 1, column 20: found='symbol strin",
        "4: sources.calls.options.schema: does not parse at line 1, column 15: found='symbol str",
        "4: sources.calls.options: failOnDataLoss must be one of true, false: failOnDataLoss=",
        f"5: sources.planes.path: does not exist: found={tmp_path}/planes.csv expected: a file",
        "11: steps.clean.expect.positive: does not parse at line 1, column 8: found='price >' exp",
        "12: steps.clean.expect.known: does not parse at line 1, column 15: found='symbol is not",
        "13: steps.joined: unused: no step or sink reads it",
        "14: steps.joined.sql: does not parse at line 1, column ",
        "18: sinks[0].from: unknown source or step: found='joind' expected: trades,",
        "19: sinks[1].options: unknown option: rollcycl, did you mean rollCycle?",
    )
    assert len(found) == len(starts), found
    for line, start in zip(found, starts, strict=True):
        assert line.startswith(start), line
    expected = "expected: columns as 'symbol string, price double' ([PARSE_SYNTAX_ERROR] Syntax "
    assert expected in found[1]
    assert "unknown option: timestampfeld, did you mean timestampField?" in found[3]
    assert "expected: a condition in SQL (" in found[5]


def test_a_directory_without_queues_is_found(file: Path, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    [line] = problems(
        file, ("trades: {format: quire, path: trades,", "trades: {format: quire, path: empty,")
    )
    wrong_path = f"3: sources.trades.path: is not a queue: found={tmp_path}/empty expected:"
    assert line.startswith(wrong_path)
    wrong = cli("pipeline", "check", file)
    assert (wrong.code, wrong.out) == (1, "")
    assert "sources.trades.path: is not a queue" in wrong.err
    listed = cli("pipeline", "check", file, "--format", "json")
    assert (listed.code, listed.err) == (1, "")
    [row] = json.loads(listed.out)
    assert (row["file"], row["line"]) == (str(file), 3)
    assert row["problem"].startswith(f"sources.trades.path: is not a queue: found={tmp_path}/empty")
    table = cli("pipeline", "check", file, "--format", "csv")
    assert table.out.splitlines()[0] == "file,line,problem"


def test_a_running_session_parses(file: Path, spark: object) -> None:
    assert spark
    [line] = problems(file, ("price > 0", "price > > 0"))
    assert line.startswith("11: steps.clean.expect.positive: does not parse at line 1, column 9")


NAMES = """\
pipeline: trades
sources:
  trades: {format: quire, path: trades, schema: "symbol string, price double"}
  free: {format: quire, path: trades}
  kept: {format: table, table: kept_trades}
steps:
  priced: {sql: "select symbol, price * 2 as twice from {trades}"}
  named: {sql: "select symbl, twice from {priced}"}
  called: {sql: "select upperr(symbol) as name from {trades}"}
  ruled:
    from: priced
    expect: {there: twice > 0, gone: price > 0}
  after: {sql: "select name from {called}"}
  unknown: {sql: "select anything from {free}"}
  tabled: {sql: "select anything from {kept} join {trades}"}
sinks:
  - {from: ruled, format: parquet, path: out}
  - {from: named, format: parquet, path: out2}
  - {from: after, format: parquet, path: out3}
  - {from: unknown, format: parquet, path: out4}
  - {from: tabled, format: parquet, path: out5}
"""


def test_columns_and_functions_exist_where_schemas_say_so(file: Path) -> None:
    file.write_text(NAMES, "utf-8")
    before = sorted(file.parent.rglob("*"))
    with pytest.raises(PipelineFileError) as caught:
        check(file)
    assert sorted(file.parent.rglob("*")) == before
    found = list(caught.value.problems)
    column = "does not resolve: A column, variable, or function parameter with name"
    starts = (
        f"8: steps.named.sql: {column} `symbl` cannot be resolved",
        "9: steps.called.sql: does not resolve: Cannot resolve routine `upperr`",
        f"12: steps.ruled.expect.gone: {column} `price` cannot be resolved",
    )
    assert [it for it, start in zip(found, starts, strict=True) if not it.startswith(start)] == []
