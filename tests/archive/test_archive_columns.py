"""Typed columns of archives: beside the payload, and null where a message does not fit."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import quire
from cli_runs import Cli
from queues import DAY_MS, START_MS
from quire import archive as archives
from quire.ranges.event_time import TimeField
from reference import read_queue

PER_DAY = 50
FIELDS = quire.Schema({"n": "int32", "price": "float64", "name": "category", "at": "time"})


class Market(Protocol):
    """What the tests call."""

    def to(self, key: str) -> Market: ...
    def trade(self, symbol: str, price: float) -> None: ...
    def halt(self, symbol: str) -> None: ...


def entry(day: int, n: int) -> dict[str, Any]:
    return {"n": n, "price": n / 4, "name": f"n{n % 3}", "time": START_MS + day * DAY_MS + n}


def fill(path: Path, days: list[int], **more: Any) -> None:  # noqa: ANN401 - values of a message
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**18) as queue,
        queue.appender() as appender,
    ):
        for day in days:
            clock.now_ms = START_MS + day * DAY_MS
            for n in range(PER_DAY):
                appender.write_map(entry(day, n) | more)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A queue of maps, of three days; the last is still written to."""
    path = tmp_path / "orders"
    fill(path, [0, 1, 2])
    return path


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def rows(dest: Path) -> list[dict[str, Any]]:
    return list(pq.read_table(dest, partitioning=None).sort_by("_index").to_pylist())


def check_payloads(dest: Path, path: Path, count: int) -> None:
    """Each message is there, once or in rows that all have it."""
    found = {row["_index"]: row["payload"] for row in rows(dest)}
    assert [*found.items()] == read_queue(path)[:count]


def test_fields_become_columns_beside_the_payload(path: Path, dest: Path) -> None:
    archives.archive(path, dest, schema=FIELDS)

    found = rows(dest)
    assert [(row["n"], row["price"], row["name"], row["at"], row["_error"]) for row in found] == [
        (n, n / 4, f"n{n % 3}", None, None) for _ in range(2) for n in range(PER_DAY)
    ]
    check_payloads(dest, path, 2 * PER_DAY)
    (file, _) = sorted(dest.rglob("*.parquet"))
    assert pq.read_schema(file).names == [
        "_index", "_cycle", "_sequence", "_topic", "_subtopic", "n", "price", "name", "at",
        "_error", "payload",
    ]  # fmt: skip
    assert pq.read_schema(file).field("at").type == pa.time64("us")
    assert not archives.verify(dest).failed


def test_a_message_that_does_not_fit_is_a_row_that_says_why(path: Path, dest: Path) -> None:
    clock = quire.ManualClock(START_MS + 2 * DAY_MS)
    with quire.open(path, clock=clock) as queue, queue.appender() as appender:
        appender.write_text("junk")
        appender.write_map({"n": "many"})
        appender.write_bytes(b"\xff\x00")
    fill(path, [3])

    report = archives.archive(path, dest, schema=FIELDS)

    assert report.misfits == 3
    assert [row["_error"] is None for row in rows(dest)[-4:]] == [True, False, False, False]
    check_payloads(dest, path, 3 * PER_DAY + 3)


def test_a_later_run_decodes_as_the_one_before(path: Path, dest: Path) -> None:
    archives.archive(path, dest, schema=FIELDS)
    fill(path, [3])
    archives.archive(path, dest)

    assert [row["n"] for row in rows(dest)[-PER_DAY:]] == [*range(PER_DAY)]


def test_columns_may_come_and_may_not_change_their_type(path: Path, dest: Path) -> None:
    archives.archive(path, dest, schema=quire.Schema({"n": "int32"}))
    fill(path, [3], late="yes")
    (failed,) = archives.archive(path, dest, schema=quire.Schema({"n": "utf8"})).failed
    assert "column=n type=string archived=int32" in failed.reason
    archives.archive(path, dest, schema=quire.Schema({"n": "int32", "late": "utf8"}))
    fill(path, [4])
    archives.archive(path, dest)

    schemas = [pq.read_schema(file) for file in sorted(dest.rglob("*.parquet"))]
    table = ds.dataset(dest, schema=pa.unify_schemas(schemas)).to_table()
    assert table.num_rows == 4 * PER_DAY
    assert table.sort_by("_index")["late"].to_pylist() == [None] * 3 * PER_DAY + ["yes"] * PER_DAY


def test_inferred_columns_stay_and_new_ones_are_added(path: Path, dest: Path) -> None:
    archives.archive(path, dest, schema="infer")
    before = pq.read_schema(min(dest.rglob("*.parquet")))
    fill(path, [3], price=7, late="yes")
    fill(path, [4])

    archives.archive(path, dest, schema="infer")

    after = pq.read_schema(max(dest.rglob("*.parquet")))
    assert {*after.names} - {*before.names} == {"late"}
    assert [after.field(name).type for name in before.names] == before.types
    assert before.field("price").type == pa.float64()


def test_a_run_without_a_schema_decodes_as_the_newest_run_with_an_older_schema(
    path: Path, dest: Path
) -> None:
    numbers, prices = quire.Schema({"n": "int32"}), quire.Schema({"price": "float64"})
    for day, schema in enumerate((numbers, prices, numbers, None), 3):
        archives.archive(path, dest, schema=schema)
        fill(path, [day])
    archives.archive(path, dest)

    named = [pq.read_schema(file).names for file in sorted(dest.rglob("*.parquet"))]
    assert ["price" if "price" in it else "n" for it in named] == ["n", "n", "price", "n", "n", "n"]


