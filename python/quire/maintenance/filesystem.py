"""Tests whether a file system keeps what queues rely on, with two processes of this host."""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from quire._common import arguments
from quire._native import network_file_system
from quire.maintenance import filesystem_peer
from quire.maintenance.filesystem_peer import lock_byte
from quire.opening.discovery import check_local

_PAGE: Final = 4096
_GROWN: Final = 1 << 20
_ROUNDS: Final = 20
_PATIENCE_S: Final = 10.0
_POLL_S: Final = 0.01


class FilesystemCheck(NamedTuple):
    """
    One property of a file system.

    Attributes:
        name: What was tried.
        ok: Whether the file system has it.
        found: What happened, if it has not.
        meaning: What queues need it for.

    Examples:
        >>> quire.maintenance.FilesystemCheck("sync", True, "", "sync() is accepted").ok
        True

    """

    name: str
    ok: bool
    found: str
    meaning: str


class FilesystemReport(NamedTuple):
    """
    Whether a file system keeps what queues rely on, from :func:`verify_filesystem`.

    Attributes:
        path: The directory.
        network: The name of the network file system; None if it is local.
        checks: What was tried.

    Examples:
        >>> report = quire.maintenance.FilesystemReport("/mnt/queues", "nfs", ())
        >>> report.network, report.ok
        ('nfs', True)

    """

    path: str
    network: str | None
    checks: tuple[FilesystemCheck, ...]

    @property
    def ok(self) -> bool:
        """
        Whether processes of one host may write queues there.

        On a network file system they need ``allow_network=True``. Processes of several hosts may
        never do so, whatever the checks say. Nor can a check show whether the medium keeps, in a
        power cut, what it has confirmed.
        """
        return all(check.ok for check in self.checks)


