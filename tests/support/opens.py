"""Counts how often a directory is listed and its files are opened, by anybody, with inotify."""

from __future__ import annotations

import ctypes
import os
import struct
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_ACCESS, _OPEN, _IS_DIR = 0x1, 0x20, 0x4000_0000
_OVERFLOWED = 0x4000
_HEAD: Final = struct.Struct("iIII")


class Opens:
    """Watches a directory: `listed` is how often it was opened, `files` of each file how often."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.listed = 0
        self.files: Counter[str] = Counter()

    def __enter__(self) -> Self:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        watch = libc.inotify_add_watch(self._fd, os.fsencode(self._path), _ACCESS | _OPEN)
        if self._fd < 0 or watch < 0:
            raise OSError(ctypes.get_errno(), "inotify", str(self._path))
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._read()
        os.close(self._fd)

    def _read(self) -> None:
        while True:
            try:
                events = os.read(self._fd, 1 << 16)
            except BlockingIOError:
                return
            place = 0
            while place < len(events):
                _, mask, _, length = _HEAD.unpack_from(events, place)
                place += _HEAD.size + length
                name = events[place - length : place].rstrip(b"\0").decode()
                assert not mask & _OVERFLOWED
                if mask & _OPEN and name:
                    self.files[name] += 1
                elif mask & _OPEN and mask & _IS_DIR:
                    self.listed += 1
