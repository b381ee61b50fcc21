"""Commits of staged messages, without Spark: each batch once, whatever is killed when."""

from __future__ import annotations

import dataclasses
import errno
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import quire
from cli_runs import Cli
from queues import exit_code, fork, payloads
from quire._common.durable import SafeFolder
from quire._native import BatchWriter
from quire.errors import AppendLockedError, TableLostError, UnfinishedWriteError
from quire.maintenance.sink_writes import FOLDER, unfinished_writes
from quire.staged import commits, records
from quire.staged.batch_target import Target
from quire.staged.commits import abort, commit, finish
from quire.staged.staging import Part, PartWriter, StagedBatch, Staging, messages_of

START_MS = 1_700_000_000_000
PARTS = {0: 7, 1: 0, 2: 12, 3: 5}
CHUNK = 5


class SteppingClock:
    """Half a second later each time: a queue of seconds rolls between chunks."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def __call__(self) -> int:
        self.now_ms += 500
        return self.now_ms


def staged(path: Path, batch: int, *, writer: str = "w", location: str | None = None) -> list[Part]:
    """What four tasks stage for a batch; one of them has nothing."""
    folder = Staging.of(str(path), location).batch(writer, batch)
    return [part for it, rows in PARTS.items() if (part := stage(folder, batch, it, rows))]


def stage(folder: StagedBatch, batch: int, partition: int, rows: int) -> Part | None:
    messages = [message(batch, partition, row) for row in range(rows)]
    with PartWriter(folder, partition) as part:
        for first in range(0, rows, 4):
            part.write(pa.array(messages[first : first + 4], pa.large_binary()))
        return part.finish()


def files_of(path: Path, batch: int, parts: list[Part], *, writer: str = "w") -> list[Path]:
    return [Staging.of(str(path)).batch(writer, batch).path / part.file for part in parts]


def message(batch: int, partition: int, row: int) -> bytes:
    return b"%d/%d/%d" % (batch, partition, row)


def expected(*batches: int) -> list[bytes]:
    return [
        message(b, it, row) for b in batches for it, rows in PARTS.items() for row in range(rows)
    ]


def found(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True, wait=quire.WaitOptions(eof_grace_s=0.0)) as queue:
        return payloads(queue)


def hidden(path: Path) -> list[str]:
    root = path / FOLDER
    return sorted(str(it.relative_to(root)) for it in root.rglob("*") if it.is_file())


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "CHUNK_ROWS", CHUNK)


@pytest.fixture
def target(path: Path) -> Target:
    return Target(str(path), {"block_bytes": 2**16})


def test_parts_are_appended_in_the_order_of_their_partitions(path: Path, target: Target) -> None:
    parts = staged(path, 0)

    assert commit(target, "w", 0, parts[::-1])

    assert found(path) == expected(0)
    assert hidden(path) == ["lock", "w/done.json"]


@pytest.mark.usefixtures("small_chunks")
def test_a_replayed_batch_is_dropped_and_a_new_one_or_another_writers_is_not(
    path: Path, target: Target
) -> None:
    assert commit(target, "w", 0, staged(path, 0))
    assert not commit(target, "w", 0, staged(path, 0))
    assert commit(target, "w", 1, staged(path, 1))
    assert not commit(target, "w", 0, staged(path, 0))
    assert commit(target, "another", 0, staged(path, 0, writer="another"))

    assert found(path) == expected(0, 1, 0)
    assert hidden(path) == ["another/done.json", "lock", "w/done.json"]


@pytest.mark.usefixtures("small_chunks")
def test_rows_that_no_replica_acknowledged_are_found_again(
    path: Path, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIRE_READ_AFTER_REPLICA_ACKNOWLEDGED", "1")
    parts, write = staged(path, 0), quire.JournalAppender._write_column  # pyright: ignore[reportPrivateUsage]
    left = iter(range(2))

    def until_full(*arguments: Any, **options: Any) -> int | None:  # noqa: ANN401
        if next(left, None) is None:
            raise OSError("no space left")
        return write(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(quire.JournalAppender, "_write_column", until_full)
        with pytest.raises(OSError, match="no space left"):
            commit(target, "w", 0, parts)

    commit(target, "w", 0, parts)

    monkeypatch.delenv("QUIRE_READ_AFTER_REPLICA_ACKNOWLEDGED")
    assert found(path) == expected(0)


def test_a_write_that_is_not_remembered_leaves_nothing(path: Path, target: Target) -> None:
    assert commit(target, "once", 0, staged(path, 0, writer="once"), kept=False)

    assert hidden(path) == ["lock"]
    assert sorted(it.name for it in (path / FOLDER).iterdir()) == ["lock"]


def test_what_failed_attempts_staged_is_swept_by_the_next_commit(
    path: Path, target: Target
) -> None:
    staged(path, 0)
    parts = staged(path, 0)
    staged(path, 1)

    commit(target, "w", 1, staged(path, 1))
    abort(target, "w", 2)
    staged(path, 2)
    abort(target, "w", 2)

    assert found(path) == expected(1)
    assert hidden(path) == ["lock", "w/done.json"]
    assert not files_of(path, 0, parts)[0].exists()


def test_another_folder_may_hold_what_is_staged(path: Path, target: Target, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    parts = staged(path, 0, location=str(elsewhere))
    assert {it.name for it in elsewhere.rglob("*.arrow")} == {it.file for it in parts}

    commit(dataclasses.replace(target, location=str(elsewhere)), "w", 0, parts)

    assert found(path) == expected(0)
    assert [it for it in elsewhere.rglob("*") if it.is_file()] == []


WATCHED = ("staged/commits.py", "staged/records.py", "quire/_common/durable.py")


class Killer:
    """Kills this process at the nth step: a call that these modules make, or one into them."""

    def __init__(self, step: int) -> None:
        self.left = step

    def __call__(self, frame: Any, event: str, _: object) -> None:  # noqa: ANN401 - a frame
        watched = frame.f_code.co_filename.endswith(WATCHED)
        if watched and event in {"c_call", "call", "c_return"}:
            self.left -= 1
            if self.left < 0:
                os.kill(os.getpid(), signal.SIGKILL)


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Run *work* in a child that dies at a step; False if it came to its end."""

    def child() -> None:
        sys.setprofile(Killer(step))
        work()
        sys.setprofile(None)

    code = exit_code(fork(child))
    assert code in {0, -signal.SIGKILL}
    return code != 0


