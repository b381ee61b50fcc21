"""`queue.write_lock` and `quire unlock`: who holds the lock, and freeing it by hand."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path

import pytest

import quire
from cli_runs import Cli
from damages import fill
from journal_damages import DEAD_PID
from queues import UNLOCKED, WRITE_LOCK, exit_code, fork, poke
from reference import Store

HELD_SINCE = "quire.heldSince"


@pytest.fixture
def queue(path: Path) -> Path:
    fill(path, 1, 3)
    return path


def test_a_free_lock(queue: Path) -> None:
    with quire.open(queue) as opened:
        lock = opened.write_lock
        assert (lock.locked, lock.holder, lock.unlock(), lock.force_unlock()) == (
            False,
            None,
            None,
            None,
        )


def test_the_lock_of_a_dead_process(queue: Path) -> None:
    with quire.open(queue) as opened:
        poke(queue, WRITE_LOCK, DEAD_PID)
        lock = opened.write_lock
        holder = lock.holder
        assert holder is not None
        assert (lock.locked, holder.pid, holder.alive, holder.command) == (
            True,
            DEAD_PID,
            False,
            None,
        )
        assert holder.since is None  # no document was opened
        assert lock.unlock() == holder
        assert not lock.locked


def test_a_living_holder_keeps_it_unless_forced(queue: Path) -> None:
    with quire.open(queue) as opened, opened.appender() as appender:
        document = appender.writing_document()
        document.write_bytes(b"lost")
        holder = opened.write_lock.holder
        assert holder is not None
        assert (holder.pid, holder.alive) == (os.getpid(), True)
        with pytest.raises(quire.errors.WriterInUseError):
            opened.write_lock.unlock()
        assert opened.write_lock.locked
        assert opened.write_lock.force_unlock() == holder
        with pytest.raises(quire.errors.LockLostError):
            document.close()
        assert opened.entry_count == 3


TICK = timedelta(milliseconds=20)  # of the clock that the record is from


def test_who_keeps_a_document_open_says_since_when(queue: Path) -> None:
    with quire.open(queue) as opened, opened.appender() as appender:
        before = datetime.now(UTC)
        with appender.writing_document() as document:
            document.write("number", 1)
            holder = opened.write_lock.holder
            assert holder is not None
            assert holder.since is not None
            assert before - TICK <= holder.since <= datetime.now(UTC)
        with appender.writing_document() as document:
            document.rollback_on_close()
        assert record_of(queue) == 0

        # In the middle of an append, which leaves no record: nor does that of a document count.
        poke(queue, WRITE_LOCK, os.getpid())
        assert opened.write_lock.holder == (*holder[:3], None)
        poke(queue, WRITE_LOCK, UNLOCKED)


def test_a_record_counts_for_its_process_alone(queue: Path) -> None:
    with quire.open(queue) as opened, opened.appender() as appender:
        document = appender.writing_document()
        document.write("number", 1)
        other = fork(lambda: None)
        exit_code(other)
        poke(queue, WRITE_LOCK, other)
        holder = opened.write_lock.holder
        assert holder is not None
        assert (holder.pid, holder.since) == (other, None)
        record = 1 << 22 | other
        poke(queue, HELD_SINCE, record)
        with pytest.raises(quire.errors.LockLostError):
            document.close()
        assert record_of(queue) == record  # who lost the lock leaves that of the other
        holder = opened.write_lock.holder
        assert holder is not None
        assert holder.since == datetime.fromtimestamp(0.001, UTC)


def test_the_record_of_a_dead_holder_stays(queue: Path, cli: Cli) -> None:
    before = datetime.now(UTC)
    dead = fork(partial(leave_document, queue))
    exit_code(dead)
    with quire.open(queue, force_unlock="never") as opened:
        holder = opened.write_lock.holder
        assert holder is not None
        assert (holder.pid, holder.alive) == (dead, False)
        assert holder.since is not None
        assert before - TICK <= holder.since <= datetime.now(UTC)
    since = f"since={holder.since:%Y-%m-%dT%H:%M:%SZ}"
    assert cli.ok("unlock", queue).out == f"unlocked: pid={dead} alive=no {since}\n"


def test_the_record_of_a_dead_holder_goes_with_its_hold(queue: Path) -> None:
    exit_code(fork(partial(leave_document, queue)))
    assert record_of(queue) != 0
    quire.open(queue).close()  # takes the lock over
    assert record_of(queue) == 0


def leave_document(queue: Path) -> None:
    document = quire.open(queue).appender().writing_document()
    document.write("number", 1)
    os._exit(0)


def test_the_error_of_who_waits_says_for_how_long_the_lock_is_held(queue: Path) -> None:
    with quire.open(queue, timeout_s=0.05) as opened, opened.appender() as appender:
        with appender.writing_document() as document, ThreadPoolExecutor(1) as pool:
            document.write("number", 1)
            refused = pool.submit(appender.write_bytes, b"refused").exception()
        poke(queue, WRITE_LOCK, os.getppid())  # as in the middle of an append
        with pytest.raises(quire.errors.LockTimeoutError) as unknown:
            raise_timeout(queue)
        poke(queue, WRITE_LOCK, UNLOCKED)
    assert re.search(rf"holder_pid={os.getpid()} held_ms=\d+ waited_ms=", str(refused))
    assert "held_ms" not in str(unknown.value)


def raise_timeout(queue: Path) -> None:
    with quire.open(queue, timeout_s=0.05, force_unlock="never") as opened:
        opened.appender().write_bytes(b"refused")


def test_a_table_without_room_has_no_record(queue: Path) -> None:
    with quire.open(queue) as opened, opened.appender() as appender:
        with suppress(ValueError):
            for number in count():
                opened.tailer(f"{number:09}" * 400).close()
        with suppress(ValueError):
            for number in count():
                opened.tailer(str(number)).close()
        with appender.writing_document() as document:
            document.write("number", 1)
            holder = opened.write_lock.holder
            assert holder is not None
            assert (holder.pid, holder.since) == (os.getpid(), None)
        assert opened.entry_count == 4
    assert HELD_SINCE not in Store((queue / "metadata.cq4t").read_bytes()).entries()


def record_of(queue: Path) -> int:
    return Store((queue / "metadata.cq4t").read_bytes()).entries()[HELD_SINCE][1]


def test_a_read_only_queue_shows_the_holder_alone(queue: Path) -> None:
    poke(queue, WRITE_LOCK, DEAD_PID)
    with quire.open(queue, read_only=True) as opened:
        assert opened.write_lock.locked
        with pytest.raises(quire.errors.ReadOnlyError):
            opened.write_lock.unlock()


def test_the_verb_says_who_held_it(queue: Path, cli: Cli) -> None:
    assert cli.ok("unlock", queue).out == "the write lock was free\n"
    poke(queue, WRITE_LOCK, DEAD_PID)
    assert cli.ok("unlock", queue).out.startswith(f"unlocked: pid={DEAD_PID} alive=no\n")
    assert cli.ok("unlock", queue).out == "the write lock was free\n"


def test_the_verb_refuses_a_living_holder(queue: Path, cli: Cli) -> None:
    with quire.open(queue) as opened, opened.appender() as appender:
        document = appender.writing_document()
        ran = cli("unlock", queue)
        assert (ran.code, opened.write_lock.locked) == (1, True)
        assert f"pid={os.getpid()}" in ran.err
        assert "--force" in ran.err
        assert "alive=yes" in cli.ok("unlock", queue, "--force").out
        with pytest.raises(quire.errors.LockLostError):
            document.close()


def test_the_verb_needs_a_queue(tmp_path: Path, cli: Cli) -> None:
    ran = cli("unlock", tmp_path / "missing")
    assert (ran.code, len(ran.err.splitlines())) == (1, 1)
    assert [*tmp_path.iterdir()] == []
