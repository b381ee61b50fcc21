"""Data frames of remote queues, through Arrow Flight."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.compute as pc
import pytest

import quire
from cli_runs import run_here
from flown import days, flying
from quire.errors import QuireError, RefusedError, WireError
from served import serving

SCHEMA = {"n": "int64", "symbol": "utf8"}


def test_frames_are_those_of_the_queue_at_home(tmp_path: Path) -> None:
    days(tmp_path / "queues" / "prices" / "eur")
    with (
        flying(tmp_path / "queues", listen=True) as ((address, _), _),
        quire.open(f"quire://{address}/prices/eur", read_only=True) as far,
        quire.open(tmp_path / "queues" / "prices" / "eur") as home,
    ):
        assert far._flight() is not None  # type: ignore[attr-defined]
        assert far.to_arrow().equals(home.to_arrow())
        for options in ({}, {"start": "2024-01-16", "end": "2024-01-17"}):
            found = far.to_arrow(SCHEMA, **options)  # type: ignore[arg-type]
            assert found.equals(home.to_arrow(SCHEMA, **options))  # type: ignore[arg-type]
        rows: Any = far.scan(SCHEMA)
        lazy = pl.scan_pyarrow_dataset(rows).filter(pl.col("n") > 8).select("n")
        assert lazy.collect()["n"].to_list() == [9, 10, 11]
        assert far.to_pandas(SCHEMA)["n"].sum() == sum(range(12))
        again: Any = pickle.loads(pickle.dumps(rows))
        assert again.to_table().equals(rows.to_table())
        with pytest.raises(WireError, match="the value does not fit"):
            far.to_arrow({"symbol": "int64"})


@pytest.mark.parametrize("option", ["--flight", None])
def test_duckdb_asks_a_remote_queue(tmp_path: Path, option: str | None) -> None:
    days(tmp_path / "queues" / "prices")
    options = [] if option is None else [option, "127.0.0.1:0"]
    with (
        serving(tmp_path / "queues", *options) as (port, _),
        quire.open(f"quire://127.0.0.1:{port}/prices", read_only=True) as far,
        duckdb.connect() as connection,
    ):
        (found,) = connection.sql("select count(*), min(index), max(index) from far").fetchall()
        assert found == (12, far.first_index, far.last_index)
        rows: Any = far.scan(SCHEMA)
        query = "select symbol, sum(n) from rows where n >= 10 group by symbol"
        assert connection.sql(query).fetchall() == [("EURUSD", 21)]
        assert rows is not None


def test_a_server_without_flight_has_frames_too(tmp_path: Path) -> None:
    days(tmp_path / "queues" / "prices")
    with (
        serving(tmp_path / "queues") as (port, _),
        quire.open(f"quire://127.0.0.1:{port}/prices", read_only=True) as far,
    ):
        assert far.to_arrow(SCHEMA)["n"].to_pylist() == [*range(12)]


@pytest.mark.parametrize("option", ["--flight", None])
def test_a_remote_dataset_counts_and_refuses_as_one_at_home(
    tmp_path: Path, option: str | None, capfd: pytest.CaptureFixture[str]
) -> None:
    days(tmp_path / "queues" / "prices")
    options = [] if option is None else [option, "127.0.0.1:0"]
    with (
        serving(tmp_path / "queues", *options) as (port, _),
        quire.open(f"quire://127.0.0.1:{port}/prices", read_only=True) as far,
    ):
        rows: Any = far.scan(SCHEMA)
        assert rows.to_table(columns=[]).num_rows == 12
        assert rows.to_table(filter=pc.field("n") > 8)["n"].to_pylist() == [9, 10, 11]
        for wrong in (-1, 2**63, float("nan"), "2024"):
            with pytest.raises(ValueError, match=r"invalid start: |not a time: "):
                far.to_arrow(start=wrong)
        with pytest.raises(TypeError, match="invalid end: "):
            far.to_arrow(end=True)
    assert "aligned" not in capfd.readouterr().err


@pytest.mark.check
def test_a_token_that_may_not_read(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    days(tmp_path / "queues" / "prices")
    ran = run_here("token", "add", "reader", "--tokens", str(file), "--read", "*")
    with (
        flying(tmp_path / "queues", "--tokens", file, listen=True) as ((address, _), _),
        quire.open(f"quire://{address}/prices", token=ran.out.strip(), read_only=True) as far,
    ):
        assert far.to_arrow().num_rows == 12
        rows: Any = far.scan()
        assert run_here("token", "revoke", "reader", "--tokens", str(file)).code == 0
        with pytest.raises((RefusedError, QuireError)):
            rows.to_table()