@pytest.mark.slow
@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("is_rolling", [False, True])
def test_a_kill_at_any_step_of_a_commit_loses_nothing_and_doubles_nothing(
    tmp_path: Path, *, is_rolling: bool
) -> None:
    """Then the batch comes again, staged anew; every fourth time another writer's comes first."""
    step, kills, resumed = 0, 0, Counter[str]()
    while True:
        path = tmp_path / f"q{step}"
        options: dict[str, Any] = {"block_bytes": 2**16}
        if is_rolling:
            options |= {"roll_cycle": "TEST_SECONDLY", "clock": SteppingClock()}
        target = Target(str(path), options, sync=False)
        commit(target, "w", 0, staged(path, 0))
        parts = staged(path, 1)
        if not killed_at(step, lambda: commit(target, "w", 1, parts)):  # noqa: B023 - run at once
            break
        kills += 1
        reached = len(found(path)) - len(expected(0))
        resumed[
            "nothing" if reached == 0 else "all" if reached == len(expected(1)) else "some"
        ] += 1
        has_begun = reached > 0 or any("manifest.json" in it.split("/") for it in hidden(path))
        if kills % 4 == 0 and has_begun:
            with (
                quire.open(path, format="chronicle", **options) as queue,
                queue.appender() as appender,
            ):
                appender.write_bytes(b"somebody else's")
            commit(target, "v", 2, staged(path, 2, writer="v"))
            commit(target, "w", 1, staged(path, 1))
            assert [it for it in found(path) if b"else" not in it] == expected(0, 1, 2)
        else:
            commit(target, "w", 1, staged(path, 1))
            assert found(path) == expected(0, 1)
        assert [it for it in hidden(path) if "v/" not in it] == ["lock", "w/done.json"]
        step += 9

    assert min(resumed[it] for it in ("nothing", "some", "all")) > 3, resumed


