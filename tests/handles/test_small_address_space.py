"""Files that find no room in the address space: an error, and nothing is lost or left behind."""

from __future__ import annotations

import resource
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import quire
from queues import exit_code, fork, payloads, problems_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

MIB = 2**20
BLOCK = 64 * MIB


@contextmanager
def room_for(left: int) -> Generator[None]:
    """Let this process map no more than this beyond what it maps now."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + left, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def refused(call: object, *given: object) -> None:
    assert callable(call)
    with pytest.raises((MemoryError, OSError)):
        call(*given)


def test_an_append_that_cannot_map_its_file_is_an_error_and_the_next_goes_on(path: Path) -> None:
    def append() -> None:
        with quire.open(path, roll_cycle="FAST_DAILY", block_bytes=BLOCK) as queue:
            appender = queue.appender()
            with room_for(BLOCK // 4):
                for _ in range(3):
                    refused(appender.write_bytes, b"no room")
            appender.write_bytes(b"one")
            assert payloads(queue) == [b"one"]

    assert exit_code(fork(append)) == 0
    assert problems_of(path) == []


def test_a_read_that_cannot_map_its_file_is_an_error_and_the_next_goes_on(path: Path) -> None:
    with quire.open(path, roll_cycle="FAST_DAILY", block_bytes=BLOCK) as queue:
        queue.appender().write_many([b"one", b"two"])

    def read() -> None:
        with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
            with room_for(BLOCK // 4):
                for _ in range(3):
                    refused(tailer.read_bytes)
            assert list(tailer.payloads()) == [b"one", b"two"]

    assert exit_code(fork(read)) == 0
