"""
Durable files and folders, atomic renames, and locks that end with the process.

Every lock file, atomic replace and fsync of the package goes through this module. What stands in
a queue, an archive or a pipeline's state may have been made by another user, so `SafeFolder` takes
plain names only, follows no link, and grants no more access than the folder around it does.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from io import BufferedReader, BufferedWriter
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from quire._common.file_identity import identity_of
from quire.errors import LockHeldError, UnsafePathError

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_SAFE: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NOT_FOLLOWED: Final = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}
_OTHERS_WRITE: Final = 0o022
_READ_LIMIT: Final = 64 << 20
_POLL_S: Final = 0.02
_TEMPORARY: Final = re.compile(r"\.(.*?)(\.[0-9a-f]{16})?\.tmp")


class Access(NamedTuple):
    """
    Who may use a folder.

    Attributes:
        mode: The permission bits of a folder; files have those for reading and writing.
        group: The group that its bits are for; None: no group.

    """

    mode: int
    group: int | None = None

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Access:
        """Return that of a folder; where it is not there, its owner's alone."""
        try:
            return cls.shown_by(Path(path).stat())
        except (FileNotFoundError, NotADirectoryError):
            return PRIVATE

    @classmethod
    def shown_by(cls, found: os.stat_result) -> Access:
        """Return that of a folder that this is known of."""
        return cls(stat.S_IMODE(found.st_mode) & 0o777, found.st_gid)

    def __and__(self, other: Access) -> Access:
        """Return what both allow."""
        group = self.group if self.group == other.group else None
        return Access(_without_group(self.mode & other.mode, self.group == other.group), group)

    def mode_in(self, group: int) -> int:
        """Return the permission bits for what belongs to a group."""
        return _without_group(self.mode, self.group == group) | 0o700


PRIVATE: Final = Access(0o700)
"""The owner's alone, as the files of a queue are where nothing else was asked for."""


def _without_group(mode: int, is_same: bool) -> int:  # noqa: FBT001 - one fact of a group
    """Return a mode whose group, if it is another one, may what everybody may."""
    return mode if is_same else mode & 0o707 | (mode & 0o007) << 3


