"""Quire reads what Java wrote: every golden queue, in every way, read-only and opened to write."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

import quire
from reference import check_store, open_queue, read_queue
from test_reference import CRASHED, GOLDEN, JAVA, QUEUES, delivered, found, listing, name_of

Message: TypeAlias = tuple[int, int, str]
Snapshot: TypeAlias = dict[str, tuple[str, int, int]]
FULL = "index_growth_test_daily"  # 64 messages: its cycle numbers no more
MORE = [b"appended by Quire", b"\x8f", b"x" * 1000]


def copy_of(queue: Path, path: Path) -> Path:
    path.mkdir()
    for file in [*queue.glob("*.cq4"), *queue.glob("*.cq4t")]:
        shutil.copyfile(file, path / file.name)
    return path


def snapshot(path: Path) -> Snapshot:
    """Return content, time of change and mode of each file and of the directory."""
    return {
        file.name: (
            hashlib.sha256(b"" if file.is_dir() else file.read_bytes()).hexdigest(),
            file.stat().st_mtime_ns,
            file.stat().st_mode,
        )
        for file in [path, *path.iterdir()]
    }


def roll_files(path: Path) -> Snapshot:
    return {name: state for name, state in snapshot(path).items() if name.endswith(".cq4")}


def message(index: int, data: bytes | memoryview) -> Message:
    return index, len(data), hashlib.sha256(data).hexdigest()


def forward(queue: quire.Queue) -> list[Message]:
    with queue.tailer() as tailer:
        return [message(excerpt.index, excerpt.data) for excerpt in tailer]


def backward(queue: quire.Queue) -> list[Message]:
    with queue.tailer() as tailer:
        tailer.direction = "backward"
        tailer.to_end()
        return [message(excerpt.index, excerpt.data) for excerpt in tailer]


def by_index(queue: quire.Queue, indexes: list[int]) -> Iterator[Message]:
    with queue.tailer() as tailer:
        for index in indexes:
            assert tailer.move_to_index(index)
            assert tailer.index == index
            excerpt = tailer.read()
            assert excerpt
            yield message(excerpt.index, excerpt.data)


def documents(queue: quire.Queue) -> Iterator[tuple[Message, bool]]:
    with queue.tailer() as tailer:
        while True:
            with tailer.reading_document(include_metadata=True) as document:
                if not document.is_present:
                    return
                yield message(document.index, document.bytes), document.is_metadata


def all_ways(queue: quire.Queue, expected: list[Message]) -> None:
    indexes = [index for index, *_ in expected]
    assert forward(queue) == expected
    assert backward(queue) == expected[::-1]
    assert list(by_index(queue, indexes)) == expected
    assert list(by_index(queue, indexes[::-1])) == expected[::-1]
    assert (queue.first_index, queue.last_index) == tuple(indexes[:1] + indexes[-1:] or [None] * 2)
    assert queue.entry_count == len(expected)


@pytest.fixture(params=[True, False], ids=["read-only", "writable"])
def opened(
    request: pytest.FixtureRequest, golden: Path, tmp_path: Path
) -> Iterator[tuple[quire.Queue, Path]]:
    """A copy of a golden queue, opened; read-only it lies in a directory without write bits."""
    path, read_only = copy_of(golden, tmp_path / "queue"), bool(request.param)
    if read_only:
        for file in [*path.iterdir(), path]:
            file.chmod(0o555 if file.is_dir() else 0o444)
    with quire.open(path, read_only=read_only) as queue:
        yield queue, golden
    path.chmod(0o755)


@pytest.mark.parametrize("golden", QUEUES, ids=name_of)
def test_messages_are_read_forward_as_they_were_listed(opened: tuple[quire.Queue, Path]) -> None:
    queue, golden = opened
    assert forward(queue) == delivered(golden, "list.jsonl")


@pytest.mark.parametrize("golden", QUEUES, ids=name_of)
def test_messages_are_read_backward_as_they_were_listed(opened: tuple[quire.Queue, Path]) -> None:
    queue, golden = opened
    assert backward(queue) == delivered(golden, "list.jsonl")[::-1]


@pytest.mark.parametrize("golden", QUEUES, ids=name_of)
def test_every_message_is_found_by_its_index(opened: tuple[quire.Queue, Path]) -> None:
    queue, golden = opened
    expected = delivered(golden, "list.jsonl")
    indexes = [index for index, *_ in expected]

    assert list(by_index(queue, indexes)) == expected
    assert list(by_index(queue, indexes[::-1])) == expected[::-1]


@pytest.mark.parametrize("golden", QUEUES, ids=name_of)
def test_messages_are_counted_as_they_were_listed(opened: tuple[quire.Queue, Path]) -> None:
    queue, golden = opened
    indexes = [index for index, *_ in delivered(golden, "list.jsonl")]

    assert queue.entry_count == len(indexes)
    assert queue.first_index == (indexes[0] if indexes else None)
    assert queue.last_index == (indexes[-1] if indexes else None)
    for place in range(0, len(indexes), 1 + len(indexes) // 50):
        assert queue.count_excerpts(indexes[0], indexes[place]) == place
        assert queue.count_excerpts(indexes[place], indexes[-1] + 1) == len(indexes) - place


@pytest.mark.parametrize("golden", JAVA, ids=name_of)
def test_metadata_is_read_as_it_was_listed(opened: tuple[quire.Queue, Path]) -> None:
    queue, golden = opened
    expected = delivered(golden, "list-meta.jsonl")
    is_metadata = [row.get("meta", False) for row in listing(golden, "list-meta.jsonl")]

    assert list(documents(queue)) == list(zip(expected, is_metadata, strict=True))


@pytest.mark.parametrize("golden", JAVA, ids=name_of)
def test_a_named_tailer_of_java_resumes_where_java_left_it(golden: Path, tmp_path: Path) -> None:
    messages = [index for index, *_ in delivered(golden, "list.jsonl")]
    with quire.open(copy_of(golden, tmp_path / "queue")) as queue:
        for name in ("none", "one", "ten", "twenty", "thirty", "all", "alice", "bob", "carol"):
            stored = queue.table_value(f"index.{name}")
            if stored is not None:
                with queue.tailer(name) as tailer:
                    rest = [excerpt.index for excerpt in tailer]
                assert rest == [index for index in messages if index >= stored]


@pytest.mark.parametrize("golden", QUEUES, ids=name_of)
def test_reading_in_every_way_changes_no_byte_of_the_directory(
    golden: Path, tmp_path: Path
) -> None:
    path = copy_of(golden, tmp_path / "queue")
    before = snapshot(path)

    with quire.open(path, read_only=True) as queue:
        all_ways(queue, delivered(golden, "list.jsonl"))
        list(documents(queue))
        queue.refresh()
        assert queue.dump()
        assert queue.table_value("listing.highestCycle") == queue.table_value(
            "LISTING.HIGHESTcycle"
        )

    assert snapshot(path) == before


@pytest.mark.parametrize("golden", QUEUES, ids=name_of)
def test_opening_to_write_and_reading_leaves_the_roll_files_alone(
    golden: Path, tmp_path: Path
) -> None:
    path = copy_of(golden, tmp_path / "queue")
    before = roll_files(path)

    with quire.open(path) as queue:
        all_ways(queue, delivered(golden, "list.jsonl"))

    assert roll_files(path) == before


@pytest.mark.parametrize(
    "file", [file for golden in QUEUES for file in sorted(golden.glob("*.cq4"))], ids=name_of
)
def test_one_roll_file_alone_is_read_without_its_table(file: Path, tmp_path: Path) -> None:
    roll_cycle, _ = open_queue(file.parent)
    epoch_ms, cycle = roll_cycle.epoch_ms, roll_cycle.cycle_of_file(file.name)
    alone = tmp_path / file.name
    shutil.copyfile(file, alone)

    with quire.open(alone, read_only=True, epoch_ms=epoch_ms) as queue:
        expected = [
            row
            for row in delivered(file.parent, "list.jsonl")
            if queue.roll_cycle.to_cycle(row[0]) == cycle
        ]
        all_ways(queue, expected)

    assert [found.name for found in tmp_path.iterdir()] == [file.name]


def last_cycle_ms(golden: Path) -> tuple[int, int]:
    """Return the start of a queue's newest cycle and the length of its cycles."""
    roll_cycle, stores = open_queue(golden)
    return max(stores) * roll_cycle.length_ms + roll_cycle.epoch_ms, roll_cycle.length_ms