@pytest.mark.slow
def test_kills_at_any_moment_beside_another_writer_lose_nothing_and_double_nothing(
    path: Path,
) -> None:
    target = Target(str(path), sync=False)
    rows, seed = 60_000, 6
    chance = random.Random(seed)  # noqa: S311 - no secret
    staging = Staging.of(str(path))
    others = 0
    with quire.open(path) as queue, queue.appender() as other:
        for batch in range(4):
            tries = 0
            while True:
                part = stage_many(staging.batch("w", batch), batch, rows)
                pid = fork(lambda: commit(target, "w", batch, [part]))  # noqa: B023 - run at once
                deadline = time.monotonic() + chance.uniform(0.0, 0.06 * (tries + 1))
                while time.monotonic() < deadline:
                    other.write_bytes(b"other %d" % others)
                    others += 1
                    time.sleep(0.001)
                os.kill(pid, signal.SIGKILL)
                tries += 1
                if exit_code(pid) == 0:
                    break

    messages = found(path)
    ours = [it for it in messages if not it.startswith(b"other")]
    assert ours == [b"%d %d" % (batch, row) for batch in range(4) for row in range(rows)]
    assert [it for it in messages if it.startswith(b"other")] == [
        b"other %d" % number for number in range(others)
    ]


def stage_many(folder: StagedBatch, batch: int, rows: int) -> Part:
    with PartWriter(folder, 0) as part:
        part.write(pa.array([b"%d %d" % (batch, row) for row in range(rows)], pa.large_binary()))
        found = part.finish()
    assert found is not None
    return found


@pytest.mark.usefixtures("small_chunks")
def test_a_full_disk_is_reported_and_the_rest_comes_with_the_next_commit(
    path: Path, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, left = quire.JournalAppender._write_column, [3]

    def write(appender: quire.JournalAppender, *args: Any, **named: Any) -> int | None:  # noqa: ANN401
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "no space left", str(path))
        return append(appender, *args, **named)

    with monkeypatch.context() as patched:
        patched.setattr(quire.JournalAppender, "_write_column", write)
        with pytest.raises(OSError, match="no space left"):
            commit(target, "w", 0, staged(path, 0))
        abort(target, "w", 0)
    assert 0 < len(found(path)) < len(expected(0))

    assert not commit(target, "w", 0, staged(path, 0))

    assert found(path) == expected(0)


