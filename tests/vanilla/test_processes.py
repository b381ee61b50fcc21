"""Several processes at one Vanilla Chronicle, some of them killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import quire
from any_format import open_vanilla
from paths import SUPPORT
from quire.errors import LockHeldError, QuireError
from quire.vanilla.replication.replica import Replica
from vanilla_peer import RECORD

SMALL: Any = {"index_block_bytes": 4096, "data_block_bytes": 8192}
FILES = {"files": quire.vanilla.FileOptions(**SMALL)}


def peer(*arguments: str | Path | int) -> subprocess.Popen[str]:
    command = [sys.executable, str(SUPPORT / "vanilla_peer.py"), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_writers_of_several_processes_share_a_queue_without_a_lock(tmp_path: Path) -> None:
    open_vanilla(tmp_path / "queue", **SMALL).appender().write_bytes(bytes(8))
    writers = [peer("write", tmp_path / "queue", writer, 3000) for writer in (1, 2, 3)]
    acknowledged = {int(line) for it in writers for line in it.communicate()[0].split()}
    assert all(it.returncode == 0 for it in writers)
    with quire.open(tmp_path / "queue") as queue:
        found = [(excerpt.index, RECORD.unpack(excerpt.data)) for excerpt in queue.tailer()][1:]
    assert {index for index, _ in found} == acknowledged
    for writer in (1, 2, 3):
        assert [number for _, (it, number) in found if it == writer] == [*range(3000)]


def test_a_killed_writer_loses_nothing_that_it_acknowledged_and_stops_nobody(
    tmp_path: Path,
) -> None:
    path = tmp_path / "queue"
    with open_vanilla(path, **SMALL) as queue, queue.appender() as appender:
        appender.write_bytes(RECORD.pack(0, 0))
        acknowledged: list[int] = []
        for victim in range(1, 6):
            writer = peer("write", path, victim, 1_000_000)
            assert writer.stdout is not None
            lines = [writer.stdout.readline() for _ in range(200 * victim)]
            writer.kill()
            lines += writer.stdout.read().splitlines(keepends=True)
            writer.wait()
            writer.stdout.close()
            acknowledged += [int(line) for line in lines if line.endswith("\n")]
            appender.write_bytes(RECORD.pack(0, victim))
        found = {excerpt.index: RECORD.unpack(excerpt.data) for excerpt in queue.tailer()}
    assert set(acknowledged) <= set(found)
    assert sum(writer == 0 for writer, _ in found.values()) == 6
    for victim in range(1, 6):
        numbers = [number for writer, number in found.values() if writer == victim]
        assert numbers == [*range(len(numbers))]


def test_each_message_is_claimed_by_one_consumer(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    with open_vanilla(path, consumption="queue", **SMALL) as queue:
        with queue.appender() as appender:
            for number in range(3000):
                with appender.writing_excerpt() as excerpt:
                    excerpt.write_int32(number)
        consumers = [peer("claim", path, owner) for owner in (11, 12, 13)]
        claimed = [it.communicate()[0].split() for it in consumers]
        assert all(it.returncode == 0 for it in consumers)
        words = Counter(excerpt.read_int32() for excerpt in queue.tailer())
    assert sorted(int(number) for numbers in claimed for number in numbers) == [*range(3000)]
    assert [words[owner] for owner in (11, 12, 13)] == [len(numbers) for numbers in claimed]


@contextmanager
def forked() -> Generator[None]:
    """A child of this process, which does nothing and lives as long as the block."""
    (ready, is_ready), (may_end, end) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(is_ready, b"1")
        os.close(end)
        os.read(may_end, 1)
        os._exit(0)
    os.read(ready, 1)
    try:
        yield
    finally:
        for handle in (ready, is_ready, may_end, end):
            os.close(handle)
        os.waitpid(child, 0)


def test_locks_end_with_their_handles_though_a_child_lives(tmp_path: Path) -> None:
    with open_vanilla(tmp_path / "queue", **SMALL) as queue:
        appender, tailer = queue.appender(), queue.tailer("risk")
        appender.write_bytes(b"one")
        sink = Replica(tmp_path / "copy", FILES)
        with forked():
            with pytest.raises(quire.errors.TailerInUseError):
                queue.tailer("risk")
            with pytest.raises(LockHeldError):
                Replica(tmp_path / "copy", FILES)
            with pytest.raises(QuireError, match="an appender writes to the cycle"):
                quire.vanilla.rebuild_index(queue.path)
            for handle in (appender, tailer, sink):
                handle.close()
            with queue.tailer("risk") as again:
                assert again.read_bytes() == b"one"
            Replica(tmp_path / "copy", FILES).close()
            quire.vanilla.rebuild_index(queue.path)
