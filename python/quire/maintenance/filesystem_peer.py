"""The other process of :mod:`quire.maintenance.filesystem`: a program of the standard library."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

_FLOCK: Final = "hhqqi4x"  # struct flock: type, whence, start, length, pid
_PAGE: Final = 4096


def lock_byte(handle: int, byte: int, *, classic: bool = False) -> bool:
    """Lock a byte of a file, without waiting; *classic* as Java does. False: it is taken."""
    command = fcntl.F_SETLK if classic else fcntl.F_OFD_SETLK
    wanted = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
    try:
        fcntl.fcntl(handle, command, wanted)
    except (BlockingIOError, PermissionError):
        return False
    return True


def main() -> None:
    """Do what each line on stdin says, and answer with a line."""
    path = Path(sys.argv[1])
    handle = os.open(path, os.O_RDWR)
    pages = mmap.mmap(handle, _PAGE)

    def store(value: str) -> str:
        pages[:8] = struct.pack("<q", int(value))
        return "stored"

    def load(_: str) -> str:
        return str(struct.unpack("<q", pages[:8])[0])

    def grow(length: str) -> str:
        os.ftruncate(handle, int(length))
        os.pwrite(handle, b"end", int(length) - 3)
        return "grown"

    def publish(name: str) -> str:
        new = path.with_name(f"{name}.new")
        new.write_text("whole")
        new.rename(path.with_name(name))
        return "published"

    def create(name: str) -> str:
        try:
            os.close(os.open(path.with_name(name), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            return "exists"
        return "created"

    answers: dict[str, Callable[[str], str]] = {
        "lock": lambda byte: str(lock_byte(handle, int(byte))),
        "classic": lambda byte: str(lock_byte(handle, int(byte), classic=True)),
        "store": store,
        "load": load,
        "grow": grow,
        "publish": publish,
        "create": create,
    }
    for line in sys.stdin:
        verb, _, argument = line.strip().partition(" ")
        sys.stdout.write(f"{answers[verb](argument)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
