"""Java's Vanilla Chronicle, through the programs in interop/vanilla."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bench.adapters.quire_older import TID_BITS
from bench.task import DISTINCT, Missing, Task

if TYPE_CHECKING:
    from java_peer import JavaPeer

NAME = "Vanilla Chronicle (Java)"
_ROOT = Path(__file__).resolve().parents[2]
_SUPPORT = _ROOT / "tests" / "support"


def version() -> str:
    """Return the release; the first call builds the programs."""
    return peer().version


def binary() -> Path:
    """Return a file that changes when the programs are built again."""
    return _ROOT / "interop" / "target" / f"vanilla-{version()}" / "built-from"


def command(task: Task) -> list[str]:
    """Return the command line that runs one operation."""
    return peer().command(
        "bench",
        loop=task.operation,
        size=task.size,
        count=task.count,
        warm_up=task.warm_up,
        distinct=DISTINCT,
        dir=task.queue,
    )


@cache
def peer() -> JavaPeer:
    """Return the programs; the first call builds them."""
    if str(_SUPPORT) not in sys.path:
        sys.path.append(str(_SUPPORT))
    import java_peer
    from vanilla_java import vanilla_java

    try:
        return vanilla_java(tid_bits=TID_BITS)
    except java_peer.JavaPeerError as error:
        raise Missing(str(error).splitlines()[0]) from error
