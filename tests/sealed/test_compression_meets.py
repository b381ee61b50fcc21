"""Compressed messages beside the other features of a queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import quire
from queues import problems_of
from quire import maintenance
from quire.archive import archive
from replicas import replicate
from stored_queues import (
    day_and_number_of,
    day_of,
    fill,
    groups_and_named_tailers_give,
    messages,
    seals_and_retention_keep,
    stored,
)

TEXT = "attack at dawn " * 30
DAYS, EACH = 4, 5


def filled(path: Path, days: int = DAYS) -> list[bytes]:
    """Fill a queue of several days, and return its messages."""
    return fill(
        path,
        lambda day, number: {"day": day, "number": number, "text": TEXT},
        days,
        EACH,
        compression="zstd",
    )


def test_a_replica_stores_the_same_bytes(tmp_path: Path) -> None:
    source, sink = tmp_path / "source", tmp_path / "sink"
    expected = filled(source)
    replicate(source, sink)
    assert stored(sink) == stored(source)
    assert sum(map(len, stored(sink))) < sum(map(len, expected)) // 2
    assert messages(sink) == expected
    assert problems_of(sink) == []


def test_copies_and_what_is_split_and_joined(tmp_path: Path) -> None:
    expected = filled(tmp_path / "q")
    assert quire.copy_queue(tmp_path / "q", tmp_path / "copy").messages == len(expected)
    assert messages(tmp_path / "copy") == expected
    maintenance.split_queue(tmp_path / "q", tmp_path / "parts", day_of)
    parts = sorted((tmp_path / "parts").iterdir())
    maintenance.merge_queues(parts, tmp_path / "joined", day_and_number_of)
    assert sorted(messages(tmp_path / "joined")) == sorted(expected)


def test_seals_and_retention(tmp_path: Path) -> None:
    expected = filled(tmp_path / "q")
    seals_and_retention_keep(tmp_path / "q", expected, EACH)


def test_repair_loses_nothing(tmp_path: Path) -> None:
    expected = filled(tmp_path / "q", days=1)
    (tmp_path / "q" / "metadata.cq4t").unlink()
    quire.repair(tmp_path / "q")
    with quire.open(tmp_path / "q"):
        pass
    assert messages(tmp_path / "q") == expected
    assert quire.verify(tmp_path / "q").ok


def test_groups_and_named_tailers_deliver(tmp_path: Path) -> None:
    expected = filled(tmp_path / "q", days=1)
    groups_and_named_tailers_give(tmp_path / "q", expected, {"day": 0, "number": 1, "text": TEXT})


def test_archives_and_arrow_show_the_messages(tmp_path: Path) -> None:
    dataset = pytest.importorskip("pyarrow.dataset")
    expected = filled(tmp_path / "q")
    report = archive(tmp_path / "q", tmp_path / "archive", schema="infer")
    rows = dataset.dataset(tmp_path / "archive", format="parquet").to_table()
    assert report is not None
    assert rows.num_rows == (DAYS - 1) * EACH
    assert set(rows["text"].to_pylist()) == {TEXT}
    with quire.open(tmp_path / "q", read_only=True) as queue, queue.tailer() as tailer:
        batch = tailer.read_batch(schema=quire.Schema.infer(queue))
        assert batch["number"].to_pylist()[:EACH] == [*range(EACH)]
        assert batch.num_rows == len(expected)


@pytest.mark.parametrize("key", [None, bytes(range(32))])
def test_metrics_count_what_is_stored(tmp_path: Path, key: bytes | None) -> None:
    path, options = tmp_path / "q", {} if key is None else {"key": key}
    opened: Any = quire.open
    with opened(path, compression="zstd", metrics=True, **options) as queue:
        with queue.appender() as appender:
            for _ in range(3):
                appender.write_bytes(b"the same words " * 40)
            appender.write_many([b"the same words " * 40, b"short"])
            with appender.writing_document() as document:
                document.write("words", "the same words " * 40)
        with queue.tailer() as tailer:
            assert tailer.read_bytes() is not None
            assert len(tailer.read_many(2)) == 2
            assert tailer.read_batch(2).num_rows == 2
            with tailer.reading_document() as document:
                assert document.is_present
        found = queue.metrics()
    size = sum(map(len, stored(path)))
    assert found.messages_appended == found.messages_read == 6
    assert found.bytes_appended == found.bytes_read == size < 6 * 600
