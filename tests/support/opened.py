"""Which files a piece of code opens, by inotify: those of the kernel crate are no audit events."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

_IN_OPEN = 0x20
_EVENT = struct.Struct("iIII")


@contextmanager
def opened_below(root: Path) -> Generator[list[str]]:
    """Collect the names of the files and directories below *root* that are opened meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert watch >= 0, os.strerror(ctypes.get_errno())
    names: list[str] = []
    try:
        for folder in [root, *(it for it in root.rglob("*") if it.is_dir())]:
            assert libc.inotify_add_watch(watch, os.fsencode(folder), _IN_OPEN) >= 0
        yield names
        names += _names(watch)
    finally:
        os.close(watch)


def _names(watch: int) -> Iterator[str]:
    try:
        events = os.read(watch, 1 << 20)
    except BlockingIOError:
        return
    while events:
        *_, length = _EVENT.unpack_from(events)
        yield events[_EVENT.size : _EVENT.size + length].rstrip(b"\0").decode() or "."
        events = events[_EVENT.size + length :]
