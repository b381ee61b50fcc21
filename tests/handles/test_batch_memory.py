"""The memory of batches: the next one is read into what Python let go of, and into nothing else."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import quire

pytest.importorskip("pyarrow")

MIB = 1 << 20
# The allocator never keeps as much as this by itself.
BATCH_BYTES = 40 * MIB
KEY = bytes(range(32))


def data(batch: Any) -> memoryview:  # noqa: ANN401 - of pyarrow
    return memoryview(batch.column("payload").buffers()[2])


@contextmanager
def reading(path: Path, **options: Any) -> Generator[quire.JournalTailer]:  # noqa: ANN401
    """Read a queue of three large batches."""
    open_any: Any = quire.open
    with open_any(path, **options) as queue, queue.appender() as appender:
        appender.write_many([bytes([number]) * MIB for number in range(120)])
        with queue.tailer() as tailer:
            yield tailer


def read(tailer: quire.JournalTailer) -> Any:  # noqa: ANN401 - of pyarrow
    return tailer.read_batch(max_bytes=BATCH_BYTES)


@pytest.mark.parametrize("options", [{}, {"key": KEY}], ids=["plain", "encrypted"])
def test_what_is_still_referred_to_stays(path: Path, options: dict[str, Any]) -> None:
    with reading(path, **options) as tailer:
        kept = data(read(tailer))[:MIB]  # of the batch this alone is kept
        rows = [read(tailer).num_rows for _ in range(3)]

    assert rows == [40, 40, 0]
    assert bytes(kept) == bytes(MIB)


def test_batches_after_the_second_need_no_fresh_pages(path: Path) -> None:
    faults = list[int]()
    with quire.open(path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        appender.write_many([b"x" * 1000] * 60_000)
        for _ in range(6):
            before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
            batch = tailer.read_batch(10_000)
            faults.append(resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before)
            assert batch.num_rows == 10_000

    pages = 10_000_000 // resource.getpagesize()
    assert sum(faults[2:]) < 4 * pages // 2  # those of the file are mapped several at a time


MEASURES = """
import re, sys
import pyarrow  # here, so that no reading counts its memory
import quire

def own_memory():
    with open("/proc/self/status", encoding="utf-8") as status:
        return int(re.search(r"RssAnon:\\s+(\\d+) kB", status.read())[1]) >> 10

def grown():
    print(own_memory() - before)

def read():
    return tailer.read_batch(max_bytes=int(sys.argv[2]))

key = bytes.fromhex(sys.argv[3]) or None
with quire.open(sys.argv[1], key=key) as queue, queue.tailer() as tailer:
    before = own_memory()
"""
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="what a process has for itself is read in /proc"
)


def grown(path: Path, *steps: str, key: bytes = b"") -> list[int]:
    """
    Return what a new process says with ``grown()``, in MiB, without files that are mapped.

    In this one, memory that earlier tests have left would be taken without growing.
    """
    with reading(path, **({"key": key} if key else {})):
        pass
    script = MEASURES + "".join(f"    {step}\n" for step in steps)
    command = [sys.executable, "-c", script, str(path), str(BATCH_BYTES), key.hex()]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return [int(line) for line in found.stdout.split()]


@needs_proc
def test_a_batch_that_was_let_go_of_is_kept_until_there_is_nothing_to_read(path: Path) -> None:
    first, last = grown(
        path,
        "read()",
        "grown()",
        "last = [read(), read()]",
        "assert read().num_rows == 0",
        "del last",
        "grown()",
    )
    assert first > 30
    assert last < 20


@needs_proc
def test_a_small_batch_does_not_hold_the_memory_of_a_large_one(path: Path) -> None:
    [found] = grown(
        path,
        "read()",
        "small = tailer.read_batch(1)",
        "grown()",
        "assert small.column('payload').to_pylist() == [bytes([40]) * 2**20]",
    )
    assert found < 20


@needs_proc
@pytest.mark.parametrize("release", ["release_resources", "close"])
def test_the_tailer_lets_go_of_it(path: Path, release: str) -> None:
    before, after = grown(path, "read()", "grown()", f"tailer.{release}()", "grown()")
    assert before > 30
    assert after < 20


@needs_proc
def test_memory_of_decrypted_messages_is_not_kept(path: Path) -> None:
    [found] = grown(path, "read()", "grown()", key=KEY)
    assert found < 20


def test_threads_that_read_one_tailer_get_whole_batches(path: Path) -> None:
    messages = [number.to_bytes(4, "little") * 25_000 for number in range(400)]
    found: list[Any] = []

    def take(tailer: quire.JournalTailer) -> None:
        read_batch: Any = tailer.read_batch
        while (batch := read_batch(5)).num_rows:
            found.extend(batch.column("payload").to_pylist())

    with quire.open(path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        appender.write_many(messages)
        threads = [threading.Thread(target=take, args=(tailer,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert sorted(found) == sorted(messages)


def test_a_forked_child_keeps_what_it_has_of_its_parent(path: Path) -> None:
    with reading(path) as tailer:
        batch = read(tailer)
        child = os.fork()
        if child == 0:
            kept = data(batch)[:MIB]
            del batch
            os._exit(bytes(kept) != bytes(MIB))
        del batch
        rest = data(read(tailer))

        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert bytes(rest[:MIB]) == bytes([40]) * MIB
