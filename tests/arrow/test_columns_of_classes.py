"""Columns of the messages of each kind of class: declared, and inferred from what is there."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import quire
from message_classes import BY_KIND, ROWS


@pytest.fixture(params=BY_KIND)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def written(queue: quire.JournalQueue, appender: quire.JournalAppender, kind: str) -> list[Any]:
    """The rows, written as objects of a kind of class."""
    cls, make = BY_KIND[kind]
    messages = [make(**row) for row in ROWS]
    for message in messages:
        appender.write_message(message, cls)
    assert queue.entry_count == len(ROWS)
    return messages


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = batch.drop_columns(["index"]).to_pylist()
    return rows


def test_the_schema_of_a_class_and_the_inferred_one_have_its_columns(
    queue: quire.JournalQueue, written: list[Any], kind: str
) -> None:
    declared = quire.Schema.from_message(BY_KIND[kind][0])
    inferred = quire.Schema.infer(queue)
    assert declared.names == inferred.names == ["symbol", "lots", "price", "at", "legs"]
    assert declared.columns == inferred.columns
    for schema in (declared, inferred, BY_KIND[kind][0]):
        assert rows_of(queue.tailer().read_batch(schema=schema)) == ROWS
    assert queue.tailer().read_messages(BY_KIND[kind][0], len(ROWS)) == written


def test_data_frames_have_the_columns(
    queue: quire.JournalQueue, written: list[Any], kind: str
) -> None:
    assert written
    pandas = queue.to_pandas(schema=BY_KIND[kind][0])
    polars = queue.to_polars(quire.Schema.infer(queue))
    for found in (list(pandas["symbol"]), polars["symbol"].to_list()):
        assert found == [row["symbol"] for row in ROWS]


def test_what_objects_lack_is_null(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    cls, _ = BY_KIND["TypedDict"]
    appender.write_message({"symbol": "EUR", "lots": 1, "price": 1.5, "legs": []}, cls)
    (row,) = rows_of(queue.tailer().read_batch(schema=cls))
    assert row["at"] is None
