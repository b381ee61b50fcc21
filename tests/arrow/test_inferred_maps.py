"""Maps whose keys are no names, as Java's by numbers: they are inferred as maps, and whole."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import quire
from cli_runs import Cli


def test_maps_by_other_keys_than_names_are_columns_of_maps(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_map({"levels": {1: 2.5, -5: 3}, "of": {7: {"px": 1}}, "lists": [{1: "a"}]})
    appender.write_map({"levels": {}, "of": {8: {"px": 2, "qty": 3}}, "mixed": {1: 2, "x": "y"}})
    schema = quire.Schema.infer(queue)
    names = pa.string()
    assert [schema.arrow.field(it).type for it in ("levels", "of", "lists", "mixed")] == [
        pa.map_(names, pa.float64()),
        pa.map_(names, pa.struct([("px", pa.int64()), ("qty", pa.int64())])),
        pa.list_(pa.map_(names, names)),
        pa.map_(names, names),
    ]
    first, second = queue.to_arrow(schema).to_pylist()
    assert first["levels"] == [("1", 2.5), ("-5", 3.0)]
    assert first["of"] == [("7", {"px": 1, "qty": None})]
    assert first["lists"] == [[("1", "a")]]
    assert (second["levels"], second["mixed"]) == ([], [("1", "2"), ("x", "y")])


def test_values_without_a_common_type_are_named(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_map({"odd": {1: {"a": 1}, "b": 2}})
    with pytest.raises(ValueError, match="values of different types: field=odd types="):
        quire.Schema.infer(queue)


def test_columns_on_the_command_line_have_these_maps(
    cli: Cli, path: Path, appender: quire.JournalAppender
) -> None:
    appender.write_map({"levels": {1: "a", 2: "b"}, "n": 1})
    ran = cli.ok("read", path, "--columns", "levels,n", "--format", "jsonl", "--no-index")
    assert ran.lines == ['{"levels": {"1": "a", "2": "b"}, "n": 1}']
