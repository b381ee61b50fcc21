"""Java's Chronicle Queue, through the programs in interop/."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.task import DISTINCT, Missing, Task

if TYPE_CHECKING:
    from java_peer import JavaPeer

NAME = "Chronicle Queue (Java)"
RELEASE = "5.27ea11"
_ROOT = Path(__file__).resolve().parents[2]
_SUPPORT = _ROOT / "tests" / "support"
_LOOPS = {
    "writingDocument": "append-one",
    "writeBytes": "append-bytes",
    "tailing": "tail",
    "method-write": "method-write",
    "method-read": "method-read",
    "dump": "dump",
}
_PACED = {"paced": False, "paced@micro_touch": True}


def version() -> str:
    """Return the release; the first call builds the programs."""
    _peer()
    return RELEASE


def binary() -> Path:
    """Return a file that changes when the programs are built again."""
    return _ROOT / "interop" / "target" / RELEASE / "built-from"


def command(task: Task) -> list[str]:
    """Return the command line that runs one operation."""
    queue: dict[str, Any] = {
        "dir": task.queue,
        "block_size": task.block_bytes,
        "roll_cycle": task.roll_cycle,
    }
    amounts = {"size": task.size, "count": task.count, "warm_up": task.warm_up}
    if task.duration_ms:
        buffered = task.operation == "doubleBuffer"
        del amounts["count"]
        return _peer().command(
            "contend",
            loop=_LOOPS["writingDocument" if buffered else task.operation],
            double_buffer=buffered,
            writer=task.writer,
            duration_ms=task.duration_ms,
            rate=task.rate or None,
            out=task.out or None,
            distinct=DISTINCT,
            **amounts,
            **queue,
        )
    if task.operation in _LOOPS:
        loop = _LOOPS[task.operation]
        return _peer().command("bench", loop=loop, distinct=DISTINCT, **amounts, **queue)
    if task.operation in _PACED:
        return _peer().command(
            "latency",
            role="produce",
            count=task.total,
            size=task.size,
            rate=task.rate,
            out=task.out,
            warm_up=task.warm_up,
            micro_touch=_PACED[task.operation],
            **queue,
        )
    if task.operation in ("produce", "tail"):
        writing = task.operation == "produce"
        return _peer().command(
            "latency",
            role=task.operation,
            count=task.total,
            size=task.size if writing else None,
            rate=task.rate if writing else None,
            out=task.out,
            warm_up=task.warm_up,
            **queue,
        )
    return _peer().command(
        "aged",
        work=task.operation,
        start=task.start_ms,
        distinct=DISTINCT,
        **amounts,
        **queue,
    )


def main_command(name: str) -> list[str]:
    """Return the command line of one of the library's own mains, without its arguments."""
    java, *options, _main, _verb = _peer().command("none")
    return [java, *options, f"net.openhft.chronicle.queue.{name}"]


@cache
def _peer() -> JavaPeer:
    if str(_SUPPORT) not in sys.path:
        sys.path.append(str(_SUPPORT))
    import java_peer

    try:
        return java_peer.JavaPeer(RELEASE)
    except java_peer.JavaPeerError as error:
        raise Missing(str(error).splitlines()[0]) from error
