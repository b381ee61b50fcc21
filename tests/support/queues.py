"""What the tests of queues share: copies of directories, and what is in them."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import quire
from reference import Store, check_store, is_ready

Message: TypeAlias = tuple[int, int, str]
Snapshot: TypeAlias = dict[str, tuple[str, int, int]]
START_MS = 1_705_314_600_000  # 2024-01-15T10:30:00Z
UNLOCKED = -(2**63)
WRITE_LOCK, APPEND_LOCK = "chronicle.write.lock", "chronicle.append.lock"
DAY_MS = 86_400_000


def copy_of(queue: Path, path: Path) -> Path:
    path.mkdir()
    for file in [*queue.glob("*.cq4"), *queue.glob("*.cq4t")]:
        shutil.copyfile(file, path / file.name)
    return path


def snapshot(path: Path) -> Snapshot:
    """Return content, time of change and mode of each file and of the directory."""
    return {
        file.name: (
            hashlib.sha256(b"" if file.is_dir() else file.read_bytes()).hexdigest(),
            file.stat().st_mtime_ns,
            file.stat().st_mode,
        )
        for file in [path, *path.iterdir()]
    }


def roll_files(path: Path) -> Snapshot:
    return {name: state for name, state in snapshot(path).items() if name.endswith(".cq4")}


def message(index: int, data: bytes | memoryview) -> Message:
    return index, len(data), hashlib.sha256(data).hexdigest()


def forward(queue: quire.JournalQueue) -> list[Message]:
    with queue.tailer() as tailer:
        return [message(excerpt.index, excerpt.data) for excerpt in tailer]


def backward(queue: quire.JournalQueue) -> list[Message]:
    with queue.tailer() as tailer:
        tailer.direction = "backward"
        tailer.to_end()
        return [message(excerpt.index, excerpt.data) for excerpt in tailer]


def problems_of(path: Path) -> list[str]:
    """Name every rule of the format that a queue's roll files break, one file after the other."""
    contents = (file.read_bytes() for file in sorted(path.glob("*.cq4")))
    stores = (Store(data) for data in contents if is_ready(data))
    return [problem for store in stores for problem in check_store(store)]


def payloads(queue: quire.JournalQueue) -> list[bytes]:
    with queue.tailer() as tailer:
        return list(tailer.payloads())


def poke(path: Path, key: str, value: int) -> None:
    """Store a value of the table behind Quire's back, as another process would."""
    table = path / "metadata.cq4t"
    offset, _ = Store(table.read_bytes()).entries()[key]
    handle = os.open(table, os.O_RDWR)
    os.pwrite(handle, struct.pack("<q", value), offset)
    os.close(handle)


def threads_named(name: str) -> set[int]:
    """Return the threads of this process that the system knows by a name, Python's or not."""
    tasks = [*Path("/proc/self/task").iterdir()]
    found = set[int]()
    for task in tasks:
        with suppress(OSError):  # it has ended meanwhile
            if (task / "comm").read_text("utf-8").strip() == name:
                found.add(int(task.name))
    return found


def mapped(path: Path | str) -> list[str]:
    """Return the roll files below a directory that this process has mapped, or parts of them."""
    maps = Path("/proc/self/maps").read_text("utf-8", errors="replace").splitlines()
    return [line for line in maps if f" {path}/" in line and line.endswith(".cq4")]


def fork(work: Callable[[], object]) -> int:
    """Run *work* in a forked child and return its pid; its exit code is 0 if it returned."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it was, the parent must not go on twice
        traceback.print_exc()
    finally:
        os._exit(code)


def exit_code(pid: int) -> int:
    """Wait for a child; minus the signal's number if one ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def store_as(path: Path, name: str, other: bytes) -> None:
    """Give the one tailer of this name another one of as many bytes, which only Java would make."""
    table = path / "metadata.cq4t"
    content = table.read_bytes()
    assert content.count(name.encode()) == 1
    assert len(other) == len(name)
    table.write_bytes(content.replace(name.encode(), other))
