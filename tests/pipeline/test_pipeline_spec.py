from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from cli_runs import Cli
from paths import ROOT
from quire._common.units import duration_us
from quire.pipeline import PipelineFileError, load
from quire.pipeline.spec.loader import scheduled
from quire.pipeline.spec.parts import (
    Deduplicate,
    FolderSink,
    QueueSource,
    Rule,
    TableSink,
    Watermark,
)
from quire.pipeline.spec.schedule import schedule_of
from quire.pipeline.spec.yaml_lines import read

WHOLE = """\
pipeline: trades
state: kept
schedule: every 30s
sources:
  trades:
    format: quire
    path: /data/trades
    malformed: quarantine
    options: {maxOffsetsPerTrigger: 1000, startingOffsets: {trades: earliest}}
  planes: {format: csv, path: planes.csv, options: {header: true}}
steps:
  hourly:
    sql: select * from {clean} join {planes} using (plane)
  clean:
    from: trades
    order: [_index]
    expect:
      positive: price > 0
      known: {check: symbol is not null, action: drop}
    watermark: {column: at, delay: 10 minutes, by: symbol}
    deduplicate: {by: [id, symbol], within: 1 h, action: drop}
    window: {length: 1 day}
sinks:
  - {from: hourly, format: parquet, path: out, partition_by: [day], options: {compression: gzip}}
  - {from: clean, format: table, table: clean_trades}
"""


def file(folder: Path, text: str) -> Path:
    path = folder / "pipeline.yaml"
    path.write_text(text, "utf-8")
    return path


def changed(folder: Path, *changes: tuple[str, str]) -> Path:
    text = WHOLE
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return file(folder, text)


def problems(path: Path) -> list[str]:
    with pytest.raises(PipelineFileError) as caught:
        load(path)
    assert str(caught.value) == "\n".join(f"{path}:{it}" for it in caught.value.problems)
    return list(caught.value.problems)


def test_a_file_becomes_values(tmp_path: Path) -> None:
    pipeline = load(file(tmp_path, WHOLE))

    assert (pipeline.name, pipeline.state) == ("trades", tmp_path / "kept" / "trades")
    assert (str(pipeline.schedule), pipeline.schedule.every_us) == ("every 30s", 30_000_000)
    trades, planes = pipeline.sources
    assert (trades.stream, planes.stream) == (True, False)
    assert isinstance(trades, QueueSource)
    assert trades.spark_options == {
        "maxOffsetsPerTrigger": "1000",
        "startingOffsets": '{"trades": "earliest"}',
        "onError": "column",
    }
    assert (planes.path, planes.options) == (str(tmp_path / "planes.csv"), {"header": "true"})
    assert trades.checks().rules == (Rule("malformed", "_error is null", "quarantine"),)

    clean, hourly = pipeline.steps
    assert (clean.name, hourly.name, hourly.inputs) == ("clean", "hourly", ("clean", "planes"))
    assert clean.rules == (
        Rule("positive", "price > 0", "quarantine"),
        Rule("known", "symbol is not null", "drop"),
    )
    watermark = Watermark(column="at", delay="10 minutes", by=("symbol",))
    assert (clean.watermark, watermark.delay_us) == (watermark, 600_000_000)
    deduplicate = Deduplicate(by=("id", "symbol"), within="1 h", action="drop")
    assert (clean.deduplicate, deduplicate.within_us) == (deduplicate, 3_600_000_000)
    assert (clean.window_us, clean.line) == (86_400_000_000, 14)
    out, table = pipeline.sinks
    assert isinstance(out, FolderSink)
    assert (out.step, out.format, out.path) == ("hourly", "parquet", str(tmp_path / "out"))
    assert (out.partition_by, out.options, out.line) == (("day",), {"compression": "gzip"}, 24)
    assert isinstance(table, TableSink)
    assert (table.step, table.table, table.path, table.line) == ("clean", "clean_trades", None, 25)
    assert pipeline.quarantine.destination == str(tmp_path / "kept/trades/quarantine")


def test_everything_wrong_in_the_form_is_reported_at_once(tmp_path: Path) -> None:
    path = changed(
        tmp_path,
        ("format: csv", "format: xml"),
        ("positive: price > 0", "positive: 1"),
        ("action: drop}\n    watermark", "action: forget}\n    watermark"),
        ("delay: 10 minutes, ", "delays: 10 minutes, "),
        ("  - {from: clean, format: table, table: clean_trades}", "  - 7"),
        ("pipeline: trades", "pipeline: my trades"),
    )

    assert problems(path) == [
        "1: pipeline: found='my trades' expected: letters, digits and _, a letter first",
        "10: sources.planes.format: found='xml' expected: quire, parquet, csv, json, table",
        "18: steps.clean.expect.positive: found=1 expected: text or a mapping",
        (
            "19: steps.clean.expect.known.action: found='forget' "
            "expected: quarantine, drop, fail, warn"
        ),
        "20: steps.clean.watermark.delays: unknown key, expected: column, delay, by, action",
        "20: steps.clean.watermark: missing: delay",
        "25: sinks[1]: found=7 expected: a mapping",
    ]


