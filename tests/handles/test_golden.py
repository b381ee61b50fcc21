"""Quire reads what Java wrote: every golden queue, in every way, read-only and opened to write."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import quire
from golden_sets import JAVA, QUEUES, delivered, listing, name_of
from queues import Message, backward, copy_of, forward, message, roll_files, snapshot
from reference import open_queue

OLD = "v4"


def by_index(queue: quire.JournalQueue, indexes: list[int]) -> Iterator[Message]:
    with queue.tailer() as tailer:
        for index in indexes:
            assert tailer.move_to_index(index)
            assert tailer.index == index
            excerpt = tailer.read()
            assert excerpt
            yield message(excerpt.index, excerpt.data)


def documents(queue: quire.JournalQueue) -> Iterator[tuple[Message, bool]]:
    with queue.tailer() as tailer:
        while True:
            with tailer.reading_document(include_metadata=True) as document:
                if not document.is_present:
                    return
                yield message(document.index, document.bytes), document.is_metadata


def all_ways(queue: quire.JournalQueue, expected: list[Message]) -> None:
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
) -> Iterator[tuple[quire.JournalQueue, Path]]:
    """A copy of a golden queue, opened; read-only it lies in a directory without write bits."""
    path = copy_of(golden, tmp_path / "queue")
    read_only = bool(request.param) or golden.name == OLD  # which opens in no other way
    if read_only:
        for file in [*path.iterdir(), path]:
            file.chmod(0o555 if file.is_dir() else 0o444)
    with quire.open(path, read_only=read_only) as queue:
        yield queue, golden
    path.chmod(0o755)


@pytest.mark.parametrize("golden", QUEUES, ids=name_of)
def test_messages_are_read_forward_as_they_were_listed(
    opened: tuple[quire.JournalQueue, Path],
) -> None:
    queue, golden = opened
    assert forward(queue) == delivered(golden, "list.jsonl")


@pytest.mark.parametrize("golden", QUEUES, ids=name_of)
def test_messages_are_read_backward_as_they_were_listed(
    opened: tuple[quire.JournalQueue, Path],
) -> None:
    queue, golden = opened
    assert backward(queue) == delivered(golden, "list.jsonl")[::-1]


@pytest.mark.parametrize("golden", QUEUES, ids=name_of)
def test_every_message_is_found_by_its_index(opened: tuple[quire.JournalQueue, Path]) -> None:
    queue, golden = opened
    expected = delivered(golden, "list.jsonl")
    indexes = [index for index, *_ in expected]

    assert list(by_index(queue, indexes)) == expected
    assert list(by_index(queue, indexes[::-1])) == expected[::-1]


@pytest.mark.parametrize("golden", QUEUES, ids=name_of)
def test_messages_are_counted_as_they_were_listed(opened: tuple[quire.JournalQueue, Path]) -> None:
    queue, golden = opened
    indexes = [index for index, *_ in delivered(golden, "list.jsonl")]

    assert queue.entry_count == len(indexes)
    assert queue.first_index == (indexes[0] if indexes else None)
    assert queue.last_index == (indexes[-1] if indexes else None)
    for place in range(0, len(indexes), 1 + len(indexes) // 50):
        assert queue.count_excerpts(indexes[0], indexes[place]) == place
        assert queue.count_excerpts(indexes[place], indexes[-1] + 1) == len(indexes) - place


@pytest.mark.parametrize("golden", JAVA, ids=name_of)
def test_metadata_is_read_as_it_was_listed(opened: tuple[quire.JournalQueue, Path]) -> None:
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


@pytest.mark.parametrize("golden", [q for q in QUEUES if q.name != OLD], ids=name_of)
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