class SafeFolder:
    """
    A folder, held open: its files are named relative to it, by plain names.

    A path that was read from a file is no plain name. Links, pipes and devices are refused, not
    followed; so are folders of users who could not have made them here, and folders that more users
    may write to than to the one around.

    Attributes:
        path: Where it was when it was opened, for texts, and for programs that need a path.

    """

    def __init__(self, path: Path, handle: int) -> None:
        """Take a handle over; use :meth:`at` and :meth:`sub`."""
        self.path: Final = path
        self._handle: Final = handle

    @classmethod
    def at(cls, path: str | os.PathLike[str], create: Access | None = None) -> SafeFolder:
        """
        Open a folder that the user named: links in that path are the user's own.

        Args:
            path: The folder.
            create: Make it, and those above, with this access if it is not there.

        Raises:
            FileNotFoundError: The folder does not exist.

        """
        if create is not None:
            make_folder(Path(path), create)
        return cls(Path(path), os.open(path, _FOLDER_FLAGS))

    def sub(self, name: str) -> SafeFolder:
        """
        Open a folder in this one.

        Raises:
            FileNotFoundError: The folder does not exist.
            UnsafePathError: The entry is a link or not a folder, or another user could have created
                it.

        """
        try:
            handle = os.open(_plain(name), _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=self._handle)
        except OSError as error:
            raise self._refused(error, name, "a folder") from None
        found = SafeFolder(self.path / name, handle)
        try:
            _check_users(os.fstat(handle), os.fstat(self._handle), found.path)
        except UnsafePathError:
            found.close()
            raise
        return found

    def made(self, name: str, access: Access | None = None) -> SafeFolder:
        """
        Open a folder in this one, and make it if it is not there: for good.

        Args:
            name: Its name.
            access: Who may use it then; those who may use this folder if None.

        Raises:
            UnsafePathError: Something other than a folder has this name.

        """
        with contextlib.suppress(FileExistsError):
            os.mkdir(_plain(name), 0o700, dir_fd=self._handle)
            with self.sub(name) as folder:
                folder.give(access or self.access)
        self.sync()
        return self.sub(name)

    def private(self, name: str) -> SafeFolder:
        """Open a folder in this one that is its owner's alone, and make it if it is not there."""
        folder = self.made(name, PRIVATE)
        if os.fstat(folder._handle).st_uid == os.geteuid():  # noqa: SLF001 - its own class
            folder.give(PRIVATE)
        return folder

    def give(self, access: Access) -> None:
        """Let those use the folder, and what is made in it from now on."""
        _give(self._handle, access)

    @property
    def access(self) -> Access:
        """Who may use this folder, and what is made in it."""
        return Access.shown_by(os.fstat(self._handle))

    @property
    def changed(self) -> float:
        """When names in it were last added or removed, in seconds."""
        return os.fstat(self._handle).st_mtime

    @property
    def identity(self) -> tuple[int, int]:
        """Its device and inode number."""
        return identity_of(os.fstat(self._handle))

    def names(self) -> list[str]:
        """Return the names of what is in it, in order."""
        return sorted(os.listdir(self._handle))  # noqa: PTH208 - of a handle

    def folders(self) -> list[str]:
        """Return the names of folders in it, and of links, which :meth:`sub` then refuses."""
        modes = {name: found.st_mode for name in self.names() if (found := self.stat(name))}
        return [name for name, it in modes.items() if stat.S_ISDIR(it) or stat.S_ISLNK(it)]

    def has(self, name: str) -> bool:
        """Whether the name exists, even as a dangling link."""
        return self.stat(name) is not None

    def stat(self, name: str) -> os.stat_result | None:
        """Return what is known of a file, a folder, or of a link itself; None: it is not there."""
        try:
            return os.stat(_plain(name), dir_fd=self._handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self, name: str) -> BufferedReader:
        """
        Open a file to read.

        Raises:
            FileNotFoundError: The file does not exist.
            UnsafePathError: The entry is not a regular file.

        """
        return os.fdopen(self._opened(name, os.O_RDONLY), "rb")

    def read(self, name: str, limit: int = _READ_LIMIT) -> bytes:
        """
        Return what is in a file.

        Raises:
            FileNotFoundError: The file does not exist.
            UnsafePathError: The entry is not a regular file, or the file is longer than *limit*.

        """
        with self.open(name) as file:
            found = file.read(limit + 1)
        if len(found) > limit:
            raise UnsafePathError(f"the file is too long: file={self.path / name} limit={limit}")
        return found

    def create(self, name: str) -> BufferedWriter:
        """
        Make a new file, and open it to write.

        Raises:
            FileExistsError: The name is taken.

        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE
        handle = os.open(_plain(name), flags, 0o600, dir_fd=self._handle)
        self._give_to_owner(handle)
        os.fchmod(handle, self.access.mode_in(os.fstat(handle).st_gid) & 0o666)
        return os.fdopen(handle, "wb")

    def _give_to_owner(self, handle: int) -> None:
        """Give a file that root has just made to the owner of the folder."""
        owner = os.fstat(self._handle)
        if owner.st_uid and os.geteuid() == 0:
            with contextlib.suppress(PermissionError):  # a root of a container that may not
                os.fchown(handle, owner.st_uid, owner.st_gid)

    def update(self, name: str) -> BufferedWriter:
        """
        Open a file to write, without emptying it.

        Raises:
            FileNotFoundError: The file does not exist.
            UnsafePathError: The entry is not a regular file.

        """
        return os.fdopen(self._opened(name, os.O_WRONLY), "wb")

    def temporary(self, name: str) -> str:
        """Return an unguessable hidden name for what becomes the file *name*."""
        return f".{_plain(name)}.{secrets.token_hex(8)}.tmp"

    def replace(self, name: str, content: bytes) -> None:
        """Write a file, atomically replacing one of the same name; errors of the system name it."""
        temporary = self.temporary(name)
        try:
            with self.create(temporary) as file:
                file.write(content)
                flush_and_sync(file)
            self.publish(temporary, name)
        except OSError as error:
            raise named_error(error, self.path / name) from error
        finally:
            with contextlib.suppress(OSError):
                self.remove(temporary)

    def publish(self, temporary: str, name: str) -> None:
        """Atomically rename a complete, fsynced file into place, and fsync the folder."""
        self.move(temporary, self, name)
        self.sync()

    def move(self, name: str, folder: SafeFolder, new: str) -> None:
        """Atomically rename a file into a folder of the same file system."""
        os.rename(_plain(name), _plain(new), src_dir_fd=self._handle, dst_dir_fd=folder._handle)

    def remove(self, name: str) -> None:
        """Remove a file, a link, or a folder with all in it; what resists stays for a later try."""
        found = self.stat(name)
        if found is None:
            return
        if not stat.S_ISDIR(found.st_mode):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._handle)
            return
        with contextlib.suppress(OSError, RecursionError):
            shutil.rmtree(name, dir_fd=self._handle)

    def sweep(self, *endings: str) -> None:
        """
        Remove what a killed process left of :meth:`replace`; its lock has to be held.

        Args:
            endings: How the names end that the lock is for; none: it is for all of the folder.

        """
        for name in self.names():
            found = _TEMPORARY.fullmatch(name)
            if found is not None and (not endings or found[1].endswith(endings)):
                self.remove(name)

    def sync(self) -> None:
        """Return when the names in it are on the medium."""
        os.fsync(self._handle)

    def sync_file(self, name: str) -> None:
        """Return when the content of a file is on the medium."""
        with self.open(name) as file:
            os.fsync(file.fileno())

    def sync_tree(self, seen: set[tuple[int, int]] | None = None) -> None:
        """
        Return when all files below, and their names, are on the medium.

        Args:
            seen: Files that were, by number and time of change; those that are now are added.

        """
        known = set[tuple[int, int]]() if seen is None else seen
        for name in self.names():
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                self._sync_below(name, known)
        self.sync()

    def _sync_below(self, name: str, seen: set[tuple[int, int]]) -> None:
        found = self.stat(name)
        if found is None:
            return
        if stat.S_ISDIR(found.st_mode):
            with self.sub(name) as folder:
                folder.sync_tree(seen)
        elif stat.S_ISREG(found.st_mode) and (found.st_ino, found.st_mtime_ns) not in seen:
            self.sync_file(name)
            seen.add((found.st_ino, found.st_mtime_ns))

    def tree(self) -> list[tuple[str, ...]]:
        """Return the folders below, each by its way from here; this one, ``()``, is the first."""
        found: list[tuple[str, ...]] = [()]
        for name in self.names():
            known = self.stat(name)
            if known is not None and stat.S_ISDIR(known.st_mode):
                with self.sub(name) as folder:
                    found += [(name, *way) for way in folder.tree()]
        return found

    def files(self, suffix: str) -> list[str]:
        """Return the names of plain files that end so, in order."""
        named = [name for name in self.names() if name.endswith(suffix)]
        return [it for it in named if (found := self.stat(it)) and stat.S_ISREG(found.st_mode)]

    @contextmanager
    def below(self, names: Sequence[str], *, make: bool = False) -> Generator[SafeFolder]:
        """Open a folder some levels below; *make* those that are not there."""
        if not names:
            yield self
            return
        first, *others = names
        with (
            (self.made if make else self.sub)(first) as folder,
            folder.below(others, make=make) as found,
        ):
            yield found

    @contextmanager
    def locked(self, name: str, wait_s: float = 0.0) -> Generator[None]:
        """
        Hold a lock file, at most until the process ends.

        Only users who may write to this folder can open it. The holder's pid in the file is for
        messages alone: without room for it, on a full disk, the lock is held all the same.

        Raises:
            HeldError: Another process held the lock for *wait_s* seconds.
            UnsafePathError: The lock file is not a regular file.

        """
        handle = self._opened(name, os.O_RDWR | os.O_CREAT)
        _locked.add(handle)
        try:
            self._check_lock(handle, name)
            _take(handle, self.path / name, wait_s)
            os.ftruncate(handle, 0)
            with contextlib.suppress(OSError):
                os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
            yield
        finally:
            _unlock(handle)

    def _check_lock(self, handle: int, name: str) -> None:
        """Refuse a file with another hard link, and lock out users who may only read."""
        found, path = os.fstat(handle), self.path / name
        if found.st_nlink > 1:
            raise UnsafePathError(f"the lock is another file too: lock={path} (remove it)")
        if not found.st_uid and not found.st_size:
            self._give_to_owner(handle)
            found = os.fstat(handle)
        _check_users(found, os.fstat(self._handle), path)
        writers = self.access.mode_in(found.st_gid) & 0o222
        wanted = writers | writers << 1
        if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) != wanted:
            os.fchmod(handle, wanted)

    def _opened(self, name: str, flags: int) -> int:
        try:
            handle = os.open(_plain(name), flags | _SAFE, 0o600, dir_fd=self._handle)
        except OSError as error:
            raise self._refused(error, name, "a file") from None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise UnsafePathError(f"not a plain file: path={self.path / name}")
        return handle

    def _refused(self, error: OSError, name: str, expected: str) -> Exception:
        path = self.path / name
        if error.errno in _NOT_FOLLOWED:
            return UnsafePathError(f"a link, or not {expected}: path={path} (remove it)")
        return type(error)(error.errno, error.strerror, str(path))

    def close(self) -> None:
        """Close the handle."""
        os.close(self._handle)

    def __enter__(self) -> Self:
        """Return the folder."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the handle."""
        self.close()


