"""Arrow Flight: pyarrow's own client reads queues and appends to them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from pyarrow import flight

import quire
from cli_runs import run_here
from flown import client_of, days, flying, path_of, put, ticket
from parameters import some
from quire.arrow.schema import Schema
from quire.errors import ServerLostError
from served import connected


def test_a_queue_is_read_in_parallel_by_cycle(tmp_path: Path) -> None:
    days(tmp_path / "queues" / "prices" / "eur")
    with flying(tmp_path / "queues") as ((address,), _), client_of(address) as client:
        info = client.get_flight_info(path_of("prices/eur"))
        assert (info.total_records, info.ordered, len(info.endpoints)) == (12, True, 3)
        assert info.schema.names == ["index", "payload"]
        about = json.loads(info.app_metadata)
        assert (about["step"], about["dense"], about["format"]) == (1, True, "chronicle")

        def read(endpoint: Any) -> pa.Table:  # noqa: ANN401 - its stubs are incomplete
            with client_of(address) as own:
                table: pa.Table = own.do_get(endpoint.ticket).read_all()
                return table

        with ThreadPoolExecutor(3) as threads:
            found = pa.concat_tables(threads.map(read, info.endpoints))
    with quire.open(tmp_path / "queues" / "prices" / "eur") as queue:
        assert found.equals(queue.to_arrow())


def test_columns_by_a_schema_by_index_and_by_time(tmp_path: Path) -> None:
    days(tmp_path / "queues" / "prices")
    schema = {"n": "int64", "symbol": "utf8"}
    with flying(tmp_path / "queues") as ((address,), _), client_of(address) as client:

        def read(**values: object) -> list[Any]:
            found = client.do_get(ticket(queue="prices", **values)).read_all()
            assert (
                found.schema
                == client.get_schema(
                    flight.FlightDescriptor.for_command(json.dumps({"queue": "prices", **values}))
                ).schema
            )
            numbers: list[Any] = found["n"].to_pylist()
            return numbers

        assert read(schema=schema) == [*range(12)]
        assert read(schema=Schema(schema).to_text(), columns=["n"]) == [*range(12)]
        by_time = {"from": "2024-01-16", "to": "2024-01-17"}
        assert read(schema=schema, **by_time) == [4, 5, 6, 7]
        asked = json.dumps({"queue": "prices", "schema": schema, "columns": ["n"], **by_time})
        info = client.get_flight_info(flight.FlightDescriptor.for_command(asked))
        (endpoint,) = info.endpoints
        part = json.loads(endpoint.ticket.ticket)
        assert client.do_get(endpoint.ticket).read_all()["n"].to_pylist() == [4, 5, 6, 7]
        middle = {"from": part["from"] + 1, "to": part["from"] + 3}
        assert read(schema=schema, **middle) == [5, 6]
        found = client.do_get(
            ticket(queue="prices", schema={"symbol": "int64"}, errors="column", payload=True)
        ).read_all()
        assert found["symbol"].null_count == found.num_rows == 12
        assert found.schema.names == ["index", "symbol", "_error", "payload"]


def test_method_calls_are_columns(tmp_path: Path) -> None:
    class Market:
        def price(self, symbol: str, price: float) -> None: ...
        def halt(self, symbol: str) -> None: ...

    path = tmp_path / "queues" / "calls"
    with quire.open(path) as queue, queue.appender() as appender:
        market = appender.method_writer(Market)
        market.price("EURUSD", 1.1)
        market.halt("EURUSD")
    schema = Schema.from_methods(Market).to_text()
    with flying(tmp_path / "queues") as ((address,), _), client_of(address) as client:
        every = client.do_get(ticket(queue="calls", schema=schema)).read_all()
        assert every["method"].to_pylist() == ["price", "halt"]
        one = client.do_get(ticket(queue="calls", schema=schema, method="price")).read_all()
        assert one.select(["symbol", "price"]).to_pylist() == [{"symbol": "EURUSD", "price": 1.1}]


def test_batches_are_appended_as_bytes_as_maps_and_typed(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    raw = pa.record_batch({"payload": [b"one", b"two"]})
    columns: Any = {"symbol": ["EURUSD"], "n": pa.array([7], pa.int32())}
    rows = pa.record_batch(columns)
    with flying(root, listen=True) as ((redis_address, address), _), client_of(address) as client:
        first, second = put(client, path_of("new/raw"), raw, raw)
        assert (first["rows"], second["last"] - first["last"]) == (2, 2)
        put(client, path_of("maps"), rows)
        typed = json.dumps(
            {"queue": "typed", "type": "Trade", "schema": {"symbol": "utf8", "n": "int64"}}
        )
        put(client, flight.FlightDescriptor.for_command(typed), rows)
        with connected(int(redis_address.rpartition(":")[2])) as redis:
            assert redis.xlen("new/raw") == 4
            assert redis.xrange("maps")[0][1] == {b"symbol": b"EURUSD", b"n": b"7"}
            redis.xadd("maps", {"symbol": "GBPUSD", "n": "8"})
            greeting = redis.execute_command("HELLO", "2")
            assert greeting[greeting.index(b"flight") + 1] == address.encode()
        found = client.do_get(ticket(queue="maps", schema={"symbol": "utf8"})).read_all()
        assert found["symbol"].to_pylist() == ["EURUSD", "GBPUSD"]
    with quire.open(root / "new" / "raw") as queue, queue.tailer() as tailer:
        assert tailer.read_many(9) == [b"one", b"two"] * 2
    with quire.open(root / "typed") as queue, queue.tailer() as tailer:
        message = tailer.read()
        assert message is not None
        assert "Trade" in message.to_yaml()


@pytest.mark.parametrize("kind", some(["vanilla", "quick-queue"], keep=[0]))
def test_queues_of_older_formats(tmp_path: Path, kind: Literal["vanilla", "quick-queue"]) -> None:
    root = tmp_path / "queues"
    with quire.open(root / "old", format=kind) as queue, queue.appender() as appender:
        appender.write_many([b"a", b"b"])
    with flying(root) as ((address,), _), client_of(address) as client:
        put(client, path_of("old"), pa.record_batch({"payload": [b"c"]}))
        info = client.get_flight_info(path_of("old"))
        found = pa.concat_tables(client.do_get(it.ticket).read_all() for it in info.endpoints)
        assert found["payload"].to_pylist() == [b"a", b"b", b"c"]
        with pytest.raises(flight.FlightServerError, match="columns"):
            put(client, path_of("old"), pa.record_batch({"a": [1], "b": [2]}))


def test_a_replica_is_read_and_not_appended_to(tmp_path: Path) -> None:
    import asyncio

    from quire.replication import Sink, Source

    async def replicate() -> None:
        with quire.open(tmp_path / "original") as queue:
            last = queue.appender().write_text("hello")
            copy = tmp_path / "queues" / "copy"
            async with Source(queue) as source, Sink(copy, port=source.address[1]) as sink:
                await sink.stored(last)

    (tmp_path / "queues").mkdir()
    asyncio.run(replicate())
    with flying(tmp_path / "queues") as ((address,), _), client_of(address) as client:
        assert client.do_get(ticket(queue="copy")).read_all().num_rows == 1
        with pytest.raises(flight.FlightServerError, match="replication sink") as refused:
            put(client, path_of("copy"), pa.record_batch({"payload": [b"c"]}))
        assert refused.value.extra_info == b"AppendLockedError"


def test_what_is_appended_meanwhile_is_read_next_time(tmp_path: Path) -> None:
    days(tmp_path / "queues" / "q")
    with flying(tmp_path / "queues") as ((address,), _), client_of(address) as client:
        before = client.get_flight_info(path_of("q"))
        with quire.open(tmp_path / "queues" / "q") as queue, queue.appender() as appender:
            appender.write_bytes(b"later")
        read = [client.do_get(it.ticket).read_all().num_rows for it in before.endpoints]
        assert sum(read) == before.total_records == 12
        assert client.get_flight_info(path_of("q")).total_records == 13


def test_the_port_of_flight_in_an_address_is_said_to_be_that(tmp_path: Path) -> None:
    days(tmp_path / "queues" / "orders")
    with flying(tmp_path / "queues") as ((address,), _):
        with pytest.raises(ServerLostError, match="that answered is not a Quire server"):
            quire.open(f"quire://{address}/orders")
        ran = run_here("read", f"quire://{address}/orders")
        assert ran.code == 1
        assert "that answered is not a Quire server" in ran.err
        assert "Traceback" not in ran.err
