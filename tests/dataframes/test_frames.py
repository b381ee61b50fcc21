"""Queues as data frames: whole, in ranges, lazily, and only the columns that a query needs."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import quire
from older_queues import FORMATS, fill, wires
from queues import DAY_MS, START_MS

Queue: TypeAlias = Any  # of any format
Options: TypeAlias = dict[str, Any]
MS = timedelta(milliseconds=1)
SCHEMA = {"n": "int64", "at": "int64"}
COUNT = 300


def of_format(kind: str, folder: Path) -> Queue:
    messages = wires(range(COUNT), folder / "wires")
    if kind in FORMATS:
        return quire.open(fill(folder / "q", kind, [messages]), read_only=True, create=False)
    return quire.open(folder / "wires", read_only=True, create=False)


@pytest.fixture(params=["chronicle", *FORMATS])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Queue]:
    with of_format(request.param, tmp_path) as queue:
        yield queue


def test_every_format_becomes_a_table_and_frames(filled: Queue) -> None:
    table = filled.to_arrow(SCHEMA)
    assert table.column("n").to_pylist() == list(range(COUNT))
    assert list(filled.to_pandas(SCHEMA)["n"]) == list(range(COUNT))
    assert filled.to_polars(SCHEMA)["n"].to_list() == list(range(COUNT))

    messages = filled.to_arrow()
    assert messages.schema.names == ["index", "payload"]
    assert messages.column("index") == table.column("index")


def test_every_format_is_a_stream_of_batches(filled: Queue) -> None:
    assert pa.schema(filled) == filled.to_arrow().schema
    assert pa.table(filled) == filled.to_arrow()
    assert pl.DataFrame(filled).equals(filled.to_polars())


def test_a_range_ends_before_its_end(filled: Queue) -> None:
    indexes = filled.to_arrow()["index"].to_pylist()

    found = filled.to_arrow(SCHEMA, start=indexes[10], end=indexes[20])
    assert found["n"].to_pylist() == list(range(10, 20))
    assert filled.to_arrow(start=indexes[-1] + 16).num_rows == 0
    assert filled.to_arrow(end=indexes[0]).num_rows == 0
    start, end = (datetime.fromtimestamp(START_MS // 1000, UTC) + MS * it for it in (5, 8))
    by_time = filled.to_arrow(SCHEMA, start=start, end=end, time_field="at")
    assert by_time["n"].to_pylist() == [5, 6, 7]


def test_duckdb_finds_a_queue_by_name(filled: Queue) -> None:
    with duckdb.connect() as connection:
        query = "select count(*), min(index), max(index) from filled"
        (found,) = connection.sql(query).fetchall()
        rows: Any = filled.scan(SCHEMA)
        (summed,) = connection.sql("select sum(n) from rows where n >= 298").fetchall()
    assert rows is not None
    assert found == (COUNT, filled.first_index, filled.last_index)
    assert summed == (298 + 299,)


def test_polars_scans_lazily(filled: Queue) -> None:
    lazy = pl.scan_pyarrow_dataset(filled.scan(SCHEMA))

    assert lazy.filter(pl.col("at") == START_MS + 7).select("n").collect().to_dicts() == [{"n": 7}]


def misfit(path: Path) -> quire.JournalQueue:
    """Return a queue whose messages fit the column ``good`` alone."""
    queue = quire.open(path)
    with queue.appender() as appender:
        for number in range(3):
            appender.write_map({"good": number, "bad": "no number"})
    return queue


BOTH = {"good": "int64", "bad": "int64"}


def test_only_the_columns_of_a_query_are_decoded(tmp_path: Path) -> None:
    with misfit(tmp_path / "q") as queue, duckdb.connect() as connection:
        rows: Any = queue.scan(BOTH)
        with pytest.raises(quire.errors.WireError, match="bad"):
            rows.to_table()
        assert rows.to_table(columns=["good"]).to_pydict() == {"good": [0, 1, 2]}
        assert connection.sql("select sum(good) from rows").fetchall() == [(3,)]
        assert connection.sql("select count(*) from rows").fetchall() == [(3,)]
        assert connection.sql("select index from rows where good = 1").fetchall() != []
        lazy = pl.scan_pyarrow_dataset(rows)
        assert lazy.select(pl.col("good").sum()).collect().item() == 3
        assert rows.count_rows() == 3


def test_misfits_can_be_rows_that_say_why(tmp_path: Path) -> None:
    with misfit(tmp_path / "q") as queue:
        table = queue.to_arrow(BOTH, errors="column")
        assert table["bad"].null_count == 3
        assert "bad" in table["_error"][0].as_py()
        found: Any = queue.scan(BOTH, errors="column").to_table(columns=["_error"])
        assert found["_error"].null_count == 0


DATASET = """
import os
import sys
import pyarrow.compute as pc
import pyarrow.dataset as ds
import quire

