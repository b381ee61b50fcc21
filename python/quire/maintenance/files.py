"""Which processes have the files of a queue open, and which files may be removed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Final, Literal, NamedTuple

from quire._common import arguments
from quire._common.file_identity import Identity, identity_of
from quire.errors import UnsupportedError
from quire.formats.adapters import require_journal
from quire.maintenance.holders import growth_of, holders_of, reader_in
from quire.opening.discovery import check_local
from quire.opening.opener import open_without_key as open_queue

_PROC: Final = Path("/proc")


class FileUser(NamedTuple):
    """
    A process that has a file open or mapped.

    Attributes:
        pid: Its process id.
        command: How it was started; empty if that cannot be seen.

    Examples:
        >>> quire.maintenance.FileUser(4711, "java -jar orders.jar").pid
        4711

    """

    pid: int
    command: str


class FileState(NamedTuple):
    """
    Whether a file is in use, from :func:`quire.file_state`.

    Attributes:
        state: ``open``: at least one process has it open or mapped; ``closed``: none of those that
            could be examined; ``missing``: there is no such file.
        users: The processes that have it open, this one included.
        unseen: How many processes could not be examined, as they belong to other users. Those of
            other containers and machines are never seen.

    Examples:
        >>> quire.file_state("nothing").state
        'missing'

    """

    state: Literal["open", "closed", "missing"]
    users: tuple[FileUser, ...]
    unseen: int


def file_state(file: str | PathLike[str]) -> FileState:
    """
    Return whether a process has a file open, and which.

    Args:
        file: Any file.

    Raises:
        UnsupportedError: The system has no ``/proc``.

    Examples:
        >>> import os
        >>> with quire.open("bids") as queue, queue.appender() as appender:
        ...     _ = appender.write_text("hello")
        ...     path = queue.current_file
        ...     quire.file_state(path).users[0].pid == os.getpid()
        True
        >>> quire.file_state(path).state
        'closed'

    """
    place = arguments.path("file", file)
    check_local(place)
    try:
        identity = identity_of(os.stat(place))  # noqa: PTH116 - also of bytes
    except (FileNotFoundError, NotADirectoryError):
        return FileState("missing", (), 0)
    users, unseen = users_of({identity})
    found = tuple(users.get(identity, ()))
    return FileState("open" if found else "closed", found, unseen)


def removable(path: str | PathLike[str]) -> list[Path]:
    """
    Return the roll files that may be removed, the oldest first.

    The list ends before the first file that a process has open, that a named tailer has not left
    for a later one, or that is damaged or has no end-of-file marker. The newest file is never in
    it. Remove files in this order, so that no gap arises.

    Args:
        path: A queue's directory.

    Raises:
        UnsupportedError: The queue has another format, or the system has no ``/proc``.

    Examples:
        >>> quire.removable("orders")
        []

    """
    place = arguments.path("path", path)
    require_journal(place, "roll files")
    files = [*_read_by_all(place)]
    users, _ = users_of(identities_of(files))
    kept = (number for number, file in enumerate(files) if users.keys() & identities_of([file]))
    return files[: next(kept, len(files))]


def _read_by_all(path: str) -> Iterator[Path]:
    """Yield the finished files that every named tailer has left, but for the newest file."""
    with open_queue(path, read_only=True, create=False) as queue:
        holders = holders_of(queue)
        for cycle in queue.cycles[:-1]:
            if growth_of(queue, cycle) or reader_in(holders, cycle):
                return
            yield Path(queue.file_for_cycle(cycle))


def identities_of(files: Iterable[Path]) -> set[Identity]:
    """Return the identities of those files that exist."""
    found = set[Identity]()
    for file in files:
        with suppress(FileNotFoundError, NotADirectoryError):
            found.add(identity_of(file.stat()))
    return found


def open_reason(files: Iterable[Path]) -> str | None:
    """Return which processes have files open, as the reason to keep them; None if none has."""
    users, _ = users_of(identities_of(files))
    pids = {user.pid for found in users.values() for user in found}
    return reason_of(pids) if pids else None


def reason_of(pids: set[int]) -> str:
    """Return the reason to keep files that processes have open."""
    return f"kept as a process has it open: pid={','.join(map(str, sorted(pids)))}"


def users_of(files: set[Identity]) -> tuple[dict[Identity, list[FileUser]], int]:
    """
    Return the processes that have files open, and how many processes could not be examined.

    Raises:
        UnsupportedError: The system has no ``/proc``.

    """
    if not (_PROC / "self/fd").exists():
        raise UnsupportedError("open files can be listed only on Linux, from /proc")
    users: dict[Identity, list[FileUser]] = {}
    unseen = 0
    for process in _PROC.iterdir():
        if not process.name.isdecimal():
            continue
        try:
            held = files & (_opened(process) | _mapped(process, files))
        except PermissionError:
            unseen += 1
            continue
        except OSError:  # it has ended
            continue
        for identity in held:
            users.setdefault(identity, []).append(FileUser(int(process.name), _command(process)))
    for found in users.values():
        found.sort()
    return users, unseen


def _opened(process: Path) -> set[Identity]:
    found = set[Identity]()
    with os.scandir(process / "fd") as handles:
        for handle in handles:
            with suppress(OSError):  # closed meanwhile
                found.add(identity_of(handle.stat()))
    return found


def _mapped(process: Path, files: set[Identity]) -> set[Identity]:
    """
    Return which of the files a process has mapped.

    By their inode numbers and devices. Some file systems show another device here than for the
    file: then its path decides, and a path that says nothing counts as well.
    """
    found = set[Identity]()
    inodes = {inode for _, inode in files}
    seen = set[tuple[bytes, ...]]()
    maps = (process / "maps").read_bytes()
    # Most processes map none of them, and have thousands of lines.
    if not any(b" %d " % inode in maps for inode in inodes):
        return found
    for line in maps.splitlines():
        words = line.split(None, 5)
        # Address, mode, offset, device, inode, path.
        if len(words) <= 5 or int(words[4]) not in inodes or words[5].endswith(b" (deleted)"):  # noqa: PLR2004
            continue
        mapped = tuple(words[3:])
        if mapped not in seen:
            seen.add(mapped)
            found |= {
                it for it in files if it[1] == int(words[4]) and _is_mapped(it, mapped, process)
            }
    return found


def _is_mapped(file: Identity, mapped: tuple[bytes, ...], process: Path) -> bool:
    """Return whether a mapping with the inode number of a file is one of this file."""
    device, _, path = mapped
    major, _, minor = device.partition(b":")
    if os.makedev(int(major, 16), int(minor, 16)) == file[0]:
        return True
    try:
        named = os.stat(os.fsencode(process / "root") + path)  # noqa: PTH116 - of bytes
    except OSError:
        return True
    return identity_of(named)[1] != file[1] or identity_of(named) == file


def _command(process: Path) -> str:
    with suppress(OSError):
        words = (process / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        return b" ".join(words).decode(errors="replace")
    return ""
