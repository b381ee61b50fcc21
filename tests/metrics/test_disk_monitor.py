"""Warnings of a disk that is almost full, with a disk that is as full as the test says."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import quire
from quire.metrics import DiskMonitor, DiskSpace

GIB = 1 << 30
MIB = 1 << 20


class Disks:
    """File systems whose space is set: that of a path, or the one named ``""`` of all others."""

    def __init__(self) -> None:
        self.free: dict[str, int] = {"": 50 * GIB}
        self.total = 100 * GIB
        self.looks = 0
        self.looked = threading.Event()

    def _name(self, path: str) -> str:
        return path if path in self.free else ""

    def stat(self, path: str) -> Any:  # noqa: ANN401 - as os has it
        if self._name(path) == "" and "missing" in path:
            raise FileNotFoundError(2, "No such file or directory", path)
        return SimpleNamespace(st_dev=hash(self._name(path)))

    def statvfs(self, path: str) -> Any:  # noqa: ANN401
        self.looks += 1
        self.looked.set()
        free = self.free[self._name(path)]
        return SimpleNamespace(f_bavail=free // 4096, f_blocks=self.total // 4096, f_frsize=4096)


@pytest.fixture
def disks(monkeypatch: pytest.MonkeyPatch) -> Disks:
    found = Disks()
    system = SimpleNamespace(stat=found.stat, statvfs=found.statvfs)
    monkeypatch.setattr("quire.metrics.disk_monitor.os", system)
    return found


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "quire")
    return caplog


def test_each_crossing_is_logged_once(disks: Disks, log: pytest.LogCaptureFixture) -> None:
    monitor = DiskMonitor("orders", warn_percent=10)
    levels = []
    for free in (50, 10, 9, 9, 5, 10, 50, 9):
        log.clear()
        disks.free[""] = free * GIB
        low = monitor.look()
        assert low == ([DiskSpace("orders", free * GIB, 100 * GIB)] if free < 10 else [])
        levels.append([record.levelname for record in log.records])
    assert levels == [[], [], ["WARNING"], [], [], ["INFO"], [], ["WARNING"]]


def test_a_warning_names_the_path_and_the_space(
    disks: Disks, log: pytest.LogCaptureFixture
) -> None:
    disks.free[""] = 3 * GIB
    DiskMonitor(["orders"]).look()
    said = "the disk is almost full: path=orders free_bytes=3221225472 free_percent=3.0"
    assert log.messages == [f"{said} warn_percent=5 warn_bytes=209715200"]
    assert log.records[0].name == "quire"


@pytest.mark.parametrize(
    ("free", "limits", "low"),
    [
        (6 * GIB, {}, False),
        (4 * GIB, {}, True),
        (4 * GIB, {"warn_percent": 0}, False),
        (199 * MIB, {"warn_percent": 0}, True),
        (199 * MIB, {"warn_percent": 0, "warn_bytes": "100MiB"}, False),
        (0, {"warn_percent": 0, "warn_bytes": 0}, False),
        (99 * GIB, {"warn_percent": 100}, True),
    ],
)
def test_percent_and_bytes_are_chosen(
    free: int,
    limits: dict[str, Any],
    low: bool,  # noqa: FBT001
    disks: Disks,
) -> None:
    disks.free[""] = free
    assert bool(DiskMonitor("orders", **limits).look()) is low


def test_queues_of_one_file_system_share_a_warning(
    disks: Disks, log: pytest.LogCaptureFixture
) -> None:
    disks.free = {"": GIB, "/other/trades": 2 * GIB}
    low = DiskMonitor(["orders", "fills", "/other/trades"]).look()
    assert [space.path for space in low] == ["orders", "/other/trades"]
    assert len(log.records) == disks.looks == 2


def test_a_path_that_is_missing_is_logged_once(disks: Disks, log: pytest.LogCaptureFixture) -> None:
    disks.free[""] = GIB
    monitor = DiskMonitor(["missing", "orders"])
    for _ in range(3):
        assert [space.path for space in monitor.look()] == ["orders"]
    assert [text.partition(":")[0] for text in log.messages] == [
        "the disk cannot be examined",
        "the disk is almost full",
    ]
    assert "path=missing" in log.messages[0]
    disks.free["missing"] = 50 * GIB
    monitor.look()
    del disks.free["missing"]
    monitor.look()
    assert len(log.records) == 3


def test_an_open_queue_and_its_path_are_the_same(path: Path, queue: quire.JournalQueue) -> None:
    for queues in (queue, path, str(path), [queue], [path]):
        (found,) = DiskMonitor(queues, warn_bytes=2**62).look()
        assert found.path == str(path)
        assert 0 <= found.free <= found.total


def running() -> list[threading.Thread]:
    return [it for it in threading.enumerate() if it.name == "quire disk monitor"]


def test_a_thread_looks_only_when_it_is_started(disks: Disks) -> None:
    with DiskMonitor("orders", interval_s=0.001) as monitor:
        assert not running()
        for _ in range(2):  # it can be started again
            monitor.start()
            monitor.start()
            (thread,) = running()
            assert thread.daemon
            for _ in range(3):
                disks.looked.clear()
                assert disks.looked.wait(300)
            monitor.close()
            monitor.close()
            thread.join(300)
            assert not thread.is_alive()


def test_the_thread_ends_with_its_block(disks: Disks) -> None:
    with DiskMonitor("orders", interval_s=1e9) as monitor:
        monitor.start()
        assert disks.looked.wait(300)
        (thread,) = running()
    thread.join(300)
    assert not thread.is_alive()


def test_it_does_not_hold_up_the_end_of_its_process(tmp_path: Path) -> None:
    program = (
        "import sys, threading; from quire.metrics import DiskMonitor\n"
        "DiskMonitor(sys.argv[1], interval_s=float('inf')).start()\n"
        "print(threading.active_count())"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (ran.returncode, ran.stdout) == (0, "2\n"), ran.stderr


@pytest.mark.parametrize(
    ("queues", "options", "error", "said"),
    [
        ([], {}, ValueError, "no queue to monitor"),
        (5, {}, TypeError, "invalid queues: expected a queue, or its path, found int"),
        ([None], {}, TypeError, "invalid queues: expected a queue, or its path, found None"),
        ("orders", {"warn_percent": 101}, ValueError, "invalid warn_percent"),
        ("orders", {"warn_percent": "5"}, TypeError, "invalid warn_percent"),
        ("orders", {"warn_bytes": -1}, ValueError, "invalid warn_bytes"),
        ("orders", {"warn_bytes": "much"}, ValueError, "invalid warn_bytes: expected a size"),
        ("orders", {"interval_s": 0}, ValueError, "invalid interval_s"),
        ("orders", {"interval_s": -1}, ValueError, "interval_s=-1"),
    ],
)
def test_wrong_arguments_are_refused(
    queues: Any,  # noqa: ANN401 - wrong ones
    options: dict[str, Any],
    error: type[Exception],
    said: str,
) -> None:
    with pytest.raises(error, match=said):
        DiskMonitor(queues, **options)