def test_a_column_keeps_its_type_over_runs_without_it(path: Path, dest: Path) -> None:
    archives.archive(path, dest, schema=quire.Schema({"n": "int32"}))
    fill(path, [3])
    archives.archive(path, dest, schema=quire.Schema({"price": "float64"}))
    fill(path, [4])
    (failed,) = archives.archive(path, dest, schema=quire.Schema({"n": "utf8"})).failed
    assert "column=n type=string archived=int32" in failed.reason


def test_inferred_columns_keep_their_types_over_a_run_with_a_schema(path: Path, dest: Path) -> None:
    archives.archive(path, dest, schema="infer", delete=True)
    before = pq.read_schema(min(dest.rglob("*.parquet")))
    fill(path, [3], price=7)
    archives.archive(path, dest, schema=quire.Schema({"name": "utf8"}), delete=True)
    fill(path, [4], price=7)

    assert archives.archive(path, dest, schema="infer").is_complete

    after = pq.read_schema(max(dest.rglob("*.parquet")))
    assert after.field("price").type == before.field("price").type == pa.float64()


def test_columns_of_an_empty_queue_are_inferred_once_it_has_messages(
    path: Path, dest: Path
) -> None:
    empty = path.parent / "queues" / "empty"
    quire.open(empty, roll_cycle="TEST4_DAILY", block_bytes=2**18).close()
    path.rename(empty.with_name("orders"))

    report = archives.archive(empty.parent, dest, schema="infer")
    assert (report.is_complete, report.messages) == (True, 2 * PER_DAY)
    fill(empty, [3, 4])
    assert archives.archive(empty.parent, dest, schema="infer").is_complete
    (file,) = (dest / "topic=empty").glob("*.parquet")
    assert "price" in pq.read_schema(file).names


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """A queue of calls, some of them two in a document."""
    path = tmp_path / "calls"
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock) as queue,
        queue.appender() as appender,
    ):
        market = appender.method_writer(Market)
        for n in range(10):
            market.trade("EURUSD", n / 2)
            market.halt("EURUSD")
            market.to(f"key{n}").trade("USDJPY", float(n))
        appender.write_text("junk")
        clock.advance(DAY_MS)
        market.halt("EURUSD")
    return path


def test_calls_become_a_struct_for_each_method(calls: Path, dest: Path) -> None:
    report = archives.archive(calls, dest, schema=quire.Schema.from_methods(Market))

    found = rows(dest)
    assert (report.messages, len(found), report.misfits) == (31, 41, 1)
    assert [row["method"] for row in found[:4]] == ["trade", "halt", "to", "trade"]
    assert [row["trade"] for row in found[:4]] == [
        {"symbol": "EURUSD", "price": 0.0}, None, None, {"symbol": "USDJPY", "price": 0.0}
    ]  # fmt: skip
    assert [row["_subtopic"] for row in found[:4]] == [None, None, "key0", "key0"]
    check_payloads(dest, calls, 31)
    assert not archives.verify(dest).failed


def test_of_one_method_the_arguments_are_columns_and_all_messages_are_there(
    calls: Path, dest: Path
) -> None:
    archives.archive(calls, dest, schema=quire.Schema.from_methods(Market), method="trade")

    found = rows(dest)
    trades = [(row["symbol"], row["price"]) for row in found if row["method"] == "trade"]
    assert trades[:3] == [("EURUSD", 0.0), ("USDJPY", 0.0), ("EURUSD", 0.5)]
    assert {(row["symbol"], row["price"]) for row in found if row["method"] == "halt"} == {
        (None, None)
    }
    check_payloads(dest, calls, 31)


@pytest.mark.parametrize("schema", [FIELDS, None])
def test_a_field_tells_the_time(path: Path, dest: Path, schema: quire.Schema | None) -> None:
    archives.archive(path, dest, schema=schema, timed=TimeField("time"))

    times = [row["_timestamp"] for row in rows(dest)]
    assert times == [
        datetime.fromtimestamp(entry(day, n)["time"] / 1000, UTC)
        for day in (0, 1)
        for n in range(PER_DAY)
    ]
    assert "time" not in rows(dest)[0]


def test_a_field_with_the_name_of_a_column_is_refused(path: Path, dest: Path) -> None:
    schema = quire.Schema({"payload": "utf8"})
    (failed,) = archives.archive(path, dest, schema=schema).failed
    assert "name=payload" in failed.reason
    (failed,) = archives.archive(path, dest, method="trade").failed
    assert "method=trade" in failed.reason
    schema = quire.Schema.from_methods(Market)
    (failed,) = archives.archive(path, dest, schema=schema, method="sell").failed
    assert "method=sell known=to, trade, halt" in failed.reason
    assert not [*dest.rglob("*.parquet")]


@pytest.mark.parametrize("how", ["infer", "file", "text", f"{__name__}:FIELDS"])
def test_the_command_takes_schemas_from_places(
    path: Path, dest: Path, cli: Cli, tmp_path: Path, how: str
) -> None:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps({"n": "int32", "price": "float64"}))
    place = {"file": str(file), "text": FIELDS.to_text()}.get(how, how)

    cli.ok("archive", path, dest, "--schema", place, "--timestamp-field", "time")

    assert [row["price"] for row in rows(dest)] == [n / 4 for n in range(PER_DAY)] * 2
    assert rows(dest)[0]["_timestamp"] == datetime.fromtimestamp(START_MS / 1000, UTC)
    assert cli("archive", path, dest, "--schema", "no_such_module:Name").code == 2
    assert cli("archive", path, dest, "--schema", str(path)).code == 2