with quire.open(sys.argv[1], read_only=True) as queue:
    rows = queue.scan({"n": "int64", "at": "int64"})
    few = rows.filter(pc.field("n") > 7).filter(pc.field("n") < 10)
    assert few.to_table(columns=["n"])["n"].to_pylist() == [8, 9], "filter"
    assert few.count_rows() == few.to_table(columns=[]).num_rows == 2, "rows of a filter"
    back = rows.sort_by([("n", "descending")]).to_table()
    assert back["n"].to_pylist() == list(range(299, -1, -1)), "sort_by"
    both = few.join(rows, "n", right_suffix="_r").to_table()
    assert both["at"].to_pylist() == both["at_r"].to_pylist() and len(both) == 2, "join"
    nothing = queue.scan(quire.Schema({"n": "int64", "x": "utf8"}, index=None), end=0)
    near = few.join_asof(nothing, "n", [], 1).to_table()
    assert near["n"].to_pylist() == [8, 9], "join_asof"
    for refused in (
        lambda: list(rows.get_fragments()),
        lambda: rows.replace_schema(rows.schema),
        lambda: ds.dataset([rows, rows]),
        lambda: ds.UnionDataset(rows.schema, [rows]).to_table(),
        lambda: ds.Scanner.from_dataset(rows).count_rows(),
    ):
        try:
            refused()
        except quire.errors.UnsupportedError as error:
            assert "path=" + sys.argv[1] in str(error), error
        else:
            raise AssertionError("not refused")