@pytest.mark.usefixtures("small_chunks")
def test_a_table_that_is_replaced_amid_a_commit_is_reported_and_the_rest_comes_with_the_next(
    path: Path, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, left = quire.JournalAppender._write_column, [3]

    def write(appender: quire.JournalAppender, *args: Any, **named: Any) -> int | None:  # noqa: ANN401
        left[0] -= 1
        if not left[0]:
            table = path / "metadata.cq4t"
            shutil.copyfile(table, path / "copy")
            (path / "copy").rename(table)
        return append(appender, *args, **named)

    with monkeypatch.context() as patched:
        patched.setattr(quire.JournalAppender, "_write_column", write)
        with pytest.raises(TableLostError):  # once a second, and at the end of the batch
            commit(target, "w", 0, staged(path, 0))

    assert not commit(target, "w", 0, staged(path, 0))

    assert found(path) == expected(0)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("chunks", [0, 2])
def test_a_queue_that_is_locked_to_appends_says_so_and_nothing_is_doubled(
    path: Path, target: Target, monkeypatch: pytest.MonkeyPatch, chunks: int
) -> None:
    """As that of a replica is; what is not begun is not left to be completed after a promotion."""
    append, left = quire.JournalAppender._write_column, [chunks]
    commit(target, "w", 0, staged(path, 0))
    with quire.open(path) as queue, ExitStack() as writers:

        def write(appender: quire.JournalAppender, *args: Any, **named: Any) -> int | None:  # noqa: ANN401
            if not left[0]:
                locks.append(writers.enter_context(BatchWriter(queue)))
            left[0] -= 1
            return append(appender, *args, **named)

        locks: list[BatchWriter] = []
        with monkeypatch.context() as patched:
            patched.setattr(quire.JournalAppender, "_write_column", write)
            with pytest.raises(AppendLockedError, match="at the source"):
                commit(target, "once", 1, staged(path, 1, writer="once"), kept=False)
        abort(target, "once", 1)
        assert [it.name for it in unfinished_writes(str(path))] == ["once/1"][: chunks and 1]
        assert found(path) == expected(0) + expected(1)[: PARTS[0] if chunks else 0]
        locks[0].promote()

    assert commit(target, "w", 1, staged(path, 1))

    assert found(path) == expected(0, 1, 1) if chunks else expected(0, 1)


def test_records_of_a_directory_that_was_replaced_are_not_those_of_the_queue_there(
    path: Path, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it was replaced while the lock was waited for, or as the queue was opened."""
    locked = SafeFolder.locked

    def replaced(folder: SafeFolder, name: str, wait_s: float) -> AbstractContextManager[None]:
        path.rename(path.with_name("before"))
        quire.open(path).close()
        return locked(folder, name, wait_s)

    parts = staged(path, 0)
    monkeypatch.setattr(SafeFolder, "locked", replaced)
    with pytest.raises(TableLostError, match="renamed, removed or replaced"):
        commit(target, "w", 0, parts)
    monkeypatch.undo()

    assert found(path) == []
    assert hidden(path) == []
    assert commit(replace(target, path=str(path.with_name("before"))), "w", 0, parts)
    assert found(path.with_name("before")) == expected(0)


def test_no_queue_is_made_in_the_place_of_a_directory_that_was_renamed(
    path: Path, target: Target
) -> None:
    commit(target, "w", 0, staged(path, 0))
    parts = staged(path, 1)
    path.rename(path.with_name("renamed"))

    with pytest.raises(TableLostError, match="renamed, removed or replaced"):
        commit(target, "w", 1, parts)
    abort(target, "w", 1)
    assert not path.exists()

    path.with_name("renamed").rename(path)
    assert commit(target, "w", 1, parts)
    assert found(path) == expected(0, 1)


@pytest.fixture
def half_done(path: Path, target: Target, monkeypatch: pytest.MonkeyPatch) -> list[Part]:
    """A write without a record of its own, killed within its second part, behind a chunk."""
    monkeypatch.setattr(commits, "CHUNK_ROWS", CHUNK)
    parts = staged(path, 0, writer="once")

    def work() -> None:
        append, left = quire.JournalAppender._write_column, [3]

        def write(appender: quire.JournalAppender, *args: Any, **named: Any) -> int | None:  # noqa: ANN401
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return append(appender, *args, **named)

        monkeypatch.setattr(quire.JournalAppender, "_write_column", write)
        commit(target, "once", 0, parts, kept=False)

    assert exit_code(fork(work)) == -signal.SIGKILL
    assert 0 < len(found(path)) < len(expected(0))
    return parts


@pytest.mark.usefixtures("half_done")
def test_a_write_cut_short_is_finished_in_front_of_the_next(path: Path, target: Target) -> None:
    commit(target, "w", 1, staged(path, 1))

    assert found(path) == expected(0, 1)


@pytest.mark.usefixtures("half_done")
def test_a_write_cut_short_is_finished_when_asked_for(path: Path) -> None:
    assert finish(str(path)) == 1
    assert finish(str(path)) == 0

    assert found(path) == expected(0)
    assert hidden(path) == ["lock"]


def test_staged_files_that_are_gone_are_named(
    path: Path, target: Target, half_done: list[Part]
) -> None:
    before = found(path)
    files_of(path, 0, half_done, writer="once")[2].unlink()

    with pytest.raises(UnfinishedWriteError, match=r"was removed: file=.*part-00003.* writer=once"):
        commit(target, "w", 1, staged(path, 1))
    for file in (path / FOLDER / "once" / "0").iterdir():
        file.unlink()
    commit(target, "w", 1, staged(path, 1))

    assert found(path)[: len(before)] == before
    assert found(path)[-len(expected(1)) :] == expected(1)


@pytest.mark.usefixtures("half_done")
def test_equal_messages_of_others_after_a_whole_chunk_are_not_taken_for_staged_ones(
    path: Path,
) -> None:
    reached = len(found(path))
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_bytes(expected(0)[reached])

    finish(str(path))

    assert sorted(found(path)) == sorted([*expected(0), expected(0)[reached]])


def test_one_commit_goes_on_at_a_time(path: Path, target: Target) -> None:
    commit(target, "w", 0, staged(path, 0))
    held, let_go = os.pipe()
    released, release = os.pipe()

    def hold() -> None:
        with commits.opened(target):
            os.write(let_go, b"x")
            os.read(released, 1)

    pid = fork(hold)
    os.read(held, 1)
    with pytest.raises(
        quire.errors.LockTimeoutError, match="another write to the queue is in progress: path="
    ):
        commit(replace(target, lock_timeout_s=0.1), "w", 1, staged(path, 1))
    os.write(release, b"x")
    assert exit_code(pid) == 0
    assert commit(target, "w", 1, staged(path, 1))

    assert found(path) == expected(0, 1)


def test_old_records_and_left_overs_go(
    path: Path, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "_RECORDS_MAX", 2)
    long_ago = time.time() - 30 * 24 * 3600
    for number in range(4):
        writer = f"w{number}"
        commit(target, writer, 0, staged(path, 0, writer=writer))
        os.utime(path / FOLDER / writer, (long_ago + number, long_ago + number))
    orphans = staged(path, 0, writer="orphan")
    lost = files_of(path, 0, orphans, writer="orphan")
    for file in [*lost, lost[0].parent]:
        os.utime(file, (long_ago, long_ago))
    fresh = staged(path, 0, writer="going-on")

    commit(target, "w4", 0, staged(path, 0, writer="w4"))

    left = {it.split("/")[0] for it in hidden(path)}
    assert "orphan" not in left
    assert all(it.exists() for it in files_of(path, 0, fresh, writer="going-on"))
    assert {"w4", "going-on"} <= left
    assert not {"w0", "w1", "w2"} & left


def test_a_long_stream_does_not_grow_what_is_remembered(path: Path, target: Target) -> None:
    target = dataclasses.replace(target, sync=False)
    for batch in range(70):
        commit(target, "w", batch, staged(path, batch))

    assert hidden(path) == ["lock", "w/done.json"]
    assert len(found(path)) == 70 * len(expected(0))


def test_the_hidden_folder_is_in_nobodys_way(path: Path, target: Target, cli: Cli) -> None:
    commit(target, "w", 0, staged(path, 0))
    staged(path, 1)

    stat = cli("stat", str(path))

    assert stat.code == 0, stat.err
    assert "messages" in stat.out
    assert FOLDER not in stat.out
    with quire.open(path, read_only=True) as queue:
        assert len(queue.cycles) == 1


def test_a_part_is_read_as_it_was_staged(path: Path) -> None:
    (part, *_) = staged(path, 0)

    with Staging.of(str(path)).batch("w", 0).opened() as folder:
        found = [it.as_py() for batch in messages_of(folder, part) for it in batch]
    assert found == expected(0)[:7]


def test_a_failed_task_leaves_no_file(path: Path) -> None:
    folder = Staging.of(str(path)).batch("w", 0)

    def fail() -> None:
        with PartWriter(folder, 0) as part:
            part.write(pa.array([b"x"], pa.large_binary()))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert list(folder.path.iterdir()) == []
