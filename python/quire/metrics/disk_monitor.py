"""A warning before a disk is full, even while nothing is appended."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable
from os import PathLike
from typing import Final, NamedTuple, Self, TypeAlias, cast

from quire._common import arguments, units
from quire._common.known_attributes import KnownAttributes
from quire._native import Queue

_LOG: Final = logging.getLogger("quire")
_PERCENT: Final = arguments.whole(0, 100)
_BYTES: Final = arguments.whole(0, 2**63 - 1)
_END_S: Final = 1.0

_Watched: TypeAlias = "Queue | str | PathLike[str]"


class DiskSpace(NamedTuple):
    """
    The space of a file system.

    Attributes:
        path: The first of the monitor's queues that is on it.
        free: Free bytes.
        total: The size of the file system in bytes.

    Examples:
        >>> from quire.metrics import DiskSpace
        >>> DiskSpace("/data/orders", free=10**9, total=50 * 10**9).free_percent
        2.0

    """

    path: str
    free: int
    total: int

    @property
    def free_percent(self) -> float:
        """The free space, in percent of the file system."""
        return 100 * self.free / self.total if self.total else 100.0


class DiskMonitor(KnownAttributes):
    """
    Warns, through the logger ``quire``, when the disk of a queue is almost full.

    It warns once when the free space of a file system falls below a limit, even while nothing is
    appended, and logs once when there is enough again. Queues on one file system share a warning.
    It also warns, once, about a path that cannot be examined.

    Args:
        queues: Queues or their paths, or a single one. A queue may be closed meanwhile.
        warn_percent: Warn when less than this of the file system is free; 0: never for this reason.
        warn_bytes: Warn when fewer bytes are free: a number, or text such as ``"1 GiB"``.
        interval_s: The interval of the thread's checks.

    Raises:
        ValueError: There is no queue at *path*, or a limit or the interval is out of range.

    Examples:
        >>> from quire.metrics import DiskMonitor
        >>> with DiskMonitor(["orders"], warn_percent=0, warn_bytes=0) as monitor:
        ...     monitor.start()  # looks every second, in a thread
        ...     monitor.look()  # or a step of your own
        []

    """

    def __init__(
        self,
        queues: _Watched | Iterable[_Watched],
        *,
        warn_percent: int = 5,
        warn_bytes: int | str = 200 << 20,
        interval_s: float = 1.0,
    ) -> None:
        """Check the arguments; nothing is examined yet."""
        self._paths: Final = _paths(queues)
        self._warn_percent: Final = cast("int", _PERCENT("warn_percent", warn_percent))
        size = units.size("warn_bytes", warn_bytes)
        self._warn_bytes: Final = cast("int", _BYTES("warn_bytes", size))
        interval = arguments.seconds("interval_s", interval_s)
        if interval == 0:
            raise arguments.out_of_range("interval_s", "more than 0 seconds", interval_s)
        self._interval_s: Final = min(interval, threading.TIMEOUT_MAX)
        # The state at the last check, logged only when it changes.
        self._state: Final = threading.Lock()
        self._low: dict[int, DiskSpace] = {}
        self._unknown: frozenset[str] = frozenset()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def look(self) -> list[DiskSpace]:
        """Check once, log changes, and return the file systems that are almost full."""
        found, failed = self._examine()
        low = {device: space for device, space in found.items() if self._is_low(space)}
        with self._state:
            known, self._low = self._low, low
            unknown, self._unknown = self._unknown, frozenset(failed)
        for path in failed.keys() - unknown:
            _LOG.warning("the disk cannot be examined: path=%s error=%s", path, failed[path])
        for device in low.keys() - known.keys():
            self._log(logging.WARNING, "the disk is almost full", low[device])
        for device in (known.keys() - low.keys()) & found.keys():
            self._log(logging.INFO, "the disk has enough space again", found[device])
        return [*low.values()]

    def start(self) -> None:
        """Check now and then every *interval_s*, in a daemon thread. Idempotent."""
        with self._state:
            if self._thread is not None and self._thread.is_alive():  # not in a forked process
                return
            self._ended = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(self._ended,), name="quire disk monitor", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """End the thread. Idempotent; it can be started again."""
        with self._state:
            thread, self._thread = self._thread, None
            self._ended.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_END_S)  # it may wait for a network file system that does not answer

    def __enter__(self) -> Self:
        """Return the monitor, whose thread ends with the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def _run(self, ended: threading.Event) -> None:
        while not ended.is_set():
            self.look()
            ended.wait(self._interval_s)

    def _examine(self) -> tuple[dict[int, DiskSpace], dict[str, Exception]]:
        """Return the space of each file system by its device, and the paths that have none."""
        found: dict[int, DiskSpace] = {}
        failed: dict[str, Exception] = {}
        for path in self._paths:
            try:
                device = os.stat(path).st_dev  # noqa: PTH116 - beside os.statvfs
                if device not in found:
                    left = os.statvfs(path)
                    free, total = left.f_bavail * left.f_frsize, left.f_blocks * left.f_frsize
                    found[device] = DiskSpace(path, free, total)
            except (OSError, ValueError) as error:
                failed[path] = error
        return found, failed

    def _is_low(self, space: DiskSpace) -> bool:
        return space.free < self._warn_bytes or space.free_percent < self._warn_percent

    def _log(self, level: int, what: str, space: DiskSpace) -> None:
        form = "%s: path=%s free_bytes=%d free_percent=%.1f warn_percent=%d warn_bytes=%d"
        limits = (self._warn_percent, self._warn_bytes)
        _LOG.log(level, form, what, space.path, space.free, space.free_percent, *limits)


def _paths(queues: _Watched | Iterable[_Watched]) -> list[str]:
    several = queues if isinstance(queues, Iterable) and not isinstance(queues, str) else [queues]
    paths = [arguments.queue_path("queues", getattr(it, "path", it)) for it in several]
    if not paths:
        raise ValueError("no queue to monitor: queues=[]")
    return paths
