"""Messages that are stored as differences, beside the other features of a queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import quire
from differences import parse
from parameters import some
from queues import problems_of
from quire import maintenance
from quire.archive import archive
from replicas import replicate
from served import serving
from stored_queues import (
    day_and_number_of,
    day_of,
    fill,
    groups_and_named_tailers_give,
    messages,
    seals_and_retention_keep,
    stored,
)

DAYS, EACH = 4, 6
WIRE_TYPES = ("DELTA_BINARY", "DEFAULT_ZERO_BINARY")


@pytest.fixture(params=some(WIRE_TYPES, keep=[0]))
def wire_type(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def quote(day: int, number: int) -> dict[str, object]:
    return {"day": day, "number": number, "symbol": "EURUSD", "text": "attack at dawn", "size": 0}


def filled(path: Path, wire_type: str, days: int = DAYS) -> list[bytes]:
    """Fill a queue of several days, and return its messages."""
    found = fill(path, quote, days, EACH, wire_type=wire_type)
    assert sum(parse(it) is not None for it in stored(path)) == days * (EACH - 1)
    return found


@pytest.mark.slow
def test_a_replica_stores_the_same_bytes(tmp_path: Path, wire_type: str) -> None:
    source, sink = tmp_path / "source", tmp_path / "sink"
    expected = filled(source, wire_type)
    replicate(source, sink)
    assert stored(sink) == stored(source)
    assert messages(sink) == expected
    assert problems_of(sink) == []
    with quire.open(sink, read_only=True) as queue:
        assert queue.wire_type == wire_type


def test_copies_and_what_is_split_and_joined(tmp_path: Path, wire_type: str) -> None:
    expected = filled(tmp_path / "q", wire_type)
    assert quire.copy_queue(tmp_path / "q", tmp_path / "copy").messages == len(expected)
    assert messages(tmp_path / "copy") == expected
    maintenance.split_queue(tmp_path / "q", tmp_path / "parts", day_of)
    parts = sorted((tmp_path / "parts").iterdir())
    maintenance.merge_queues(parts, tmp_path / "joined", day_and_number_of)
    assert sorted(messages(tmp_path / "joined")) == sorted(expected)


def test_seals_and_retention(tmp_path: Path, wire_type: str) -> None:
    expected = filled(tmp_path / "q", wire_type)
    seals_and_retention_keep(tmp_path / "q", expected, EACH)


def test_repair_loses_nothing(tmp_path: Path, wire_type: str) -> None:
    expected = filled(tmp_path / "q", wire_type, days=1)
    (tmp_path / "q" / "metadata.cq4t").unlink()
    quire.repair(tmp_path / "q")
    with quire.open(tmp_path / "q") as queue, queue.appender() as appender:
        appender.write_bytes(expected[-1])
    assert messages(tmp_path / "q") == [*expected, expected[-1]]
    assert quire.verify(tmp_path / "q").ok


def test_groups_and_named_tailers_deliver(tmp_path: Path, wire_type: str) -> None:
    expected = filled(tmp_path / "q", wire_type, days=1)
    groups_and_named_tailers_give(tmp_path / "q", expected, quote(0, 1))


def test_archives_and_arrow_show_the_messages(tmp_path: Path, wire_type: str) -> None:
    dataset = pytest.importorskip("pyarrow.dataset")
    expected = filled(tmp_path / "q", wire_type)
    assert archive(tmp_path / "q", tmp_path / "archive", schema="infer") is not None
    rows = dataset.dataset(tmp_path / "archive", format="parquet").to_table()
    assert rows.num_rows == (DAYS - 1) * EACH
    with quire.open(tmp_path / "q", read_only=True) as queue, queue.tailer() as tailer:
        batch = tailer.read_batch(schema=quire.Schema.infer(queue))
        assert batch["number"].to_pylist()[:EACH] == [*range(EACH)]
        assert batch.num_rows == len(expected)


def test_who_drains_the_ring_stores_differences(tmp_path: Path, wire_type: str) -> None:
    path = tmp_path / "q"
    opened: Any = quire.open
    with opened(path, wire_type=wire_type, buffer_mode="async") as queue:
        with queue.appender() as appender:
            for number in range(50):
                appender.write_map(quote(0, number))
            ring = queue.ring
            assert ring is not None
            ring.flush()
        with queue.tailer() as tailer:
            assert [it.to_dict()["number"] for it in tailer] == [*range(50)]
    assert any(parse(it) for it in stored(path))


def test_a_remote_queue_is_as_before(tmp_path: Path, wire_type: str) -> None:
    expected = filled(tmp_path / "q", wire_type, days=1)
    with serving(tmp_path) as (port, _), quire.open(f"quire://127.0.0.1:{port}/q") as queue:
        assert queue.wire_type == wire_type
        with queue.tailer() as tailer:
            assert [bytes(it.data) for it in tailer] == expected
        with queue.appender() as appender:
            appender.write_bytes(expected[-1])
    assert messages(tmp_path / "q") == [*expected, expected[-1]]


def test_metrics_count_what_is_stored(tmp_path: Path, wire_type: str) -> None:
    path = tmp_path / "q"
    opened: Any = quire.open
    with opened(path, wire_type=wire_type, metrics=True) as queue:
        with queue.appender() as appender:
            for number in range(9):
                appender.write_map(quote(0, number))
        with queue.tailer() as tailer:
            assert len(list(tailer)) == 9
        found = queue.metrics()
    size = sum(map(len, stored(path)))
    assert (found.messages_appended, found.messages_read) == (9, 9)
    assert found.bytes_appended == found.bytes_read == size