def test_every_value_is_checked_on_its_own_and_then_together(tmp_path: Path) -> None:
    values = changed(
        tmp_path,
        ("every 30s", "sometimes"),
        ("10 minutes", "10 parsecs"),
        ("positive: price > 0", "late: price > 0"),
        ("format: table, table: clean_trades", "format: quire, partition_by: day"),
    )
    assert problems(values) == [
        (
            "3: schedule: unknown schedule: found='sometimes' "
            "expected: once, available-now, every 30s"
        ),
        "18: steps.clean.expect.late: reserved name: reserved=malformed, late, duplicate",
        (
            "20: steps.clean.watermark.delay: not a duration: found='10 parsecs' "
            "expected: 500 ms, 30s, 10 minutes, 1 h"
        ),
        "25: sinks[1].partition_by: a queue has no partitions",
        "25: sinks[1]: missing: path",
    ]

    together = changed(
        tmp_path,
        ("{planes} using", "{aeroplanes} using"),
        ("from: hourly", "from: nightly"),
        ("format: table, table: clean_trades", "format: parquet, path: kept/trades"),
    )
    known = "trades, planes, hourly, clean"
    assert problems(together) == [
        "10: sources.planes: unused: no step or sink reads it",
        "12: steps.hourly: unused: no step or sink reads it",
        (f"13: steps.hourly.sql: unknown source or step: found='aeroplanes' expected: {known}"),
        f"24: sinks[0].from: unknown source or step: found='nightly' expected: {known}",
        f"25: sinks[1]: the state has the same path: path={tmp_path}/kept/trades",
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("    from: trades\n", "    from: hourly\n", "steps form a cycle: "),
        ("  clean:\n", "  trades:\n", "steps.trades: the name is taken by a source, line 5"),
        ("  clean:\n", "  hourly:\n", "steps.hourly: duplicate key"),
        ("    from: trades\n", "    from: [trades, planes]\n", "several inputs need sql or python"),
        ("    from: trades\n", "", "steps.clean: missing: from"),
        ("select * from {clean}", "select * from {", "steps.hourly.sql: braces: "),
        ("    watermark: {", "    # {", "steps.clean.window: needs a watermark in the same step"),
        ("    order:", "    python: none.py:f\n    order:", "no such file: path="),
        ("    order:", "    python: a b:f\n    order:", "expected: module:function or file."),
        ("    order:", "    python: f\n    order:", "expected: module:function or file.py"),
        ("sources:", "sources: {}\nsteps_:", "4: sources: is empty: found={}"),
        ("    order: [_index]", "    order:", "steps.clean.order: found=None expected: a value"),
        ("    order: [_index]", "    order: []", "steps.clean.order: is empty"),
        ("    order: [_index]", "    order: 7", "found=7 expected: text or a list"),
        ("options: {header: true}", "options: {header: }", "planes.options.header: found=None"),
        ("options: {header: true}", "options: {header: 2026-01-31}",
         "planes.options.header: found="),
        ("options: {header: true}", "stream: 'yes'", "found='yes' expected: true or false"),
        ("  planes: {format: csv,", "  planes: {format: json, malformed: drop,",
         "planes.malformed: only for format quire"),
        ("  planes: {format: csv, ", "  planes: {", "sources.planes: missing: format"),
        ("  planes: {", "  1: {format: csv, path: a}\n  planes: {",
         "sources.1: found=1 expected: text"),
        ("  planes: {", "  a-b: {format: csv, path: a}\n  planes: {",
         "10: sources.a-b: found='a-b' expected: letters, digits and _"),
        ("    from: trades\n", "    from: trades\n    sql: select 1 from {trades}\n",
         "15: steps.clean.from: not with sql, which names its inputs"),
        ("  - {from: clean, format: table, table: clean_trades}",
         "  - {from: clean, format: parquet, path: ./a/../out/}",
         "sinks[0] has the same path: path="),
        ("  - {from: clean, format: table, table: clean_trades}",
         "  - {from: clean, format: parquet, path: out/clean}",
         "sinks[1]: overlaps the path of sinks[0]"),
        ("path: out,", "path: planes.csv,", "sinks[0]: source planes has the same path: path="),
        ("path: out,", "path: /data,", "sinks[0]: overlaps the path of source trades: path="),
        ("path: out,", "path: 'file:/data/trades/x',",
         "sinks[0]: overlaps the path of source trades"),
        ("path: out,", "path: kept,", "sinks[0]: overlaps the path of the state: path="),
        ("sinks:", "quarantine: {path: out/bad}\nsinks:",
         "quarantine: overlaps the path of sinks[0]"),
        ("state: kept", "state: s3://bucket/kept", "needs a folder on this machine: path=s3:"),
        ("path: out,", "path: 's3://bucket/out',",
         "sinks[0].path: needs a folder on this machine: path=s3:"),
        ("sinks:", "quarantine: {format: quire, path: 'quire://there:7000/bad'}\nsinks:",
         "quarantine.path: needs a queue on this machine: path=quire:"),
        ("schedule: every 30s", "mode: full\nquarantine: {format: quire, path: bad}",
         "quarantine.format: a queue is append-only, and requires mode: incremental"),
        ("    malformed: quarantine", "    malformed: quarantine\n    stream: false",
         "sources.trades.malformed: each batch reads a lookup again"),
        ("    malformed: quarantine\n    options: {",
         "    stream: false\n    options: {onerror: column, ",
         "sources.trades.malformed: each batch reads a lookup again"),
        ("schedule: every 30s", "mode: full\nschedule: every 30s", "mode full needs schedule once"),
        ("    malformed: quarantine\n", "    stream: false\n",
         "no source is streamed: set stream: true"),
        ("  planes: {format: csv, path: planes.csv", "  planes: {format: table, path: planes.csv",
         "sources.planes: missing: table"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert problem in "\n".join(problems(changed(tmp_path, (old, new))))


def test_one_wrong_value_is_one_problem(tmp_path: Path) -> None:
    text = "pipeline: a\nsources: {a: {format: csv, path: a}}\nsinks:\n- {from: a, format: b}\n"
    assert problems(file(tmp_path, text)) == [
        "4: sinks[0].format: found='b' expected: parquet, delta, quire, table"
    ]


@pytest.mark.parametrize("text", ["", "- 1", "a: [", "a: &x [*x]", "a: \x00", "? [1]\n: 2"])
def test_what_is_no_pipeline_is_refused_in_a_line(tmp_path: Path, text: str) -> None:
    assert problems(file(tmp_path, text))


def test_lines_are_those_of_the_keys(tmp_path: Path) -> None:
    document = read(file(tmp_path, WHOLE))

    assert len(document.lines) > 40
    lines = WHOLE.splitlines()
    for place, line in document.lines.items():
        if place and isinstance(place[-1], str):
            assert place[-1] in lines[line - 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("500 ms", 500_000),
        ("30s", 30_000_000),
        ("1 second", 1_000_000),
        ("1.5 minutes", 90_000_000),
        ("10min", 600_000_000),
        ("2 Hours", 7_200_000_000),
        ("7 days", 604_800_000_000),
    ],
)
def test_durations(text: str, expected: int) -> None:
    assert duration_us(text) == expected
    assert schedule_of(f"every {text}").every_us == expected


@pytest.mark.parametrize("text", ["", "s", "0s", "-1 s", "1", "1 month", "1s 2s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        duration_us(text)


def test_another_schedule_may_be_asked_for(tmp_path: Path) -> None:
    pipeline = load(file(tmp_path, WHOLE))

    assert scheduled(pipeline, "available-now").schedule.kind == "available-now"
    full = load(changed(tmp_path, ("schedule: every 30s", "mode: full")))
    with pytest.raises(ValueError, match="mode full needs schedule once"):
        scheduled(full, "available-now")


def test_the_verb_prints_a_json_schema_that_agrees_with_the_loader(
    tmp_path: Path, cli: Cli
) -> None:
    schema = json.loads(cli.ok("pipeline", "schema").out)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert list(validator.iter_errors(read(file(tmp_path, WHOLE)).values)) == []
    for path in (ROOT / "examples" / "pipelines").glob("*/pipeline.yaml"):
        assert list(validator.iter_errors(read(path).values)) == []

    for old, new in (
        ("format: csv", "format: xml"),
        ("positive: price > 0", "positive: 1"),
        ("delay: 10 minutes, ", ""),
        ("order: [_index]", "order:"),
        ("order: [_index]", "orders: [_index]"),
        ("from: trades", "sql: select 1 from {trades}\n    python: a:b"),
        ("format: table, table: clean_trades", "format: quire, path: a, partition_by: day"),
    ):
        path = changed(tmp_path, (old, new))
        assert problems(path)
        assert list(validator.iter_errors(read(path).values)), new
    assert schema["$defs"]["QueueSource"]["properties"]["stream"]["default"] is True
    (source,) = schema["properties"]["sources"]["patternProperties"].values()
    assert source["discriminator"]["propertyName"] == "format"


def test_the_verb_checks_a_file(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "pipeline.yaml"
    wrong = cli("pipeline", "check", changed(tmp_path, ("format: csv", "format: xml")))
    assert wrong.code == 1
    assert wrong.err == (
        f"quire: {path}:10: sources.planes.format: found='xml' expected: "
        "quire, parquet, csv, json, table\n"
    )
    assert cli("pipeline", "check", tmp_path / "none").err == (
        f"quire: No such file or directory: path={tmp_path / 'none'}\n"
    )
    file(tmp_path, WHOLE)
    assert cli("pipeline", "run", path, "--once", "--schedule", "once").code == 2
    assert "unknown schedule" in cli("pipeline", "run", path, "--schedule", "now").err
