"""What a queue does not take is refused in time, and shared folders are kept apart."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

import quire
from queues import payloads
from quire.errors import MessageTooLargeError, OptionsError, UnfinishedWriteError
from quire.maintenance.sink_writes import FOLDER
from quire.spark.write.sink_options import WriteOptions
from quire.spark.write.sink_places import LocalPlace
from quire.staged import commits
from quire.staged.batch_target import Target
from quire.staged.commits import commit, finish
from quire.staged.staging import Part, PartWriter, Staging

COLUMNS = StructType().add("n", LongType())
SMALL, LARGE = Target("", {"block_bytes": 2**17}), Target("", {"block_bytes": 2**20})


def target_of(options: WriteOptions) -> Target:
    assert isinstance(options.place, LocalPlace)
    return options.place.target


def options_of(path: Path, **options: str) -> WriteOptions:
    return WriteOptions.of({"path": str(path), **options}, COLUMNS, overwrite=False)


def staged(
    path: Path,
    messages: list[bytes],
    *,
    writer: str = "w",
    location: Path | None = None,
    limit: int | None = None,
) -> list[Part]:
    folder = Staging.of(str(path), None if location is None else str(location)).batch(writer, 0)
    with PartWriter(folder, 3, limit) as part:
        for message in messages:
            part.write(pa.array([b"first", message], pa.large_binary()))
        found = part.finish()
    assert found is not None
    return [found]


def at(path: Path, target: Target, location: Path | None = None) -> Target:
    return Target(str(path), target.options, location=None if location is None else str(location))


def found(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True) as queue:
        return payloads(queue)


@pytest.mark.parametrize("block_bytes", [None, 2**17, 2**20])
def test_a_message_may_be_as_long_as_the_queue_takes(path: Path, block_bytes: int | None) -> None:
    given = {} if block_bytes is None else {"blockBytes": str(block_bytes)}
    options = options_of(path, **given)
    limit = options.longest

    commit(target_of(options), "w", 0, staged(path, [b"x" * limit], limit=limit))
    assert [len(it) for it in found(path)] == [5, limit]

    with pytest.raises(MessageTooLargeError) as raised:
        staged(path, [b"x", b"x" * (limit + 1)], limit=limit)
    assert f"partition=3 row=3 length={limit + 1} limit={limit} (set blockBytes" in str(
        raised.value
    )
    assert list(path.rglob("*.arrow")) == []
    with (
        quire.open(path, block_bytes=block_bytes) as queue,
        queue.appender() as appender,
        pytest.raises(MessageTooLargeError),
    ):
        appender.write_bytes(b"x" * (limit + 1))


def test_what_cannot_be_finished_tells_where_it_lies_and_larger_blocks_finish_it(
    path: Path,
) -> None:
    long = b"x" * 100_000
    parts = staged(path, [long])

    for parts_now, writer in [(parts, "w"), (staged(path, [b"other"], writer="v"), "v")]:
        with pytest.raises(
            UnfinishedWriteError, match="message too large: length=100000"
        ) as raised:
            commit(at(path, SMALL), writer, 0, parts_now)
        assert f"(to give up the rest of the write, remove {path / FOLDER / 'w' / '0'})" in str(
            raised.value
        )

    commit(at(path, LARGE), "v", 0, parts_now)
    assert found(path) == [b"first", long, b"first", b"other"]


def test_an_unfinished_write_is_finished_with_its_own_blocks(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = b"x" * 100_000

    def full(*_: Any, **__: Any) -> None:  # noqa: ANN401
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patched:
        patched.setattr(quire.JournalAppender, "_write_column", full)
        with pytest.raises(OSError, match="no space left"):
            commit(at(path, LARGE), "w", 0, staged(path, [long]))

    commit(at(path, SMALL), "v", 0, staged(path, [b"other"], writer="v"))

    assert found(path) == [b"first", long, b"first", b"other"]


def test_queues_that_share_a_place_for_staged_files_are_kept_apart(tmp_path: Path) -> None:
    location, paths = tmp_path / "staging", [tmp_path / "a" / "queue", tmp_path / "b" / "queue"]
    parts = [staged(path, [path.parent.name.encode()], location=location) for path in paths]

    for path, part in zip(paths, parts, strict=True):
        commit(at(path, SMALL, location), "w", 0, part)

    assert [found(path) for path in paths] == [[b"first", b"a"], [b"first", b"b"]]


def test_left_overs_in_another_place_go_too(path: Path, tmp_path: Path) -> None:
    location = tmp_path / "staging"
    killed, going_on = (
        staged(path, [b"x"], writer=writer, location=location)[0] for writer in ("killed", "on")
    )
    long_ago = time.time() - 30 * 24 * 3600
    (left,) = location.rglob(killed.file)
    for place in (left, left.parent):
        os.utime(place, (long_ago, long_ago))

    commit(at(path, SMALL, location), "w", 0, staged(path, [b"y"], location=location))

    assert [it.name for it in location.rglob("*") if it.is_file()] == [going_on.file]


def test_the_files_of_a_queue_tell_whether_names_are_written(path: Path) -> None:
    with quire.open(path, wire_type="FIELDLESS_BINARY") as queue:
        assert not options_of(path).encoding["fieldless"]  # it has no file yet
        with queue.appender() as appender:
            appender.write_bytes(b"\xa1\0")

    options = options_of(path)

    assert options.encoding["fieldless"]
    assert target_of(options).options["wire_type"] == "FIELDLESS_BINARY"
    assert options_of(path, wireType="fieldless_binary").encoding["fieldless"]
    with pytest.raises(OptionsError, match="another wire type: wireType=BINARY found=FIELDLESS"):
        options_of(path, wireType="BINARY")


def test_each_problem_is_reported_once(path: Path) -> None:
    with pytest.raises(OptionsError) as caught:
        options_of(path, blockBytes="0")
    assert str(caught.value).count("must be a positive whole number") == 1


def test_a_write_is_finished_with_the_queues_wire_type(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with quire.open(path, wire_type="FIELDLESS_BINARY") as queue, queue.appender() as appender:
        appender.write_bytes(b"\xa1\0")
    asked: list[Any] = []
    opened: Any = quire.open

    def watched(path: str, **options: Any) -> quire.JournalQueue:  # noqa: ANN401
        asked.append(options.get("wire_type"))
        queue: quire.JournalQueue = opened(path, **options)
        return queue

    (path / FOLDER).mkdir()
    monkeypatch.setattr(commits, "open_queue", watched)

    assert finish(str(path)) == 0
    assert asked[-1] == "FIELDLESS_BINARY"


@pytest.mark.parametrize("name", ["lock", "LOCK", "a/b", "..", ".hidden", "", "a b", "x" * 129])
def test_names_of_writes_are_safe_as_names_of_folders(path: Path, name: str) -> None:
    with pytest.raises(OptionsError, match="writeId may have letters"):
        options_of(path, writeId=name)
    assert options_of(path, writeId="lock-2026-11-21.a_b").write_id == "lock-2026-11-21.a_b"
