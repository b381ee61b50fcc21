"""Java's Chronicle Queue, through the programs in interop/."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bench.task import BLOCK_BYTES, DISTINCT, ROLL_CYCLE, Missing, Task

if TYPE_CHECKING:
    from java_peer import JavaPeer

NAME = "Chronicle Queue (Java)"
RELEASE = "5.27ea11"
_TESTS = Path(__file__).resolve().parents[2] / "tests"
_LOOPS = {"writingDocument": "append-one", "writeBytes": "append-bytes", "tailing": "tail"}


def version() -> str:
    """Return the release; the first call builds the programs."""
    _peer()
    return RELEASE


def binary() -> Path:
    """Return a file that changes when the programs are built again."""
    return _TESTS.parent / "interop" / "target" / RELEASE / "built-from"


def command(task: Task) -> list[str]:
    """Return the command line that runs one operation."""
    if task.operation in _LOOPS:
        return _peer().command(
            "bench",
            loop=_LOOPS[task.operation],
            dir=task.queue,
            size=task.size,
            count=task.count,
            warm_up=task.warm_up,
            distinct=DISTINCT,
            block_size=BLOCK_BYTES,
            roll_cycle=ROLL_CYCLE,
        )
    return _peer().command(
        "latency",
        role=task.operation,
        dir=task.queue,
        size=task.size if task.operation == "produce" else None,
        count=task.total,
        rate=task.rate if task.operation == "produce" else None,
        out=task.out if task.operation == "tail" else None,
        block_size=BLOCK_BYTES,
        roll_cycle=ROLL_CYCLE,
    )


@cache
def _peer() -> JavaPeer:
    if str(_TESTS) not in sys.path:
        sys.path.append(str(_TESTS))
    import java_peer

    try:
        return java_peer.JavaPeer(RELEASE)
    except java_peer.JavaPeerError as error:
        raise Missing(str(error).splitlines()[0]) from error