def append_to(golden: Path, path: Path, now_ms: int) -> list[Message]:
    """Append to a copy, however Java left the lock, and return what Quire reads afterwards."""
    with quire.open(
        copy_of(golden, path),
        clock=quire.ManualClock(now_ms),
        block_bytes=2**16,
        timeout_s=0.02,
        force_unlock="always",
    ) as queue:
        with queue.appender() as appender:
            appender.write_bytes(MORE[0])
            appender.write_many(MORE[1:])
        return forward(queue)


def problems_of(path: Path) -> list[str]:
    return [problem for store in open_queue(path)[1].values() for problem in check_store(store)]


WITH_FILES = [golden for golden in JAVA if any(golden.glob("*.cq4"))]


@pytest.mark.parametrize(
    "golden", [golden for golden in WITH_FILES if golden.name != FULL], ids=name_of
)
def test_messages_are_appended_behind_those_of_java(golden: Path, tmp_path: Path) -> None:
    now_ms, _ = last_cycle_ms(golden)
    before = delivered(golden, "list.jsonl")

    after = append_to(golden, tmp_path / "queue", now_ms)

    new = [message(index, data) for (index, *_), data in zip(after[-3:], MORE, strict=True)]
    assert after == [*before, *new]
    assert [index for index, *_ in new] == list(range(new[0][0], new[0][0] + 3))
    assert found(tmp_path / "queue") == after
    assert bool(problems_of(tmp_path / "queue")) == (golden.name == "l_crash_pos")


