"""Streams of Spark from queues of a server: planned and read by address alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli_runs import run_here
from quire.errors import DataLossError
from replicas import wait_until
from served import connected, serving
from streams import Driver, Sink, Source

pytestmark = pytest.mark.spark


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """Two topics over two days: 10 + 4 and 5 + 0 messages."""
    return Source.of_two_topics(tmp_path / "queues")


@pytest.fixture
def address(source: Source) -> Iterator[str]:
    with serving(source.path) as (port, _):
        yield f"quire://127.0.0.1:{port}"


@pytest.mark.smoke
def test_each_message_comes_once_also_after_a_crash(source: Source, address: str) -> None:
    driver = Driver(source, path=address)
    while driver.batch(4, crash=True):
        pass
    assert driver.numbers() == source.numbers()
    source.record("orders", 3)
    source.roll()
    source.record("orders", 2)
    source.record("new", 2)
    driver.restart()
    assert driver.batch() == 7
    assert driver.batch() == 0
    assert driver.numbers() == source.numbers()


def test_a_checkpoint_moves_from_the_files_to_the_server(source: Source, address: str) -> None:
    at_home = Driver(source)
    at_home.batch(6)
    served = Driver(source, path=address)
    served.offsets = at_home.offsets
    assert served.plan(4) == at_home.plan(4)
    served.batch()
    at_home.rows += served.rows
    assert at_home.numbers() == source.numbers()


def test_a_stream_outlives_its_server(source: Source) -> None:
    with serving(source.path) as (port, _):
        driver = Driver(source, path=f"quire://127.0.0.1:{port}")
        assert driver.batch(6) == 6
    with serving(source.path, "--listen", f"127.0.0.1:{port}"):
        driver.batch()
    assert driver.numbers() == source.numbers()


def test_cycles_may_go_once_they_were_read_and_not_before(source: Source, address: str) -> None:
    driver = Driver(source, path=address)
    driver.batch()
    source.prune("orders")
    source.record("orders", 1)
    assert driver.batch() == 1
    source.record("orders", 1)
    source.roll()
    source.record("orders", 1)
    source.roll()
    source.record("orders", 1)
    source.prune("orders", -1)
    with pytest.raises(DataLossError, match="messages are gone: topic=orders"):
        driver.batch()


def test_others_in_the_place_of_what_was_read_are_a_loss(source: Source, tmp_path: Path) -> None:
    with serving(source.path) as (port, _):
        driver = Driver(source, path=f"quire://127.0.0.1:{port}")
        driver.batch()
        source.delete("orders")
        other = Source(tmp_path / "queues", clock=source.clock, counts={"orders": 1_000})
        other.record("orders", 5)
        with connected(port) as client:
            wait_until(lambda: client.xlen("orders") == 5)  # the server looks now and then
        with pytest.raises(DataLossError, match="others are in their place: topic=orders"):
            driver.batch()


def test_spark_follows_the_queues_of_a_server(
    spark: object, source: Source, tmp_path: Path
) -> None:
    ran = run_here("token", "add", "reader", "--tokens", tmp_path / "tokens", "--read", "*")
    token = ran.out.strip()
    with serving(source.path, "--tokens", tmp_path / "tokens") as (port, _):
        reached: dict[str, Any] = {"path": f"quire://127.0.0.1:{port}", "token": token}
        sink = Sink(spark, tmp_path / "checkpoint", source)  # type: ignore[arg-type]
        sink.run(maxOffsetsPerTrigger=8, **reached)
        assert [len(batch) for batch in sink.batches] == [8, 8, 3]
        source.record("orders", 2)
        sink.run(**reached)
        assert sink.numbers() == source.numbers()
    kept = [it.read_bytes() for it in (tmp_path / "checkpoint").rglob("*") if it.is_file()]
    assert not any(token.encode() in it for it in kept)
