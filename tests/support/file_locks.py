"""Locks on ranges of files that another process keeps."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from queues import exit_code, fork

KEY_LOCK = 2**63 - 2  # of a table
CHANGE_LOCK = 2**40 - 1  # of the side file of a group
RING_OPENER = 2**22  # of a ring that is being opened
REPAIR_LOCK = 1  # of a Quick-Queue's lock file


@contextmanager
def locked(path: Path, start: int = 0, length: int = 0) -> Generator[int]:
    """Have another process lock a range of a file, as Java does; its pid."""
    ready, is_ready = os.pipe()
    wait, release = os.pipe()

    def hold() -> None:
        os.close(release)
        handle = os.open(path, os.O_RDWR | os.O_CREAT)
        fcntl.lockf(handle, fcntl.LOCK_EX, length, start)
        os.write(is_ready, b"!")
        os.read(wait, 1)

    pid = fork(hold)
    try:
        assert os.read(ready, 1) == b"!"
        yield pid
    finally:
        os.close(release)
        assert exit_code(pid) == 0
        for end in (ready, is_ready, wait):
            os.close(end)