@pytest.mark.parametrize("golden", WITH_FILES, ids=name_of)
def test_a_roll_ends_the_file_of_java_and_starts_another(golden: Path, tmp_path: Path) -> None:
    start_ms, length_ms = last_cycle_ms(golden)
    before = delivered(golden, "list.jsonl")

    after = append_to(golden, tmp_path / "queue", start_ms + length_ms)

    roll_cycle, stores = open_queue(tmp_path / "queue")
    cycle = max(open_queue(golden)[1]) + 1
    new = [message(roll_cycle.to_index(cycle, i), data) for i, data in enumerate(MORE)]
    assert after == [*before, *new]
    assert found(tmp_path / "queue") == after
    assert [c for c in sorted(stores) if not stores[c].has_eof] == [cycle]
    assert bool(problems_of(tmp_path / "queue")) == (golden.name in CRASHED)


@pytest.mark.parametrize(
    "golden", [golden for golden in JAVA if golden not in WITH_FILES], ids=name_of
)
def test_the_first_messages_go_into_an_empty_queue_of_java(golden: Path, tmp_path: Path) -> None:
    after = append_to(golden, tmp_path / "queue", 1_705_314_600_000)

    assert [digest for *_, digest in after] == [hashlib.sha256(m).hexdigest() for m in MORE]
    assert found(tmp_path / "queue") == after
    assert not problems_of(tmp_path / "queue")


@pytest.mark.parametrize(
    "golden", [golden for golden in WITH_FILES if golden.name == FULL], ids=name_of
)
def test_a_cycle_that_java_filled_takes_no_more(golden: Path, tmp_path: Path) -> None:
    now_ms, _ = last_cycle_ms(golden)

    with pytest.raises(quire.CycleFullError):
        append_to(golden, tmp_path / "queue", now_ms)

    assert read_queue(tmp_path / "queue") == read_queue(golden)
    assert not problems_of(tmp_path / "queue")


def test_an_append_to_files_of_version_4_is_refused_and_changes_none(tmp_path: Path) -> None:
    path = copy_of(GOLDEN / "v4", tmp_path / "queue")
    before = roll_files(path)

    with quire.open(path) as queue, queue.appender() as appender:
        with pytest.raises(quire.UnsupportedError, match=r"\.cq4"):
            appender.write_bytes(b"new")
        assert queue.table_value("chronicle.write.lock") == -(2**63)

    assert roll_files(path) == before