def verify_filesystem(path: str | PathLike[str]) -> FilesystemReport:
    """
    Test whether the file system of a directory keeps what queues rely on.

    Two processes of this host use locks, mappings, renames and syncs of files in a directory of
    their own below *path*, which is removed.

    Args:
        path: A directory that may be written to.

    Raises:
        NotADirectoryError: *path* is not a directory.
        PermissionError: The directory cannot be written to.

    Examples:
        >>> report = quire.maintenance.verify_filesystem(".")
        >>> report.ok, report.network
        (True, None)

    """
    place = arguments.path("path", path)
    check_local(place)
    network = network_file_system(place)
    folder = Path(tempfile.mkdtemp(prefix=".quire-check-", dir=place))
    try:
        file = folder / "file"
        file.write_bytes(bytes(_PAGE))
        checks = tuple(_tried(name, meaning, try_it, file) for name, meaning, try_it in _CHECKS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return FilesystemReport(place, network, checks)


class Peer:
    """Another process that has the file open and mapped."""

    def __init__(self, file: Path) -> None:
        """Start it."""
        self._process = subprocess.Popen(  # noqa: S603 - a file of this package
            [sys.executable, "-I", filesystem_peer.__file__, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, verb: str, argument: object = "") -> str:
        """Send the peer a command, and return its answer."""
        assert self._process.stdin is not None  # noqa: S101 - pipes were asked for
        assert self._process.stdout is not None  # noqa: S101
        self._process.stdin.write(f"{verb} {argument}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        if not answer:
            raise OSError(f"the other process failed: step={verb}")
        return answer

    def kill(self) -> None:
        """Kill the peer, and wait for its end."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        """End it."""
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def _tried(
    name: str, meaning: str, try_it: Callable[[Path], str | None], file: Path
) -> FilesystemCheck:
    """Try one property; an error of the system says that it is missing."""
    try:
        found = try_it(file)
    except OSError as error:
        found = str(error)
    return FilesystemCheck(name, found is None, found or "", meaning)


def _range_locks(file: Path) -> str | None:
    with file.open("r+b") as own, Peer(file) as peer:
        if not lock_byte(own.fileno(), 0):
            return "a free byte cannot be locked"
        for verb, other in (("lock", 1), ("classic", 2)):
            if peer.ask(verb, 0) == "True":
                return f"two processes hold a lock of one byte at once: kind={verb}"
            if peer.ask(verb, other) != "True":
                return f"the lock of one byte keeps a process from another byte: kind={verb}"
    return None


def _stale_locks(file: Path) -> str | None:
    with file.open("r+b") as own, Peer(file) as peer:
        if peer.ask("lock", 0) != "True":
            return "a lock of a process that ended earlier is still held"
        peer.kill()
        if not _comes_true(lambda: lock_byte(own.fileno(), 0)):
            return f"the lock of a killed process is held after {_PATIENCE_S:g} s"
    return None


def _mappings(file: Path) -> str | None:
    with file.open("r+b") as own, Peer(file) as peer:
        pages, again = mmap.mmap(own.fileno(), _PAGE), mmap.mmap(own.fileno(), _PAGE)
        for number in range(1, _ROUNDS, 2):
            pages[:8] = struct.pack("<q", number)
            if struct.unpack("<q", again[:8])[0] != number:
                return "a mapping of this process does not show what another one stored"
            if struct.unpack("<q", os.pread(own.fileno(), 8, 0))[0] != number:
                return "a read does not show what a mapping stored"
            if int(peer.ask("load")) != number:
                return "another process does not see what a mapping stored"
            peer.ask("store", number + 1)
            if struct.unpack("<q", pages[:8])[0] != number + 1:
                return "a mapping does not show what another process stored"
    return None


def _growth(file: Path) -> str | None:
    with file.open("r+b") as own, Peer(file) as peer:
        peer.ask("grow", _GROWN)
        if os.fstat(own.fileno()).st_size != _GROWN:
            return "another process does not see that the file became longer"
        with mmap.mmap(own.fileno(), _GROWN) as pages:
            if pages[-3:] != b"end":
                return "a mapping does not show what was written after the file became longer"
        os.ftruncate(own.fileno(), _PAGE)
    return None


def _allocation(file: Path) -> str | None:
    with file.with_name("allocated").open("w+b") as own:
        os.posix_fallocate(own.fileno(), 0, _GROWN)
        blocks = os.fstat(own.fileno()).st_blocks
    return None if blocks * 512 >= _GROWN else "space that was reserved is not allocated"


def _names(file: Path) -> str | None:
    with Peer(file) as peer:
        peer.ask("publish", "published")
        if file.with_name("published").read_text() != "whole":
            return "a file that was renamed into place is not whole"
        if "published" not in os.listdir(file.parent):  # noqa: PTH208 - names alone
            return "the directory does not list a file that was renamed into place"
        if peer.ask("create", "once") != "created" or peer.ask("create", "once") != "exists":
            return "a file is created exclusively twice"
        try:
            file.with_name("once").touch(exist_ok=False)
        except FileExistsError:
            return None
    return "two processes create a file exclusively"


def _syncs(file: Path) -> str | None:
    with file.open("r+b") as own:
        pages = mmap.mmap(own.fileno(), _PAGE)
        pages[:8] = struct.pack("<q", 1)
        pages.flush()
        os.fsync(own.fileno())
    handle = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return None


def _comes_true(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


_CHECKS: Final[tuple[tuple[str, str, Callable[[Path], str | None]], ...]] = (
    ("byte-range locks", "one process at a time makes files and takes over locks", _range_locks),
    ("stale locks", "the lock of a process that died is free again", _stale_locks),
    ("shared mappings", "readers see messages, and writers each other's lock", _mappings),
    ("growing files", "readers follow a file that a writer extends", _growth),
    ("reserved space", "a full disk is an error of an append, not of its process", _allocation),
    ("names", "files appear whole, and are made by one process", _names),
    ("sync", "sync() is accepted; whether the medium keeps it, only a power cut shows", _syncs),
)
