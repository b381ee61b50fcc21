"""What the measurements ran on, and what else ran meanwhile."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE = slice(3, 5)  # idle and iowait, in /proc/stat
_MOMENT_S = 0.2
_COUNTED = 8  # user to steal; guest time is part of user


def describe() -> dict[str, str]:
    """Return what a reader must know about this machine."""
    return {
        "cpu": f"{os.cpu_count()} x {_cpu_name()}",
        "memory": f"{_memory_bytes() / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}, {_distribution()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "java": _java(),
    }


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    virtual = any("hypervisor" in line for line in lines if line.startswith("flags"))
    return (names[0] if names else platform.machine()) + (", virtual" if virtual else "")


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.version()


def _java() -> str:
    if shutil.which("java") is None:
        return "none"
    ran = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)  # noqa: S607
    return (ran.stderr.splitlines() or ["unknown"])[0]


def free_bytes(place: Path) -> int:
    """Return what may be written at a place; on a tmpfs that is memory too."""
    free = shutil.disk_usage(place).free
    if file_system(place) != "tmpfs":
        return free
    for line in Path("/proc/meminfo").read_text("ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return min(free, int(line.split()[1]) << 10)
    return free


def file_system(place: Path) -> str:
    """Return the type of the file system that a directory lies on."""
    found, resolved = ("", "unknown"), str(place.resolve())
    try:
        mounts = Path("/proc/mounts").read_text("utf-8").splitlines()
    except OSError:
        return found[1]
    for line in mounts:
        _, point, kind, *_ = line.split()
        inside = resolved == point or resolved.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(found[0]):
            found = (point, kind)
    return found[1]


@dataclass(slots=True)
class Surroundings:
    """What happened on the machine while something ran."""

    wall_s: float = 0.0
    foreign_cores: float = 0.0
    """Cores used by others: processes that are not ours, the kernel's own, and stolen time."""
    load: float = 0.0
    """Load average of the last minute, at the start."""


@contextmanager
def observed() -> Generator[Surroundings]:
    """Observe until the block ends; the processes it starts must have been waited for by then."""
    seen = Surroundings(load=os.getloadavg()[0])
    begin, busy, own = time.monotonic(), _busy_s(), _own_s()
    yield seen
    seen.wall_s = time.monotonic() - begin
    foreign_s = (_busy_s() - busy) - (_own_s() - own)
    seen.foreign_cores = max(0.0, foreign_s / seen.wall_s)


def tree_s(pid: int) -> float:
    """Return the CPU time of a process and of all that descend from it, in seconds."""
    return sum(ticks for _, ticks in _tree(pid)) / _TICKS


def descendants(pid: int) -> list[int]:
    """Return the processes that descend from one."""
    return [one for one, _ in _tree(pid) if one != pid]


def _tree(pid: int) -> list[tuple[int, int]]:
    """Return a process and its descendants, and the ticks that each used."""
    found: dict[int, tuple[int, int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue  # it ended
        ticks = sum(map(int, fields[11:15]))  # with the children that it waited for
        found[int(stat.parent.name)] = int(fields[1]), ticks
    parents = {one: parent for one, (parent, _) in found.items()}
    return [(one, it[1]) for one, it in found.items() if _descends(one, pid, parents)]


def _descends(one: int, pid: int, parents: dict[int, int]) -> bool:
    while one not in (pid, 0):
        one = parents.get(one, 0)
    return one == pid


def wait_for_a_pause(cores: float, limit_s: float) -> None:
    """Return when others use less CPU than this for a moment, or the limit has passed."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        with observed() as seen:
            time.sleep(_MOMENT_S)
        if seen.foreign_cores < cores:
            return


def _busy_s() -> float:
    try:
        text = Path("/proc/stat").read_text("ascii")
    except OSError:
        return 0.0
    ticks = [int(word) for word in text.splitlines()[0].split()[1:]][:_COUNTED]
    return (sum(ticks) - sum(ticks[_IDLE])) / _TICKS


def _own_s() -> float:
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


@contextmanager
def pinned(cpu: int | None) -> Generator[None]:
    """Have processes that are started in the block run on one CPU; None: on any."""
    if cpu is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def two_cpus() -> tuple[int, int] | None:
    """Return two CPUs to pin to, or None where there are not two, or no way to pin."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    cpus = sorted(os.sched_getaffinity(0))
    return (cpus[-2], cpus[-1]) if len(cpus) > 1 else None
