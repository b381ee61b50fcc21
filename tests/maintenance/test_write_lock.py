"""`queue.write_lock` and `quire unlock`: who holds the lock, and freeing it by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import quire
from cli_runs import Cli
from damages import fill
from journal_damages import DEAD_PID
from queues import WRITE_LOCK, poke


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
        assert holder.since is not None
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


def test_a_read_only_queue_shows_the_holder_alone(queue: Path) -> None:
    poke(queue, WRITE_LOCK, DEAD_PID)
    with quire.open(queue, read_only=True) as opened:
        assert opened.write_lock.locked
        with pytest.raises(quire.errors.ReadOnlyError):
            opened.write_lock.unlock()


def test_the_verb_says_who_held_it(queue: Path, cli: Cli) -> None:
    assert cli.ok("unlock", queue).out == "the write lock was free\n"
    poke(queue, WRITE_LOCK, DEAD_PID)
    assert cli.ok("unlock", queue).out.startswith(f"unlocked: pid={DEAD_PID} alive=no since=")
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
