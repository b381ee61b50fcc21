"""
A disk of some hundred KiB that can be filled to the last byte: a tmpfs that one process sees.

`on_small_disk(path, size, work)` forks, mounts the disk at *path* in namespaces of the child's own
and runs *work* there. Where the system forbids that, the test is skipped with its reason.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from queues import exit_code, fork

PAGE = 4096
KIB = 1024
NO_NAMESPACES = 77
CLONE_NEWNS, CLONE_NEWUSER = 0x0002_0000, 0x1000_0000
MS_RDONLY, MS_REMOUNT = 0x1, 0x20
MS_REC, MS_PRIVATE = 0x4000, 0x4_0000
FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE = 1, 2

_libc = ctypes.CDLL(None, use_errno=True)


def on_small_disk(path: Path, size: int, work: Callable[[Path], int]) -> int:
    """Run *work* in a child on a fresh disk of *size* bytes at *path*; return what it counted."""
    path.mkdir(exist_ok=True)
    receiver, sender = os.pipe()

    def child() -> None:
        try:
            _mount(path, size)
        except OSError as error:
            os.write(sender, str(error).encode())
            os._exit(NO_NAMESPACES)
        os.write(sender, b"%d" % work(path))

    pid = fork(child)
    os.close(sender)
    with os.fdopen(receiver, "rb") as pipe:
        answer = pipe.read().decode()
    code = exit_code(pid)
    if code == NO_NAMESPACES:
        pytest.skip(f"no tmpfs in namespaces of its own: {answer}")
    assert code == 0, "see the child's traceback above"
    return int(answer)


def _mount(path: Path, size: int) -> None:
    uid, gid = os.getuid(), os.getgid()
    # Root may mount without a user namespace; others become root of one.
    _check(_libc.unshare(CLONE_NEWNS | (CLONE_NEWUSER if uid else 0)), "unshare")
    if uid:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    _check(_libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount private")
    options = b"size=%d,nr_inodes=4096" % size
    _check(_libc.mount(b"tmpfs", os.fsencode(path), b"tmpfs", 0, options), "mount tmpfs")


def _check(result: int, what: str) -> None:
    if result:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def free_pages(disk: Path) -> int:
    """Return how many pages are left."""
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize // PAGE


def fill(disk: Path, leave: int = 0) -> None:
    """Take all pages but *leave*, whoever takes some too; `make_room` gives them back."""
    with (disk / "ballast").open("ab") as ballast:
        while (wanted := free_pages(disk) - leave) > 0:
            end = ballast.tell()
            try:
                os.posix_fallocate(ballast.fileno(), end, wanted * PAGE)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                continue  # another process was faster
            ballast.truncate(end + wanted * PAGE)
            ballast.seek(0, os.SEEK_END)


def make_room(disk: Path) -> None:
    """Give back what `fill` took."""
    (disk / "ballast").unlink(missing_ok=True)


def make_read_only(disk: Path) -> None:
    """Refuse all changes from now on."""
    flags = MS_REMOUNT | MS_RDONLY
    _check(_libc.mount(None, os.fsencode(disk), None, flags, None), "remount read-only")


def punch_hole(file: Path, start: int) -> None:
    """Give back the pages of a file from *start* on, as where space was never reserved."""
    start = -(-start // PAGE) * PAGE
    handle = os.open(file, os.O_RDWR)
    try:
        length = os.fstat(handle).st_size - start
        mode = FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE
        arguments = ctypes.c_longlong(start), ctypes.c_longlong(length)
        _check(_libc.fallocate(handle, mode, *arguments), "punch a hole")
    finally:
        os.close(handle)


def is_no_space(error: OSError, suffix: str) -> bool:
    """Whether an error says all it has to: that the disk is full, which file met it, what to do."""
    return (
        error.errno == errno.ENOSPC
        and str(error.filename).endswith(suffix)
        and "make room" in str(error)
    )
