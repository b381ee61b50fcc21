"""Method calls between the languages: each writes, the other reads and hands on, with history."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

import quire
from java_peer import JavaPeer, Option
from probe_calls import CALLS, Market, make, recorder
from probes import ROWS

pytestmark = pytest.mark.java

JAVA_FAILS_AT = "any(null)"  # its reader asks null for its class
MADE = [name for name in CALLS if name != JAVA_FAILS_AT]


def declared(name: str) -> list[str]:
    """What Java tells of the calls of a probe."""
    declaration: str = ROWS[f"call {name}"]["declared"]
    return declaration.removeprefix("ArrayList:[String:").removesuffix("]").split(", String:")


def calls_of(line: Mapping[str, Any]) -> list[str]:
    calls: list[str] = line["calls"]
    return ", String:".join(calls).split(", String:")


def java_writes(path: Path, names: list[str], **options: int) -> list[int]:
    lines = JavaPeer().run_with_input("method-write", "\n".join(names), dir=path, **options)
    return [int(line, 16) for line in lines]


def java_reads(path: Path, **options: Option) -> list[dict[str, Any]]:
    return [json.loads(line) for line in JavaPeer().run("method-read", dir=path, **options)]


def test_java_handles_the_calls_of_a_python_writer(tmp_path: Path) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender:
        market = appender.method_writer(Market)
        for name in MADE:
            make(market, name)
    lines = java_reads(tmp_path)
    assert [calls_of(line) for line in lines] == [declared(name) for name in MADE]


def test_python_handles_the_calls_of_a_java_writer(tmp_path: Path) -> None:
    indexes = java_writes(tmp_path, [*CALLS])
    calls: list[tuple[str, tuple[Any, ...]]] = []
    with quire.open(tmp_path, read_only=True) as queue, queue.tailer() as tailer:
        reader = tailer.method_reader(recorder(calls), interface=Market)
        for name, index in zip(CALLS, indexes, strict=True):
            calls.clear()
            assert reader.read_one()
            assert tailer.last_read_index == index
            call = CALLS[name]
            assert calls == [(each.method, each.arguments) for each in (call, *call.then)]
        assert not reader.read_one()


NAMES = ["say('hello')", "to('x').deliver('m')", "numbered(5) with an id", "leaf(leaf)"]


@pytest.mark.parametrize("form", ["packed", "fields"])
def test_history_goes_from_python_through_java_to_python(
    tmp_path: Path, form: Literal["packed", "fields"]
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with quire.open(first, source_id=1) as queue, queue.appender() as appender:
        market = appender.method_writer(Market, history_form=form)
        indexes: list[int | None] = []
        for name in NAMES:
            make(market, name)
            indexes.append(queue.last_index)
    lines = java_reads(first, forward_to=second, forward_source_id=2)
    assert [calls_of(line) for line in lines] == [declared(name) for name in NAMES]
    assert [line["sources"] for line in lines] == [[[1, f"{index:x}"]] for index in indexes]
    assert all(increase(line["timings"], count=2) for line in lines)

    histories: list[tuple[tuple[int, int], ...]] = []
    with quire.open(second, read_only=True) as queue, queue.tailer() as tailer:
        assert queue.source_id == 2
        handler = recorder([])
        reader = tailer.method_reader(handler, interface=Market)
        for line in lines:
            assert reader.read_one()
            history = tailer.history
            assert history is not None
            histories.append(history.sources)
            assert list(history.timings[:2]) == line["timings"]
            assert increase(history.timings, count=3)
    assert histories == [((1, index),) for index in indexes]


def test_history_goes_from_java_through_python_to_java(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    indexes = java_writes(first, NAMES, source_id=1)
    calls: list[tuple[str, tuple[Any, ...]]] = []
    seen: list[tuple[int, ...]] = []
    with (
        quire.open(first) as queue,
        quire.open(second, source_id=2) as output,
        queue.tailer() as tailer,
        output.appender() as appender,
    ):
        handler = recorder(calls, appender.method_writer(Market))
        reader = tailer.method_reader(handler, interface=Market)
        written: list[int | None] = []
        while reader.read_one():
            history = tailer.history
            assert history is not None
            seen.append(history.timings)
            written.append(output.last_index)
    assert len(calls) == len(NAMES) + 1
    lines = java_reads(second)
    assert [calls_of(line) for line in lines] == [declared(name) for name in NAMES]
    assert [line["sources"] for line in lines] == [
        [[1, f"{index:x}"], [2, f"{second_index:x}"]]
        for index, second_index in zip(indexes, written, strict=True)
    ]
    assert all(increase(line["timings"], count=4) for line in lines)
    assert [line["timings"][0] for line in lines] == [timings[0] for timings in seen]


def test_each_goes_on_where_the_other_stopped(tmp_path: Path) -> None:
    """The output tells what was handled: Java hands on one call, Python two, Java the last."""
    first, second = tmp_path / "first", tmp_path / "second"
    java = JavaPeer("5.26ea7")  # the newest with afterLastWritten
    onward: dict[str, Option] = {"dir": first, "forward_to": second, "forward_source_id": 2}
    lines = java.run_with_input("method-write", "\n".join(NAMES), dir=first, source_id=1)
    indexes = [int(line, 16) for line in lines]
    java.run("method-read", count=1, **onward)
    with (
        quire.open(first, read_only=True) as queue,
        quire.open(second) as output,
        queue.tailer() as tailer,
    ):
        tailer.after_last_written(output)
        assert tailer.index == indexes[1]
        forward(tailer, output, count=2)
    (line,) = java.run("method-read", resume=True, **onward)
    assert json.loads(line)["index"] == f"{indexes[3]:x}"
    assert [calls_of(line) for line in java_reads(second)] == [declared(name) for name in NAMES]


def forward(tailer: quire.JournalTailer, output: quire.JournalQueue, *, count: int) -> None:
    """Hands so many calls to the other queue."""
    with output.appender() as appender:
        handler = recorder([], appender.method_writer(Market))
        reader = tailer.method_reader(handler, interface=Market)
        for _ in range(count):
            assert reader.read_one()


def increase(timings: Sequence[int], *, count: int) -> bool:
    return len(timings) == count and sorted(timings) == list(timings)


def test_calls_in_a_queue_without_field_names_are_java_s(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    lines = "\n".join(CALLS)
    JavaPeer().run_with_input("method-write", lines, dir=first, wire_type="FIELDLESS_BINARY")
    calls: list[tuple[str, tuple[Any, ...]]] = []
    with (
        quire.open(first) as java,
        quire.open(second, wire_type="FIELDLESS_BINARY") as queue,
        queue.appender() as appender,
    ):
        market = appender.method_writer(Market)
        for name in CALLS:
            make(market, name)
        assert list(queue.tailer().payloads()) == list(java.tailer().payloads())
        reader = java.tailer().method_reader(recorder(calls), interface=Market)
        while reader.read_one():
            pass

    made = [(each.method, each.arguments) for it in CALLS.values() for each in (it, *it.then)]
    assert repr(calls) == repr(made)  # NaN is not equal to itself
