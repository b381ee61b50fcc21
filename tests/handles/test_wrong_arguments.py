"""Arguments of the wrong kind: what is meant is taken, the rest refused by name."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import quire
import quire.archive as archiving
import quire.logging
from queues import START_MS, payloads
from quire import pausers
from quire.archive import archive
from quire.metrics import DiskMonitor
from quire.recording import StreamRecorder, TcpRecorder, UdpRecorder
from quire.recording.recorder import Recorder
from quire.recording.websocket import WebSocketFeedRecorder, WebSocketRecorder
from quire.replaying.replays import replayed
from wrong_arguments import check


@pytest.fixture
def filled(path: Path, queue: quire.JournalQueue) -> quire.JournalQueue:
    queue.appender().write_many([b"one", b"two"])
    del path
    return queue


def keywords_of(call: Callable[..., Any]) -> set[str]:
    return {*inspect.signature(call).parameters} - {"path"}


def _keyword(call: Callable[..., Any], name: str, wrong: object, **given: object) -> Any:  # noqa: ANN401
    return call(**given | {name: wrong})


PARTS = {
    "roll": quire.RollOptions,
    "layout": quire.LayoutOptions,
    "wait": quire.WaitOptions,
    "ring": quire.RingOptions,
}
OPTIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(sorted(keywords_of(quire.quick_queue.open)), quire.quick_queue.open),
    **dict.fromkeys(sorted(keywords_of(quire.vanilla.open)), quire.vanilla.open),
    **dict.fromkeys(sorted(keywords_of(quire.open) - {"format"}), quire.open),
}
OTHER_WORDS = {
    "roll_cycle": "roll.cycle",
    "read_only": "read_only|no such directory",
    "create": "create|no such directory",
    "epoch_ms": "epoch",
    "cycle_time_zone": "zone",
}


@pytest.mark.parametrize("option", OPTIONS)
def test_options_of_open(tmp_path: Path, option: str) -> None:
    made = iter(range(99))

    def call(wrong: Any) -> None:  # noqa: ANN401 - anything
        OPTIONS[option](tmp_path / f"{next(made)}", **{option: wrong}).close()

    check(call, OTHER_WORDS.get(option, option))


@pytest.mark.parametrize("part", PARTS)
def test_options_that_belong_together(tmp_path: Path, part: str) -> None:
    made = iter(range(999))

    def call(name: str, wrong: Any) -> None:  # noqa: ANN401 - anything
        given: Any = {part: PARTS[part](**{name: wrong})}
        quire.open(tmp_path / f"{next(made)}", **given).close()

    for field in dataclasses.fields(PARTS[part]):
        check(partial(call, field.name), field.name)


def test_the_path_of_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check(lambda wrong: quire.open(wrong, create=False).close(), "path")
    check(lambda wrong: quire.open(wrong, read_only=True).close(), "path")


APPENDS: dict[str, tuple[Callable[[quire.JournalAppender, Any], object], str]] = {
    "write_bytes": (lambda it, wrong: it.write_bytes(wrong), "payload|bytes"),
    "write_text": (lambda it, wrong: it.write_text(wrong), "text"),
    "write_map": (lambda it, wrong: it.write_map(wrong), "mapping|name=|keys? |value"),
    "write_message": (
        lambda it, wrong: it.write_message(wrong),
        r"class of quire\.message|TypedDict",
    ),
    "write_many": (lambda it, wrong: it.write_many(wrong), "payload|bytes"),
    "write_yaml": (lambda it, wrong: it.write_yaml(wrong), "text|YAML|yaml"),
    "write_json": (lambda it, wrong: it.write_json(wrong), "text|JSON|json"),
    "write_batch": (lambda it, wrong: it.write_batch(wrong), "batch"),
    "write_batch schema": (
        lambda it, wrong: it.write_batch(pa.table({"a": [1]}), schema=wrong),
        "schema|column type",
    ),
    "write_batch form": (
        lambda it, wrong: it.write_batch(pa.table({"a": [1]}), form=wrong),
        "form",
    ),
    "writing_document": (lambda it, wrong: it.writing_document(metadata=wrong).close(), "metadata"),
    "method_writer": (lambda it, wrong: it.method_writer(wrong), "interface"),
}


@pytest.mark.parametrize("name", APPENDS)
def test_what_is_appended(filled: quire.JournalQueue, name: str) -> None:
    call, word = APPENDS[name]
    with filled.appender() as appender:
        check(lambda wrong: call(appender, wrong), word)


TAILERS: dict[str, tuple[Callable[[quire.JournalTailer, Any], object], str]] = {
    "read_many": (lambda it, wrong: it.read_many(wrong), "count"),
    "read_message": (lambda it, wrong: it.read_message(wrong), r"class of quire\.message|no class"),
    "read_messages": (lambda it, wrong: it.read_messages(None, wrong), "count|no registered|type"),
    "read_batch": (lambda it, wrong: it.read_batch(wrong), "count"),
    "read_batch bytes": (lambda it, wrong: it.read_batch(1, max_bytes=wrong), "max_bytes"),
    "read_batch schema": (lambda it, wrong: it.read_batch(0, schema=wrong), "schema|column type"),
    "read_batch columns": (
        lambda it, wrong: it.read_batch(0, schema={"a": "int64"}, columns=wrong),
        "column",
    ),
    "read_batch errors": (lambda it, wrong: it.read_batch(0, errors=wrong), "errors"),
    "read_batches schema": (
        lambda it, wrong: it.read_batches(0, schema=wrong),
        "schema|column type",
    ),
    "move_to_index": (lambda it, wrong: it.move_to_index(wrong), "index"),
    "move_to_time": (lambda it, wrong: it.move_to_time(wrong), "time"),
    "move_to": (lambda it, wrong: it.move_to(1, by=wrong), "by"),
    "direction": (lambda it, wrong: setattr(it, "direction", wrong), "direction"),
    "wait": (lambda it, wrong: it.wait(wrong), "timeout_s"),
    "spin": (lambda it, wrong: it.spin(wrong), "timeout_s"),
    "follow": (lambda it, wrong: next(it.follow(wrong)), "timeout_s"),
    "reading_document": (
        lambda it, wrong: it.reading_document(include_metadata=wrong).close(),
        "include_metadata",
    ),
    "after_last_written": (lambda it, wrong: it.after_last_written(wrong), "output|path"),
    "method_reader": (lambda it, wrong: it.method_reader(wrong), "handler|class|method"),
    "dead_letter": (
        lambda it, wrong: it.method_reader(
            default=print, on_error="dead_letter", dead_letter=wrong
        ),
        "dead.letter",
    ),
    "on_error": (lambda it, wrong: it.method_reader(default=print, on_error=wrong), "on_error"),
}


@pytest.mark.parametrize("name", TAILERS)
def test_what_a_tailer_is_asked(
    filled: quire.JournalQueue, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call, word = TAILERS[name]

    def once(wrong: Any) -> None:  # noqa: ANN401 - anything
        with filled.tailer() as tailer:
            call(tailer, wrong)

    check(once, word)


@pytest.mark.parametrize("option", ["name", "on_missing", "shared"])
def test_options_of_a_tailer(filled: quire.JournalQueue, option: str) -> None:
    check(lambda wrong: filled.tailer(**{option: wrong}).close(), option)


QUEUES: dict[str, tuple[Callable[[quire.JournalQueue, Any], object], str]] = {
    "count_excerpts": (lambda it, wrong: it.count_excerpts(wrong, 0), "index"),
    "file_for_cycle": (lambda it, wrong: it.file_for_cycle(wrong), "cycle"),
    "Tailer": (lambda _, wrong: quire.JournalTailer(wrong), "queue"),
    "to_index": (lambda it, wrong: it.roll_cycle.to_index(wrong, 0), "cycle"),
    "to_index sequence": (lambda it, wrong: it.roll_cycle.to_index(0, wrong), "sequence"),
    "to_cycle": (lambda it, wrong: it.roll_cycle.to_cycle(wrong), "index"),
    "to_sequence": (lambda it, wrong: it.roll_cycle.to_sequence(wrong), "index"),
    "cycle_at": (lambda it, wrong: it.roll_cycle.cycle_at(wrong), "time_ms"),
    "cycle_at epoch": (lambda it, wrong: it.roll_cycle.cycle_at(0, wrong), "epoch_ms"),
    "file_name": (lambda it, wrong: it.roll_cycle.file_name(wrong), "cycle"),
    "cycle_of_file": (lambda it, wrong: it.roll_cycle.cycle_of_file(wrong), "name"),
    "RollCycle": (lambda _, wrong: quire.RollCycle(wrong), "name"),
    "ManualClock": (lambda _, wrong: quire.ManualClock(wrong), "now_ms"),
    "advance": (lambda _, wrong: quire.ManualClock().advance(wrong), "ms"),
    "Schema": (lambda _, wrong: quire.Schema(wrong), "fields|a column"),
    "Schema column": (lambda _, wrong: quire.Schema({"a": wrong}), "type"),
    "from_message": (lambda _, wrong: quire.Schema.from_message(wrong), r"quire\.message"),
    "from_methods": (lambda _, wrong: quire.Schema.from_methods(wrong), "interface|method"),
    "from_text": (lambda _, wrong: quire.Schema.from_text(wrong), "text"),
    "of_value": (lambda _, wrong: quire.Schema.of_value(wrong), "type"),
    "infer": (lambda _, wrong: quire.Schema.infer(wrong), "queue|path"),
    "infer sample": (quire.Schema.infer, "sample|message"),
    "select": (lambda _, wrong: quire.Schema({"a": "int8"}).select(wrong), "column"),
    "compare": (lambda it, wrong: [*quire.compare(it, wrong)], "right|path"),
    "compare by": (lambda it, wrong: quire.compare(it, it, by=wrong), "by"),
    "compare ignore": (lambda it, wrong: quire.compare(it, it, ignore=wrong), "ignore"),
    "compare start": (lambda it, wrong: [*quire.compare(it, it, start=wrong)], "start|index|time"),
    "replayed": (lambda _, wrong: [*replayed(wrong)], "source|path"),
    "replayed start": (lambda it, wrong: [*replayed(it, start=wrong)], "start|time"),
    "replayed end": (lambda it, wrong: [*replayed(it, end=wrong)], "end|time"),
    "replay out": (quire.replay, "out"),
    "service inputs": (
        lambda it, wrong: quire.service(inputs=wrong, output=it, handler=print),
        "input|path",
    ),
    "service output": (
        lambda it, wrong: quire.service(inputs=[it], output=wrong, handler=print),
        "output|path|source id",
    ),
}


@pytest.mark.parametrize("name", QUEUES)
def test_what_takes_queues_and_points(
    filled: quire.JournalQueue, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call, word = QUEUES[name]
    if name == "replay out":
        (tmp_path / "no such thing").write_bytes(b"a file")
        (tmp_path / "x").write_bytes(b"a file")
        word += "|no such thing|/x"
    check(lambda wrong: call(filled, wrong), word)


PAUSES: dict[str, tuple[Callable[[Any], object], str]] = {
    **{
        name: (partial(_keyword, pausers.Pauser, name), name)
        for name in ("busy_count", "yield_count", "min_s", "max_s", "timeout_s")
    },
    "yielding": (pausers.yielding, "busy_count"),
    "balanced": (pausers.balanced, "max_ms"),
    "millis": (pausers.millis, "min_ms"),
    "millis to": (partial(pausers.millis, 1), "max_ms|max_s"),
    "timeout": (pausers.timeout, "timeout_s"),
    "async_": (pausers.async_, "max_ms"),
}


@pytest.mark.parametrize("name", PAUSES)
def test_pausers(name: str) -> None:
    check(*PAUSES[name])


RECORDERS: list[tuple[type[Recorder], str]] = [
    *((kind, name) for kind in (TcpRecorder, UdpRecorder, WebSocketRecorder)
      for name in ("appender", "host", "port", "max_bytes")),
    *((kind, name) for kind in (TcpRecorder, WebSocketRecorder)
      for name in ("max_clients", "idle_timeout_s")),
    (TcpRecorder, "framing"),
    (UdpRecorder, "receive_buffer_bytes"),
    (WebSocketRecorder, "origins"),
    (WebSocketFeedRecorder, "url"),
    (StreamRecorder, "descriptor"),
    (StreamRecorder, "framing"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), RECORDERS)
def test_recorders(filled: quire.JournalQueue, kind: type[Recorder], name: str) -> None:
    async def record(wrong: Any) -> None:  # noqa: ANN401 - anything
        async with _keyword(kind, name, wrong, **given):
            pass

    given: dict[str, Any] = {"appender": filled.appender()}
    if kind is StreamRecorder:
        given["descriptor"] = 0
    others = {"host": "|cannot listen", "url": "|URL"}.get(name, "")
    check(lambda wrong: asyncio.run(record(wrong)), name + others)


ARCHIVING = ("timed", "grace_s", "delete", "force", "accept_loss", "progress")


def _archived(name: str, queue: quire.JournalQueue, new: str, wrong: object) -> object:
    return _keyword(archive, name, wrong, path=queue.path, dest=new)


TOOLS: dict[str, tuple[Callable[[quire.JournalQueue, str, Any], object], str]] = {
    "archive path": (lambda _, new, wrong: archive(wrong, new), "path"),
    "archive dest": (lambda it, _, wrong: archive(it.path, wrong), "dest|path|no such thing|/x"),
    **{f"archive {name}": (partial(_archived, name), name) for name in ARCHIVING},
    "verify dest": (lambda _, __, wrong: archiving.verify(wrong), "dest|path"),
    "verify queue": (
        lambda it, new, wrong: (archive(it.path, new), archiving.verify(new, wrong)),
        "queue|path",
    ),
    "convert source": (
        lambda _, new, wrong: quire.convert(wrong, new, into="vanilla"),
        "source|path",
    ),
    "convert progress": (
        lambda it, new, wrong: quire.convert(it, new, into="vanilla", progress=wrong),
        "progress",
    ),
    "prune clock": (lambda it, _, wrong: quire.prune(it.path, max_cycles=9, clock=wrong), "clock"),
    "dump out": (lambda it, _, wrong: it.dump(wrong), "out"),
    "key file": (lambda _, __, wrong: quire.KeyRing.from_file(wrong), "path|No such file"),
    "key variable": (lambda _, __, wrong: quire.KeyRing.from_environment(wrong), "variable"),
    "key command": (lambda _, __, wrong: quire.KeyRing.from_command(wrong), "command"),
    "replay speed": (lambda it, new, wrong: quire.replay(it, new, speed=wrong), "speed|pace"),
    "merge pauser": (
        lambda it, _, wrong: [*quire.read_merged([it], key=lambda one: one.index, pauser=wrong)],
        "pauser",
    ),
    "follow pauser": (
        lambda it, _, wrong: [*it.tailer().follow(timeout_s=0, pauser=wrong)],
        "pauser",
    ),
    "log schema": (lambda _, __, wrong: quire.logging.schema(wrong), "extra|column type"),
    "warn_bytes": (lambda it, _, wrong: DiskMonitor(it, warn_bytes=wrong), "warn_bytes"),
}


@pytest.mark.parametrize("name", TOOLS)
def test_what_tools_are_given(
    filled: quire.JournalQueue, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    call, word = TOOLS[name]
    made = iter(range(99))
    check(lambda wrong: call(filled, str(tmp_path / f"new{next(made)}"), wrong), word)


def test_times_stand_for_points(filled: quire.JournalQueue) -> None:
    start = datetime.fromtimestamp(START_MS // 1000, UTC).date()
    midnight = datetime(start.year, start.month, start.day, tzinfo=UTC)
    for point in (start, start.isoformat(), midnight, midnight.timestamp(), filled.first_index):
        assert [it.data for it in replayed(filled, start=point)] == [b"one", b"two"]
        assert not [*replayed(filled, end=point)]
    with filled.tailer() as tailer:
        assert tailer.move_to_time(date(1999, 1, 1))
        assert tailer.read_bytes() == b"one"


def test_paths_stand_for_queues(filled: quire.JournalQueue, tmp_path: Path) -> None:
    filled.appender().write_map({"a": 1})
    path = filled.path
    assert not [*quire.compare(path, Path(path))]
    assert not [*quire.compare(path, path.encode())]  # type: ignore[arg-type]
    with quire.open(path.encode(), read_only=True) as again:  # type: ignore[call-overload]
        assert len(payloads(again)) == 3
    clock = quire.ManualClock(START_MS)
    with quire.open(tmp_path / "maps", clock=clock) as maps:
        maps.appender().write_map({"a": 1})
        assert quire.Schema.infer(maps.path) == quire.Schema.infer(maps)

    class Handler:
        def a(self, number: int) -> None:
            raise ValueError(number)

    letters = tmp_path / "letters"
    with quire.open(tmp_path / "maps", read_only=True) as maps, maps.tailer() as tailer:
        reader = tailer.method_reader(Handler(), on_error="dead_letter", dead_letter=letters)
        assert reader.read_one()
        reader.close()
    with quire.open(letters, read_only=True) as found, found.tailer() as tailer:
        assert (tailer.read_map() or {})["error"] == "ValueError: 1"
    with quire.open(tmp_path / "in", source_id=1) as queue, queue.tailer() as tailer:
        tailer.after_last_written(letters)
        assert tailer.read() is None


def test_dicts_and_classes_stand_for_schemas(filled: quire.JournalQueue) -> None:
    @quire.message
    @dataclass
    class Point:
        x: int

    with filled.tailer() as tailer, filled.appender() as appender:
        tailer.to_end()
        appender.write_batch(pa.table({"x": [1, 2]}), schema={"x": "int64"})
        assert tailer.read_batch(9, schema={"x": "int32"})["x"].to_pylist() == [1, 2]
        tailer.to_end()
        appender.write_message(Point(3))
        assert tailer.read_batch(9, schema=Point)["x"].to_pylist() == [3]


def test_data_frames_stand_for_batches(filled: quire.JournalQueue) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1, 2, 3], "y": ["a", None, "c"]})
    with filled.tailer() as tailer, filled.appender() as appender:
        tailer.to_end()
        appender.write_batch(frame[frame.x > 1])
        assert [tailer.read_map(), tailer.read_map()] == [{"x": 2, "y": None}, {"x": 3, "y": "c"}]
        appender.write_batch(frame.set_index("x"), omit_nulls=True)
        assert tailer.read_map() == {"y": "a", "x": 1}


def test_an_empty_path_is_not_the_working_directory(
    path: Path, queue: quire.JournalQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path)
    calls: list[Callable[[], object]] = [
        lambda: quire.open(""),
        lambda: quire.open(b""),  # type: ignore[call-overload]
        lambda: quire.verify(""),
        lambda: quire.repair("", dry_run=False),
        lambda: quire.prune("", max_cycles=1),
        lambda: quire.convert(path, "", into="vanilla"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"expected a path \(the working directory is '.'\)"):
            call()
    assert queue.path == str(path)
