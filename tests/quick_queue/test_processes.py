"""Producers as processes: at once, killed, forked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

import quire
from parameters import some
from paths import SUPPORT
from quick_reference import QuickReference

NAMES = ("AA0", "BB1")
COUNT = 2_000


@contextmanager
def producer(path: Path, name: str, count: int = COUNT) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, "-W", "ignore", str(SUPPORT / "quick_peer.py")]
    process = subprocess.Popen(
        [*command, str(path), name, str(count)], stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def by_producer(path: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {name: [] for name in NAMES}
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        for excerpt in tailer:
            name, number = excerpt.data.decode().split()
            assert getattr(excerpt, "producer", None) == name
            found[name].append(int(number))
    return found


def test_two_producers_write_at_once(tmp_path: Path) -> None:
    quire.quick_queue.open(tmp_path, page_bytes=4096).appender("zzz").close()
    with producer(tmp_path, "AA0") as one, producer(tmp_path, "BB1") as other:
        printed = [process.communicate()[0] for process in (one, other)]
    indexes = [int(line) for text in printed for line in text.split()]
    assert sorted(indexes) == [*range(0, 32 * COUNT, 16)]
    assert by_producer(tmp_path) == {name: [*range(COUNT)] for name in NAMES}
    assert len(QuickReference(tmp_path).messages()) == 2 * COUNT


@pytest.mark.parametrize("name", some(["AA0", "-"], keep=[1]))
def test_a_killed_writer_loses_nothing_and_can_come_back(tmp_path: Path, name: str) -> None:
    written: list[int] = []
    for _ in range(5):
        with producer(tmp_path, name, 10**9) as process:
            assert process.stdout is not None
            written += [int(process.stdout.readline()) for _ in range(200)]
            process.kill()
            written += [int(line) for line in process.stdout.read().split("\n")[:-1]]
        with quire.open(tmp_path, read_only=True) as found, found.tailer() as tailer:
            read = [excerpt.index for excerpt in tailer]
        assert set(written) <= set(read)  # one more may be there, not yet printed
        assert read == sorted(set(read))
    with quire.open(tmp_path, format="quick-queue") as queue:
        queue.appender(None if name == "-" else name).write_bytes(b"back")
        assert [*queue.tailer(on_dead="raise").payloads()][-1] == b"back"


def test_a_name_is_free_again_once_its_process_is_dead(tmp_path: Path) -> None:
    with producer(tmp_path, "AA0", 10**9) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with quire.open(tmp_path, format="quick-queue") as queue:
            with pytest.raises(quire.errors.WriterInUseError, match="producer=AA0"):
                queue.appender("AA0")
            with pytest.raises(quire.errors.WriterInUseError, match="another writer"):
                queue.appender()
            process.kill()
            process.wait()
            queue.appender("AA0").close()


def test_a_forked_child_keeps_no_lock_of_its_parent(tmp_path: Path) -> None:
    program = f"""
import os, sys, quire
queue = quire.open({str(tmp_path)!r}, format="quick-queue")
appender = queue.appender("AA0")
appender.write_bytes(b"1")
if os.fork():
    os._exit(0)
try:
    appender.write_bytes(b"2")
except quire.errors.ForkedError:
    print(os.getpid(), flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.wait()
        os.kill(child, 0)  # it lives
        with quire.open(tmp_path) as queue:
            assert isinstance(queue, quire.quick_queue.QuickQueue)
            queue = cast("quire.quick_queue.QuickQueue", queue)
            assert queue.appender("AA0").write_bytes(b"3") == 16
            assert queue.tailer().read_many(9) == [b"1", b"3"]