os._exit(0)  # whether threads of pyarrow end before the interpreter is not what is tested
"""


def test_a_dataset_has_the_methods_of_pyarrow_or_refuses_them(tmp_path: Path) -> None:
    with of_format("chronicle", tmp_path) as queue:
        path = queue.path
    ran = subprocess.run(  # pyarrow ended the process where it got no dataset of its own
        [sys.executable, "-c", DATASET, path], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_rows_without_a_column_are_counted(filled: Queue) -> None:
    for index in ("index", None):
        rows: Any = filled.scan(quire.Schema(SCHEMA, index=index))
        assert rows.to_table(columns=[]).num_rows == COUNT
        assert rows.to_table(columns=[], filter=pc.field("n") < 5).num_rows == 5


def test_a_filter_on_another_column_reads_that_one_too(filled: Queue) -> None:
    rows: Any = filled.scan(SCHEMA)
    found = rows.to_table(columns=["at"], filter=pc.field("n") == 3)
    assert found.to_pydict() == {"at": [START_MS + 3]}


def test_a_reading_starts_late_ends_where_the_queue_ended_and_is_repeatable(tmp_path: Path) -> None:
    with quire.open(tmp_path / "q") as queue, queue.appender() as appender:
        appender.write_map({"n": 0})
        rows: Any = queue.scan({"n": "int64"})
        appender.write_map({"n": 1})
        reader = pa.RecordBatchReader.from_stream(rows)
        first = reader.read_next_batch()
        appender.write_map({"n": 2})
        assert first["n"].to_pylist() == [0, 1]
        assert reader.read_all().num_rows == 0
        assert rows.to_table()["n"].to_pylist() == [0, 1, 2]


def test_a_long_range_passes_in_batches(tmp_path: Path) -> None:
    with quire.open(tmp_path / "q") as queue, queue.appender() as appender:
        appender.write_many([bytes(1_000_000)] * 20)
        reader = pa.RecordBatchReader.from_stream(queue)
        sizes = [batch.nbytes for batch in reader]
    assert len(sizes) > 2
    assert max(sizes) < 9_000_000


@pytest.mark.parametrize("as_text", [False, True])
def test_a_time_of_nanoseconds_bounds_a_range(tmp_path: Path, *, as_text: bool) -> None:
    start_ns = START_MS * 1_000_000
    day = datetime.fromtimestamp(START_MS / 1000, UTC).isoformat().partition("+")[0]
    with quire.open(tmp_path / "q") as queue, queue.appender() as appender:
        for ns in (1_000, 1_500, 1_999, 2_000):
            appender.write_map({"at": f"{day}.{ns:09}" if as_text else start_ns + ns, "n": ns})
        for after, before, expected in (
            ("000001500", "000001999", [1_500]),
            ("000001501", "000002", [1_999]),
            ("000001", "0000015", [1_000]),
        ):
            found = queue.to_arrow(
                {"n": "int64"}, start=f"{day}.{after}", end=f"{day}.{before}Z", time_field="at"
            )
            assert found["n"].to_pylist() == expected


def test_cycles_bound_a_range_by_time(tmp_path: Path) -> None:
    clock = quire.ManualClock(START_MS)
    with quire.open(tmp_path / "q", roll_cycle="FAST_DAILY", clock=clock) as queue:
        with queue.appender() as appender:
            for number in range(3):
                appender.write_map({"n": number})
                clock.advance(DAY_MS)
        found = queue.to_arrow({"n": "int64"}, start="2024-01-16", end="2024-01-17")
        assert found["n"].to_pylist() == [1]
        with pytest.raises(ValueError, match="roll_cycle=FAST_DAILY"):
            queue.to_arrow(start="2024-01-16T12:00:00")


def test_calls_keep_the_rows_of_other_methods(tmp_path: Path) -> None:
    class Market:
        def price(self, symbol: str) -> None: ...
        def halt(self, symbol: str) -> None: ...

    with quire.open(tmp_path / "q") as queue, queue.appender() as appender:
        market = appender.method_writer(Market)
        market.price("EURUSD")
        market.halt("EURUSD")
        rows: Any = queue.scan(quire.Schema.from_methods(Market))
        assert rows.to_table(columns=["method"])["method"].to_pylist() == ["price", "halt"]
        assert rows.to_table(columns=["halt"])["halt"].null_count == 1


def test_a_dataset_pickles_and_shows_itself(tmp_path: Path) -> None:
    with misfit(tmp_path / "q") as queue:
        rows: Any = queue.scan({"good": "int64"})
        assert pickle.loads(pickle.dumps(rows)).to_table() == rows.to_table()
        assert "columns=index, good" in repr(rows)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"start": b"x"}, TypeError, "invalid start: expected an index"),
        ({"end": -1}, ValueError, "invalid end"),
        ({"errors": "drop"}, ValueError, "invalid errors"),
        ({"where": "n > 1"}, TypeError, "unexpected keyword argument 'where' .known: start, end"),
        ({"errors": "column"}, ValueError, "requires `schema=`"),
        ({"start": "yesterday"}, ValueError, "yesterday"),
    ],
)
def test_bad_options_are_named(
    tmp_path: Path, options: Options, error: type[Exception], text: str
) -> None:
    with misfit(tmp_path / "q") as queue, pytest.raises(error, match=text):
        queue.to_arrow(**options)


def test_an_empty_queue_has_columns_and_no_rows(tmp_path: Path) -> None:
    with quire.open(tmp_path / "q") as queue:
        assert queue.to_arrow(SCHEMA).schema.names == ["index", "n", "at"]
        assert queue.to_polars().height == 0


def test_a_closed_queue_says_so(tmp_path: Path) -> None:
    queue = misfit(tmp_path / "q")
    rows: Any = queue.scan()
    queue.close()
    with pytest.raises(quire.errors.ClosedError):
        rows.to_table()
