"""LMDB: one transaction a message, appended by number, not synchronised to the medium."""

from __future__ import annotations

import struct
from pathlib import Path

from bench.task import DISTINCT, Missing, Outcome, Stopwatch, Task, messages

NAME = "LMDB put, a transaction each"
_MAP_BYTES = 8 << 30
_KEY = struct.Struct(">Q")


def version() -> str:
    """Return the versions of the binding and of the library."""
    try:
        import lmdb
    except ImportError as error:
        raise Missing("lmdb is not installed") from error
    library = ".".join(map(str, lmdb.version()))
    return f"py-lmdb {lmdb.__version__}, LMDB {library}"


def run(task: Task) -> Outcome:
    """Append one message per transaction."""
    import lmdb

    Path(task.queue).mkdir()
    pool, pack = messages(task.size), _KEY.pack
    with lmdb.open(str(task.queue), map_size=_MAP_BYTES, sync=False, writemap=True) as environment:
        begin, written = environment.begin, 0

        def append(rounds: int) -> None:
            nonlocal written
            for _ in range(rounds):
                for message in pool:
                    with begin(write=True) as transaction:
                        transaction.put(pack(written), message, append=True)
                    written += 1

        append(task.warm_up // DISTINCT)
        with Stopwatch() as watch:
            append(task.count // DISTINCT)
        with begin() as transaction:
            found = [value for _, value in transaction.cursor()]
    assert found == pool * (task.total // DISTINCT)
    measured = found[task.warm_up :]
    checksum = sum(int.from_bytes(m[:8], "little") for m in measured)
    return Outcome(watch.nanos, watch.cpu_nanos, len(measured), checksum)