@contextmanager
def locked_directory(path: str | os.PathLike[str]) -> Generator[None]:
    """
    Hold a lock on a directory, at most until the process ends.

    Raises:
        BlockingIOError: Another process holds the lock.

    """
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    _locked.add(directory)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        _unlock(directory)


def named_error(error: OSError, path: Path) -> OSError:
    """Return an error of the system with the file that it met, and what helps."""
    why = error.strerror or f"{error}"
    if error.errno == errno.ENOSPC:
        why += " (make room, then run it again)"
    return OSError(error.errno, why, str(path))


def replace_file(path: Path, content: bytes, mode: int) -> None:
    """Write a file under a temporary name, and rename it atomically into place."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    os.chmod(temporary, mode)  # noqa: PTH101
    os.replace(temporary, path)  # noqa: PTH105


def make_folder(path: Path, access: Access = PRIVATE) -> None:
    """
    Make a folder and those above it that are not there, and have their names on the medium.

    Each is made when those above are there for good: where a run was killed, the name of the
    lowest folder alone may not be, and is synced by the next one.
    """
    path = path.absolute()
    missing: list[Path] = []
    lowest = path
    while not lowest.is_dir() and lowest != lowest.parent:
        missing.append(lowest)
        lowest = lowest.parent
    with contextlib.suppress(PermissionError):  # who may not read there has made no folder there
        sync(lowest.parent)
    for folder in reversed(missing):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(0o700)
            handle = os.open(folder, _FOLDER_FLAGS | os.O_NOFOLLOW)
            try:
                _give(handle, access)
            finally:
                os.close(handle)
        sync(folder.parent)


def flush_and_sync(file: BufferedWriter) -> None:
    """Flush a file and make its content durable."""
    file.flush()
    os.fsync(file.fileno())


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _give(handle: int, access: Access) -> None:
    """Set the permissions of a folder that was just made."""
    found = os.fstat(handle)
    mode = access.mode_in(found.st_gid) | found.st_mode & stat.S_ISGID
    if mode != stat.S_IMODE(found.st_mode):
        os.fchmod(handle, mode)


def _plain(name: str) -> str:
    """
    Check that a name is of an entry of the folder itself.

    Raises:
        UnsafePathError: The name contains a directory separator, or is ``.`` or ``..``.

    """
    if name in {"", ".", ".."} or "/" in name or "\0" in name:
        raise UnsafePathError(f"not a plain file name: name={name!r}")
    return name


def _check_users(found: os.stat_result, around: os.stat_result, path: Path) -> None:
    """
    Check that nobody can write to something who cannot write to the folder around it.

    Raises:
        UnsafePathError: Another user can write to the entry, but not to the folder around it.

    """
    writers = 0 if around.st_mode & stat.S_ISVTX else around.st_mode & _OTHERS_WRITE
    if not writers and found.st_uid not in {os.geteuid(), around.st_uid, 0}:
        raise UnsafePathError(f"it belongs to another user: path={path} user={found.st_uid}")
    reachable = (around.st_mode & 0o011) << 1
    if stat.S_ISDIR(found.st_mode) and found.st_mode & reachable & ~writers:
        mode = stat.S_IMODE(found.st_mode)
        raise UnsafePathError(f"others may write there: path={path} mode={mode:o} (use chmod go-w)")


_locked: Final = set[int]()
"""Descriptors of lock files, and of directories that are locked."""


def _give_up_locks() -> None:
    """In a forked child: let the parent's locks end with the parent."""
    if _locked:
        nothing = os.open(os.devnull, os.O_RDWR)
        for handle in _locked:
            os.dup2(nothing, handle, inheritable=False)
        os.close(nothing)


os.register_at_fork(after_in_child=_give_up_locks)


def _unlock(handle: int) -> None:
    """End a lock now, also where a child that was just forked has its descriptor still."""
    _locked.discard(handle)
    fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


def _take(handle: int, path: Path, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                holder = os.pread(handle, 20, 0).decode("ascii", "replace").strip()
                raise LockHeldError.of(path, holder if holder.isdecimal() else "unknown") from None
            time.sleep(_POLL_S)
        else:
            return
