# ruff: noqa: ANN401
"""Maps read back as what was written, whatever stands before their entries."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import pyarrow as pa
import pytest

import quire


class Desk(Protocol):
    """What is called."""

    def trade(self, details: dict[str, Any]) -> None: ...


VALUES: list[dict[str, Any]] = [
    {"none": {}},
    {"none": []},
    {"deep": {"none": {}}},
    {"listed": [{}, [], {"a": {}}]},
    {"typed": quire.Typed("Nowhere", {"a": {}})},
    {"keyed": {1: {}}},
]


@pytest.mark.parametrize("values", VALUES)
def test_an_empty_map_is_no_list(tmp_path: Path, values: dict[str, Any]) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        appender.write_map(values)
        assert tailer.read_map() == values
        with appender.writing_document() as document:
            for name, value in values.items():
                document.write(name, value)
        assert tailer.read_map() == values


def test_an_empty_mapping_of_another_class_and_under_a_type(tmp_path: Path) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        appender.write_map({"a": MappingProxyType({}), "b": quire.Typed("!omap", {})})
        excerpt = tailer.read()
        assert excerpt is not None
        assert excerpt.to_dict() == {"a": {}, "b": {}}
        assert quire.types.to_json(excerpt.data) == '{"a":{},"b":{}}'


def test_an_empty_map_fits_the_columns_of_full_ones(tmp_path: Path) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        appender.write_map({"m": {}})
        appender.write_map({"m": {"a": 1}})
        schema = quire.Schema.infer(queue)
        batch = tailer.read_batch(schema=schema)
        found = pa.Table.from_batches([batch]).column("m").to_pylist()
    assert found in ([{}, {"a": 1}], [{"a": None}, {"a": 1}], [[], [("a", 1)]])


@pytest.mark.parametrize("form", ["packed", "fields"])
def test_the_history_of_a_call_has_its_name(tmp_path: Path, form: Any) -> None:
    with (
        quire.open(tmp_path, source_id=7) as queue,
        queue.appender() as appender,
        queue.tailer() as tailer,
    ):
        appender.method_writer(Desk, history_form=form).trade({"px": 1})
        found = tailer.read_map()
    assert found is not None
    assert list(found) == ["history", "trade"]
    assert found["trade"] == {"px": 1}


def test_a_packed_history_is_a_message_history(tmp_path: Path) -> None:
    with (
        quire.open(tmp_path, source_id=7) as queue,
        queue.appender() as appender,
        queue.tailer() as tailer,
    ):
        appender.method_writer(Desk).trade({"px": 1})
        found = tailer.read_map()
    assert found is not None
    assert isinstance(found["history"], quire.MessageHistory)
    assert len(found["history"].timings) == 1


def test_what_is_no_history_under_its_number_is_still_read(tmp_path: Path) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        appender.write_bytes(b"\xba\x80\x00\x07")
        assert tailer.read_map() == {"-1": 7}


def test_a_source_id_is_not_negative(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"at least 1, or 0 for none: source_id=-1"):
        quire.open(tmp_path / "q", source_id=-1)
    assert not (tmp_path / "q").exists()


@pytest.mark.parametrize("keys", [["a", "b"], ("a", "b"), {"a", "b"}, frozenset({"a", "b"})])
def test_topics_in_one_list_are_topics(tmp_path: Path, keys: Any) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        for name in ("a", "b", "c"):
            appender.topic(name).write_text(f"of {name}")
        tailer.topics(keys)
        assert [tailer.topic for _ in tailer] == ["a", "b"]
