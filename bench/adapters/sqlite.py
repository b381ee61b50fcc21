"""SQLite in WAL mode: one transaction a message, synchronous=NORMAL."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from bench.task import DISTINCT, Outcome, Stopwatch, Task, messages

NAME = "SQLite WAL, a transaction each"


def version() -> str:
    """Return the version of the library."""
    return sqlite3.sqlite_version


def run(task: Task) -> Outcome:
    """Append one message per transaction."""
    pool = [(message,) for message in messages(task.size)]
    with closing(sqlite3.connect(task.queue, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("CREATE TABLE message (number INTEGER PRIMARY KEY, payload BLOB)")
        execute = connection.execute

        def append(rounds: int) -> None:
            for _ in range(rounds):
                for message in pool:
                    execute("INSERT INTO message (payload) VALUES (?)", message)

        append(task.warm_up // DISTINCT)
        with Stopwatch() as watch:
            append(task.count // DISTINCT)
        found = connection.execute("SELECT payload FROM message ORDER BY number").fetchall()
    assert found == pool * (task.total // DISTINCT)
    measured = found[task.warm_up :]
    checksum = sum(int.from_bytes(m[:8], "little") for (m,) in measured)
    return Outcome(watch.nanos, watch.cpu_nanos, len(measured), checksum)
